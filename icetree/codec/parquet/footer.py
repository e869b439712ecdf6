"""A first look at a Parquet file's footer, before Arrow sees it.

Arrow reads broken files without harm, but not all that pyarrow offers does: what is wrong with a
row group or a statistic is thrown where Python cannot catch it, and the process ends. So
everything that pyarrow may be asked for afterwards is checked here: the tree of columns, that
row groups have exactly these columns, of the same types, inside the file, and which statistics
are as wide as their type.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import pyarrow as pa

from icetree.codec.encryption.key_metadata import FileKey
from icetree.codec.parquet import encrypted
from icetree.codec.parquet.thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    Broken,
    Fields,
    Struct,
    Wanted,
    read_list_head,
    read_struct,
)
from icetree.errors import CorruptTable
from icetree.spec.recent import Recent
from icetree.spec.schema.columns import DEEPEST

#: The key under which Arrow looks for the schema that a writer embedded.
ARROW_SCHEMA: Final = b"ARROW:schema"
#: As long, so that all else in the footer stays where it is.
HIDDEN_KEY: Final = b"ARROW:hidden"

_MAGIC: Final = b"PAR1"
_TAIL: Final = struct.Struct("<I4s")
_SMALLEST: Final = len(_MAGIC) + _TAIL.size
#: Read at once from the end of a file: the whole footer, as a rule.
_TAIL_READ_BYTES: Final = 64 * 1024

_BOOLEAN, _INT32, _INT64, _INT96, _FLOAT, _DOUBLE, _BYTE_ARRAY, _FIXED = range(8)
_WIDTHS: Final = {_BOOLEAN: 1, _INT32: 4, _INT64: 8, _INT96: 12, _FLOAT: 4, _DOUBLE: 8}
_LAST_CODEC: Final = 7

# Field ids of the Parquet format.
_VERSION, _SCHEMA, _NUM_ROWS, _ROW_GROUPS, _KEY_VALUES = 1, 2, 3, 4, 5
_KEY = 1
_TYPE, _TYPE_LENGTH, _NAME, _NUM_CHILDREN = 1, 2, 4, 5
_COLUMNS, _GROUP_ROWS = 1, 3
_FILE_PATH, _META = 1, 3
_CHUNK_TYPE, _CODEC, _VALUES, _UNPACKED, _PACKED = 1, 4, 5, 6, 7
_PAGES, _DICTIONARY, _STATS = 9, 11, 12
_BOUNDS: Final = (1, 2, 5, 6)

_NUMBER: Final = Wanted(I32)
_LONG: Final = Wanted(I64)
_BYTES: Final = Wanted(BINARY)
_ELEMENT: Final[Fields] = {
    _TYPE: _NUMBER,
    _TYPE_LENGTH: _NUMBER,
    _NAME: _BYTES,
    _NUM_CHILDREN: _NUMBER,
}
_CHUNK_META: Final[Fields] = {
    _CHUNK_TYPE: _NUMBER,
    _CODEC: _NUMBER,
    **dict.fromkeys((_VALUES, _UNPACKED, _PACKED, _PAGES, _DICTIONARY), _LONG),
    _STATS: Wanted(STRUCT, fields=dict.fromkeys(_BOUNDS, _BYTES)),
}
_CHUNK: Final[Fields] = {_FILE_PATH: _BYTES, _META: Wanted(STRUCT, fields=_CHUNK_META)}
_GROUP: Final[Fields] = {_COLUMNS: Wanted(LIST, STRUCT, _CHUNK), _GROUP_ROWS: _LONG}
_REST: Final[Fields] = {_NUM_ROWS: _LONG, _ROW_GROUPS: Wanted(LIST, STRUCT, _GROUP)}
_WHERE_KEYS: Final[Fields] = {_KEY_VALUES: Wanted(LIST, STRUCT, only_where=True)}
_PAIR: Final[Fields] = {_KEY: _BYTES}


@dataclass(frozen=True, slots=True)
class Column:
    """A column that holds values: its physical type, and how many bytes one takes, if fixed."""

    type: int
    width: int | None


class Chunk(NamedTuple):
    """What a footer claims of one column in one row group."""

    values: int
    unpacked_bytes: int
    packed_bytes: int
    #: Where its first page is, which readers start from.
    first_page: int
    #: How pages are compressed, by the number that Parquet has for it.
    codec: int
    #: Whether its statistics may be asked for.
    has_sound_stats: bool


class RowGroup(NamedTuple):
    """What a footer claims of a row group; a chunk for each column."""

    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a file, and the bytes of the footer that tell them, which it begins with."""

    columns: tuple[Column, ...]
    told_by: bytes


