"""Where the columns of a Parquet manifest are: found by field id, told by number."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final

import pyarrow as pa

from icetree.codec.parquet.footer import ARROW_SCHEMA, Footer, RowGroup, read_footer
from icetree.codec.parquet.held import Held
from icetree.codec.parquet.modest import Source
from icetree.codec.parquet.parquet import (
    NumberedFile,
    require_chunks,
    source_of,
    without_arrow_schema,
)
from icetree.errors import CorruptTable
from icetree.spec.entry import stats
from icetree.spec.fields import (
    BY_ID,
    CONTENT_KEY,
    CONTENT_STATS,
    DELETION_VECTOR,
    ENTRY,
    FIELD_ID_KEY,
    FORMAT_VERSION,
    FORMAT_VERSION_KEY,
    MANIFEST_STATS,
    TRACKING_INFO,
)
from icetree.spec.recent import Recent
from icetree.spec.schema.shape import Shape

_GROUPS = {group.id: group for group in (TRACKING_INFO, DELETION_VECTOR, MANIFEST_STATS)}


#: So often a leaf is met before all of its footer is checked.
WORTH_IT = 3

_KEPT: Final = 64
#: How often footers of leaves were met, and what those say that were met often enough.
_TIMES: Final[Recent[bytes, int]] = Recent(most=_KEPT)
_CHECKED: Final[Recent[bytes, tuple[RowGroup, ...]]] = Recent(most=_KEPT)


#: Where the columns of a schema are: by the bytes that tell it, and the fields whose stats are wanted.
_PLACES: Final[Recent[tuple[bytes, frozenset[int] | None], Mapping[str, Stored]]] = Recent(
    most=_KEPT
)


def _row_groups_of(footer: Footer) -> tuple[RowGroup, ...] | None:
    """Return what a footer says of row groups; None where it was not met often enough.

    To check a large footer takes longer than to read what a plan needs of the leaf: it pays only
    for a leaf that is planned again and again.
    """
    size = footer.file_bytes.to_bytes(8, "little")
    key = blake2b(footer.content, digest_size=32, salt=size).digest()
    found = _CHECKED.get(key)
    if found is not None:
        return found
    times = (_TIMES.get(key) or 0) + 1
    _TIMES.put(key, times)
    if times < WORTH_IT:
        return None
    found = footer.row_groups()
    _CHECKED.put(key, found)
    return found


class ParquetManifest(NumberedFile):
    """A manifest, which is read as one batch."""

    def read_columns(self, groups: list[int] | None, numbers: list[int], rows: int) -> pa.Table:
        """Read columns of row groups, None for all of these, which have so many rows together."""
        every = list(range(self.num_row_groups)) if groups is None else groups
        # As one batch, whose size is known: to read all at once would trust what each column
        # says of its own number of values.
        batches = list(
            self.reader.iter_batches(
                max(1, rows), row_groups=every, column_indices=numbers, use_threads=False
            )
        )
        if sum(batch.num_rows for batch in batches) != rows:
            raise ValueError(f"its row groups do not have {rows} rows")
        return pa.Table.from_batches(batches) if batches else self.schema_arrow.empty_table()


@dataclass(frozen=True, slots=True)
class Stored:
    """Where a flat column is in the file: its path of names, its type there, its numbers."""

    path: tuple[str, ...]
    type: pa.DataType
    #: The columns of Parquet that it is made of, of which it has one unless it is a struct.
    numbers: range


@dataclass(frozen=True)
class Opened:
    """A manifest whose columns were found."""

    parquet: ParquetManifest
    source: Source
    footer: Footer
    columns: Mapping[str, Stored]
    shape: Shape
    file: str
    table_location: str = ""
    #: Whether all of the footer is checked even where it was not met often enough to pay.
    looks_at_once: bool = False

    @cached_property
    def group_rows(self) -> list[int]:
        """How many rows each row group has."""
        every = range(self.parquet.num_row_groups)
        require_chunks(self.parquet, every, [0])
        metadata = self.parquet.metadata
        found = [metadata.row_group(at).num_rows for at in every]
        if min(found, default=0) < 0 or sum(found) != metadata.num_rows:
            raise CorruptTable(self.file, f"its row groups do not have {metadata.num_rows} rows")
        return found

    @cached_property
    def row_groups(self) -> tuple[RowGroup, ...] | None:
        """What the footer says of row groups, all of it checked; None where nobody looked yet."""
        return self.footer.row_groups() if self.looks_at_once else _row_groups_of(self.footer)


def open_manifest(
    source: pa.NativeFile,
    kind: str,
    shape: Shape,
    *,
    file: str,
    columns: Collection[str] | None,
    table_location: str = "",
) -> Opened:
    """Find every column this version knows; of stats only those that are wanted."""
    footer = read_footer(source, file=file)
    metadata = None
    if ARROW_SCHEMA in footer.content:
        metadata = without_arrow_schema(footer)
    held = Held(source)
    held.file.seek(0)
    parquet = ParquetManifest(
        held.file, metadata=metadata, pre_buffer=False, page_checksum_verification=True
    )
    _require_kind(parquet, kind, file)
    # Where columns are follows from the schema, and manifests of one table mostly have the same.
    key = (footer.told_by, None if columns is None else frozenset(_fields_of(columns)))
    found = _PLACES.get(key)
    if found is None:
        found = _stored(parquet, file, columns)
        _require_columns(found, file)
        _PLACES.put(key, found)
    return Opened(
        parquet, source_of(parquet, held, file), footer, found, shape, file, table_location
    )


def _require_kind(parquet: ParquetManifest, kind: str, file: str) -> None:
    metadata = parquet.metadata.metadata or {}
    version = metadata.get(FORMAT_VERSION_KEY.encode(), b"").decode()
    content = metadata.get(CONTENT_KEY.encode(), b"").decode()
    if version != str(FORMAT_VERSION):
        raise CorruptTable(file, f"format-version must be {FORMAT_VERSION}, not {version!r}")
    if content != kind:
        raise CorruptTable(file, f"content must be {kind!r} here, not {content!r}")


def _field_id(field: pa.Field, file: str) -> int:
    id = (field.metadata or {}).get(FIELD_ID_KEY)
    if id is None:
        raise CorruptTable(file, f"column {field.name!r} has no field id")
    return int(id)


def _stored(
    parquet: ParquetManifest, file: str, columns: Collection[str] | None
) -> dict[str, Stored]:
    """Find every column this version knows, by field id; of stats only those that are wanted."""
    each: list[tuple[str, Stored]] = []
    end = 0
    for field, numbers in _numbered(parquet.schema_arrow, 0):
        end = numbers.stop
        id = _field_id(field, file)
        if id == CONTENT_STATS.id:
            each += _stored_stats(field, numbers.start, file, columns)
        elif id in _GROUPS:
            for member, its in _numbered(_members(field, file), numbers.start):
                column = BY_ID.get(_field_id(member, file))
                if column is not None and column.group == _GROUPS[id]:
                    each.append((column.name, Stored((field.name, member.name), member.type, its)))
        elif (column := BY_ID.get(id)) is not None and column.group is None:
            each.append((column.name, Stored((field.name,), field.type, numbers)))
    if end != parquet.metadata.num_columns:
        raise CorruptTable(file, "a column has no values to be stored")
    found = dict(each)
    if len(found) < len(each) or len({where.path for _, where in each}) < len(each):
        raise CorruptTable(file, "two columns share a field id or a name")
    return found


def _stored_stats(
    stats_field: pa.Field, first: int, file: str, columns: Collection[str] | None
) -> list[tuple[str, Stored]]:
    found = []
    fields = None if columns is None else _fields_of(columns)
    for struct, numbers in _numbered(_members(stats_field, file), first):
        field_id = stats.field_of(_field_id(struct, file))
        if field_id is None or (fields is not None and field_id not in fields):
            continue
        for member, its in _numbered(_members(struct, file), numbers.start):
            stat = stats.stat_of(field_id, _field_id(member, file))
            if stat is not None:
                path = (stats_field.name, struct.name, member.name)
                found.append((stats.column(field_id, stat), Stored(path, member.type, its)))
    return found


def _numbered(fields: Iterable[pa.Field], first: int) -> Iterator[tuple[pa.Field, range]]:
    """Yield fields with the numbers of their columns, which start at `first`."""
    for field in fields:
        numbers = range(first, first + _width(field.type))
        first = numbers.stop
        yield field, numbers


def _width(type: pa.DataType) -> int:
    """Return how many columns of Parquet a type takes."""
    if isinstance(type, pa.BaseExtensionType):
        type = type.storage_type
    members = type.num_fields
    return sum(_width(type.field(at).type) for at in range(members)) if members else 1


def _fields_of(columns: Collection[str]) -> set[int]:
    parsed = map(stats.parse_column, columns)
    return {each[0] for each in parsed if each is not None}


def _members(field: pa.Field, file: str) -> list[pa.Field]:
    if not pa.types.is_struct(field.type):
        raise CorruptTable(file, f"column {field.name!r} must be a struct, not {field.type}")
    return [field.type.field(i) for i in range(field.type.num_fields)]


def _require_columns(stored: dict[str, Stored], file: str) -> None:
    for column in ENTRY:
        if column.required and column.name not in stored:
            raise CorruptTable(file, f"required column {column.name} ({column.id}) is missing")
