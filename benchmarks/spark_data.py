"""Events to scan, append, delete and merge: plain Parquet that every system is given alike."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

COLUMNS: Final = (
    "id bigint, at timestamp, customer bigint, country string, amount double, quantity int, "
    "note string, day date"
)
#: A hundred columns.
WIDE: Final = ", ".join(["id bigint", *(f"column_{number} bigint" for number in range(1, 100))])
DAYS: Final = 30
#: One in so many events is deleted or merged: one in a hundred.
SHARE: Final = 100

_FIRST_DAY: Final = 20_000
_AT_ONCE: Final = 1_000_000
_COUNTRIES: Final = tuple(f"{a}{b}" for a in "ABCDEFGHIJ" for b in "KLMNOPQRST")
_HEX: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_NOTE: Final = 48


def write_events(folder: Path, first: int, count: int) -> None:
    """Write events with ids from `first` on, in order, as files of a million."""
    folder.mkdir(parents=True)
    for start in range(first, first + count, _AT_ONCE):
        ids = np.arange(start, min(start + _AT_ONCE, first + count))
        pq.write_table(_events(ids, seed=start), folder / f"{start:010d}.parquet")


def write_merge(folder: Path, count: int, *, seed: int) -> None:
    """Write what a merge brings for `count` events: half of a share is there, half is new."""
    folder.mkdir(parents=True)
    step = 2 * SHARE
    there = np.arange(seed, count, step)
    new = np.arange(10 * count, 10 * count + count // step)
    rows = _events(np.concatenate([there, new]), seed=seed)
    pq.write_table(rows, folder / "rows.parquet")


def write_keys(file: Path, count: int, *, seed: int) -> None:
    """Write the ids of a share of `count` events."""
    ids = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    keys = np.arange(seed, count, SHARE)
    pq.write_table(pa.table([keys], schema=pa.schema([ids])), file)


def write_wide(folder: Path, count: int) -> None:
    """Write rows of a hundred columns, in one file."""
    folder.mkdir(parents=True)
    random = np.random.default_rng(count)
    names = [each.split()[0] for each in WIDE.split(", ")]
    numbers = [np.arange(count), *(random.integers(0, 1000, count) for _ in names[1:])]
    pq.write_table(pa.table(dict(zip(names, numbers, strict=True))), folder / "rows.parquet")


def write_many(folder: Path, count: int) -> None:
    """Write the same hundred events again and again, a file each time."""
    folder.mkdir(parents=True)
    sink = pa.BufferOutputStream()
    pq.write_table(_with_ids(_events(np.arange(100), seed=0)), sink)
    content = sink.getvalue()
    for number in range(count):
        (folder / f"{number:06d}.parquet").write_bytes(content)


def _with_ids(rows: pa.Table) -> pa.Table:
    fields = [
        field.with_metadata({"PARQUET:field_id": str(id)})
        for id, field in enumerate(rows.schema, 1)
    ]
    return rows.cast(pa.schema(fields))


def _events(ids: np.ndarray[tuple[int], np.dtype[np.int64]], *, seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    count = len(ids)
    days = _FIRST_DAY + random.integers(0, DAYS, count)
    micros = days * 86_400_000_000 + random.integers(0, 86_400_000_000, count)
    digits = _HEX[random.integers(0, 16, (count, _NOTE), dtype=np.uint8)]
    ends = np.arange(count + 1, dtype=np.int32) * _NOTE
    notes = pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(digits))
    countries = pa.array(_COUNTRIES).take(pa.array(random.integers(0, len(_COUNTRIES), count)))
    return pa.table(
        {
            "id": ids,
            "at": pa.array(micros).cast(pa.timestamp("us", "UTC")),
            "customer": random.integers(0, 1_000_000, count),
            "country": countries,
            "amount": random.integers(1, 10_000_000, count) / 100,
            "quantity": random.integers(1, 100, count, dtype=np.int32),
            "note": notes,
            "day": pa.array(days.astype(np.int32)).cast(pa.date32()),
        }
    )
