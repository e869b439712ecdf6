"""Partition tuples rebuilt from stats, as numbers that are equal where the tuples are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CorruptTable, NotFound, Unsupported
from icetree.spec.entry.entry import Entries
from icetree.spec.entry.partition_stats import told
from icetree.spec.entry.stats import column
from icetree.spec.schema.shape import Shape

Rows: TypeAlias = npt.NDArray[np.int64]
Flags: TypeAlias = npt.NDArray[np.bool_]

#: The stats that say which partition a file is in.
STATS = ("lower", "upper", "values", "nulls", "nans")


def partition_codes(tables: Sequence[Entries], asked: Sequence[Flags], shape: Shape) -> list[Rows]:
    """Return a code for each entry of each table: equal where spec and partition tuple are.

    All unpartitioned specs count as one. Entries that are not asked for have code -1. One that
    is asked for and whose partition its stats do not tell is a `CorruptTable` naming it.
    """
    specs = [table["partition_spec_id"].to_numpy() for table in tables]
    codes = [np.full(table.num_rows, -1, np.int64) for table in tables]
    used = [spec[wanted] for spec, wanted in zip(specs, asked, strict=True)]
    first_free = 1
    for spec_id in np.unique(np.concatenate(used)).tolist():
        rows = [
            np.flatnonzero(wanted & (spec == spec_id))
            for spec, wanted in zip(specs, asked, strict=True)
        ]
        found: Rows = np.zeros(sum(map(len, rows)), np.int64)
        if not _is_plain(spec_id, tables, shape):
            found, taken = _codes_in_spec(tables, rows, spec_id, shape)
            found += first_free
            first_free += taken
        ends = np.cumsum([len(each) for each in rows])[:-1]
        for code, at, part in zip(codes, rows, np.split(found, ends), strict=True):
            code[at] = part
    return codes


def unpartitioned(entries: Entries, shape: Shape) -> Flags:
    """Tell which entries were written with a spec that has no partitions."""
    specs = entries["partition_spec_id"].to_numpy()
    plain = [spec for spec in np.unique(specs).tolist() if _is_plain(spec, [entries], shape)]
    return np.isin(specs, plain)


def _is_plain(spec_id: int, tables: Sequence[Entries], shape: Shape) -> bool:
    try:
        return shape.is_unpartitioned(spec_id)
    except NotFound as missing:
        [owner, *_] = (
            location
            for table in tables
            for location in table["location"].filter(
                pc.equal(table["partition_spec_id"], pa.scalar(spec_id, pa.int32()))
            )
        )
        raise CorruptTable(owner.as_py(), str(missing)) from None


def _codes_in_spec(
    tables: Sequence[Entries], rows: Sequence[Rows], spec_id: int, shape: Shape
) -> tuple[Rows, int]:
    codes: Rows = np.zeros(sum(map(len, rows)), np.int64)
    taken = 1
    for field_id in shape.partition_fields(spec_id):
        keys = [_keys(table, at, field_id, shape) for table, at in zip(tables, rows, strict=True)]
        values = pa.chunked_array([value for value, _ in keys]).combine_chunks()
        encoded = pc.dictionary_encode(values, null_encoding="encode")
        is_nan = np.concatenate([nan for _, nan in keys])
        numbers = encoded.indices.to_numpy().astype(np.int64) * 2 + is_nan
        # Numbered anew after each field, so that codes stay small however many fields there are.
        distinct, codes = np.unique(
            codes * (2 * len(encoded.dictionary) + 2) + numbers, return_inverse=True
        )
        taken = len(distinct)
    return codes.astype(np.int64), taken


def _keys(table: Entries, rows: Rows, field_id: int, shape: Shape) -> tuple[pa.Array, Flags]:
    """Return each row's partition value (null for none) and whether it is NaN."""
    type = shape.bounds_type(field_id)
    if type is None or pa.types.is_struct(type):
        name = shape.names.get(field_id, field_id)
        raise Unsupported(f"partitions by {name} cannot be told from stats")
    at = pa.array(rows)
    lower, upper = (_stat(table, field_id, stat, at, type) for stat in ("lower", "upper"))
    values, nulls, nans = (
        _stat(table, field_id, stat, at, pa.int64()) for stat in ("values", "nulls", "nans")
    )
    is_told, is_nan = told(lower, upper, values, nulls, nans)
    if is_told.true_count < len(is_told):
        bad = table["location"][int(rows[pc.index(is_told, False).as_py()])].as_py()
        name = shape.names.get(field_id, field_id)
        raise CorruptTable(
            bad,
            f"its stats do not tell its partition: {name} must have equal bounds, or be all null",
        )
    return lower, is_nan.to_numpy(zero_copy_only=False)


def spans(table: Entries, field_id: int) -> pa.BooleanArray:
    """Tell which files' stats do not say one value of a field: neither one, nor null, nor NaN."""
    rows = pa.array(np.arange(table.num_rows))
    bounds = {column(field_id, stat) for stat in ("lower", "upper")} & set(table.column_names)
    # Where neither bound is there, any type that can be compared will do.
    type = next((table[name].type for name in bounds), pa.int64())
    lower, upper = (_stat(table, field_id, stat, rows, type) for stat in ("lower", "upper"))
    values, nulls, nans = (
        _stat(table, field_id, stat, rows, pa.int64()) for stat in ("values", "nulls", "nans")
    )
    return pc.invert(told(lower, upper, values, nulls, nans)[0])


def _stat(table: Entries, field_id: int, stat: str, at: pa.Array, type: pa.DataType) -> pa.Array:
    name = column(field_id, stat)
    if name not in table.column_names:
        return pa.nulls(len(at), type)
    found = table[name].take(at).combine_chunks()
    return found if found.type == type else found.cast(type)
