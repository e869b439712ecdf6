"""Nothing public is left out of the reference."""

from __future__ import annotations

import re
from pathlib import Path

from docs.make.reference_parts import NEXT, REFUSED, STATEMENTS, _declared
from icetree import errors
from icetree.table.rows.clauses import Clauses
from tests.public_names import INNER, functions, held, reached

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"


#: What has those that stand in for it in the reference.
ABSTRACT = frozenset({Clauses})


def test_everything_that_people_hold_or_call_is_in_the_reference() -> None:
    """Whatever one comes to from the package's public names, in the rooms that people deal with."""
    pages = "".join((REFERENCE / name).read_text() for name in ("python.md", "python-spark.md"))
    named = set(re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE))
    assert reached() >= INNER
    rooms = ("icetree.table.", "icetree.spark.", "icetree.spec.edit.")
    for_people = [each for each in held() - ABSTRACT if each.__module__.startswith(rooms)]
    assert len(for_people) > 30
    public = {f"{each.__module__}.{each.__qualname__}" for each in (*for_people, *functions())}
    assert public - named == set()


def test_every_statement_has_an_example_and_none_is_of_another_time() -> None:
    assert _declared() == {*STATEMENTS, *REFUSED} & _declared()


def test_every_error_says_what_to_do() -> None:
    known = {
        name
        for name, each in vars(errors).items()
        if isinstance(each, type) and issubclass(each, errors.IcetreeError)
    }
    assert known == NEXT.keys()


def test_every_logger_is_in_the_reference() -> None:
    told = re.findall(
        r"^\| `(icetree[\w.]*)` \|", (REFERENCE / "metrics.md").read_text(), re.MULTILINE
    )
    loggers = {
        ".".join(("icetree", *path.relative_to(ROOT / "icetree").with_suffix("").parts))
        for path in (ROOT / "icetree").rglob("*.py")
        if "getLogger(__name__)" in path.read_text()
    }
    assert loggers
    assert {each for each in loggers if not each.startswith(tuple(told))} == set()
