"""Folders of others: of a Delta table, or of Parquet files that folders such as `country=DE` part."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from icetree.errors import InvalidInput, NotFound
from icetree.rows.infer import columns_of, folders_of
from icetree.rows.schema import arrow_type
from icetree.spec.edit.new_columns import SchemaLike, as_struct
from icetree.spec.location import prefix_of
from icetree.store.base import Store
from icetree.table.commit.adopting import is_hidden
from icetree.table.moving.contents import Contents
from icetree.table.moving.delta import delta_at

#: What a migration that was cut off may have left, beside files of rows.
_OURS: Final = ".puffin"
_METADATA: Final = "metadata/"
_LOG: Final = "_delta_log/"


def foreign_at(place: str, store: Store, schema: SchemaLike | None = None) -> Contents:
    """Return what a folder holds; NotFound where that is nothing.

    A `schema` says what the columns of Parquet files are, in place of what files and folders tell.
    """
    root = prefix_of(place)
    names = sorted(each.location[len(root) :] for each in store.list(place))
    metadata = [name for name in names if _is_metadata(name)]
    if metadata:
        raise InvalidInput(
            f"{root}{metadata[-1]} is there: the folder is a table of Iceberg's, or its migration was "
            "cut off just before the end; upgrade_table or register_table gives it a name"
        )
    if any(name.startswith(_LOG) for name in names):
        if schema is not None:
            raise InvalidInput(f"{place} is a Delta table, whose log tells its schema: give none")
        return delta_at(place)
    return _parquet(place, [root + name for name in names if _holds_rows(name)], store, schema)


def _is_metadata(name: str) -> bool:
    return name.startswith(_METADATA) and ".metadata.json" in name


def _holds_rows(name: str) -> bool:
    return not (is_hidden(name) or name.startswith(_METADATA) or name.endswith(_OURS))


def _parquet(place: str, files: list[str], store: Store, schema: SchemaLike | None) -> Contents:
    if not files:
        raise NotFound(f"{place} has no Parquet files: give the folder that they are in")
    if schema is not None:
        fields = as_struct(schema).fields
        known = {field.name: arrow_type(field.field_type) for field in fields}
        folders = folders_of(files, prefix_of(place), known)
        columns: Any = schema
    else:
        own, folders = columns_of(files, store), folders_of(files, prefix_of(place))
        # A column that a file has itself is not left to its folder.
        columns = pa.schema([*own, *(e for e in folders.columns if e.name not in own.names)])
    return Contents(
        schema=columns,
        partition_by=tuple(folders.columns.names),
        files=folders.values,
    )
