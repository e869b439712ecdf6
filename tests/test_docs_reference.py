"""Nothing public is left out of the reference."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path

from docs.make.reference_parts import NEXT, REFUSED, STATEMENTS, _declared
from icetree import errors
from tests.public_names import functions, held
from tests.test_language import HELD

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"


#: What those rooms have for themselves, though something public returns it.
INNER = frozenset({"State", "Moment", "Held", "Cache", "Clauses"})


def test_everything_that_people_hold_or_call_is_in_the_reference() -> None:
    """Whatever one comes to from the package's public names, in the rooms that people deal with."""
    pages = "".join((REFERENCE / name).read_text() for name in ("python.md", "python-spark.md"))
    named = set(re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE))
    found = held()
    assert {each.__name__ for each in found} >= INNER
    for_people = [
        each
        for each in found
        if each.__module__.startswith(("icetree.table.", "icetree.spark."))
        and each.__name__ not in INNER
    ]
    assert len(for_people) > 30
    public = {f"{each.__module__}.{each.__qualname__}" for each in (*for_people, *functions())}
    assert public - named == set()


def test_what_people_hold_speaks_one_language() -> None:
    """`tests/test_language.py` looks at everything that has verbs; what tells of an outcome has none."""
    has_verbs = {
        each
        for each in held()
        if each.__module__.startswith(("icetree.table.", "icetree.spark."))
        and not is_dataclass(each)
        and not issubclass(each, Enum)
        and each.__name__ not in INNER
    }
    assert has_verbs - {*HELD} == set()


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
