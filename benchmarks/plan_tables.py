"""Tables to plan scans of: the same files in icetree, PyIceberg and deltalake, none of them there.

Every file has a day and a bucket of its own, and its slot of `id`, which grows from day to day;
bounds of other columns are random. Peers have as many columns, all of them longs, which is the
least work for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import icetree
from benchmarks import data
from benchmarks.data import SLOT, Numbers
from icetree.spec.entry.entry import Entries
from icetree.spec.entry.stats import column
from icetree.table.lake import Lake

COLUMNS = 20
BUCKETS = 16
DAYS = 365
FIRST_DAY = 20_000
#: Fields of the mixed schema: the time, a number in no order, the key that is bucketed.
TIME, UNSORTED, KEY = 2, 5, 19
_DAY_MICROS = 86_400_000_000
#: What a number in no order is spread over, and how wide a file's range of it is.
SPREAD, WIDTH = 1_000_000, 1_000
_AT_ONCE = 100_000


def open_lake(folder: Path) -> Lake:
    """Open the catalog anew: nothing is cached yet."""
    return icetree.connect(f"sqlite:///{folder}/lake.db", warehouse=str(folder / "lake"))


def build(folder: Path, count: int) -> None:
    """Make `db.t<count>`, partitioned by day and bucket, in commits of up to 100,000 files."""
    with open_lake(folder) as lake:
        if not lake.namespaces():
            lake.create_namespace("db")
        table = lake.create_table(
            f"db.t{count}",
            data.shape_of(COLUMNS).schema,
            partition_by=[f"day(column_{TIME})", f"bucket({BUCKETS}, column_{KEY})"],
        )
        for first in range(0, count, _AT_ONCE):
            numbers = np.arange(first, min(first + _AT_ONCE, count))
            table.append_files(files(numbers, count, table.metadata.shape()))


def files(at: Numbers, count: int, shape: Any) -> Entries:
    """Return data files number `at` of a table of `count`."""
    made = data.new_files(at, shape, seed=int(at[0]))
    days = (FIRST_DAY + at * DAYS // count).astype(np.int32)
    starts = days.astype(np.int64) * _DAY_MICROS
    low = np.random.default_rng(int(at[0])).integers(0, SPREAD, len(at)).astype(np.int32)
    time = pa.timestamp("us", "UTC")
    day, bucket = (expression.expr_id for expression in shape.expressions.values())
    bounds = {
        TIME: (pa.array(starts).cast(time), pa.array(starts + _DAY_MICROS - 1).cast(time)),
        UNSORTED: (pa.array(low), pa.array(low + np.int32(WIDTH))),
        KEY: (pa.array(np.zeros(len(at), np.int64)), pa.array(np.full(len(at), 1 << 60))),
        day: (pa.array(days).cast(pa.date32()),) * 2,
        bucket: (pa.array((at % BUCKETS).astype(np.int32)),) * 2,
    }
    rows = made["record_count"]
    nothing = pa.repeat(pa.scalar(0, pa.int64()), len(at))
    for field, (lower, upper) in bounds.items():
        stats = {"lower": lower, "upper": upper, "values": rows, "nulls": nothing}
        for stat, values in stats.items():
            made = _with(made, column(field, stat), values)
    return made


def _with(table: Entries, name: str, values: pa.Array) -> Entries:
    at = table.schema.get_field_index(name)
    return table.append_column(name, values) if at < 0 else table.set_column(at, name, values)


def pyiceberg_table(folder: Path, count: int) -> Callable[[str], int]:
    """Make PyIceberg's table in one fast append; return what plans a filter: how many files."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record
    from pyiceberg.types import LongType

    def opened() -> Any:
        return SqlCatalog(
            "peer", uri=f"sqlite:///{folder}/peer.db", warehouse=f"file://{folder}/peer"
        )

    catalog = opened()
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table(f"db.t{count}", _longs())
    lows = _lows(count)
    with table.transaction() as tx, tx.update_snapshot().fast_append() as append:
        for number in range(count):
            low = [to_bytes(LongType(), each) for each in lows[number].tolist()]
            high = [to_bytes(LongType(), each + WIDTH - 1) for each in lows[number].tolist()]
            ids = range(1, COLUMNS + 1)
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"file://{folder}/peer/db/t/data/{number:08d}.parquet",
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=SLOT,
                file_size_in_bytes=1_000_000,
                value_counts=dict.fromkeys(ids, SLOT),
                null_value_counts=dict.fromkeys(ids, 0),
                lower_bounds=dict(zip(ids, low, strict=True)),
                upper_bounds=dict(zip(ids, high, strict=True)),
                split_offsets=[4],
            )
            file.spec_id = 0
            append.append_data_file(file)

    def plan(where: str) -> int:
        from pyiceberg.manifest import _manifest_cache

        _manifest_cache.clear()
        return len(list(opened().load_table(f"db.t{count}").scan(row_filter=where).plan_files()))

    return plan


def deltalake_table(folder: Path, count: int) -> Callable[[str], int]:
    """Make deltalake's table in one commit, with a checkpoint; return what plans a filter.

    `file_uris` with a pruning predicate, which looks at stats of any column, is the cheapest that
    deltalake has for a caller that wants the files of a filter; its pyarrow dataset costs more.
    """
    from deltalake import DeltaTable
    from deltalake.transaction import AddAction

    place = (folder / f"delta{count}").as_uri()
    DeltaTable.create(place, schema=_longs(), mode="error")
    names, lows = _longs().names, _lows(count)
    none = dict.fromkeys(names, 0)
    actions = [
        AddAction(
            path=f"{number:08d}.parquet",
            size=1_000_000,
            partition_values={},
            modification_time=0,
            data_change=True,
            stats=json.dumps(
                {
                    "numRecords": SLOT,
                    "minValues": dict(zip(names, low, strict=True)),
                    "maxValues": {
                        name: each + WIDTH - 1 for name, each in zip(names, low, strict=True)
                    },
                    "nullCount": none,
                }
            ),
        )
        for number, low in enumerate(lows.tolist())
    ]
    table = DeltaTable(place)
    table.create_write_transaction([*actions], "append", _longs())
    DeltaTable(place).create_checkpoint()

    def plan(where: str) -> int:
        return len(DeltaTable(place).file_uris(file_pruning_predicate=where))

    return plan


def _longs() -> pa.Schema:
    return pa.schema([(f"column_{at}", pa.int64()) for at in range(1, COLUMNS + 1)])


def _lows(count: int) -> Numbers:
    """Return lower bounds, a row a file: the first column in order, the others in none."""
    lows = np.random.default_rng(1).integers(0, SPREAD, (count, COLUMNS))
    lows[:, 0] = np.arange(count) * SLOT
    return lows
