"""The conflict matrix, cell by cell: what each intent tolerates of what others did meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from icetree.tree.changes import Changes, Intent
from icetree.tree.conflict.conflict import CHECKS, MATRIX, OWN_CHECKS, Isolation, When, as_markdown
from tests.tree.conflicts import CHANGES, NEW, OTHERS, conflicts, data_dv, entries, names

#: A: a conflict under every isolation. S: only under serializable. -: none.
GRID = """
                     append  delete  delete-f  overwrite  overwrite-f  partitions  delta  rewrite
nothing                -       -        -          -          -            -         -       -
data there             -       -        S          S          S            S         S       -
data elsewhere         -       -        -          -          -            -         -       -
A removed              -       A        A          A          A            A         A       A
neighbour removed      -       -        -          S          A            A         S       -
C removed              -       -        -          -          -            -         -       -
A compacted            -       A        A          A          A            A         A       A
neighbour compacted    -       -        -          -          -            A         -       -
DV on A                -       -        -          A          A            A         A       A
DV on A rewritten      -       -        -          -          -            -         A       -
DV of A removed        -       -        A          A          A            A         A       A
DV of A shrunk         -       -        A          A          A            A         A       A
DV on neighbour        -       -        -          S          A            A         S       -
DV on C                -       -        -          -          -            -         -       -
equality on A          -       -        -          A          A            A         A       -
equality on all        -       -        -          A          A            A         A       -
equality beside A      -       -        -          -          -            A         -       -
equality on C          -       -        -          -          -            -         -       -
"""


def cells() -> list[tuple[Intent, str, str]]:
    found = []
    for line in GRID.strip("\n").splitlines()[1:]:
        name, *outcomes = line[:21].strip(), *line[21:].split()
        found += [(intent, name, outcome) for intent, outcome in zip(Intent, outcomes, strict=True)]
    return found


@pytest.mark.parametrize(("intent", "what", "outcome"), cells())
def test_each_intent_meets_each_kind_of_commit_as_the_grid_says(
    intent: Intent, what: str, outcome: str
) -> None:
    found = {
        isolation: bool(conflicts(CHANGES[intent], OTHERS[what], isolation=isolation))
        for isolation in Isolation
    }
    assert found == {
        Isolation.SNAPSHOT: outcome == "A",
        Isolation.SERIALIZABLE: outcome in "AS",
    }


def test_the_grid_leaves_nothing_out() -> None:
    assert [(intent, what) for what in OTHERS for intent in Intent] == [
        (intent, what) for intent, what, _ in cells()
    ]


def test_every_check_finds_something_in_the_grid() -> None:
    found: set[str] = set()
    for intent, what, _ in cells():
        found |= names(conflicts(CHANGES[intent], OTHERS[what]))
        # Of files that nobody can look up, any may be of another spec.
        found |= names(conflicts(CHANGES[intent], OTHERS[what], lookup=None))
    assert found == {check.name for check in CHECKS}


def test_a_check_that_the_matrix_never_makes_is_never_reported() -> None:
    for intent, what, _ in cells():
        for isolation in Isolation:
            for name in names(conflicts(CHANGES[intent], OTHERS[what], isolation=isolation)):
                when = MATRIX[intent, name]
                assert when is When.ALWAYS or (
                    when is When.SERIALIZABLE and isolation is Isolation.SERIALIZABLE
                )


def test_an_append_conflicts_with_nothing_whatever_it_adds() -> None:
    changes = Changes(intent=Intent.APPEND, added=entries(NEW, data_dv("A", 1)))
    assert conflicts(changes, *OTHERS.values()) == []
    assert {MATRIX[Intent.APPEND, check.name] for check in (*CHECKS, *OWN_CHECKS)} == {When.NEVER}


def test_the_page_in_the_docs_is_the_matrix_in_the_code() -> None:
    page = Path(__file__).parents[2] / "docs" / "conflicts.md"
    assert page.read_text(encoding="utf-8") == as_markdown()
