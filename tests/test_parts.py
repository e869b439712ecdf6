"""Each test is of one part: `make test` needs nobody else, and CI leaves nothing out."""

from __future__ import annotations

import re

import pytest

from tests import parts
from tests.jars import REPOSITORY, fetched

#: A place that is a single test.
ONE = next(place for place in parts.PLACES if "::" in place)
MAKEFILE = (REPOSITORY / "Makefile").read_text(encoding="utf-8")


def recipe(target: str) -> str:
    """Return what a target of the Makefile runs."""
    [found] = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    return str(found)


@pytest.mark.parametrize("place", parts.PLACES)
def test_a_place_that_is_named_has_tests(place: str) -> None:
    file, _, test = place.partition("::")
    at = REPOSITORY / file
    assert f"def {test}" in at.read_text() if at.is_file() else list(at.glob("**/test_*.py"))


def test_others_take_part_by_place_or_by_fixture() -> None:
    assert parts.is_interop("tests/peers/test_zoo.py::test_x")
    assert parts.is_interop("tests/serve/test_writing.py::test_x[1]")
    assert parts.is_interop(ONE)
    assert parts.is_interop(f"{ONE}[a]")
    assert not parts.is_interop(f"{ONE}_too")
    assert not parts.is_interop(ONE.partition("::")[0])
    assert not parts.is_interop("tests/serve/test_writing_more.py::test_x")
    assert not parts.is_interop("tests/table/test_x.py::test_x", ["tmp_path"])
    assert parts.is_interop("tests/table/test_x.py::test_x", ["tmp_path", "java"])


def test_a_test_of_the_usual_run_that_asks_for_a_peer_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="name its file"):
        fetched("iceberg-java")


def test_ci_runs_both_parts_and_they_are_all() -> None:
    of_test, of_interop = (
        re.findall(r'-m "(.*)"', recipe(target)) for target in ("test", "interop")
    )
    assert of_test == ["not interop and not long"]
    assert of_interop == ["interop and not long"]
    assert recipe("check").splitlines()[-1].strip() == "@$(TESTS)"
    assert "-m" not in re.findall(r"pytest (.*)", MAKEFILE)[0].split()
    assert "make check" in (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
