"""Deep verification of what is legal, and of numbers that nobody can have meant."""

from __future__ import annotations

import resource
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from icetree.errors import CorruptTable
from icetree.rows.write.write import write_files
from tests.foreign import legacy
from tests.foreign.by_hand import Hand, file_of_rows, findings, plain_file, replacement
from tests.foreign.drawn import draw_rows
from tests.foreign.model import File
from tests.foreign.tree import DELETED
from tests.rows.lake import new_lake

MAPS = pa.map_(pa.string(), pa.int64())


@pytest.mark.parametrize("rows", [1 << 36, 1 << 62])
def test_rows_that_an_entry_claims_take_no_memory(rows: int) -> None:
    """Nothing is made as many times as an entry says."""
    hand = Hand()
    one, two = file_of_rows(hand, [0, 1], first=0), plain_file(hand, 4, first=2)
    hand.snapshot([hand.file_row(one), hand.file_row(two) | {"record_count": rows}], [one, two])
    hand.writer.next_row_id = 2 + rows
    last = hand.writer.snapshots[-1]
    hand.writer.snapshots[-1] = replace(last, added_rows=2 + rows)
    table, before = hand.open(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    [found] = table.verify(deep=True).findings
    assert found.rule == f"has 4 rows, its entry says {rows}"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024


def test_a_row_id_below_zero_is_refused_in_older_manifests(monkeypatch: pytest.MonkeyPatch) -> None:
    real = legacy._entry

    def entry(file: File, *told: Any) -> dict[str, object]:
        found = real(file, *told)
        data = found["data_file"]
        if file.content == 0:
            data["first_row_id"] = -5
        return found

    monkeypatch.setattr(legacy, "_entry", entry)
    hand = Hand()
    rows = hand.writer.shop.data(draw_rows(Random(2), 0, 4, hand.layout, 0), 0)
    hand.writer.upgrade_from(3, [rows])
    hand.writer.commit("append", added=[])
    table = hand.open()
    with pytest.raises(CorruptTable, match="a first row id is negative"):
        table.scan().to_arrow()
    assert "a first row id is negative" in {each.rule for each in table.verify().findings}


@pytest.mark.parametrize("keeps_ids", [True, False])
@pytest.mark.parametrize(("pairs", "is_clean"), [([("b", 2), ("a", 1)], True), ([("a", 1)], False)])
def test_a_map_has_no_order(pairs: list[tuple[str, int]], is_clean: bool, keeps_ids: bool) -> None:
    schema = pa.schema([("id", pa.int64()), ("m", MAPS), ("l", pa.list_(MAPS))])
    table = new_lake().create_table("db.t", schema)
    many = [{"id": 1, "m": [("a", 1), ("b", 2)], "l": [[("x", 1)], None, []]}]
    many += [{"id": 2, "m": [], "l": []}, {"id": 3, "m": None, "l": None}]
    table.append(pa.Table.from_pylist(many, schema))
    lineage = ["_row_id", "_last_updated_sequence_number"] if keeps_ids else []
    rows = table.scan(columns=["id", "m", "l", *lineage]).to_arrow().sort_by("id")
    others = pa.array([pairs, [], None], rows.schema.field("m").type)
    rows = rows.set_column(1, rows.schema.field("m"), others)
    new = write_files(
        rows, metadata=table.metadata, store=table.files.store, keep_lineage=keeps_ids
    )
    table.rewrite(table.scan().plan().tasks["location"].to_pylist(), new)
    told = [each.rule for each in table.verify(deep=True).findings]
    assert told == ([] if is_clean else ["is a replacement, but changes values of rows"])


def test_a_file_that_comes_back_may_have_another_spec() -> None:
    hand = Hand()
    file = hand.data(spec_id=1)
    while len({row["name"] for row in file.rows}) > 1:
        file = hand.data(spec_id=1)
    first = replace(file, spec_id=0, partition=())
    hand.snapshot([hand.file_row(first)], [first])
    hand.snapshot([hand.file_row(first, DELETED, snapshot_id=2)], [], operation="delete")
    file.snapshot_id = file.sequence_number = file.file_sequence_number = 3
    file.first_row_id = hand.writer.next_row_id
    hand.snapshot([hand.file_row(file)], [file])
    assert not findings(hand.open())


def test_a_finding_counts_a_snapshot_once() -> None:
    [found] = replacement(list.pop).verify(deep=True).findings
    assert found.snapshots == 1
    assert "more" not in str(found)
