"""Avro files of rows, some blocks at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
from pyiceberg.types import NestedField

from icetree.codec.avro.columns import ArrowColumns
from icetree.codec.avro.container import open_container
from icetree.codec.avro.from_arrow import AvroRows
from icetree.codec.avro.lanes import Lanes
from icetree.errors import CorruptTable, InvalidInput
from icetree.rows.formats.format import Format
from icetree.spec.properties.values import choice, whole_number

CODEC: Final = "write.avro.compression-codec"
#: Codecs of blocks, and the highest level of those that have levels.
CODECS: Final = {"gzip": 9, "zstd": 22, "snappy": 0, "uncompressed": 0}
#: The one that has a checksum: in a block of any other, damage may be read as another value.
_CHECKED: Final = "snappy"
LEVEL: Final = "write.avro.compression-level"
_PORTION_BYTES: Final = 16 * 1024 * 1024
#: What a schema or bytes raise that are none.
_WRONG: Final = (pa.ArrowException, ValueError, TypeError, KeyError, IndexError, OverflowError)


class AvroReader:
    """An Avro file."""

    def __init__(self, source: pa.NativeFile, location: str, checksums: bool = True) -> None:  # noqa: ARG002
        self._file = open_container(source, file=location)
        try:
            self._columns = ArrowColumns(self._file.schema)
        except _WRONG as error:
            raise CorruptTable(location, f"its columns cannot be told: it has {error}") from None

    @property
    def schema(self) -> pa.Schema:
        return self._columns.schema

    @property
    def group_rows(self) -> Sequence[int]:
        return [run.rows for run in self._file.runs]

    @property
    def split_offsets(self) -> None:
        return None

    def read(self, group: int, leaves: Sequence[int], names: Sequence[str]) -> pa.Table:  # noqa: ARG002
        wanted = list(dict.fromkeys(names))
        schema = pa.schema([self.schema.field(name) for name in wanted])
        batches = []
        for blocks, counts in self._file.portions(self._file.runs[group]):
            try:
                found = Lanes(self._columns, blocks, wanted).read(counts)
            except _WRONG as error:
                raise CorruptTable(self._file.file, f"broken Avro data: {error}") from None
            batches.append(
                pa.RecordBatch.from_arrays([found[name] for name in wanted], schema=schema)
            )
        return pa.Table.from_batches(batches, schema)


class AvroWriter:
    """An Avro file that is being made."""

    def __init__(
        self, sink: pa.NativeFile, fields: Sequence[NestedField], properties: Mapping[str, str]
    ) -> None:
        codec, level = codec_of(properties)
        self._rows = AvroRows(sink, fields, codec=codec, level=level)

    def write(self, rows: pa.Table, group: int | None = None) -> None:  # noqa: ARG002
        self._rows.write(rows)

    def close(self) -> None:
        """End nothing: after its last block a file is whole."""


def codec_of(properties: Mapping[str, str]) -> tuple[str, int | None]:
    """Return how blocks are compressed, and how much; InvalidInput for what cannot be."""
    codec = choice(properties, CODEC, tuple(CODECS), default=_CHECKED)
    if LEVEL not in properties or not CODECS[codec]:
        return codec, None
    level = whole_number(properties, LEVEL, default=1)
    if level > CODECS[codec]:
        raise InvalidInput(
            f"{LEVEL}={properties[LEVEL]!r}: allowed for {codec} are 0 to {CODECS[codec]}"
        )
    return codec, level


AVRO: Final = Format(
    name="avro",
    open=AvroReader,
    begin=AvroWriter,
    # Readers find the blocks by themselves, from anywhere on.
    split_offsets=lambda _: None,
    bytes_at_once=lambda _: _PORTION_BYTES,
)
