"""New files as a writer hands them in, made ready for a commit or refused."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from icetree.catalog.base import TableName
from icetree.errors import InvalidInput
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    BASE_COLUMNS,
    BASE_SCHEMA,
    POSITION,
    Content,
    Entries,
    Entry,
    Status,
    complete,
    is_content,
    is_data_file,
    is_of_spec,
    only,
    to_table,
    with_columns,
)
from icetree.spec.entry.equality import broken_equality
from icetree.spec.locations import given_form_array, is_uri
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.values import flag
from icetree.spec.rules import entry as entry_rules
from icetree.spec.schema.shape import Shape
from icetree.tree.partitions import spans

#: With this property set, only files under the table's own location may be added.
CONFINED = "write.files.confined"
#: Stats that have a type of their own.
_COUNTED = frozenset(stats.STATS) - {"lower", "upper"}
#: What is told of every file.
_TOLD = {"content_type", "location", "file_format", "record_count", "file_size_in_bytes"}


def stored_entries(
    files: Entries | Iterable[Entry],
    metadata: TableMetadata,
    shape: Shape,
    name: TableName,
    *,
    sequence_number: int | None = None,
) -> Entries:
    """Return new files as columns with stored locations; InvalidInput for what cannot be added."""
    entries = _typed(complete(_columns(files, shape, name)), shape, name)
    entries = with_columns(
        # Whatever it says, it is added: one that is to go does not belong here.
        entries,
        status=pc.fill_null(entries["status"], pa.scalar(Status.ADDED, pa.int32())),
    )
    entries = with_columns(
        entries,
        location=given_form_array(entries["location"].combine_chunks(), metadata.location),
        referenced_file=given_form_array(
            entries["referenced_file"].combine_chunks(), metadata.location
        ),
    )
    if sequence_number is not None:
        is_data = is_data_file(entries)
        age = pa.scalar(sequence_number, BASE_SCHEMA.field("sequence_number").type)
        kept = pc.fill_null(entries["sequence_number"], age)
        entries = with_columns(
            entries, sequence_number=pc.if_else(is_data, kept, entries["sequence_number"])
        )
    _require_known_specs(entries, shape, name)
    for sentence in entry_rules.broken_by_new(entries):
        raise InvalidInput(f"table {name} cannot take this file: {sentence}")
    _require_partitions(entries, shape, name)
    for sentence in broken_equality(entries, shape):
        raise InvalidInput(f"table {name}: {sentence}")
    if flag(metadata.properties, CONFINED, default=False):
        _require_confined(entries, name, metadata)
    return entries


def is_arrow_data(new: object) -> bool:
    """Tell rows from files, either of which may be an Arrow table: files have columns of entries."""
    if isinstance(new, pa.Table):
        return not _TOLD.issubset(new.column_names)
    if isinstance(new, list | tuple):
        return bool(new) and all(isinstance(each, pa.RecordBatch) for each in new)
    return isinstance(new, pa.RecordBatch) or hasattr(new, "__arrow_c_stream__")


def _columns(files: Any, shape: Shape, name: TableName) -> Entries:
    if is_arrow_data(files):
        raise InvalidInput(f"table {name}: these are rows, here go files: add rows with append")
    if isinstance(files, pa.Table):
        return files
    one = isinstance(files, str) or not isinstance(files, Iterable)
    given: list[Any] = [files] if one else list(files)
    for each in given:
        if not isinstance(each, Entry):
            raise InvalidInput(
                f"table {name}: {each!r} does not tell enough of a file: give an Entry with its "
                "location, format, size, rows and stats, or add rows with append"
            )
    return to_table(given, shape)


def _require_known_specs(entries: Entries, shape: Shape, name: TableName) -> None:
    unknown = set(pc.unique(entries["partition_spec_id"]).to_pylist()) - set(shape.specs)
    if unknown:
        known = ", ".join(map(str, sorted(shape.specs)))
        raise InvalidInput(
            f"table {name} has no partition spec {min(unknown)}: write the file with one of {known}"
        )


def _typed(entries: Entries, shape: Shape, name: TableName) -> Entries:
    """Return the columns in the types that entries have; others are no columns of entries."""
    columns = {}
    for column in entries.schema:
        if column.name == POSITION:
            continue
        want = _type_of(column.name, shape, name)
        found = entries[column.name]
        if want is not None and column.type != want:
            found = _cast(found, want)
            if found is None:
                label = column.name
                if parsed := stats.parse_column(label):
                    label = f"{parsed[1]} ({label}) of {shape.names[parsed[0]]}"
                raise InvalidInput(
                    f"table {name}: column {label} is {column.type}, and must be {want}"
                )
        columns[column.name] = found
    return pa.table(columns)


def _cast(values: pa.ChunkedArray, want: pa.DataType) -> pa.ChunkedArray | None:
    """Return values in another type, None where they do not mean the same in it."""
    # Arrow makes a text of anything.
    if pa.types.is_string(want) and pa.types.is_primitive(values.type):
        return None
    try:
        return values.cast(want)
    except pa.ArrowException:
        return None


def _type_of(column: str, shape: Shape, name: TableName) -> pa.DataType | None:
    """Return the type of a column of entries; None for bounds that are of no type."""
    if column in BASE_COLUMNS:
        return BASE_SCHEMA.field(column).type
    field_id, _, stat = column.partition(":")
    if not field_id.isdecimal() or stat not in stats.STATS:
        raise InvalidInput(f"table {name}: entries have no column {column!r}: leave it out")
    if int(field_id) not in shape.types:
        raise InvalidInput(f"table {name} has no column or expression with id {field_id}")
    bounds = shape.bounds_type(int(field_id))
    return stats.stat_type(stat, bounds or pa.null()) if bounds or stat in _COUNTED else None


def _require_partitions(entries: Entries, shape: Shape, name: TableName) -> None:
    for spec_id in pc.unique(entries["partition_spec_id"]).to_pylist():
        fields = shape.partition_fields(spec_id)
        if not fields:
            continue
        files = pc.and_(
            is_content(entries, Content.DATA, Content.EQUALITY_DELETES),
            is_of_spec(entries, spec_id),
        )
        here = only(entries, files)
        _require_known_transforms(here, spec_id, shape, name)
        for field_id in fields:
            for location in here["location"].filter(spans(here, field_id))[:1].to_pylist():
                raise InvalidInput(
                    f"table {name} is partitioned by {shape.names[field_id]}, but the stats of "
                    f"{location} do not say one value of it: lower and upper bound must be equal"
                )


def _require_known_transforms(files: Entries, spec_id: int, shape: Shape, name: TableName) -> None:
    """Refuse new files in partitions that nobody here can tell to be the right ones."""
    for expression in shape.spec(spec_id) if files.num_rows else ():
        if expression.is_unknown:
            raise InvalidInput(
                f"table {name} is partitioned by {expression.name}, whose transform "
                f"{expression.transform} is not known here: write with an engine that knows it, or "
                "take it out of the partition spec first"
            )


def _require_confined(entries: Entries, name: TableName, metadata: TableMetadata) -> None:
    outside = entries["location"].filter(is_uri(entries["location"]))
    if len(outside):
        raise InvalidInput(
            f"{outside[0]} is outside {metadata.location}: table {name} takes only files of its own "
            f"location while {CONFINED} is true"
        )


def require_keys(entries: Entries, metadata: TableMetadata) -> None:
    """Refuse files without key metadata in an encrypted table: they would stand there in plain text."""
    if not is_encrypted(metadata):
        return
    plain = entries["location"].filter(pc.is_null(entries["key_metadata"]))
    for location in plain.drop_null()[:1].to_pylist():
        raise InvalidInput(
            f"{location} is not encrypted, and the table is: append its rows, or give the file's "
            "key metadata"
        )
