"""Files of others as entries: nothing is copied, and rows of Parquet stay unread, for footers tell.

Only a partition that no bounds can tell is looked for among the rows, in the columns it is of, and columns are
read whose type is not surely one of the table's. Of ORC and Avro all rows are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import NestedField, StructType

from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.rows.adoptable import node_of, require_no_values, require_readable
from icetree.rows.formats.formats import format_by_name
from icetree.rows.formats.parquet import PARQUET
from icetree.rows.project import Node, project
from icetree.rows.read.files import DataFile, ReadRules, open_file
from icetree.rows.read.row_groups import flat_leaves, group_stats
from icetree.rows.schema import arrow_type
from icetree.rows.transform import transformed
from icetree.rows.write.layout import Written
from icetree.rows.write.partition import expression_values
from icetree.rows.write.stats import FileStats, StatsGatherer, partition_stats
from icetree.spec.entry.entry import Entry
from icetree.spec.entry.metrics import Mode, truncate_lower, truncate_upper
from icetree.spec.entry.stats import column
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.expressions import Expression, transform_of
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.tree import walk
from icetree.spec.texts import did_you_mean
from icetree.store.base import Store

#: How Hive spells a null in a path.
NULL: Final = "__HIVE_DEFAULT_PARTITION__"
#: Files of tables may lie in paths as Iceberg writes them, where "null" is null.
_NULLS: Final = (NULL, "null")
#: Transforms that keep the order of what they are of: what two ends agree in, all between do.
_MONOTONIC: Final = ("identity", "year", "month", "day", "hour")


def adopt(
    location: str,
    *,
    store: Store,
    metadata: TableMetadata,
    shape: Shape,
    mapping: NameMapping,
    modes: dict[int, Mode],
    values: Mapping[str, pa.Scalar] | None = None,
) -> tuple[Written, bool]:
    """Return a file as an entry of the table, and whether it has field ids of its own.

    Columns that the file leaves out have the `values` that are given by name, or else those that
    its path tells. InvalidInput where its columns are not the table's, or it is of no one partition.
    """
    try:
        file, has_ids = _opened(store, location, mapping)
        constants = _left_out(location, file, metadata, shape, values)
        _require_fit(file, shape, metadata, constants)
        require_readable(file, shape)
    except CorruptTable as error:
        raise InvalidInput(f"{error.file} cannot be added: {error.rule}") from None
    rows = sum(group.rows for group in file.groups)
    told: dict[int, _Column] = {}
    if file.format == PARQUET.name:
        told = {
            id: _told(file, id, leaf, shape)
            for id, leaf in flat_leaves(file.nodes)
            if id in shape.columns
        }
        _require_no_nulls(location, told, shape)
    require_no_values(file, shape)
    stats: FileStats = {}
    for id, each in told.items():
        if id in modes and modes[id].kind != "none":
            stats |= _kept(id, each, modes[id])
    if file.format != PARQUET.name:
        stats = _stats_of_rows(file, shape, modes)
    for expression in shape.spec(metadata.default_spec_id):
        if expression.transform != "void":
            value = _partition(file, expression, told, constants, shape)
            stats = _without(stats, expression.stats_field)
            stats |= partition_stats(expression.stats_field, value, rows)
    entry = Entry(
        location=location,
        file_format=file.format,
        partition_spec_id=metadata.default_spec_id,
        record_count=rows,
        file_size_in_bytes=store.size(location),
        split_offsets=file.reader.split_offsets,
    )
    return Written(entry=entry, stats=stats), has_ids


def _opened(store: Store, location: str, mapping: NameMapping) -> tuple[DataFile, bool]:
    format = format_by_name(location)
    try:
        return open_file(store, location, format, mapping=None), True
    except NotFound:
        # It is of no snapshot yet, so none that expired took it along.
        raise NotFound(f"{location} is not there: give the path of a file that is") from None
    except CorruptTable as error:
        if "no field ids" not in error.rule:
            raise
    return open_file(store, location, format, mapping=mapping), False


def _stats_of_rows(file: DataFile, shape: Shape, modes: dict[int, Mode]) -> FileStats:
    """Return the stats of the columns that a file has, by its rows, a run of them at a time."""
    fields = tuple(each for each in shape.schema.fields if file.has(each.field_id))
    gatherer, rules = StatsGatherer(fields, modes), ReadRules(location=file.location)
    try:
        for group in file.groups:
            for batch in file.read(group, fields, rules):
                gatherer.add(pa.Table.from_batches([batch]))
    except CorruptTable as error:
        raise InvalidInput(f"{error.file} cannot be added: {error.rule}") from None
    return gatherer.stats()


def _require_fit(
    file: DataFile, shape: Shape, metadata: TableMetadata, constants: dict[int, pa.Scalar]
) -> None:
    """Refuse a file whose columns are others than the table's, by id or by type."""
    names: dict[int, set[str]] = {}
    variants = set()
    for schema in metadata.schemas:
        for place in walk(schema):
            names.setdefault(place.id, set()).add(place.own_name)
            if place.type == "variant":
                variants.add(place.id)
    _require_names(file, _columns_of(file.nodes, variants), names, inside_list=False)
    empty = {node.name: pa.nulls(0, node.type) for node in file.nodes}
    rules = ReadRules(location=file.location, constants=constants)
    project(empty, file.nodes, shape.schema.fields, 0, rules)


