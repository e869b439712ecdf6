"""Commits aside, seen at once or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from typing_extensions import override

from icetree.catalog.base import Outcome, Swap, Unknown
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitExhausted, CommitUnknown
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.together import aside, land
from tests.table.lake import SCHEMA, connection, data_file, live


def test_commits_aside_are_seen_only_when_they_land() -> None:
    lake = connection()
    one, other = (lake.create_table(f"db.{name}", SCHEMA) for name in "ab")
    sides = [aside(one), aside(other)]
    for side in sides:
        side.table.append_files([data_file("a")])
        side.table.append_files([data_file("b")])
    assert one.refresh().current_snapshot is None
    land(lake.catalog, sides)
    for table in (one, other):
        assert len([*table.refresh().history()]) == 2
        assert [each[-1] for each in live(table)] == ["a", "b"]


def test_none_of_them_lands_where_another_came_first() -> None:
    lake = connection()
    one, other = (lake.create_table(f"db.{name}", SCHEMA) for name in "ab")
    sides = [aside(one), aside(other)]
    for side in sides:
        side.table.append_files([data_file("a")])
    other.append_files([data_file("first")])
    with pytest.raises(CommitExhausted, match=r"db\.a, db\.b: another commit came first"):
        land(lake.catalog, sides)
    assert one.refresh().current_snapshot is None
    assert len([*other.refresh().history()]) == 1


@pytest.mark.parametrize("happens", [True, False])
def test_a_lost_answer_is_looked_for(happens: bool) -> None:
    class Silent(MemoryCatalog):
        @override
        def swap_all(self, swaps: Sequence[Swap]) -> Outcome:
            if happens:
                super().swap_all(swaps)
            return Unknown(reason="silence")

    lake = Lake(catalog=Silent("m"), store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    sides = [aside(lake.create_table(f"db.{name}", SCHEMA)) for name in "ab"]
    for side in sides:
        side.table.append_files([data_file("a")])
    if happens:
        land(lake.catalog, sides)
    else:
        with pytest.raises(CommitUnknown, match="may or may not have happened"):
            land(lake.catalog, sides)
    assert all(bool(lake.table(f"db.{name}").current_snapshot) is happens for name in "ab")