#: Files of one table mostly have the same columns, told by the same bytes.
_KNOWN: Final[Recent[bytes, _Columns]] = Recent(most=16)


@dataclass(frozen=True, slots=True)
class Footer:
    """A footer whose tree of columns is sound."""

    file: str
    file_bytes: int
    content: bytes
    columns: tuple[Column, ...]
    #: What tells the columns: the content begins with it. One object for files that agree in it.
    told_by: bytes
    #: All bytes of a file that is so small that they were read with the footer.
    whole: bytes | None = None

    def as_file(self) -> bytes:
        """Return a Parquet file that has this footer and nothing else."""
        return _MAGIC + self.content + _TAIL.pack(len(self.content), _MAGIC)

    def without_arrow_schema(self) -> bytes:
        """Return the same, without what Arrow wrote for itself.

        What counts is the Parquet schema. An Arrow schema that a writer embedded dresses the same
        columns as large strings, views or dictionaries, some of which Arrow itself cannot read
        back; nothing in pyarrow tells it to look past that, except that it is not there.
        """
        try:
            hidden = self._with_other_key()
        except Broken as error:
            raise CorruptTable(self.file, f"broken Parquet footer: {error}") from None
        return replace(self, content=hidden).as_file()

    def _with_other_key(self) -> bytes:
        """Return the content with the key gone: names and bounds may well be spelt like it."""
        content = self.content
        place, _ = read_struct(content, len(self.told_by), _WHERE_KEYS, after=_SCHEMA)
        if _KEY_VALUES not in place:
            return content
        count, at = read_list_head(content, place[_KEY_VALUES], STRUCT)
        for _ in range(count):
            pair, end = read_struct(content, at, _PAIR)
            if pair.get(_KEY) == ARROW_SCHEMA:
                # Fields come in order: nothing that is spelt like it stands before the key.
                start = content.index(ARROW_SCHEMA, at)
                content = content[:start] + HIDDEN_KEY + content[start + len(HIDDEN_KEY) :]
            at = end
        return content

    def row_groups(self) -> tuple[RowGroup, ...]:
        """Return what it says of row groups, having checked all of it."""
        try:
            return self._row_groups()
        except Broken as error:
            raise CorruptTable(self.file, f"broken Parquet footer: {error}") from None

    def _row_groups(self) -> tuple[RowGroup, ...]:
        rest, _ = read_struct(self.content, len(self.told_by), _REST, after=_SCHEMA)
        rows, groups = rest.get(_NUM_ROWS), rest.get(_ROW_GROUPS)
        if rows is None or groups is None:
            raise Broken("it lacks row groups or their rows")
        found = tuple([self._row_group(group) for group in groups])
        if sum(group.rows for group in found) != rows:
            raise Broken(f"its row groups do not have {rows} rows together")
        return found

    def _row_group(self, group: Struct) -> RowGroup:
        chunks, rows = group.get(_COLUMNS), group.get(_GROUP_ROWS)
        if chunks is None or rows is None or rows < 0:
            raise Broken("a row group lacks columns or rows")
        if len(chunks) != len(self.columns):
            raise Broken(f"a row group has {len(chunks)} columns, the schema {len(self.columns)}")
        pairs = zip(chunks, self.columns, strict=True)
        return RowGroup(rows, tuple([self._chunk(chunk, column) for chunk, column in pairs]))

    def _chunk(self, chunk: Struct, column: Column) -> Chunk:
        meta = chunk.get(_META)
        if meta is None or chunk.get(_FILE_PATH):
            raise Broken("a column is encrypted by itself or in another file")
        try:
            values, unpacked, packed = meta[_VALUES], meta[_UNPACKED], meta[_PACKED]
            start, codec, type = meta[_PAGES], meta[_CODEC], meta[_CHUNK_TYPE]
        except KeyError as error:
            raise Broken(f"a column lacks field {error}") from None
        if type != column.type:
            raise Broken(f"a row group has type {type} where the schema has {column.type}")
        dictionary = meta.get(_DICTIONARY, 0)
        if 0 < dictionary < start:
            start = dictionary
        if min(values, unpacked, packed, start) < 0 or not 0 <= codec <= _LAST_CODEC:
            raise Broken("a column has a negative size or an unknown codec")
        if start + packed > self.file_bytes:
            raise Broken(f"a column ends at {start + packed}, past the end of the file")
        stats = meta.get(_STATS)
        sound = stats is None or column.width is None or _are_wide(stats, column.width)
        return Chunk(values, unpacked, packed, start, codec, sound)


