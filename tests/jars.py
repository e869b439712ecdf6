"""What tests need and that is no part of icetree, Java above all: `make interop` fetches it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.parts import require_interop

REPOSITORY = Path(__file__).parents[1]


def place_of(target: str) -> Path:
    """Return where a target of `make` puts what it fetches, be it there or not."""
    told = subprocess.run(
        ["make", "--silent", "--no-print-directory", f"{target}-path"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(told.stdout.strip())


def fetched(target: str) -> Path:
    """Return what a target fetched; where it is missing the test cannot run, which CI must not pass.

    Only tests that others take part in may ask.
    """
    require_interop(target)
    place = place_of(target)
    if not place.exists():
        missing = f"{place} is missing: run `make {target}`, which fetches it"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    return place
