"""What manifests and manifest lists of v1-v3 have in common: columns read by field id."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.avro.avro import AvroFile, Field, require_kind, to_array
from icetree.errors import CorruptTable
from icetree.spec.fields import BY_NAME

FORMAT_VERSIONS: Final = (1, 2, 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a column of an entry comes from in an Avro record."""

    name: str
    id: int
    kind: str
    #: The versions in which neither the field nor any value of it may be missing.
    required: tuple[int, ...] = ()

    @property
    def type(self) -> pa.DataType:
        """The Arrow type of the column in memory."""
        return BY_NAME[self.name].type


class Columns:
    """Columns of one record type, gathered a chunk of rows at a time."""

    def __init__(
        self, sources: tuple[Source, ...], fields: dict[int, Field], *, version: int, file: str
    ) -> None:
        self._file = file
        self._version = version
        self._found: list[tuple[Source, str]] = []
        self._parts: dict[str, list[pa.Array]] = {}
        for source in sources:
            field = fields.get(source.id)
            if field is not None:
                require_kind(field, source.kind, file=file, name=source.name)
                self._found.append((source, field.name))
                self._parts[source.name] = []
            elif version in source.required:
                raise CorruptTable(file, f"{source.name} (field id {source.id}) is missing")

    def add(self, records: list[dict[str, Any]]) -> None:
        """Take over the columns of some records."""
        for source, name in self._found:
            values = [record[name] for record in records]
            part = to_array(values, source.type, file=self._file, name=source.name)
            if part.null_count and self._version in source.required:
                raise CorruptTable(self._file, f"an entry lacks its {source.name}")
            self._parts[source.name].append(part)

    def gathered(self) -> dict[str, pa.Array]:
        """Return every column that the file has."""
        return {
            source.name: pa.concat_arrays(self._parts[source.name] or [pa.array([], source.type)])
            for source, _ in self._found
        }


def version_of(avro: AvroFile, *, default: int) -> int:
    """Return the format version that the file says it has."""
    said = avro.metadata.get("format-version", str(default))
    for version in FORMAT_VERSIONS:
        if said == str(version):
            return version
    raise CorruptTable(avro.file, f"format-version is {said!r}, not one of 1, 2 and 3")


def require(holds: pa.Array, *, file: str, rule: str) -> None:
    """Refuse the file unless the rule holds, or is not known to be broken, for every row."""
    if pc.any(pc.invert(holds)).as_py():
        raise CorruptTable(file, rule)


def as_type(value: int | None, size: int, name: str) -> pa.Array:
    """Return a column that has the same value in every row."""
    return pa.repeat(pa.scalar(value, BY_NAME[name].type), size)
