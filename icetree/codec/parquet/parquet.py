"""Parquet files of others, opened so that no bytes whatever do worse than an error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.codec import limits
from icetree.codec.encryption.key_metadata import FileKey
from icetree.codec.parquet import encrypted
from icetree.codec.parquet.footer import (
    ARROW_SCHEMA,
    HIDDEN_KEY,
    Chunk,
    Column,
    Footer,
    RowGroup,
    read_footer,
)
from icetree.codec.parquet.held import Held
from icetree.codec.parquet.modest import OFFSET_BYTES, Source, Wanted, require_modest
from icetree.errors import CorruptTable

#: From so many bytes on it pays to decode columns side by side.
_WORTH_THREADS: Final = 256 * 1024
#: Numbers of codecs, as pyarrow calls them in what it tells of footers.
_CODECS: Final = {
    name: number
    for number, name in enumerate(
        ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "UNKNOWN", "ZSTD", "LZ4")
    )
}


class NumberedFile(pq.ParquetFile):  # type: ignore[misc]
    """A file whose columns are told by number.

    To look them up by name, pyarrow would first name every column of the file, which costs as
    much as reading some of them.
    """

    def _build_nested_paths(self) -> None:
        return None


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file whose footer is sound, and what the footer says."""

    parquet: pq.ParquetFile
    columns: tuple[Column, ...]
    row_groups: tuple[RowGroup, ...]
    file: str
    #: None of an encrypted file: who has its key made its pages.
    source: Source | None = None

    def read(self, group: int, columns: Sequence[int]) -> pa.Table:
        """Return columns, told by number, of a row group."""
        claims = self.row_groups[group].chunks
        wanted = sum(_bytes(self.columns[at], claims[at]) for at in columns)
        limits.ROW_GROUP.require(wanted, file=self.file, what=f"row group {group}")
        if self.source is None:
            return self._read(group, columns, wanted)
        held = self.source.held
        held.hold((claims[at].first_page, claims[at].packed_bytes) for at in columns)
        try:
            asked = [Wanted(group, at, claims[at], self.columns[at]) for at in columns]
            require_modest(self.source, asked, limits.ROW_GROUP, f"row group {group}")
            return self._read(group, columns, wanted)
        finally:
            held.let_go()

    def _read(self, group: int, columns: Sequence[int], wanted: int) -> pa.Table:
        return self.parquet.reader.read_row_group(
            group, column_indices=list(columns), use_threads=wanted >= _WORTH_THREADS
        )

    def read_groups(self) -> Iterator[pa.Table]:
        """Yield every row group, whole."""
        try:
            for group in range(len(self.row_groups)):
                yield self.read(group, range(len(self.columns)))
        except (pa.ArrowException, OSError, ValueError) as error:
            raise CorruptTable(self.file, f"it cannot be read: {error}") from error

    def statistics(self, group: int, column: int) -> pq.Statistics | None:
        """Return a column's statistics in a row group, None where there are none of use."""
        if not self.row_groups[group].chunks[column].has_sound_stats:
            return None
        require_chunks(self.parquet, [group], [column])
        return self.parquet.metadata.row_group(group).column(column).statistics


def open_parquet(
    source: pa.NativeFile, *, file: str, key: FileKey | None = None, **options: Any
) -> CheckedFile:
    """Open a Parquet file; `options` are those of `pyarrow.parquet.ParquetFile`.

    `key` opens an encrypted one.
    """
    footer = read_footer(source, file=file, key=key)
    row_groups = footer.row_groups()
    if footer.whole is not None:
        # Nothing is left to ask for, nor to wait for.
        source, options = pa.BufferReader(footer.whole), options | {"pre_buffer": False}
    looked: Source | None = None
    try:
        if key is None:
            # From the very bytes that were looked at: so the file's end is read once.
            metadata = without_arrow_schema(footer)
            held, options = Held(source), options | {"pre_buffer": False}
            parquet = NumberedFile(held.file, metadata=metadata, **options)
            looked = source_of(parquet, held, file)
        else:
            # What decrypts pages comes with a footer that Arrow decrypted itself.
            how = encrypted.for_reading(key)
            parquet = NumberedFile(source, decryption_properties=how, **options)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise CorruptTable(file, f"it is no Parquet file: {error}") from error
    return CheckedFile(parquet, footer.columns, row_groups, file, looked)


def source_of(parquet: pq.ParquetFile, held: Held, file: str) -> Source:
    """Return what is needed to tell how much memory columns of an open file take."""
    return Source(parquet=parquet, held=held, file=file, apart=partial(_apart, parquet, held))


def _apart(parquet: pq.ParquetFile, held: Held, columns: list[int]) -> pq.ParquetFile:
    return NumberedFile(
        held.file,
        metadata=parquet.metadata,
        read_dictionary=columns,
        pre_buffer=False,
        arrow_extensions_enabled=False,
    )


def without_arrow_schema(footer: Footer) -> pq.FileMetaData:
    """Return what Arrow reads in a footer, its own schema aside."""
    content = footer.content
    if content.count(ARROW_SCHEMA) == 1 and HIDDEN_KEY not in content:
        # To find the key takes ten times as long as to see that nothing but the key was hidden.
        hidden = footer.as_file().replace(ARROW_SCHEMA, HIDDEN_KEY)
        found = pq.read_metadata(pa.BufferReader(hidden))
        if HIDDEN_KEY in (found.metadata or {}):
            return found
    return pq.read_metadata(pa.BufferReader(footer.without_arrow_schema()))


def chunk_of(parquet: pq.ParquetFile, group: int, column: int) -> Chunk:
    """Return what a footer claims of a column, which `require_chunks` has seen; of no statistics."""
    said = parquet.metadata.row_group(group).column(column)
    first = said.data_page_offset
    dictionary = said.dictionary_page_offset or 0
    sizes = said.num_values, said.total_uncompressed_size, said.total_compressed_size
    codec = _CODECS.get(said.compression, -1)
    return Chunk(*sizes, dictionary if 0 < dictionary < first else first, codec, False)


def require_chunks(parquet: pq.ParquetFile, groups: Sequence[int], columns: Sequence[int]) -> None:
    """Make Arrow look at the metadata of columns in row groups, without reading any.

    What is wrong there is an error here, but would end the process if Python asked for it first:
    pyarrow lets no exception out of the metadata's properties.
    """
    for group in groups if columns else ():
        none = parquet.reader.iter_batches(
            0, row_groups=[group], column_indices=list(columns), use_threads=False
        )
        next(none, None)


def _bytes(column: Column, claimed: Any) -> int:
    """Return how much memory a column of a row group takes, by what the footer says of it."""
    if column.width is None:
        return int(claimed.unpacked_bytes + OFFSET_BYTES * claimed.values)
    return int(column.width * claimed.values)
