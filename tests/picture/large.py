"""Trees of three million entries, made of columns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, TimestampType

from icetree.codec import bitmap
from icetree.spec.entry.entry import (
    POSITION,
    Content,
    Entries,
    Entry,
    Status,
    complete,
    concat,
    to_table,
)
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.tree.reading import Keep, Leaf, Reader

MILLIONS = 3_000_000
LEAVES = 60
PER_LEAF = MILLIONS // LEAVES
FIRST = date(2020, 1, 1)
DAYS_PER_LEAF = 8

SHAPE = Shape(
    schema=Schema(NestedField(1, "id", LongType()), NestedField(2, "ts", TimestampType())),
    expressions={3: Expression(expr_id=3, source_ids=(2,), transform="day", name="ts_day")},
    specs={0: (), 1: (3,)},
    default_spec_id=1,
)


def files(count: int, *, first_day: date, status: Status) -> Entries:
    """Return data files spread over a leaf's days."""
    number = pa.array(np.arange(count))
    days = np.datetime64(first_day) + np.arange(count) * DAYS_PER_LEAF // count
    day = pa.array(days.astype("datetime64[D]"))
    name = pc.binary_join_element_wise("data/", number.cast(pa.string()), ".parquet", "")
    return complete(
        pa.table(
            {
                "content_type": pa.repeat(pa.scalar(int(Content.DATA), pa.int32()), count),
                "location": name,
                "file_format": pa.repeat("parquet", count),
                "status": pa.repeat(pa.scalar(int(status), pa.int32()), count),
                "partition_spec_id": pa.repeat(pa.scalar(1, pa.int32()), count),
                "record_count": pa.repeat(pa.scalar(1000, pa.int64()), count),
                "file_size_in_bytes": pa.repeat(pa.scalar(10**6, pa.int64()), count),
                "3:lower": day,
                "3:upper": day,
            }
        )
    )


@dataclass(slots=True)
class GeneratedReader:
    """Makes up the entries of a leaf when they are asked for, and counts them."""

    entries_read: int = 0

    def leaf(
        self,
        leaf: Leaf,
        *,
        columns: Collection[str] | None = None,
        keep: Keep | None = None,  # noqa: ARG002 - one row group
    ) -> Entries:
        number = int(leaf.location.rpartition("-")[2])
        found = files(PER_LEAF, first_day=_first_day(number), status=Status.EXISTING)
        found = found.append_column(POSITION, pa.array(np.arange(PER_LEAF)))
        self.entries_read += found.num_rows
        return found if columns is None else found.select(sorted(columns))

    def blob(
        self,
        location: str,
        *,
        offset: int,
        size_bytes: int,
        key: bytes | None = None,  # noqa: ARG002
    ) -> bytes:
        raise AssertionError(f"{location}: {offset}, {size_bytes}: no bitmap is stored")


def _first_day(leaf: int) -> date:
    return FIRST + timedelta(days=DAYS_PER_LEAF * leaf)


def millions_in_leaves() -> tuple[Entries, Reader, Shape]:
    """Return a root of sixty leaves, with a manifest DV of scattered positions on one."""
    leaves = [
        Entry(
            content_type=Content.DATA_MANIFEST,
            location=f"metadata/leaf-{number}",
            status=Status.EXISTING,
            partition_spec_id=1,
            record_count=PER_LEAF,
            file_size_in_bytes=6_000_000,
            added_files_count=0,
            existing_files_count=PER_LEAF,
            deleted_files_count=0,
            stats={
                3: FieldStats(
                    lower=_first_day(number),
                    upper=_first_day(number) + timedelta(days=DAYS_PER_LEAF - 1),
                )
            },
        )
        for number in range(LEAVES)
    ]
    removed = bitmap.of(range(0, 10_000, 2))
    vector = Entry(
        content_type=Content.MANIFEST_DV,
        file_format="puffin",
        record_count=len(removed),
        referenced_file="metadata/leaf-0",
        dv_inline_content=bitmap.encode(removed),
    )
    return to_table([*leaves, vector], SHAPE), GeneratedReader(), SHAPE


def millions_in_root() -> tuple[Entries, Reader, Shape]:
    """Return a root that holds all files itself, a thousand of them new."""
    old = files(PER_LEAF, first_day=FIRST, status=Status.EXISTING)
    new = files(1000, first_day=FIRST, status=Status.ADDED)
    return concat([*([old] * LEAVES), new]), GeneratedReader(), SHAPE
