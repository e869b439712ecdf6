"""Lies of older roots, of other branches and of columns that have gone: deep verification names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from icetree.table.table import Table
from tests.foreign.by_hand import Hand, findings, plain_file
from tests.foreign.columns import Json
from tests.foreign.model import File
from tests.foreign.parquet import manifest
from tests.foreign.tree import ADDED, EXISTING

# --- what older roots and other branches tell -----------------------------------------------------


def _lie(entry: Json, lie: str, hand: Hand) -> Json:
    """Return what an entry tells, with a lie."""
    id = hand.layout.column("id").id
    match lie:
        case "bounds":
            told = {"lower_bound": -9, "upper_bound": -8}
            return entry | {"content_stats": entry["content_stats"] | {id: told}}
        case "nulls":
            told = {"value_count": entry["record_count"], "null_value_count": 1}
            return entry | {"content_stats": entry["content_stats"] | {id: told}}
        case "offsets":
            return entry | {"split_offsets": [5]}
        case "spec":
            name = hand.layout.column("name").id
            told = {"lower_bound": "bob", "upper_bound": "bob"}
            lied = entry["content_stats"] | {name: told}
            return entry | {"partition_spec_id": 1, "content_stats": lied}
    raise AssertionError(lie)


_LIES = [
    ("bounds", "lower bound of id is -9", "upper bound of id is -8"),
    ("nulls", "nulls of id is 1", ""),
    ("offsets", "split offset 5", ""),
    ("spec", "its partition spec id is", ""),
]


@pytest.mark.parametrize("where", ["root", "leaf"])
@pytest.mark.parametrize(("lie", "says", "or_says"), _LIES)
def test_what_only_an_older_root_tells_falsely_is_named(
    lie: str, says: str, or_says: str, where: str
) -> None:
    hand = Hand()
    file = hand.data()
    row = _lie(hand.file_row(file), lie, hand)
    if where == "root":
        hand.snapshot([row], [file])
    else:
        hand.snapshot([_leaf_of(hand, row, file)], [file])
    hand.snapshot([hand.file_row(file, EXISTING)], [file])
    report = hand.open().verify(deep=True)
    told = [
        each for each in report.findings if says in each.rule or (or_says and or_says in each.rule)
    ]
    assert told
    assert {each.snapshot_id for each in told} <= {1, 2}


def _leaf_of(hand: Hand, row: Json, file: File) -> Json:
    """Return the root's row of a leaf that holds one row, which need not tell the truth."""
    leaf = hand.leaf((file, ADDED))
    content = manifest([row], "data", hand.layout)
    stored = hand.writer.shop.store("metadata", "-forged.parquet", content)
    leaf.location, leaf.size, leaf.stats = stored, len(content), {}
    return hand.leaf_row(leaf, ADDED)


@pytest.mark.parametrize(("lie", "says", "or_says"), _LIES)
def test_what_only_another_branch_tells_falsely_is_named(lie: str, says: str, or_says: str) -> None:
    hand = Hand()
    file, new = hand.data(), hand.data(number=2, first_row_id=10)
    hand.snapshot([hand.file_row(file)], [file])
    other = _lie(hand.file_row(file, EXISTING), lie, hand)
    hand.snapshot([other, hand.file_row(new)], [file, new])
    hand.snapshot([hand.file_row(file, EXISTING)], [file])
    # The newest is of the first, as another branch is.
    hand.writer.snapshots[-1] = replace(hand.writer.snapshots[-1], parent=1)
    told = findings(hand.open())
    assert says in told or (or_says and or_says in told)


# --- columns that have gone since ------------------------------------------------------------------


def _forged(column: str, told: Json) -> Table:
    """Return a table of one file of many rows, whose entry tells this of a column."""
    hand = Hand()
    file = plain_file(hand, 6)
    row = hand.file_row(file)
    stats = row["content_stats"] | {hand.layout.column(column).id: told}
    hand.snapshot([row | {"content_stats": stats}], [file])
    return hand.open()


def _drop(table: Table, name: str) -> None:
    with table.edit_schema() as edit:
        edit.drop(name)


def _rename(table: Table, name: str) -> None:
    with table.edit_schema() as edit:
        edit.rename(name, "other")


def _replace(table: Table, name: str) -> None:
    _drop(table, name)
    with table.edit_schema() as edit:
        edit.add(name, "string")


_CHANGES = [_drop, _rename, _replace]


@pytest.mark.parametrize("change", _CHANGES)
@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"lower_bound": -900, "upper_bound": -899}, "upper bound of {} is -899, but it has"),
        ({"value_count": 6, "null_value_count": 6}, "nulls of {} is 6, but there are 0"),
    ],
)
def test_lies_of_a_column_that_scans_of_the_past_believe_are_named(
    told: Json, says: str, change: Callable[[Table, str], None]
) -> None:
    table = _forged("n", told)
    change(table, "n")
    past = table.scan("n >= 0", at=1).to_arrow()
    assert past.num_rows < 6, "the lie is believed"
    table.refresh()
    names = {_drop: "n", _rename: "other", _replace: f"n#{_id_of('n')}"}
    assert says.format(names[change]) in findings(table)


def _id_of(column: str) -> int:
    return Hand().layout.column(column).id


@pytest.mark.parametrize("change", _CHANGES)
def test_the_truth_of_a_column_that_has_gone_is_clean(change: Callable[[Table, str], None]) -> None:
    hand = Hand()
    file = plain_file(hand, 6)
    hand.snapshot([hand.file_row(file)], [file])
    table = hand.open()
    change(table, "n")
    table.append(pa.table({"id": [99]}))
    assert findings(table.refresh()) == ""
