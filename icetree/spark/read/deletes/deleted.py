"""Rows that are gone, taken out by joins: by data DVs, by equality deletes."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icetree.rows.read.deletes import VECTOR_COLUMNS, Deletes, KeyColumn, Rows
from icetree.spark.names import quoted
from icetree.spark.read.checksums import CHECKED
from icetree.spark.read.deletes.applying import APPLYING, applies, word
from icetree.spark.read.listing import (
    GONE,
    ORDINAL,
    ORDINAL_SQL,
    POSITION,
    listed,
    read_listed,
)
from icetree.spark.types import reader_schema, safe_names
from icetree.spec.location import absolute
from icetree.spec.locations import absolute_array
from icetree.table.scan.scan import Scan

#: What a column that deletes compare is called among the rows, followed by its field id.
KEY_PREFIX: Final = "__icetree_key_"

_PIECE: Final = "__icetree_piece"
_WORDS: Final = "__icetree_words"
_DELETE: Final = "__icetree_delete"

#: A bitmap is handed out in pieces of 2^16 rows, so that one with few rows far apart stays small.
_PIECE_BITS: Final = 16
_PIECE_WORDS: Final = (1 << _PIECE_BITS) // 64
#: A file's pieces and its ordinal make one number, by which a hash join is fastest.
_ORDINAL_BITS: Final = 40
_AT_ONCE: Final = 8


def marked_by_data_dvs(rows: DataFrame, tasks: pa.Table, scan: Scan) -> DataFrame:
    """Return the rows with `GONE`: whether a data DV of their file marks them.

    Rows have `ORDINAL` and `POSITION`.
    """
    marked = tasks.filter(pc.is_valid(tasks["dv_location"]))
    pieces = rows.sparkSession.createDataFrame(_pieces(marked, scan))
    high = f"shiftleft(CAST({ORDINAL} AS BIGINT), {_ORDINAL_BITS})"
    key = f"{high} + shiftright({POSITION}, {_PIECE_BITS})"
    found = rows.withColumn(_PIECE, f.expr(key)).join(f.broadcast(pieces), on=_PIECE, how="left")
    # A piece without marks is not there.
    at = f"CAST(shiftright({POSITION}, 6) & {_PIECE_WORDS - 1} AS INT)"
    word = f"coalesce(get({_WORDS}, {at}), 0L)"
    bit = f"(shiftright({word}, CAST({POSITION} & 63 AS INT)) & 1)"
    return found.withColumn(GONE, f.expr(f"{bit} = 1")).drop(_PIECE, _WORDS)


def _pieces(tasks: pa.Table, scan: Scan) -> pa.Table:
    """Return the marked rows of each file as bits: a row for each piece that has some."""
    deletes = Deletes(
        files=[], store=scan.files.store, metadata=scan.metadata, schema=scan.schema, mapping=None
    )
    facts = tasks.select([ORDINAL, "location", "record_count", *VECTOR_COLUMNS]).to_pylist()

    def marks(fact: dict[str, Any]) -> tuple[Rows, pa.Array]:
        location = absolute(fact["location"], scan.metadata.location)
        positions = deletes.removed_rows({**fact, "position_deletes": None}, location)
        return _words(positions, fact[ORDINAL] << _ORDINAL_BITS)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="icetree-dvs") as pool:
        found = list(pool.map(marks, facts))
    return pa.table(
        {
            _PIECE: pa.array(np.concatenate([keys for keys, _ in found]), pa.int64()),
            _WORDS: pa.concat_arrays([words for _, words in found]),
        }
    )


def _words(positions: Rows, first: int) -> tuple[Rows, pa.Array]:
    """Return the pieces that sorted positions are in, and the words of each."""
    pieces, inverse = np.unique(positions >> _PIECE_BITS, return_inverse=True)
    words = inverse * _PIECE_WORDS + ((positions >> 6) & (_PIECE_WORDS - 1))
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    bits = np.left_shift(np.uint64(1), (positions & 63).astype(np.uint64))
    table = np.zeros(len(pieces) * _PIECE_WORDS, np.uint64)
    if len(starts):
        table[words[starts]] = np.bitwise_or.reduceat(bits, starts)
    offsets = np.arange(len(pieces) + 1, dtype=np.int32) * _PIECE_WORDS
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(table.view(np.int64)))
    return pieces + first, lists


def without_equality_deletes(
    rows: DataFrame, deletes: pa.Table, keys: Mapping[int, KeyColumn], scan: Scan
) -> DataFrame:
    """Return the rows that no equality delete which applies to their file is equal to.

    Rows have `APPLYING` with the numbers of these deletes, and the columns with keys under
    `KEY_PREFIX` and their id.
    """
    found = rows
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, ids in enumerate(deletes["equality_ids"].to_pylist()):
        groups.setdefault(tuple(sorted(ids)), []).append(number)
    for fields, numbers in groups.items():
        by = [keys[id] for id in fields]
        found = _without(found, _keys_of(rows.sparkSession, deletes, numbers, by, scan), by)
    return found.drop(APPLYING)


def _without(rows: DataFrame, gone: DataFrame, keys: list[KeyColumn]) -> DataFrame:
    """Return the rows that none of the keys applies to; nulls equal nulls.

    Plain equality is much faster than one that knows of nulls, and few deletes have any.
    """
    names = [_name(key) for key in keys]
    has_null = reduce(Column.__or__, [f.col(name).isNull() for name in names])
    equal = reduce(Column.__and__, [_value(key) == f.col(_name(key)) for key in keys])
    same = reduce(Column.__and__, [_value(key).eqNullSafe(f.col(_name(key))) for key in keys])
    here = applies(f.col(_DELETE))
    kept = rows.join(gone.where(~has_null), equal & here, "left_anti")
    return kept.join(gone.where(has_null), same & here, "left_anti")


def _keys_of(
    spark: Any, deletes: pa.Table, numbers: list[int], keys: list[KeyColumn], scan: Scan
) -> DataFrame:
    """Return the deleted keys, each with what tells its delete file in `APPLYING`."""
    fields = {key.column.field_id: key.column for key in keys}
    names = safe_names(fields.values(), scan.metadata)
    files, schema = _listed(deletes, numbers, scan), reader_schema(fields.values(), names)
    stored = read_listed(spark, files, schema, CHECKED)
    columns = []
    for key in keys:
        column = stored[quoted(names[key.column.field_id])]
        for name in key.path:
            column = column.getField(name)
        columns.append(column.alias(_name(key)))
    return stored.select(*columns, word(ORDINAL_SQL).alias(_DELETE))


def _listed(deletes: pa.Table, numbers: list[int], scan: Scan) -> pa.Table:
    chosen = deletes.take(pa.array(numbers))
    scan.files.require_open(chosen["location"])
    locations = absolute_array(chosen["location"], scan.metadata.location)
    return listed(locations, chosen["file_size_in_bytes"], pa.array(numbers, pa.int64()))


def _value(key: KeyColumn) -> Column:
    column = f.col(f"{KEY_PREFIX}{key.column.field_id}")
    for name in key.path:
        column = column.getField(name)
    return column


def _name(key: KeyColumn) -> str:
    return f"__icetree_gone_{'.'.join((str(key.column.field_id), *key.path))}"
