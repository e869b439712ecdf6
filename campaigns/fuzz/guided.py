"""The same targets, guided by what each input covers of the code that reads it.

Runs where Atheris is installed, which has wheels for some versions of Python only. It knows the
coverage of Python alone: targets that are mostly Arrow's C++ gain nothing by it.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from campaigns.fuzz.confine import SECONDS_AN_INPUT, confine

_PACKAGES: Final = [
    f"icetree.{room}" for room in ("codec", "files", "filters", "rows", "spec", "table", "tree")
]
_MOST_MB: Final = 4096
_EXECUTED: Final = re.compile(r"stat::number_of_executed_units:\s+(\d+)")


def is_installed() -> bool:
    """Tell whether the fuzzer is there."""
    return find_spec("atheris") is not None


def attack(target: str, seeds: Sequence[bytes], *, seconds: float, seed: int) -> tuple[int, str]:
    """Let the fuzzer loose on a target; return how many inputs it tried, and what it found."""
    with tempfile.TemporaryDirectory() as folder:
        corpus, found = Path(folder, "corpus"), Path(folder, "found-")
        corpus.mkdir()
        for number, each in enumerate(seeds):
            (corpus / str(number)).write_bytes(each)
        options = {
            "max_total_time": max(1, int(seconds)),
            "seed": seed,
            "timeout": SECONDS_AN_INPUT,
            "rss_limit_mb": _MOST_MB,
            "artifact_prefix": found,
            "print_final_stats": 1,
        }
        words = [f"-{name}={value}" for name, value in options.items()]
        done = subprocess.run(
            [sys.executable, "-m", "campaigns.fuzz.guided", target, str(corpus), *words],
            capture_output=True,
            check=False,
        )
        said = done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace")
        tried = _EXECUTED.search(said)
        bad = [path.read_bytes() for path in Path(folder).glob("found-*")]
    wrong = f"{bad[0]!r}: {_reason(said)}" if bad else ""
    if done.returncode and not bad:
        wrong = f"exit {done.returncode}: {_reason(said)}"
    return int(tried.group(1)) if tried else 0, wrong


def _reason(said: str) -> str:
    lines = [line for line in said.splitlines() if "Error" in line or "Exception" in line]
    return (lines or said.splitlines()[-1:] or [""])[-1]


def main() -> None:
    """Run in a process of its own: the fuzzer never returns."""
    import atheris

    name = sys.argv.pop(1)
    with atheris.instrument_imports(include=_PACKAGES):
        from campaigns.fuzz.targets import TARGETS, seeds_of

    target: Any = TARGETS[name]
    for sound in seeds_of(name):
        target.outcome(sound)
    confine()

    def one(data: bytes) -> None:
        error = target.outcome(data)
        if error is not None:
            raise error

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