def _columns_of(nodes: Sequence[Node], variants: set[int]) -> tuple[Node, ...]:
    """Return the fields of a file that are columns: the parts of a variant are none."""
    return tuple(
        replace(node, children=() if node.id in variants else _columns_of(node.children, variants))
        for node in nodes
    )


def _require_names(
    file: DataFile, nodes: Sequence[Node], names: dict[int, set[str]], *, inside_list: bool
) -> None:
    """Refuse ids of another table: what they mean there is told by the names."""
    for node in nodes:
        known = names.get(node.id) if node.id is not None else None
        if known is None and not inside_list:
            every = {name for each in names.values() for name in each}
            raise InvalidInput(
                f"{file.location} has a column {node.name!r} that the table has not: add it to "
                f"the schema first{did_you_mean(node.name, every)}"
            )
        if known is not None and node.name not in known and not inside_list:
            raise InvalidInput(
                f"{file.location} has {node.name!r} under field id {node.id}, which is "
                f"{' or '.join(sorted(known))} in the table: its ids are another table's"
            )
        # Elements, keys and values have names of the writer's own choice.
        is_list = not pa.types.is_struct(node.type)
        _require_names(file, node.children, names, inside_list=is_list)


@dataclass(frozen=True, slots=True)
class _Column:
    """What a footer tells of one column, over all row groups; None for what it does not."""

    rows: int
    nulls: int | None
    lower: Any
    upper: Any
    type: pa.DataType | None


def _told(file: DataFile, id: int, leaf: int, shape: Shape) -> _Column:
    rows = sum(group.rows for group in file.groups)
    type = shape.bounds_type(id)
    found = group_stats(file, id, leaf, shape)
    nulls = found.get(column(id, "nulls"))
    counts = [None] * len(file.groups) if nulls is None else nulls.to_pylist()
    total = None if None in counts else sum(counts)
    lower, upper = (found.get(column(id, stat)) for stat in ("lower", "upper"))
    node = node_of(file.nodes, id)
    if lower is None or upper is None or node is None or not _is_same(node.type, shape, id):
        return _Column(rows, total, None, None, type)
    # A row group of nulls alone has no bounds, and needs none.
    empty = [count == group.rows for count, group in zip(counts, file.groups, strict=True)]
    if any(not ends.is_valid and not none for ends, none in zip(lower, empty, strict=True)):
        return _Column(rows, total, None, None, type)
    least, most = pc.min(lower).as_py(), pc.max(upper).as_py()
    if isinstance(least, float) and isinstance(most, float):
        if isnan(least) or isnan(most):
            return _Column(rows, total, None, None, type)
        # Parquet does not tell which zero it was.
        least, most = (-0.0 if least == 0 else least), (0.0 if most == 0 else most)
    return _Column(rows, total, least, most, type)


def _is_same(have: pa.DataType, shape: Shape, id: int) -> bool:
    """Tell whether bounds in the file's type are bounds in the table's, as they stand."""
    want = arrow_type(shape.columns[id].field_type)
    is_ = pa.types
    if is_.is_timestamp(have) and is_.is_timestamp(want):
        return have.unit == want.unit and (have.tz is None) == (want.tz is None)
    families = (is_.is_integer, is_.is_floating, is_.is_decimal, is_.is_string, is_.is_binary)
    return bool(have == want) or any(kind(have) and kind(want) for kind in families)


def _kept(id: int, told: _Column, mode: Mode) -> FileStats:
    """Return as much as the mode asks for; bounds are never called tight."""
    found = {"values": pa.scalar(told.rows, pa.int64())}
    if told.nulls is not None:
        found["nulls"] = pa.scalar(told.nulls, pa.int64())
    least, most = told.lower, told.upper
    if mode.has_bounds and least is not None and most is not None and told.type is not None:
        if mode.length is not None and isinstance(least, str | bytes):
            least, most = truncate_lower(least, mode.length), truncate_upper(most, mode.length)
        found["lower"] = pa.scalar(least, told.type)
        if most is not None:
            found["upper"] = pa.scalar(most, told.type)
    return {column(id, stat): value for stat, value in found.items()}


def _without(stats: FileStats, id: int) -> FileStats:
    return {name: value for name, value in stats.items() if not name.startswith(f"{id}:")}


