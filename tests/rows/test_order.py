"""Rows in order: the same whether they fit memory or are parted on disk, and files as one asks for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField, StringType

from icetree.rows.write import order as ordering
from icetree.rows.write.fit import fitted
from icetree.rows.write.order import Sorted, ZOrdered, in_order
from icetree.rows.write.pack import PackedSize, layout_of, write_packed
from icetree.rows.write.stats import StatsGatherer, stats_of
from icetree.spec.entry.metrics import FULL, Mode
from icetree.spec.schema.shape import Shape, SortKey
from tests.effort import EFFORT
from tests.rows.lake import new_table, rows

FIELDS = (
    NestedField(1, "n", LongType()),
    NestedField(2, "x", DoubleType()),
    NestedField(3, "s", StringType()),
)
SHAPE = Shape(schema=Schema(*FIELDS), expressions={}, specs={0: ()}, default_spec_id=0)
ORDERS = {
    "sorted": Sorted(
        keys=(SortKey(source_id=3, descending=True, nulls_first=False), SortKey(source_id=1)),
        shape=SHAPE,
    ),
    "z-order": ZOrdered(field_ids=(1, 2, 3), shape=SHAPE),
}


def _batches(seed: int) -> list[pa.RecordBatch]:
    draw = random.Random(seed)
    found = []
    for _ in range(draw.randint(1, 6)):
        size = draw.randint(1, 60)
        found.append(
            pa.RecordBatch.from_pylist(
                [
                    {
                        "n": draw.choice([None, *range(30)]),
                        "x": draw.choice([None, float("nan"), -0.0, 0.0, draw.random()]),
                        "s": draw.choice([None, "", "long and longer", "lo", "z" * 20]),
                    }
                    for _ in range(size)
                ],
                pa.schema([("n", pa.int64()), ("x", pa.float64()), ("s", pa.string())]),
            )
        )
    return found


def _sorted_plainly(batches: list[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Return rows by `s`, the greatest first and nulls last, and then by `n`, nulls first."""
    found = pa.Table.from_batches(batches).to_pylist()
    found.sort(key=lambda row: (row["n"] is not None, row["n"] or 0))
    found.sort(key=lambda row: (row["s"] is not None, row["s"] or ""), reverse=True)
    return found


@pytest.mark.law
@pytest.mark.parametrize("seed", range(6 * EFFORT))
@pytest.mark.parametrize("kind", ORDERS)
def test_rows_are_sorted_alike_in_memory_and_on_disk(kind: str, seed: int) -> None:
    batches, order = _batches(seed), ORDERS[kind]
    asked = []

    def read(fields: frozenset[int] | None) -> Iterator[pa.RecordBatch]:
        asked.append(fields)
        names = [each.name for each in FIELDS if fields is None or each.field_id in fields]
        return (each.select(names) for each in batches)

    whole = pa.concat_tables(in_order(read, order))
    assert asked == [None]
    parted = list(in_order(read, order, held_bytes=500, key_bytes=(None, 16, 32)[seed % 3]))
    assert len(asked) == 3 or whole.nbytes <= 500
    assert rows(pa.concat_tables(parted)) == rows(whole)
    if kind == "sorted":
        assert repr(pa.concat_tables(parted).to_pylist()) == repr(whole.to_pylist())
        assert repr(whole.to_pylist()) == repr(_sorted_plainly(batches))


def test_a_sample_is_thinned_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "_SAMPLED_ROWS", 10)
    batches = pa.table({"n": np.arange(1_000)}).to_batches(max_chunksize=7)
    sample, total = ordering._sample(iter(batches))
    assert total == 1_000
    assert sample.num_rows <= 20
    assert max(np.diff(sample["n"].to_numpy())) <= 1_000 / 5


@pytest.mark.law
@pytest.mark.parametrize("seed", range(10 * EFFORT))
def test_stats_of_portions_are_those_of_all_rows_at_once(seed: int) -> None:
    tables = [pa.Table.from_batches([each]) for each in _batches(seed)]
    modes = {
        1: FULL,
        2: FULL,
        3: random.Random(seed).choice([FULL, Mode(kind="truncate", length=3)]),
    }
    gathered = StatsGatherer(FIELDS, modes)
    for each in tables:
        gathered.add(each)
    assert repr(gathered.stats()) == repr(stats_of(pa.concat_tables(tables), FIELDS, modes))


def test_files_are_cut_evenly_in_the_order_in_which_rows_come() -> None:
    table = new_table(
        Schema(NestedField(1, "n", LongType(), required=False)),
        properties={"write.parquet.row-group-size-bytes": "4000"},
    )
    layout = layout_of(table.metadata, 0)
    total = 10_000
    columns = {field.name: pa.array(np.arange(total)) for field in layout.fields}
    columns["_last_updated_sequence_number"] = pa.nulls(total, pa.int64())
    batches = pa.table(columns).to_batches(max_chunksize=777)
    portions = fitted(batches, layout.fields, table="t")
    entries = write_packed(
        (pa.Table.from_batches([each]) for each in portions),
        layout,
        PackedSize(rows=total, count=lambda _: 4, max_bytes=1 << 40),
        store=table.files.store,
        sort_order_id=0,
    )
    assert entries["record_count"].to_pylist() == [2_500] * 4
    assert entries["1:lower"].to_pylist() == [0, 2_500, 5_000, 7_500]
    assert min(map(len, entries["split_offsets"].to_pylist())) > 3
    table.append_files(entries)
    assert table.scan().to_arrow()["n"].to_pylist() == list(range(total))
    assert table.verify(deep=True).is_clean


def test_when_a_file_cannot_be_stored_none_stays() -> None:
    table = new_table(Schema(NestedField(1, "n", LongType(), required=False)))
    layout = layout_of(table.metadata, 0)
    before = {each.location for each in table.files.store.list(table.location)}

    def portions() -> Iterator[pa.Table]:
        yield pa.table({field.name: pa.array(np.arange(10)) for field in layout.fields})
        raise OSError("the disk is gone")

    size = PackedSize(rows=10, count=lambda _: 5, max_bytes=1 << 40)
    with pytest.raises(OSError, match="the disk is gone"):
        write_packed(portions(), layout, size, store=table.files.store, sort_order_id=0)
    assert {each.location for each in table.files.store.list(table.location)} == before
