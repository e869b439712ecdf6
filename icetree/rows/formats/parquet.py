"""Parquet files of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.types import NestedField

from icetree.codec.encryption.key_metadata import FileKey
from icetree.codec.parquet import encrypted
from icetree.codec.parquet.annotate import annotated
from icetree.codec.parquet.parquet import CheckedFile, open_parquet
from icetree.errors import CorruptTable, InvalidInput
from icetree.rows.formats.format import Format
from icetree.rows.formats.logical import logical_types, ordered_columns
from icetree.rows.formats.shred import Shape, inferred, shredded, stored_type
from icetree.rows.schema import arrow_field
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.metrics import SHRED_VARIANTS
from icetree.spec.properties.values import flag, whole_number
from icetree.spec.schema.types import VariantType

ROW_GROUP_SIZE: Final = "write.parquet.row-group-size-bytes"
DEFAULT_ROW_GROUP_SIZE: Final = 128 * 1024 * 1024
ROW_GROUP_LIMIT: Final = "write.parquet.row-group-limit"
DEFAULT_ROW_GROUP_LIMIT: Final = 1_048_576
CODEC: Final = "write.parquet.compression-codec"
LEVEL: Final = "write.parquet.compression-level"
_CODECS: Final = ("zstd", "snappy", "gzip", "lz4", "brotli", "uncompressed")
#: The highest level of each codec that has levels.
_LEVELS: Final = {"zstd": 22, "gzip": 9, "brotli": 11}
#: What Arrow raises for broken bytes; a name that is no text is a ValueError.
_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError)


class ParquetReader:
    """A Parquet file; its pages are held against their checksums unless told not to."""

    def __init__(
        self,
        source: pa.NativeFile,
        location: str,
        checksums: bool = True,
        key: FileKey | None = None,
    ) -> None:
        self.file: CheckedFile = open_parquet(
            source,
            file=location,
            key=key,
            pre_buffer=True,
            page_checksum_verification=checksums,
            coerce_int96_timestamp_unit="us",
            # As they are stored: which types others have registered must change nothing.
            arrow_extensions_enabled=False,
        )

    @property
    def schema(self) -> pa.Schema:
        return self.file.parquet.schema_arrow

    @property
    def group_rows(self) -> Sequence[int]:
        return [group.rows for group in self.file.row_groups]

    @property
    def split_offsets(self) -> list[int]:
        groups = [group for group in self.file.row_groups if group.chunks]
        return [min(chunk.first_page for chunk in group.chunks) for group in groups]

    def read(self, group: int, leaves: Sequence[int], names: Sequence[str]) -> pa.Table:  # noqa: ARG002
        return self.file.read(group, leaves)

    def statistics(self, group: int, leaf: int) -> Any:
        """Return what the file says of a column in a row group, None where it says nothing."""
        try:
            return self.file.statistics(group, leaf)
        except _UNREADABLE as error:
            raise CorruptTable(self.file.file, f"broken Parquet footer: {error}") from error


class ParquetWriter:
    """A Parquet file that is being made; every page has a checksum."""

    def __init__(
        self,
        sink: pa.NativeFile,
        fields: Sequence[NestedField],
        properties: Mapping[str, str],
        key: FileKey | None = None,
    ) -> None:
        self._key = key
        self._properties = properties
        self._options = codec_of(properties)
        if key is not None:
            self._options["encryption_properties"] = encrypted.for_writing(key)
        self._types = logical_types(fields)
        self._schema = pa.schema([arrow_field(field) for field in fields])
        shreds = flag(properties, SHRED_VARIANTS, default=False)
        #: Variants whose fields are stored apart, by column: how is told by the first rows.
        self._apart: dict[int, Shape] = {
            at: None
            for at, field in enumerate(fields)
            if shreds and isinstance(field.field_type, VariantType)
        }
        self._sink = sink
        self._end = _KeepingEnd(sink)
        self._file: pq.ParquetWriter | None = None

    def write(self, rows: pa.Table, group: int | None = None) -> None:
        if self._file is None:
            for at in self._apart:
                self._shred(at, rows)
            self._file = self._begun()
        for at, shape in self._apart.items():
            made = shredded(one_chunk(rows.column(at)), shape)
            rows = rows.set_column(at, self._schema.field(at), made)
        row_bytes = rows.nbytes / max(1, rows.num_rows)
        group = group or PARQUET.rows_at_once(self._properties, row_bytes)
        self._file.write_table(rows, row_group_size=group)

    def _shred(self, at: int, rows: pa.Table) -> None:
        self._apart[at] = inferred(one_chunk(rows.column(at)))
        field = self._schema.field(at).with_type(stored_type(self._apart[at]))
        self._schema = self._schema.set(at, field)

    def _begun(self) -> pq.ParquetWriter:
        ordered = ordered_columns(self._schema, self._types) if self._types else True
        target: Any = pa.PythonFile(self._end, mode="w") if self._types else self._sink
        return pq.ParquetWriter(
            target,
            self._schema,
            store_schema=False,
            store_decimal_as_integer=True,
            write_page_checksum=True,
            write_statistics=ordered,
            **self._options,
        )

    def close(self) -> None:
        if self._file is None:
            self._file = self._begun()
        self._end.keep()
        self._file.close()
        if self._types:
            self._end.end(self._annotated)

    def _annotated(self, end: bytes) -> bytes:
        if self._key is None:
            return annotated(end, self._types)
        return encrypted.with_footer(end, self._key, lambda plain: annotated(plain, self._types))


class _KeepingEnd:
    """Writes on to a sink, but for what comes last, which may still be changed."""

    def __init__(self, sink: pa.NativeFile) -> None:
        self._sink = sink
        self._kept: list[bytes] | None = None
        self._size = 0
        self.closed = False

    def keep(self) -> None:
        """Keep what is written from now on."""
        self._kept = []

    def end(self, change: Callable[[bytes], bytes]) -> None:
        """Write on what was kept, changed."""
        self._sink.write(change(b"".join(self._kept or ())))

    def write(self, content: bytes) -> int:
        """Take bytes, as a file does."""
        if self._kept is None:
            self._sink.write(content)
        else:
            self._kept.append(bytes(content))
        self._size += len(content)
        return len(content)

    def tell(self) -> int:
        """Tell how many bytes came."""
        return self._size

    def flush(self) -> None:
        """Do nothing: whoever has the sink decides."""


def codec_of(properties: Mapping[str, str]) -> dict[str, Any]:
    """Return how pages are compressed, as pyarrow takes it; InvalidInput for what cannot be."""
    codec = properties.get(CODEC, "zstd").lower()
    if codec not in _CODECS:
        raise InvalidInput(f"{CODEC}={codec!r}: allowed are {', '.join(_CODECS)}")
    level = whole_number(properties, LEVEL, default=3) if LEVEL in properties else None
    if codec not in _LEVELS:
        level = None
    elif level is not None and level > _LEVELS[codec]:
        raise InvalidInput(
            f"{LEVEL}={properties[LEVEL]!r}: allowed for {codec} are 0 to {_LEVELS[codec]}"
        )
    return {
        "compression": "none" if codec == "uncompressed" else codec,
        "compression_level": level,
    }


def _most_rows(properties: Mapping[str, str]) -> int:
    return whole_number(properties, ROW_GROUP_LIMIT, default=DEFAULT_ROW_GROUP_LIMIT, least=1)


def _group_bytes(properties: Mapping[str, str]) -> int:
    return whole_number(properties, ROW_GROUP_SIZE, default=DEFAULT_ROW_GROUP_SIZE, least=1)


def _offsets(content: pa.Buffer, key: FileKey | None = None) -> list[int]:
    how = None if key is None else encrypted.for_reading(key)
    footer = pq.read_metadata(pa.BufferReader(content), decryption_properties=how)
    groups = (footer.row_group(at).column(0) for at in range(footer.num_row_groups))
    return [
        min(first.data_page_offset, first.dictionary_page_offset or first.data_page_offset)
        for first in groups
    ]


def _keyed(key: FileKey) -> Format:
    return replace(
        PARQUET,
        open=partial(ParquetReader, key=key),
        begin=partial(ParquetWriter, key=key),
        split_offsets=partial(_offsets, key=key),
    )


PARQUET: Final = Format(
    name="parquet",
    open=ParquetReader,
    begin=ParquetWriter,
    split_offsets=_offsets,
    bytes_at_once=_group_bytes,
    most_rows=_most_rows,
    keyed=_keyed,
)