def _are_wide(stats: Struct, width: int) -> bool:
    return all(len(bound) == width for bound in stats.values())


def read_footer(source: pa.NativeFile, *, file: str, key: FileKey | None = None) -> Footer:
    """Read and check a Parquet file's tree of columns; the source is left anywhere.

    With a key the file must be encrypted, and without it plain.
    """
    size = source.size()
    if size < _SMALLEST:
        raise CorruptTable(file, f"no Parquet file: {size} bytes are too few")
    source.seek(max(0, size - _TAIL_READ_BYTES))
    tail = source.read(min(size, _TAIL_READ_BYTES))
    length, magic = _TAIL.unpack_from(tail, len(tail) - _TAIL.size)
    _require_magic(magic, key, file)
    if length > size - _SMALLEST:
        raise CorruptTable(file, f"no Parquet file: a footer of {length} bytes does not fit {size}")
    start = len(tail) - _TAIL.size - length
    if start < 0:
        source.seek(size - _TAIL.size - length)
        content = source.read(length)
    else:
        content = tail[start : start + length]
    if len(content) != length:
        raise CorruptTable(file, "no Parquet file: it ends before its footer does")
    if key is not None:
        content = encrypted.decrypted_footer(content, key, file=file)
    footer = parse_footer(content, file=file, file_bytes=size)
    return replace(footer, whole=tail) if len(tail) == size else footer


def _require_magic(magic: bytes, key: FileKey | None, file: str) -> None:
    if magic == encrypted.MAGIC and key is None:
        raise CorruptTable(file, "it is encrypted, and its entry has no standard key metadata")
    if magic == _MAGIC and key is not None:
        raise CorruptTable(file, "it is not encrypted, though its entry has key metadata")
    wanted = _MAGIC if key is None else encrypted.MAGIC
    if magic != wanted:
        raise CorruptTable(file, f"no Parquet file: it ends with {magic!r}, not {wanted!r}")


def parse_footer(content: bytes, *, file: str, file_bytes: int) -> Footer:
    """Check the tree of columns in the bytes of a footer."""
    known = _KNOWN.first(content.startswith)
    if known is None:
        try:
            known = _read_columns(content)
        except Broken as error:
            raise CorruptTable(file, f"broken Parquet footer: {error}") from None
        _KNOWN.put(known.told_by, known)
    return Footer(file, file_bytes, content, known.columns, known.told_by)


def _read_columns(content: bytes) -> _Columns:
    """Read the elements of the schema, which follow the version: a tree, in the order of its nodes."""
    at = schema_at(content)
    count, at = read_list_head(content, at, STRUCT)
    columns: list[Column] = []
    #: How many children each node on the way down still waits for.
    waiting: list[int] = []
    for number in range(count):
        element, at = read_struct(content, at, _ELEMENT)
        if number:
            if not waiting:
                raise Broken("the schema goes on after its end")
            waiting[-1] -= 1
        _require_text(element.get(_NAME))
        children = element.get(_NUM_CHILDREN, 0)
        if _TYPE in element and number:
            if children:
                raise Broken("a column has both values and columns")
            columns.append(_column(element))
        elif children < 0:
            raise Broken("a column has a negative number of columns")
        else:
            waiting.append(children)
        while waiting and not waiting[-1]:
            waiting.pop()
        if len(waiting) > DEEPEST:
            raise Broken(f"columns nest deeper than {DEEPEST}")
    if waiting or not count:
        raise Broken("the schema is cut short")
    return _Columns(tuple(columns), content[:at])


def schema_at(content: bytes) -> int:
    """Return where the list of a schema's elements begins."""
    # Field 1, a number of one byte, then field 2, a list.
    if len(content) < 4 or content[0] != 0x15 or content[1] >= 0x80 or content[2] != 0x19:
        raise Broken("it does not begin with a version and a schema")
    return 3


def _require_text(name: Any) -> None:
    if name is None:
        raise Broken("a column has no name")
    try:
        name.decode()
    except UnicodeDecodeError:
        raise Broken(f"a column's name is no UTF-8: {name!r}") from None


def _column(element: Struct) -> Column:
    type = element[_TYPE]
    if type == _BYTE_ARRAY:
        return Column(type, None)
    if type == _FIXED:
        width = element.get(_TYPE_LENGTH, 0)
        if width <= 0:
            raise Broken("a column of fixed width has none")
        return Column(type, width)
    if type not in _WIDTHS:
        raise Broken(f"there is no physical type {type}")
    return Column(type, _WIDTHS[type])
