"""A server as people run it: a process of its own, on a port of this machine that was free."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Running:
    """A server process and its address."""

    uri: str
    process: subprocess.Popen[str]


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Running]:
    """Serve the catalog in a folder until the block ends."""
    command = [
        sys.executable, "-m", "icetree",
        "--catalog", f"sqlite:///{folder}/c.db", "--warehouse", str(folder / "lake"),
        "serve", "--port", "0", *options,
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if found := re.search(r"https?://[\w.:]+", line):
                yield Running(found[0], process)
                break
        else:
            raise AssertionError(f"the server did not start: {''.join(said)}")
    finally:
        process.terminate()
        process.communicate(timeout=30)
