"""The repository is the same on every machine: it names none, and no place to download from."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Folders that belong to one machine, at the start of a path.
MACHINE_PATH = re.compile(r"(?<![\w.)}])/(work|root)/")

# Where packages come from is the business of each machine's own settings.
DOWNLOAD = re.compile(r"\w+://|index-url|find-links|trusted-host")
INSTALL_FILES = {"pyproject.toml", "constraints.txt", "Makefile", "run"}


#: A file of Python has so many lines at most; longer ones say why at their top.
MOST_LINES = 400
LONG = {Path("vectors/check.py")}


def text_files() -> Iterator[tuple[Path, str]]:
    """Yield every text file that is not generated, by path from the root."""
    for folder, inner, names in os.walk(ROOT):
        inner[:] = [name for name in inner if name == ".ci" or not name.startswith((".", "__"))]
        # In a work tree of its own, `.git` is a file that says where the repository is.
        for name in (name for name in names if name != ".git"):
            content = Path(folder, name).read_bytes()
            if b"\0" not in content:
                yield Path(folder, name).relative_to(ROOT), content.decode()


def test_no_file_names_a_folder_of_one_machine() -> None:
    assert [path for path, text in text_files() if MACHINE_PATH.search(text)] == []


def test_no_file_of_python_is_too_long_to_be_read_at_once() -> None:
    code = [(path, text) for path, text in text_files() if path.suffix == ".py"]
    assert {path for path, text in code if text.count("\n") > MOST_LINES} == LONG


def test_no_install_file_names_an_address() -> None:
    named = [path for path, text in text_files() if path.name in INSTALL_FILES]
    assert len(named) >= 3
    assert [path for path in named if DOWNLOAD.search((ROOT / path).read_text())] == []


def test_every_version_is_pinned_exactly() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [pin for pin in pins if not re.fullmatch(r"[\w.-]+==[\w.]+", pin)] == []


def test_ci_says_that_it_is_ci_before_it_checks() -> None:
    """Where it is not told, a jar that is missing leaves tests out."""
    lines = (ROOT / ".ci/run").read_text().splitlines()
    assert lines.index("export CI=true") < lines.index("make check")
