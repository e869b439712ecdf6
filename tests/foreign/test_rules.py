"""Rules of the format that only trees of other writers put to the test, one by one."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from icetree.codec import manifest
from icetree.errors import CorruptTable, InvalidInput
from icetree.spec.entry.entry import ROOT
from icetree.table.table import Table
from icetree.tree.manifest_dvs import loosened
from tests.foreign.by_hand import Hand, findings
from tests.foreign.drawn import draw_rows, plain_layout
from tests.foreign.dress import Dress
from tests.foreign.judge import as_arrow, counted, require_read_right, scan
from tests.foreign.layout import LAST_WITH_STATS
from tests.foreign.tree import ADDED, DELETED, EXISTING


def _append(hand: Hand, table: Table) -> None:
    rows = draw_rows(Random(5), 900, 2, hand.layout, 0)
    table.append(as_arrow(rows, table, hand.layout.schema))


def _rows(hand: Hand) -> Counter[str]:
    return counted(hand.world().rows(-1), hand.layout.schema)


# --- dead leaves ---------------------------------------------------------------------------------


def test_a_leaf_lives_on_when_its_manifest_dv_names_entries_that_were_deleted_already() -> None:
    hand = Hand()
    gone, kept = hand.data(first_row_id=0), hand.data(first_row_id=10)
    hand.snapshot([hand.file_row(gone)], [gone])
    kept.snapshot_id = kept.sequence_number = kept.file_sequence_number = 2
    leaf = hand.leaf((gone, DELETED), (kept, ADDED))
    hand.snapshot([hand.leaf_row(leaf, ADDED)], [kept], operation="overwrite")
    vector = hand.vector_row(leaf, {0}, added={0})
    hand.snapshot([hand.leaf_row(leaf), vector], [kept], operation="delete")
    world = hand.world()
    table = hand.open()
    require_read_right(world, table)
    _append(hand, table)
    assert _rows(hand) <= scan(table, hand.layout.schema)
    assert findings(table) == ""


def test_a_leaf_goes_when_positions_say_that_nothing_lives_in_it() -> None:
    hand = Hand()
    one, two = hand.data(first_row_id=0), hand.data(first_row_id=10)
    leaf = hand.leaf((one, ADDED), (two, ADDED))
    hand.snapshot([hand.leaf_row(leaf, ADDED)], [one, two])
    hand.snapshot([hand.leaf_row(leaf), hand.vector_row(leaf, {0, 1}, added={0, 1})], [])
    table = hand.open()
    _append(hand, table)
    assert table.inspect.manifests().num_rows == 0


# --- column ids ----------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [LAST_WITH_STATS, LAST_WITH_STATS + 1, 2147483447])
def test_a_column_of_any_id_is_written_read_planned_by_and_verified(id: int) -> None:
    hand = Hand(plain_layout(n=id))
    file = hand.data()
    hand.snapshot([hand.file_row(file)], [file])
    world, table = hand.world(), hand.open()
    require_read_right(world, table)
    _append(hand, table)
    table.refresh()
    added = draw_rows(Random(5), 900, 2, hand.layout, 0)
    expected = [row["n"] for row in (*world.rows(-1), *added) if row["n"] is not None]
    assert sorted(table.scan("n >= -100", columns=["n"]).to_arrow()["n"].to_pylist()) == sorted(
        expected
    )
    assert findings(table) == ""
    has_stats = table.inspect.files()["readable_metrics"].type.get_field_index("n") >= 0
    assert has_stats or id > LAST_WITH_STATS


def test_no_table_is_partitioned_by_a_column_that_can_have_no_stats() -> None:
    hand = Hand(plain_layout(n=LAST_WITH_STATS + 1))
    file = hand.data()
    hand.snapshot([hand.file_row(file)], [file])
    table = hand.open()
    for term in ("n", "truncate(10, n)", "bucket(4, id)"):
        with (
            pytest.raises(InvalidInput, match="too large to have stats"),
            table.transaction() as tx,
            tx.edit_spec() as spec,
        ):
            spec.add(term)


# --- any legal Parquet ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_manifest_is_read_whatever_arrow_schema_its_writer_embedded(seed: int) -> None:
    hand = Hand(dress=Dress(rng=Random(seed), strange=True))
    files = [hand.data(first_row_id=10 * at) for at in range(7)]
    leaf = hand.leaf(*((file, ADDED) for file in files[:4]))
    rows = [hand.leaf_row(leaf, ADDED), *map(hand.file_row, files[4:])]
    hand.snapshot(rows, files)
    require_read_right(hand.world(), hand.open())


def test_days_may_be_numbers() -> None:
    rows = pa.array([3, None], pa.int32())
    from icetree.codec.manifest.types import promote
    from tests.laws.strategies import BY_DAY, PARTITIONED

    found = promote(rows, f"{BY_DAY}:lower", PARTITIONED, "file")
    assert found.type == pa.date32()


# --- null tracking -------------------------------------------------------------------------------


def test_added_root_entries_inherit_from_their_snapshot_what_they_do_not_say() -> None:
    hand = Hand()
    one, two, three = (hand.data() for _ in range(3))
    one.first_row_id, two.first_row_id = 0, one.record_count
    three.first_row_id = one.record_count + two.record_count
    leaf = hand.leaf((two, ADDED))
    silent = dict.fromkeys(
        ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")
    )
    rows = [
        hand.file_row(one, **silent),
        hand.leaf_row(leaf, ADDED, **silent),
        hand.file_row(three, **silent),
    ]
    hand.snapshot(rows, [one, two, three])
    table = hand.open()
    require_read_right(hand.world(), table)
    _append(hand, table)
    assert _rows(hand) <= scan(table, hand.layout.schema)


def test_entries_that_came_earlier_must_say_who_added_them() -> None:
    hand = Hand()
    file = hand.data()
    hand.snapshot([hand.file_row(file, EXISTING, sequence_number=None)], [file])
    with pytest.raises(CorruptTable, match="sequence_number is required"):
        scan(hand.open(), hand.layout.schema)


# --- keys of others ------------------------------------------------------------------------------


def test_key_metadata_of_another_kind_says_nothing_of_a_file_that_is_plain() -> None:
    hand = Hand()
    file = hand.data()
    file.key_metadata = b"of another kind"
    hand.snapshot([hand.file_row(file)], [file])
    table = hand.open()
    require_read_right(hand.world(), table)
    _append(hand, table)
    root = table.files.root(table.snapshot(), table.metadata.shape())
    told = dict(zip(root["location"].to_pylist(), root["key_metadata"].to_pylist(), strict=True))
    assert told.pop(hand.writer.names(file.location)) == b"of another kind"
    assert set(told.values()) == {None}


def test_a_file_that_another_kind_of_key_opens_is_told_to_be_encrypted() -> None:
    hand = Hand()
    file = hand.data()
    file.key_metadata = b"of another kind"
    stored = hand.writer.shop.stored
    stored[file.location] = stored[file.location][:-4] + b"PARE"
    hand.snapshot([hand.file_row(file)], [file])
    with pytest.raises(CorruptTable, match="it is encrypted, and its entry has no standard key"):
        scan(hand.open(), hand.layout.schema)


# --- leaves that are DELETED ---------------------------------------------------------------------


def test_a_deleted_leaf_holds_nothing_and_is_no_change() -> None:
    hand = Hand()
    one, two = hand.data(first_row_id=0), hand.data(first_row_id=10)
    leaf = hand.leaf((one, ADDED), (two, ADDED))
    hand.snapshot([hand.leaf_row(leaf, ADDED)], [one, two])
    fresh = hand.leaf((two, EXISTING), (one, EXISTING))
    rows = [hand.leaf_row(leaf, DELETED, snapshot_id=2), hand.leaf_row(fresh)]
    hand.snapshot(rows, [two, one], operation="replace")
    table = hand.open()
    require_read_right(hand.world(), table)
    _append(hand, table)
    assert _rows(hand) <= scan(table, hand.layout.schema)
    assert findings(table) == ""


def test_verify_tells_of_a_deleted_leaf_whose_files_are_nowhere_else() -> None:
    hand = Hand()
    one, two = hand.data(first_row_id=0), hand.data(first_row_id=10)
    leaf = hand.leaf((one, ADDED), (two, ADDED))
    hand.snapshot([hand.leaf_row(leaf, ADDED)], [one, two])
    rows = [hand.leaf_row(leaf, DELETED, snapshot_id=2), hand.file_row(two, EXISTING)]
    hand.snapshot(rows, [two], operation="delete")
    assert f"is DELETED, but {hand.writer.names(one.location)}, live in it" in findings(hand.open())


# --- tight bounds --------------------------------------------------------------------------------


def test_no_bounds_of_a_leaf_are_tight_under_a_manifest_dv() -> None:
    hand = Hand()
    files = [hand.data(first_row_id=10 * at) for at in range(21)]
    for file in files:
        file.stats = {1: {"lower_bound": 1, "upper_bound": 9, "tight_bounds": True}}
    worn, whole = hand.leaf(*((f, ADDED) for f in files[:-1])), hand.leaf((files[-1], ADDED))
    for leaf in (worn, whole):
        leaf.stats = {1: {"lower_bound": 1, "upper_bound": 9, "tight_bounds": True}}
    hand.snapshot([hand.leaf_row(worn, ADDED), hand.leaf_row(whole, ADDED)], files)
    vector = hand.vector_row(worn, {0}, added={0})
    hand.snapshot([hand.leaf_row(worn), hand.leaf_row(whole), vector], files[1:])
    table = hand.open()
    shape = table.metadata.shape()
    root = table.files.root(table.snapshot(), shape)
    told = dict(zip(root["location"].to_pylist(), root["1:tight"].to_pylist(), strict=True))
    assert told[hand.writer.names(worn.location)] is False
    assert told[hand.writer.names(whole.location)] is True
    assert root.equals(loosened(root))
    # What icetree writes says so by itself.
    _append(hand, table)
    stored = table.files.store.read(f"{table.location}/{table.snapshot().root_manifest}")  # type: ignore[union-attr]
    again = manifest.decode(stored, ROOT, shape, file="root")
    named = dict(zip(again["location"].to_pylist(), again["1:tight"].to_pylist(), strict=True))
    assert named[hand.writer.names(worn.location)] is False


def test_tight_bounds_of_a_column_that_is_false_throughout_are_kept() -> None:
    from icetree.tree.aggregate import aggregate

    entries = pa.table(
        {"7:lower": [False, False], "7:upper": [False, False], "7:tight": [True, True]}
    )
    assert aggregate(entries)["7:tight"].as_py() is True
