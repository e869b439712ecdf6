"""What only files themselves show: lies of other writers that deep verification names, one by one."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.table.scan.told import End
from icetree.table.scan.told import told as metadata_tells
from icetree.table.table import Table
from icetree.table.verify.findings import Kind
from tests.foreign.by_hand import Hand, findings
from tests.foreign.columns import Json, Row
from tests.foreign.drawn import draw_rows
from tests.foreign.judge import require_read_right
from tests.foreign.model import File, rows_of
from tests.foreign.parquet import manifest
from tests.foreign.tree import ADDED, DELETED, EXISTING
from tests.table.damage import flipped

# --- position delete files of v2 ------------------------------------------------------------------

Named = list[tuple[str | None, int | None]]


class Old:
    """A table that was of v2: a data file of four rows, and position deletes of them."""

    def __init__(self) -> None:
        self.hand = Hand()
        rows: list[Any] = []
        while len(rows) != 4:
            self.file = self.hand.writer.shop.new_data(0)
            rows = self.file.rows

    def table(self, named: Named, **told: Any) -> Table:
        writer = self.hand.writer
        gone = frozenset(row for _, row in named if row in range(4))
        deletes = writer.shop.position_file(self.file, named, ((self.file, gone),), **told)
        self.deletes = deletes
        writer.upgrade_from(2, [self.file, deletes])
        writer.commit("append", added=[])
        return self.hand.open()


def test_sound_position_deletes_are_clean_and_read() -> None:
    old = Old()
    path = old.file.location
    table = old.table([(path, 0), (path, 3)], path_bounds=(path, path), only_of=old.file)
    require_read_right(old.hand.world(), table)
    assert table.scan().count() == 2


def test_a_file_may_have_many_position_delete_files_and_a_dv() -> None:
    old = Old()
    writer, path = old.hand.writer, old.file.location
    files = [
        writer.shop.position_file(
            old.file, [(path, row)], ((old.file, frozenset({row})),), only_of=old.file
        )
        for row in (0, 3)
    ]
    writer.upgrade_from(2, [old.file, *files])
    writer.commit("append", added=[])
    require_read_right(old.hand.world(), old.hand.open())
    writer.commit("overwrite", added=writer.shop.vectors({0: (old.file, frozenset({0, 1, 3}))}))
    table = old.hand.open()
    require_read_right(old.hand.world(), table)
    assert table.scan().count() == 1


def test_position_deletes_of_a_file_that_has_gone_are_legal() -> None:
    old = Old()
    table = old.table([(old.file.location, 0), ("memory://foreign/db/t/data/gone.parquet", 999)])
    assert findings(table) == ""


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("own", 4), "it deletes row 4 of data/1.parquet, which has 4"),
        (("own", -1), "a position delete names row -1"),
        (("own", None), "a position delete names no row: its position is null"),
        ((None, 1), "a position delete names no data file: its path is null"),
    ],
)
def test_a_position_delete_of_what_cannot_be_is_named(
    row: tuple[str | None, int | None], says: str
) -> None:
    old = Old()
    path, number = row
    table = old.table([(old.file.location, 1), (path and old.file.location, number)])
    assert old.deletes.location.endswith("positions.parquet")
    assert says.replace("data/1.parquet", _short(old.file)) in findings(table)


def _short(file: File) -> str:
    return file.location.removeprefix("memory://foreign/db/t/")


def test_path_bounds_that_leave_a_position_delete_out_are_named() -> None:
    old = Old()
    bounds = ("memory://foreign/zz", "memory://foreign/zzz")
    table = old.table([(old.file.location, 1)], path_bounds=bounds)
    assert table.scan().count() == 4, "the deleted row is back"
    assert "lower bound of file_path is" in findings(table)


def test_position_deletes_of_other_files_than_their_entry_says_are_named() -> None:
    old = Old()
    other = old.hand.writer.shop.new_data(0)
    table = old.table([(old.file.location, 1)], only_of=other)
    assert f"it deletes rows of {_short(old.file)}, but its entry says" in findings(table)


def test_a_damaged_page_of_position_deletes_is_named_by_its_checksum() -> None:
    old = Old()
    table = old.table([(old.file.location, 77), (old.file.location, 1)])
    store, place = table.files.store, old.deletes.location
    sink = pa.BufferOutputStream()
    plain = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    rows = pq.read_table(pa.BufferReader(store.read(place)))
    pq.write_table(rows, sink, write_page_checksum=True, store_schema=False, **plain)
    content = sink.getvalue().to_pybytes()
    store.delete([place])
    store.write_new(place, flipped(content, content.index((77).to_bytes(8, "little"))))
    told = [f for f in table.verify(deep=True).findings if f.file == _short(old.deletes)]
    assert Kind.CHECKSUM in {each.kind for each in told}


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
    file = _plain(hand, 6)
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
    file = _plain(hand, 6)
    hand.snapshot([hand.file_row(file)], [file])
    table = hand.open()
    change(table, "n")
    table.append(pa.table({"id": [99]}))
    assert findings(table.refresh()) == ""


# --- what files say of themselves -----------------------------------------------------------------

_FAR = 0x1122334455667788


def _told_by_footer(hand: Hand, price: Sequence[float | None] = (None, None)) -> File:
    """Return a file of two rows whose footer tells the larger id, in some of the usual ways."""
    rows = draw_rows(Random(5), 1, 2, hand.layout, 0)
    for row, each in zip(rows, price, strict=True):
        row["price"] = each
    rows[1]["id"] = _FAR
    while True:
        file = hand.writer.shop.data(rows, 0)
        footer = _footer(hand.writer.shop.stored[file.location])
        if _FAR.to_bytes(8, "little") in footer:
            file.snapshot_id = file.sequence_number = file.file_sequence_number = hand.number
            file.first_row_id = 0
            return file


def _footer(content: bytes) -> bytes:
    return content[len(content) - 8 - int.from_bytes(content[-8:-4], "little") :]


@pytest.mark.parametrize("lies", [False, True])
def test_a_footer_that_makes_scans_pass_over_rows_is_named(lies: bool) -> None:
    hand = Hand()
    file = _told_by_footer(hand)
    stored = hand.writer.shop.stored
    if lies:
        content = stored[file.location]
        footer = _footer(content)
        lied = footer.replace(_FAR.to_bytes(8, "little"), (1).to_bytes(8, "little"))
        stored[file.location] = content.removesuffix(footer) + lied
    hand.snapshot([hand.file_row(file)], [file])
    table = hand.open()
    assert table.scan(f"id = {_FAR}").count() == (0 if lies else 1)
    said = findings(table)
    assert ("upper bound of id is 1, but it has" in said) == lies
    assert lies or said == ""


def test_a_footer_with_a_bound_that_is_nan_says_nothing() -> None:
    hand = Hand()
    file = _told_by_footer(hand, price=[1.5, 33.75])
    stored = hand.writer.shop.stored
    content, most = stored[file.location], struct.pack("<d", 33.75)
    footer = _footer(content)
    assert most in footer
    nan = footer.replace(most, struct.pack("<d", math.nan))
    stored[file.location] = content.removesuffix(footer) + nan
    hand.snapshot([hand.file_row(file)], [file])
    assert findings(hand.open()) == ""


@pytest.mark.parametrize("nulls", [{}, {"null_value_count": 4}])
def test_a_tight_bound_of_no_value_is_named(nulls: Json) -> None:
    hand = Hand()
    n = hand.layout.column("n").id
    some, none = _plain(hand, 4), _plain(hand, 4, first=4)
    none = hand.writer.shop.data([row | {"n": None} for row in none.rows], 0)
    none.snapshot_id = none.sequence_number = none.file_sequence_number = hand.number
    none.first_row_id = 4
    values = [row["n"] for row in some.rows]
    honest = {"lower_bound": min(values), "upper_bound": max(values), "null_value_count": 0}
    lie = {"lower_bound": -7, "upper_bound": -7, **nulls}
    rows = []
    for file, told in ((some, honest), (none, lie)):
        row = hand.file_row(file)
        told |= {"value_count": 4, "tight_bounds": True}
        rows.append(row | {"content_stats": row["content_stats"] | {n: told}})
    hand.snapshot(rows, [some, none])
    table = hand.open()
    least = End(what="min", field_id=n)
    found = metadata_tells(table.scan(), [least])
    assert found is not None
    assert found.ends[least].as_py() == (min(values) if nulls else -7)
    assert "lower bound of n is tight at -7, but it has no value" in findings(table)


def test_equality_ids_that_differ_between_snapshots_are_named() -> None:
    hand = Hand()
    file = hand.data()
    hand.snapshot([hand.file_row(file)], [file])
    deletes = hand.writer.shop.equality(file)
    while len(deletes.keys) < 2:
        deletes = hand.writer.shop.equality(file)
    deletes.snapshot_id = deletes.sequence_number = deletes.file_sequence_number = 2
    deletes.stats = {}
    hand.snapshot([hand.file_row(file, EXISTING), hand.file_row(deletes)], [file, deletes])
    less = hand.file_row(deletes, EXISTING) | {"equality_ids": deletes.equality_ids[:1]}
    hand.snapshot([hand.file_row(file, EXISTING), less], [file, deletes])
    assert "its equality ids are" in findings(hand.open())


# --- who rows say they are ------------------------------------------------------------------------


def _of_rows(
    hand: Hand, ids: list[int | None], ages: list[int | None] | None = None, *, first: int = 0
) -> File:
    """Return a file that the next snapshot adds, of rows that say who they are."""
    rows = draw_rows(Random(3), 100 + first, len(ids), hand.layout, 0)
    for at, row in enumerate(rows):
        row["_row_id"] = ids[at]
        row["_last_updated_sequence_number"] = ages[at] if ages else None
    file = hand.writer.shop.data(rows, 0, lineage=True)
    file.snapshot_id = file.sequence_number = file.file_sequence_number = hand.number
    file.first_row_id = first
    return file


def _plain(hand: Hand, count: int, *, first: int = 0) -> File:
    file = hand.writer.shop.data(draw_rows(Random(2), first, count, hand.layout, 0), 0)
    file.snapshot_id = file.sequence_number = file.file_sequence_number = hand.number
    file.first_row_id = first
    return file


def _vector(hand: Hand, file: File, gone: set[int]) -> File:
    [vector] = hand.writer.shop.vectors({0: (file, frozenset(gone))})
    vector.snapshot_id = vector.sequence_number = vector.file_sequence_number = hand.number
    return vector


def test_rows_that_were_changed_keep_their_ids_and_are_clean() -> None:
    hand = Hand()
    old = _plain(hand, 4)
    hand.snapshot([hand.file_row(old)], [old])
    new, vector = _of_rows(hand, [1, 3, None], first=4), _vector(hand, old, {1, 3})
    live = [old, new, vector]
    hand.snapshot([hand.file_row(old, EXISTING), *map(hand.file_row, live[1:])], live)
    require_read_right(hand.world(), hand.open())


@pytest.mark.parametrize("later", [False, True])
def test_a_row_id_of_a_live_row_elsewhere_is_named(later: bool) -> None:
    hand = Hand()
    old = _plain(hand, 4)
    hand.snapshot([hand.file_row(old)], [old])
    new, vector = _of_rows(hand, [1, 3], first=4), _vector(hand, old, {1})
    live = [old, new, vector]
    hand.snapshot([hand.file_row(old, EXISTING), *map(hand.file_row, live[1:])], live)
    if later:
        # Only a snapshot of the past has both.
        gone = [hand.file_row(each, DELETED, snapshot_id=3) for each in (old, vector)]
        hand.snapshot([*gone, hand.file_row(new, EXISTING)], [new], operation="delete")
    assert f"row id 3 is that of a live row of {_short(new)} too" in findings(hand.open())


def test_a_row_id_that_two_files_hold_is_named() -> None:
    hand = Hand()
    one, two = _of_rows(hand, [0, 1], first=0), _of_rows(hand, [2, 1], first=2)
    hand.snapshot([hand.file_row(one), hand.file_row(two)], [one, two])
    assert f"row id 1 is that of a live row of {_short(one)} too" in findings(hand.open())


def test_a_row_id_that_a_file_holds_twice_is_named() -> None:
    hand = Hand()
    file = _of_rows(hand, [0, 1, 1])
    hand.snapshot([hand.file_row(file)], [file])
    assert "two of its live rows have row id 1" in findings(hand.open())


def test_rows_that_a_dv_took_may_have_had_any_id() -> None:
    hand = Hand()
    file = _of_rows(hand, [0, 1, 1])
    vector = _vector(hand, file, {2})
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
    file = _of_rows(hand, ids, ages)
    hand.snapshot([hand.file_row(file)], [file])
    assert says in findings(hand.open())


# --- replacements ---------------------------------------------------------------------------------


def _replacement(
    change: Callable[[list[Row]], None], *, vector: bool = False, lineage: bool = True
) -> Table:
    """Return a table of two snapshots: the second rewrites the only file, more or less the same."""
    hand = Hand()
    old = _plain(hand, 4)
    files = [old, _vector(hand, old, {2})] if vector else [old]
    hand.snapshot(list(map(hand.file_row, files)), files)
    rows = rows_of(files, hand.layout)
    change(rows)
    new = hand.writer.shop.data(rows, 0, lineage=lineage)
    new.snapshot_id = new.file_sequence_number = hand.number
    new.sequence_number, new.first_row_id = 1, 4
    gone = [hand.file_row(each, DELETED, snapshot_id=2) for each in files]
    hand.snapshot([*gone, hand.file_row(new)], [new], operation="replace")
    return hand.open()


def _other_value(rows: list[Row]) -> None:
    rows[1]["note"] = "changed"


def _other_id(rows: list[Row]) -> None:
    rows[1]["_row_id"] = 4


def _other_age(rows: list[Row]) -> None:
    rows[1]["_last_updated_sequence_number"] = 0


@pytest.mark.parametrize("vector", [False, True])
def test_a_replacement_that_moves_rows_is_clean(vector: bool) -> None:
    assert findings(_replacement(list.reverse, vector=vector)) == ""


def test_a_replacement_by_who_keeps_no_row_ids_is_clean_but_for_other_values() -> None:
    assert findings(_replacement(list.reverse, lineage=False)) == ""
    told = findings(_replacement(_other_value, lineage=False))
    assert "is a replacement, but changes values of rows" in told


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("vector", [False, True])
def test_a_replacement_that_loses_a_row_is_named(vector: bool, deep: bool) -> None:
    report = _replacement(list.pop, vector=vector).verify(deep=deep)
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
    assert f"is a replacement, but {says}" in findings(_replacement(change))


def test_a_replacement_that_only_deletes_otherwise_must_delete_the_same_rows() -> None:
    hand = Hand()
    file = _plain(hand, 4)
    before = _vector(hand, file, {1})
    hand.snapshot([hand.file_row(file), hand.file_row(before)], [file, before])
    after = _vector(hand, file, {2})
    rows = [hand.file_row(file, EXISTING), hand.file_row(before, DELETED, snapshot_id=2)]
    hand.snapshot([*rows, hand.file_row(after)], [file, after], operation="replace")
    assert "is a replacement, but changes values of rows" in findings(hand.open())
