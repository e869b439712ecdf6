"""How much memory columns of a Parquet file take once decoded: known before any is decoded.

A few bytes of Parquet can stand for many: a page that is compressed, a text in a dictionary that every
row names, a text that begins as the one before. What only pages can tell is read in their headers. Where
the least that is known would allow too much, more is found out: how long the longest text of a
dictionary is, and at last which are named how often, without putting them together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from icetree.codec.limits import Limit
from icetree.codec.parquet.footer import Chunk, Column
from icetree.codec.parquet.held import Held
from icetree.codec.parquet.pages import LZO, Pages, longest_text, read_pages, repeated_bytes
from icetree.codec.parquet.thrift import Broken
from icetree.errors import CorruptTable, Unsupported

#: A value of no fixed width takes its place among the offsets, besides its own bytes.
OFFSET_BYTES: Final = 4
_ROWS_AT_ONCE: Final = 1024 * 1024


class Wanted(NamedTuple):
    """A column of a row group that is to be read."""

    group: int
    number: int
    chunk: Chunk
    column: Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file that is to be read from."""

    parquet: pq.ParquetFile
    held: Held
    file: str
    #: Opens it once more, with these columns as indices and dictionaries.
    apart: Callable[[list[int]], pq.ParquetFile]


class _Column(NamedTuple):
    """A column whose pages were looked at."""

    wanted: Wanted
    pages: Pages
    content: memoryview

    @property
    def least(self) -> int:
        """How many bytes it takes, texts that are told otherwise than one by one aside."""
        pages, width = self.pages, self.wanted.column.width
        values = max(pages.values, self.wanted.chunk.values)
        taken = width * values if width is not None else OFFSET_BYTES * values + pages.told
        return taken + pages.largest + pages.dictionary_bytes

    @property
    def looked_up(self) -> int:
        """How many bytes texts of the dictionary take at the most, each as long as all together."""
        page = self.pages.dictionary
        if page is None or self.wanted.column.width is not None:
            return 0
        return self.pages.looked_up * (self.pages.dictionary_bytes - OFFSET_BYTES * page.values)


def require_modest(source: Source, wanted: Sequence[Wanted], limit: Limit, what: str) -> None:
    """Refuse to read columns that would take more than the limit together."""
    columns = [_look(source, each) for each in wanted]
    total = sum([column.least for column in columns])
    most = [column.looked_up for column in columns]
    lengths = [column for column in columns if column.pages.with_lengths]
    if not lengths and total + sum(most) <= limit.bytes:
        return
    limit.require(total, file=source.file, what=what)
    total += sum(_repeated(source, column) for column in lengths)
    limit.require(total, file=source.file, what=what)
    for finer in (_by_longest, _by_index):
        # Those that might take the most come first: often the others need not be looked at.
        for at in sorted(range(len(most)), key=most.__getitem__, reverse=True):
            if total + sum(most) <= limit.bytes:
                return
            if most[at]:
                found = finer(source, columns[at])
                most[at] = most[at] if found is None else min(most[at], found)
    limit.require(total + sum(most), file=source.file, what=what)


def _look(source: Source, wanted: Wanted) -> _Column:
    chunk = wanted.chunk
    if chunk.codec == LZO:
        raise _unsupported(source, "LZO")
    content = source.held.part(chunk.first_page, chunk.packed_bytes)
    try:
        if content is None:
            raise Broken("a column passes the end of the file")
        pages = read_pages(content, chunk, wanted.column)
    except Broken as error:
        raise _broken(source, wanted, error) from None
    if pages.in_parts:
        raise _unsupported(source, "LZ4 in parts, as Hadoop writes it")
    return _Column(wanted, pages, content)


def _unsupported(source: Source, how: str) -> Unsupported:
    return Unsupported(
        f"{source.file}: its pages are {how}, which Arrow does not read: write it anew with an engine "
        "that does, and with another codec"
    )


def _repeated(source: Source, column: _Column) -> int:
    """Return how many bytes of texts are told by those before them."""
    number, chunk = column.wanted.number, column.wanted.chunk
    shape = source.parquet.schema.column(number)
    levels = shape.max_repetition_level, shape.max_definition_level
    try:
        pages = column.pages.with_lengths
        return sum([repeated_bytes(column.content, page, chunk.codec, levels) for page in pages])
    except Broken as error:
        raise _broken(source, column.wanted, error) from None


def _broken(source: Source, wanted: Wanted, error: Broken) -> CorruptTable:
    where = f"column {wanted.number} of row group {wanted.group}"
    return CorruptTable(source.file, f"broken pages of Parquet in {where}: {error}")


# --- dictionaries --------------------------------------------------------------------------------


def _by_longest(source: Source, column: _Column) -> int | None:
    """Return what all values would take if each were the longest of the dictionary."""
    page = column.pages.dictionary
    assert page is not None  # only then is anything looked up
    part = next(_apart(source, column.wanted, rows=1), None)
    if part is None:
        try:
            longest = longest_text(column.content, page, column.wanted.chunk.codec)
        except Broken as error:
            raise _broken(source, column.wanted, error) from None
        return longest * column.pages.looked_up
    # Of rows that name none of it there is no dictionary yet.
    if len(part.dictionary) != page.values:
        return None
    longest = pc.max(pc.binary_length(part.dictionary)).as_py() or 0
    return int(longest) * column.pages.looked_up


def _by_index(source: Source, column: _Column) -> int | None:
    """Return what the values take that are there; None where that cannot be told."""
    if next(_apart(source, column.wanted, rows=1), None) is None:
        return None
    found = [
        pc.sum(pc.binary_length(part.dictionary).take(part.indices)).as_py() or 0
        for part in _apart(source, column.wanted, rows=_ROWS_AT_ONCE)
    ]
    return sum(found) if found else None


def _apart(source: Source, wanted: Wanted, *, rows: int) -> Iterator[pa.DictionaryArray]:
    """Yield a column as indices and their dictionary, so many rows at once.

    Nothing of one that Arrow does not leave so: decimals that are stored as bytes.
    """
    parquet = source.apart([wanted.number])
    for batch in parquet.reader.iter_batches(
        rows, row_groups=[wanted.group], column_indices=[wanted.number], use_threads=False
    ):
        leaf = _leaf(batch.column(0))
        if not isinstance(leaf, pa.DictionaryArray):
            return
        yield leaf


def _leaf(array: pa.Array) -> pa.Array:
    """Return the one column of Parquet that an array is made of."""
    while pa.types.is_nested(array.type):
        array = array.field(0) if pa.types.is_struct(array.type) else array.values
    return array
