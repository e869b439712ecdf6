"""The tests that PyIceberg ships in its source package, as they are but for three addresses."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path


def unpacked(folder: Path) -> Path:
    """Return PyIceberg's source package, of the version that is installed; fetched once."""
    name = f"pyiceberg-{version('pyiceberg')}"
    if not (folder / name / "tests").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--no-binary", "pyiceberg", "--dest", str(folder), name.replace("-", "==")]
        subprocess.run(command, check=True)
        with tarfile.open(folder / f"{name}.tar.gz") as package:
            package.extractall(folder, filter="data")
    return folder / name


def readdressed(source: Path, folder: Path, places: Mapping[str, str]) -> Path:
    """Copy tests and the program that prepares their tables; each place named becomes another."""
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("tests", "dev"):
        shutil.copytree(source / part, folder / part)
    shutil.copy(source / "pyproject.toml", folder)
    for file in folder.rglob("*.py"):
        text = old = file.read_text(encoding="utf-8")
        for place, other in places.items():
            text = text.replace(place, other)
        if text != old:
            file.write_text(text, encoding="utf-8")
    return folder
