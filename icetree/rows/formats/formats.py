"""Which formats of data files there are, and which one a table writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icetree.errors import Unsupported
from icetree.rows.formats.avro import AVRO
from icetree.rows.formats.format import Format
from icetree.rows.formats.orc import ORC
from icetree.rows.formats.parquet import PARQUET
from icetree.spec.properties.values import choice

FORMATS: Final[Mapping[str, Format]] = {each.name: each for each in (PARQUET, ORC, AVRO)}
NAMES: Final = tuple(FORMATS)
#: What new data files are, and new files of equality deletes: unless said, the same.
WRITE_FORMAT: Final = "write.format.default"
DELETE_FORMAT: Final = "write.delete.format.default"


def format_of(name: str, location: str) -> Format:
    """Return the format that an entry names; `location` is its file's."""
    found = FORMATS.get(name)
    if found is None:
        raise Unsupported(
            f"{location} is {name}: only {', '.join(NAMES)} files can be read; "
            "read the table with an engine, or rewrite the file"
        )
    return found


def format_by_name(location: str) -> str:
    """Return the format that a file is of by the end of its name; Parquet where it has another."""
    end = location.rpartition(".")[2].lower()
    return end if end in FORMATS else PARQUET.name


def format_to_write(properties: Mapping[str, str], *, deletes: bool = False) -> Format:
    """Return the format of new files."""
    usual = choice(properties, WRITE_FORMAT, NAMES, default=PARQUET.name)
    name = choice(properties, DELETE_FORMAT, NAMES, default=usual) if deletes else usual
    return FORMATS[name]
