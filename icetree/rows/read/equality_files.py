"""Do equality delete files have the fields they delete by: a look at the files themselves.

A column that a data file lacks reads as null. Were that so here, rows with nulls would go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.rows.read.files import NAME_MAPPING, DataFile, name_mapping, open_file
from icetree.spec.arrays import is_among
from icetree.spec.entry.entry import Content, Entries, is_content
from icetree.spec.location import absolute
from icetree.spec.locations import stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.shape import Shape
from icetree.store.base import Store

#: How many files that were looked at are remembered.
_KEPT: Final = 100_000


def lacking(file: DataFile, fields: Iterable[int], shape: Shape) -> str | None:
    """Return what is wrong with an equality delete file that lacks a field it deletes by."""
    for field_id in fields:
        if not file.has_below(field_id):
            return f"it deletes by {shape.names.get(field_id, f'field {field_id}')}, but lacks it"
    return None


def require_fields_of(deletes: pa.Table, files: TableFiles, metadata: TableMetadata) -> None:
    """Raise `CorruptTable` for a plan's equality delete file that lacks a field it deletes by.

    Files never change, so under one name mapping each is looked at once.
    """
    mapping, shape = name_mapping(metadata.properties), metadata.shape()

    def look(one: dict[str, Any]) -> None:
        place = absolute(one["location"], metadata.location)

        def rule() -> tuple[str | None]:
            try:
                file = open_file(
                    files.store,
                    place,
                    one["file_format"],
                    mapping=mapping,
                    key=one["key_metadata"],
                )
            except Unsupported:
                return (None,)
            return (lacking(file, one["equality_ids"], shape),)

        by = metadata.properties.get(NAME_MAPPING)
        key = ("equality fields", place, tuple(one["equality_ids"]), by)
        [broken] = files.cache.derive(key, rule, most=_KEPT)
        if broken is not None:
            raise CorruptTable(one["location"], broken)

    equality = deletes.filter(pc.is_valid(deletes["equality_ids"]))
    for _ in in_order(look, equality.to_pylist()):
        pass


def require_fields(
    entries: Entries, *, metadata: TableMetadata, store: Store, made: Collection[str]
) -> None:
    """Refuse new equality delete files that lack a field they delete by, or cannot be read.

    Those that were `made` for the transaction are not looked at: they have what they delete by.
    """
    equality = entries.filter(is_content(entries, Content.EQUALITY_DELETES))
    if equality.num_rows == 0:
        return
    ours = stored_form_array(pa.array(made, pa.string()), metadata.location)
    theirs = equality.filter(pc.invert(is_among(equality["location"], ours)))
    mapping, shape = name_mapping(metadata.properties), metadata.shape()
    needed = ["location", "file_format", "equality_ids", "key_metadata"]
    for one in theirs.select(needed).to_pylist():
        place = absolute(one["location"], metadata.location)
        try:
            file = open_file(
                store, place, one["file_format"], mapping=mapping, key=one["key_metadata"]
            )
        except Unsupported:
            continue  # a format that only engines read
        except NotFound:
            raise InvalidInput(f"{place} is not there: write the file, then add it") from None
        except CorruptTable as error:
            raise InvalidInput(f"{place} is no file that could be added: {error.rule}") from None
        rule = lacking(file, one["equality_ids"], shape)
        if rule is not None:
            raise InvalidInput(f"{place}: {rule}")
