"""Rows by partition, and rows in order: what the table's layout makes of a batch."""

from __future__ import annotations

import zlib
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.types import NestedField

from icetree.errors import InvalidInput, Unsupported
from icetree.rows.project import leaf_of
from icetree.rows.schema import plain
from icetree.rows.transform import bucketed, transformed
from icetree.spec.arrays import one_chunk
from icetree.spec.schema.columns import field_path
from icetree.spec.schema.expressions import Expression, transform_of
from icetree.spec.schema.shape import Shape, SortKey
from icetree.spec.schema.types import has_nans

#: File systems allow 255 bytes a name; what is longer is cut, and told apart by a checksum.
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Rows of one partition."""

    #: One value for each expression of the spec; null where its value is.
    values: tuple[pa.Scalar, ...]
    rows: pa.Table


def key_of(values: Sequence[pa.Scalar]) -> tuple[Hashable, ...]:
    """Return what is equal where two partitions are the same."""
    # As scalars the two zeros are equal, and a NaN is not equal to itself.
    return tuple(str(each) if pa.types.is_floating(each.type) else each for each in values)


def by_partition(rows: pa.Table, spec: Sequence[Expression], shape: Shape) -> Iterator[Partition]:
    """Yield the rows of each partition, in the order in which the partitions first appear."""
    if not spec:
        yield Partition(values=(), rows=rows)
        return
    if not rows.num_rows:
        return
    columns = [expression_values(rows, expression, shape) for expression in spec]
    codes: npt.NDArray[np.int64] = np.zeros(rows.num_rows, np.int64)
    for values in columns:
        encoded = values.dictionary_encode(null_encoding="encode")
        numbers = encoded.indices.to_numpy().astype(np.int64)
        # Numbered anew each time, so that codes stay small however many expressions there are.
        codes = np.unique(codes * len(encoded.dictionary) + numbers, return_inverse=True)[1]
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    if len(first) == 1:
        yield Partition(values=tuple(values[0] for values in columns), rows=rows)
        return
    order = np.argsort(codes, kind="stable")
    ends = np.searchsorted(codes[order], np.arange(len(first) + 1))
    grouped = rows.take(pa.array(order))
    for code in np.argsort(first):
        at = int(first[code])
        part = grouped.slice(int(ends[code]), int(ends[code + 1] - ends[code]))
        if part.num_rows < rows.num_rows // 2:
            # A few rows that wait for more of their partition would keep all others in memory.
            part = part.take(pa.array(np.arange(part.num_rows)))
        yield Partition(values=tuple(values[at] for values in columns), rows=part)


def expression_values(rows: pa.Table, expression: Expression, shape: Shape) -> pa.Array:
    """Return the value of an expression for each row."""
    columns = []
    for source_id in expression.source_ids:
        source = shape.columns.get(source_id)
        if source is None:
            raise InvalidInput(f"{expression.name} is over column {source_id}, which is gone")
        columns.append((source_values(rows, source_id, shape.schema), source.field_type))
    if expression.buckets is not None:
        return bucketed(columns, expression.buckets)
    if expression.is_unknown:
        raise Unsupported(
            f"{expression.name} is {expression.transform} of "
            f"{', '.join(shape.names[id] for id in expression.source_ids)}, which is not known here: "
            "write with an engine that knows it, or take it out of the partition spec first"
        )
    [(values, type)] = columns
    return transformed(values, transform_of(expression), type)


def source_values(rows: pa.Table, field_id: int, schema: Schema) -> pa.Array:
    """Return the values of a field of the table, which may be inside structs."""
    for column in prune_columns(schema, {field_id}, select_full_types=False).fields:
        path = field_path(column, field_id)
        if path is not None and column.name in rows.column_names:
            return plain(leaf_of(one_chunk(rows[column.name]), path))
    name = schema.find_column_name(field_id) or field_id
    raise InvalidInput(f"the table is laid out by {name}, which the data does not have")


def folder_of(values: Sequence[pa.Scalar], spec: Sequence[Expression], shape: Shape) -> str:
    """Return the partition's folder, Hive's way: `name=value/`; it is only for human readers."""
    parts = []
    for value, expression in zip(values, spec, strict=True):
        if expression.transform == "void":
            continue
        text = _human(value, expression, shape.columns[expression.source_ids[0]])
        name = f"{quote(expression.name, safe='')}={quote(text, safe='')}"
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{zlib.crc32(name.encode()):08x}"
        parts.append(name + "/")
    return "".join(parts)


def _human(value: pa.Scalar, expression: Expression, source: NestedField) -> str:
    if not value.is_valid:
        return "null"
    if expression.source_id is None:
        return str(value.as_py())
    inner: Any
    if hasattr(value, "value") and not isinstance(value, pa.StringScalar | pa.BinaryScalar):
        inner = value.value  # what a date or time counts
    else:
        inner = value.as_py()
    try:
        return transform_of(expression).to_human_string(source.field_type, inner)
    except (OverflowError, ValueError):
        return str(inner)  # a year that Python's calendar does not have


def sorted_rows(rows: pa.Table, keys: Sequence[SortKey], shape: Shape) -> pa.Table:
    """Return the rows sorted by the keys; equal ones stay as they were."""
    if not keys or rows.num_rows < 2:
        return rows
    return rows.take(sort_indices(rows, keys, shape))


def sort_indices(rows: pa.Table, keys: Sequence[SortKey], shape: Shape) -> pa.Array:
    """Return where each row comes from when they are sorted; equal ones stay as they were."""
    columns: dict[str, pa.Array] = {}
    order: list[tuple[str, str]] = []

    def add(values: pa.Array, *, descending: bool) -> None:
        name = str(len(columns))
        columns[name] = values
        order.append((name, "descending" if descending else "ascending"))

    for key in keys:
        expression = Expression(
            expr_id=0, source_ids=key.source_ids, transform=key.transform, name="sort key"
        )
        values = expression_values(rows, expression, shape)
        if values.null_count:
            # One placement of nulls for all keys is all that sorting offers.
            add(values.is_null(), descending=key.nulls_first)
        source = shape.columns[key.source_id].field_type
        if key.transform == "identity" and has_nans(source):
            add(pc.fill_null(pc.is_nan(values), False), descending=key.descending)
        if pa.types.is_fixed_size_binary(values.type):
            values = values.cast(pa.binary())
        add(values, descending=key.descending)
    return pc.sort_indices(pa.table(columns), sort_keys=order)
