"""Install packages with pip, and say so on one line: `install.py VENV WHAT...`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

#: Spark is a source package, of which pip makes a wheel that it unpacks at once. To compress jars,
#: which are compressed, would take longer than all the rest.
#: And few of all modules are ever imported, so Python compiles them when they are.
LOOSE = "[bdist_wheel]\ncompression = stored\n"
WIDTH = 78


def main(venv: str, what: list[str]) -> int:
    """Run pip, and show where it is; show all that it said where it fails."""
    started = time.monotonic()
    seen = sys.stdout.isatty()
    said = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Path(folder, "setup.cfg")
        settings.write_text(LOOSE, encoding="utf-8")
        pip = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "pip",
                "install",
                "--progress-bar",
                "off",
                "--no-compile",
                *what,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "DIST_EXTRA_CONFIG": str(settings), "PYTHONUNBUFFERED": "1"},
        )
        assert pip.stdout is not None  # it is a pipe
        if not seen:
            print(f"Installing into {venv}: some minutes the first time.", flush=True)
        for at in steps(pip.stdout, said):
            if seen:
                line = f"Installing into {venv}: {at}"
                print(f"\r{line[:WIDTH]:<{WIDTH}}", end="", flush=True)
        code = pip.wait()
    if seen:
        print(f"\r{'':<{WIDTH}}\r", end="", flush=True)
    if code:
        print("".join(said), end="")
    else:
        print(f"Installed into {venv} in {time.monotonic() - started:.0f} s.", flush=True)
    return code


def steps(lines: Iterator[str], said: list[str]) -> Iterator[str]:
    """Yield where pip is, as its lines tell, and keep them."""
    found = 0
    for line in lines:
        said.append(line)
        if got := re.match(r"\s+Downloading (\S+?)-\d\S* \((.*)\)", line):
            yield f"{got[1]}, {got[2]}"
        elif got := re.match(r"Collecting ([\w.-]+)", line):
            found += 1
            yield f"{got[1]} ({found} packages so far)"
        elif line.startswith("Building wheels"):
            yield "unpacking Spark"
        elif line.startswith("Installing collected"):
            yield f"writing {line.count(',') + 1} packages"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
