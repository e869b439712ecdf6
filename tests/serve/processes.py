"""A server as people run it: a process of its own, on a port of this machine that was free."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path


@dataclass(frozen=True)
class Running:
    """A server process, its address, and where its log goes."""

    uri: str
    process: subprocess.Popen[str]
    log: Path


def _await(uri: str) -> None:
    """Wait until a server that says where it is answers there."""
    if uri.startswith("http:"):
        connection = HTTPConnection(uri.removeprefix("http://"), timeout=30)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()


@contextmanager
def running(folder: Path, *options: str) -> Iterator[Running]:
    """Serve the catalog in a folder until the block ends."""
    command = [
        sys.executable, "-m", "icetree",
        "--catalog", f"sqlite:///{folder}/c.db", "--warehouse", str(folder / "lake"),
        "serve", "--port", "0", *options,
    ]  # fmt: skip
    log = folder / "server.log"
    with log.open("a") as writing:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writing, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"https?://[\w.:]+", line):
                _await(found[0])
                yield Running(found[0], process, log)
                break
        else:
            raise AssertionError(f"the server did not start: {log.read_text()}")
    finally:
        process.terminate()
        process.communicate(timeout=30)
