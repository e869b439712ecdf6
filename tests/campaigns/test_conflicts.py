"""The simulation's own page on conflicts: neither more nor less than the one that users read."""

from __future__ import annotations

import pytest

from campaigns.simulate.conflicts import must
from campaigns.simulate.model import DataFile, Did, Part, Row, State
from icetree.tree.changes import Intent

ROWS = tuple(Row(values={1: id}, row_id=id, updated=1) for id in range(3))
OLD = DataFile(name="old", place=(0, ()), rows=ROWS)
BASE = State(id=1, sequence=1, files={"old": OLD})
MARKED = Did(vectors={"old": ROWS[1:2]})


def reasons(intent: Intent, moved: frozenset[str]) -> list[str]:
    part = Part(intent=intent, vectors={"old": frozenset({0})})
    return [*must((part,), MARKED, BASE, serializable=False, moved=moved)]


@pytest.mark.parametrize("intent", [Intent.ROW_DELTA, Intent.DELETE_BY_FILTER])
def test_who_finds_its_rows_in_a_compacted_file_minds_no_dv_of_the_old_one(intent: Intent) -> None:
    assert reasons(intent, frozenset({"old"})) == []


def test_who_marks_rows_where_they_are_minds_the_dv_of_another() -> None:
    assert reasons(Intent.ROW_DELTA, frozenset()) == ["no second DV"]
    assert reasons(Intent.ROW_DELTA, frozenset({"another"})) == ["no second DV"]


def test_a_compaction_of_no_files_minds_nobody() -> None:
    assert not Part(intent=Intent.REWRITE).minds_others
    assert Part(intent=Intent.REWRITE, removed=frozenset({"a"})).minds_others
    assert Part(intent=Intent.REWRITE, lifted=frozenset({"a"})).minds_others