def _require_no_nulls(location: str, told: dict[int, _Column], shape: Shape) -> None:
    for id, each in told.items():
        field = shape.columns[id]
        if field.required and each.nulls != 0:
            why = "does not tell of its nulls" if each.nulls is None else "has nulls"
            raise InvalidInput(
                f"{location} cannot be added: column {field.name!r} is required, and the file {why}"
            )


# --- partitions ------------------------------------------------------------------------------


def path_values(location: str) -> dict[str, str]:
    """Return what folders such as `country=DE` in a path say, as text."""
    parts = [each.partition("=") for each in location.split("/")[:-1] if "=" in each]
    return {unquote(name): unquote(value) for name, _, value in parts}


def _left_out(
    location: str,
    file: DataFile,
    metadata: TableMetadata,
    shape: Shape,
    values: Mapping[str, pa.Scalar] | None,
) -> dict[int, pa.Scalar]:
    """Return the values of identity partitions whose columns are not in the file itself."""
    said: Mapping[str, Any] = path_values(location) if values is None else values
    found = {}
    for expression in shape.spec(metadata.default_spec_id):
        source = expression.source_id
        if not expression.is_identity or source is None or file.has_below(source):
            continue
        name = shape.schema.find_column_name(source) or ""
        value = said.get(expression.name, said.get(name))
        if value is None:
            raise InvalidInput(
                f"{location} has no column {name!r}, which the table is partitioned by, and no "
                f"folder {expression.name}=… in its path"
            )
        found[source] = _scalar(location, value, shape.columns[source])
    for field in shape.schema.fields:
        if (
            field.name in said
            and field.field_id not in found
            and not file.has_below(field.field_id)
        ):
            raise InvalidInput(
                f"{location} leaves {field.name}={said[field.name]} to its path, and the table is not "
                f"partitioned by {field.name!r}, so it would be lost: add that partition field first"
            )
    return found


def _scalar(location: str, given: str | pa.Scalar, field: NestedField) -> pa.Scalar:
    want = arrow_type(field.field_type)
    if isinstance(given, str) and given in _NULLS:
        return pa.scalar(None, want)
    text = given if isinstance(given, str) else given.as_py()
    try:
        return pa.scalar(given).cast(want) if isinstance(given, str) else given.cast(want)
    except pa.ArrowException:
        raise InvalidInput(
            f"{location}: {text!r} in its path is no {field.field_type}, as {field.name} is"
        ) from None


def _partition(
    file: DataFile,
    expression: Expression,
    told: dict[int, _Column],
    constants: dict[int, pa.Scalar],
    shape: Shape,
) -> pa.Scalar:
    """Return the one value that the expression has for all rows of a file."""
    source = expression.source_id
    if not shape.columns.keys() >= set(expression.source_ids):
        raise Unsupported(
            f"{expression.name} is over a column that is gone: add files with an engine"
        )
    want = shape.bounds_type(expression.stats_field)
    if source in constants:
        return constants[source].cast(want)
    about = None if source is None else told.get(source)
    if about is not None and about.rows and about.nulls == about.rows:
        return pa.scalar(None, want)
    word = expression.transform.partition("[")[0]
    # Texts may be cut off in a footer: the same beginning is not the same value. Nor do numbers
    # tell of what is none.
    if (
        about is not None
        and about.nulls == 0
        and about.lower is not None
        and word in _MONOTONIC
        and not isinstance(about.lower, str | bytes | float)
    ):
        ends = pa.array([about.lower, about.upper], about.type)
        values = _transformed(ends, expression, shape)
    else:
        values = _from_rows(file, expression, shape)
    if len(values) != 1:
        raise InvalidInput(
            f"{file.location} holds rows of several partitions by {expression.name}: "
            "write its rows with append, which parts them"
        )
    return values[0]


def _transformed(values: pa.Array, expression: Expression, shape: Shape) -> pa.Array:
    assert expression.source_id is not None
    field = shape.columns[expression.source_id]
    return pc.unique(transformed(values, transform_of(expression), field.field_type))


def _from_rows(file: DataFile, expression: Expression, shape: Shape) -> pa.Array:
    """Return the different values of an expression, no more than two, a row group at a time."""
    wanted = [
        each
        for each in shape.schema.fields
        if any(each.field_id == id or _holds(each, id) for id in expression.source_ids)
    ]
    rules = ReadRules(location=file.location)
    found = pa.array([], shape.bounds_type(expression.stats_field))
    for group in file.groups:
        for batch in file.read(group, wanted, rules):
            rows = pa.Table.from_batches([batch])
            values = expression_values(rows, expression, shape).cast(found.type)
            found = pc.unique(pa.concat_arrays([found, pc.unique(values)]))
            if len(found) > 1:
                return found
    return found if len(found) else pa.nulls(1, found.type)


def _holds(field: NestedField, id: int) -> bool:
    type = field.field_type
    if not isinstance(type, StructType):
        return False
    return any(each.field_id == id or _holds(each, id) for each in type.fields)
