"""The quick forms of laws find what is planted: a law that nothing breaks says little."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.laws.planted import PLANTED, PLANTED_IN_CHILD

REPOSITORY = Path(__file__).parents[2]
_FAILED = 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("planted", "laws"), [(name, laws) for name, each in PLANTED.items() for laws in each.laws]
)
def test_the_quick_form_of_a_law_finds_what_is_planted(planted: str, laws: str) -> None:
    """The laws run as they do usually, in a process of their own, and the first that breaks ends it."""
    usual = {name: value for name, value in os.environ.items() if "ICETREE_LAWS" not in name}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "tests.laws.planted"]
    command += ["-p", "no:cacheprovider", "-m", "(law or hypothesis) and not long"]
    done = subprocess.run(
        [*command, laws],
        cwd=REPOSITORY,
        env={**usual, PLANTED_IN_CHILD: planted},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == _FAILED, done.stdout[-2_000:] + done.stderr[-2_000:]
    assert "AssertionError" in done.stdout or "icetree.errors" in done.stdout, done.stdout[-2_000:]
