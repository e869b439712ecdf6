"""Rows become files on the executors: data files of what stays, bitmaps of what goes.

One pass does both, so that a statement that deletes and inserts evaluates its rows once.
"""

from __future__ import annotations

import struct
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64
from pyspark.sql import DataFrame

from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.rows.write.write import write_files
from icetree.spark.complaints import one_line
from icetree.spark.read.listing import ORDINAL, POSITION
from icetree.spark.restored import fitting
from icetree.spark.ship import shipped, shipped_metadata, unshipped
from icetree.spark.write.lineage import AGE, FACTS, ROW_ID, with_lineage
from icetree.spark.write.unweighed import done_unweighed
from icetree.spec.entry.entry import Entries, concat, to_table
from icetree.spec.locations import absolute_array
from icetree.spec.metadata.encryption import require_told
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.metadata_columns import stored_lineage
from icetree.store.base import Store
from icetree.table.commit.counts import RowCounts, rows_of
from icetree.table.rows.clauses import TWICE

#: What becomes of a row: of its old self, of its new one. A column of rows that go both ways.
ACTION: Final = "__icetree_action"
KEEP, DELETE, INSERT, REPLACE = 0, 1, 2, 3

_OUT: Final = pa.schema([("ordinal", pa.int32()), ("content", pa.binary())])
#: The ordinals of what is no bitmap: the entries of new files, and numbers of rows.
_FILES, _COUNTS = -1, -2
_NUMBERS: Final = "<qq"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sunk:
    """What came of rows."""

    #: New data files.
    files: Entries
    #: Rows to be marked as deleted, by the ordinal of their file.
    gone: dict[int, BitMap64]
    #: How many rows came, changed and went.
    rows: RowCounts


def sink(
    rows: DataFrame,
    *,
    table: str,
    metadata: TableMetadata,
    store: Store,
    origins: pa.Table | None = None,
    often: bool = False,
) -> Sunk:
    """Write rows as data files of the table and gather the positions of those that go.

    Complaints call it `table`.

    Rows with an `ACTION` column also have `ORDINAL` and `POSITION`; without one all are written.
    A row that goes twice is `InvalidInput`, unless it may go `often`. Nothing of it is in the table
    yet. `origins` are the files that rows come from, as tasks of a plan: rows then have lineage, as
    stored, and keep it.
    """
    require_told(metadata)
    sent = shipped_metadata(metadata)
    files_sent = None if origins is None else shipped(origins.select(FACTS))
    acts = ACTION in rows.columns
    names = [name for name in rows.columns if name not in (ACTION, ORDINAL, POSITION, ROW_ID, AGE)]
    lineage = () if origins is None else (ROW_ID, AGE)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        at = metadata_codec.decode(sent, file="table metadata")
        gone: dict[int, BitMap64] = {}
        told: Counter[int] = Counter()
        old = None if files_sent is None else unshipped(files_sent)
        incoming = _staying(batches, gone, told, old, often) if acts else iter(batches)
        first = next(incoming, None)
        if first is not None:
            types = {field.name: field.field_type for field in at.schema().fields}
            keep = old is not None
            stored = [field.name for field in stored_lineage(at.schema())] if keep else []
            made = (
                fitting(batch.select([*names, *lineage]).rename_columns([*names, *stored]), types)
                for batch in chain([first], incoming)
            )
            written = write_files(made, table=table, metadata=at, store=store, keep_lineage=keep)
            yield _row(_FILES, shipped(written))
        for ordinal, positions in gone.items():
            yield _row(ordinal, positions.serialize())
        if told:
            yield _row(_COUNTS, struct.pack(_NUMBERS, told[INSERT], told[REPLACE]))

    with one_line():
        found = done_unweighed(
            rows,
            work,
            _OUT,
            table=table,
            metadata=metadata,
            undo=lambda told: _undone(told, metadata, store),
        )
    files, gone, numbers = [], dict[int, BitMap64](), [(0, 0)]
    try:
        for ordinal, content in _told(found):
            if ordinal == _FILES:
                files.append(unshipped(content))
            elif ordinal == _COUNTS:
                numbers.append(struct.unpack(_NUMBERS, content))
            else:
                _add(gone, ordinal, BitMap64.deserialize(content), often)
        made = concat(files) if files else to_table([], metadata.shape())
        inserted, replaced = map(sum, zip(*numbers, strict=True))
        went = sum(map(len, gone.values()))
        counts = RowCounts(inserted=inserted, updated=replaced, deleted=went - replaced)
        return Sunk(
            files=made, gone=gone, rows=counts if acts else RowCounts(inserted=rows_of(made))
        )
    except BaseException:
        for part in files:
            discard(part, metadata, store)
        raise


def discard(files: Entries, metadata: TableMetadata, store: Store) -> None:
    """Delete files that no commit will ever name."""
    with suppress(Exception):
        names = absolute_array(files["location"], metadata.location)
        store.delete(names.to_pylist())


def _told(found: pa.Table) -> Iterator[tuple[int, bytes]]:
    """Yield what tasks told, with what it is."""
    return zip(*(column.to_pylist() for column in found.columns), strict=True)


def _undone(found: pa.Table, metadata: TableMetadata, store: Store) -> None:
    """Delete the files that tasks told of."""
    for ordinal, content in _told(found):
        if ordinal == _FILES:
            discard(unshipped(content), metadata, store)


def _staying(
    batches: Iterable[pa.RecordBatch],
    gone: dict[int, BitMap64],
    told: Counter[int],
    origins: pa.Table | None,
    often: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows that are written; gather the positions of those that go, and count actions."""
    for batch in batches:
        action = batch[ACTION].to_numpy(zero_copy_only=False)
        for each in (INSERT, REPLACE):
            told[each] += int(np.count_nonzero(action == each))
        goes = np.isin(action, (DELETE, REPLACE))
        if goes.any():
            ordinals, positions = (
                batch[name].filter(pa.array(goes)).to_numpy(zero_copy_only=False)
                for name in (ORDINAL, POSITION)
            )
            for ordinal in np.unique(ordinals).tolist():
                _add(gone, ordinal, _bitmap(positions[ordinals == ordinal], often), often)
        stays = np.isin(action, (KEEP, INSERT, REPLACE))
        if stays.any():
            staying = batch.filter(pa.array(stays))
            if origins is not None:
                unchanged = pc.equal(staying[ACTION], KEEP)
                staying = with_lineage(staying, origins, unchanged=unchanged)
            yield staying


def _bitmap(positions: Any, often: bool) -> BitMap64:
    found = BitMap64(array("Q", positions.astype(np.uint64).tobytes()))
    if not often and len(found) < len(positions):
        raise InvalidInput(TWICE)
    return found


def _add(gone: dict[int, BitMap64], ordinal: int, positions: BitMap64, often: bool) -> None:
    have = gone.setdefault(ordinal, BitMap64())
    if not often and have & positions:
        raise InvalidInput(TWICE)
    have |= positions


def _row(ordinal: int, content: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"ordinal": ordinal, "content": content}], schema=_OUT)
