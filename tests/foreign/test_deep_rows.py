"""Rows that are not who they say, and replacements that change rows: deep verification names them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.foreign.by_hand import (
    Hand,
    file_of_rows,
    findings,
    plain_file,
    replacement,
    short,
    vector_of,
)
from tests.foreign.columns import Row
from tests.foreign.judge import require_read_right
from tests.foreign.tree import DELETED, EXISTING

# --- who rows say they are ------------------------------------------------------------------------


def test_rows_that_were_changed_keep_their_ids_and_are_clean() -> None:
    hand = Hand()
    old = plain_file(hand, 4)
    hand.snapshot([hand.file_row(old)], [old])
    new, vector = file_of_rows(hand, [1, 3, None], first=4), vector_of(hand, old, {1, 3})
    live = [old, new, vector]
    hand.snapshot([hand.file_row(old, EXISTING), *map(hand.file_row, live[1:])], live)
    require_read_right(hand.world(), hand.open())


@pytest.mark.parametrize("later", [False, True])
def test_a_row_id_of_a_live_row_elsewhere_is_named(later: bool) -> None:
    hand = Hand()
    old = plain_file(hand, 4)
    hand.snapshot([hand.file_row(old)], [old])
    new, vector = file_of_rows(hand, [1, 3], first=4), vector_of(hand, old, {1})
    live = [old, new, vector]
    hand.snapshot([hand.file_row(old, EXISTING), *map(hand.file_row, live[1:])], live)
    if later:
        # Only a snapshot of the past has both.
        gone = [hand.file_row(each, DELETED, snapshot_id=3) for each in (old, vector)]
        hand.snapshot([*gone, hand.file_row(new, EXISTING)], [new], operation="delete")
    assert f"row id 3 is that of a live row of {short(new)} too" in findings(hand.open())


def test_a_row_id_that_two_files_hold_is_named() -> None:
    hand = Hand()
    one, two = file_of_rows(hand, [0, 1], first=0), file_of_rows(hand, [2, 1], first=2)
    hand.snapshot([hand.file_row(one), hand.file_row(two)], [one, two])
    assert f"row id 1 is that of a live row of {short(one)} too" in findings(hand.open())


def test_a_row_id_that_a_file_holds_twice_is_named() -> None:
    hand = Hand()
    file = file_of_rows(hand, [0, 1, 1])
    hand.snapshot([hand.file_row(file)], [file])
    assert "two of its live rows have row id 1" in findings(hand.open())


def test_rows_that_a_dv_took_may_have_had_any_id() -> None:
    hand = Hand()
    file = file_of_rows(hand, [0, 1, 1])
    vector = vector_of(hand, file, {2})
    hand.snapshot([hand.file_row(file), hand.file_row(vector)], [file, vector])
    assert findings(hand.open()) == ""


@pytest.mark.parametrize(
    ("ids", "ages", "says"),
    [
        ([7], [1], "a row has row id 7, but the next one to give out is 1"),
        ([-3], [1], "a row has row id -3"),
        ([0], [2], "a row was last updated by sequence number 2, above its file's, 1"),
        ([0], [-1], "a row has last updated sequence number -1"),
    ],
)
def test_a_row_that_cannot_be_who_it_says_is_named(
    ids: list[int | None], ages: list[int | None], says: str
) -> None:
    hand = Hand()
    file = file_of_rows(hand, ids, ages)
    hand.snapshot([hand.file_row(file)], [file])
    assert says in findings(hand.open())


# --- replacements ---------------------------------------------------------------------------------


def _other_value(rows: list[Row]) -> None:
    rows[1]["note"] = "changed"


def _other_id(rows: list[Row]) -> None:
    rows[1]["_row_id"] = 4


def _other_age(rows: list[Row]) -> None:
    rows[1]["_last_updated_sequence_number"] = 0


@pytest.mark.parametrize("vector", [False, True])
def test_a_replacement_that_moves_rows_is_clean(vector: bool) -> None:
    assert findings(replacement(list.reverse, vector=vector)) == ""


def test_a_replacement_by_who_keeps_no_row_ids_is_clean_but_for_other_values() -> None:
    assert findings(replacement(list.reverse, lineage=False)) == ""
    told = findings(replacement(_other_value, lineage=False))
    assert "is a replacement, but changes values of rows" in told


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("vector", [False, True])
def test_a_replacement_that_loses_a_row_is_named(vector: bool, deep: bool) -> None:
    report = replacement(list.pop, vector=vector).verify(deep=deep)
    before = 3 if vector else 4
    told = f"is a replacement, but puts {before - 1} live rows in the place of {before}"
    assert told in [each.rule for each in report.findings]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_other_value, "changes values of rows"),
        (_other_id, "changes ids of rows"),
        (_other_age, "changes when rows were last updated"),
    ],
)
def test_a_replacement_that_changes_rows_is_named(
    change: Callable[[list[Row]], None], says: str
) -> None:
    assert f"is a replacement, but {says}" in findings(replacement(change))


def test_a_replacement_that_only_deletes_otherwise_must_delete_the_same_rows() -> None:
    hand = Hand()
    file = plain_file(hand, 4)
    before = vector_of(hand, file, {1})
    hand.snapshot([hand.file_row(file), hand.file_row(before)], [file, before])
    after = vector_of(hand, file, {2})
    rows = [hand.file_row(file, EXISTING), hand.file_row(before, DELETED, snapshot_id=2)]
    hand.snapshot([*rows, hand.file_row(after)], [file, after], operation="replace")
    assert "is a replacement, but changes values of rows" in findings(hand.open())
