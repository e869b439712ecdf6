"""A table's manifests with their locations spelt another way, as another writer may do it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.table import Table
from icetree.tree.reading import leaves_in

#: Told the table's path and a relative location, returns another spelling of it.
Spell = Callable[[str, str], str]

_STARTS = cycle(["", "file:{}/", "{}//", "./"])
SPELLINGS: dict[str, Spell] = {
    "a path": lambda path, name: f"{path}/{name}",
    "a URI": lambda path, name: f"file:{path}/{name}",
    "dots and slashes": lambda _, name: f".//{name.replace('/', '/./')}",
    "mixed": lambda path, name: f"{next(_STARTS).format(path)}{name}",
}


_COLUMNS = ("location", "referenced_file")


def respell(
    table: Table,
    spell: Spell,
    *,
    columns: Collection[str] = _COLUMNS,
    below: Spell | None = None,
    of: Collection[Snapshot] | None = None,
) -> None:
    """Write every manifest of a table on a local disk again, its locations in another spelling.

    Those in leaves are spelt as `below` tells, where it is given. With `of`, it is done for these
    snapshots only.
    """
    folder = Path(table.location.removeprefix("file://"))
    shape = table.metadata.shape()
    snapshots = list(table.history() if of is None else of)
    roots = [table.files.root(each, shape) for each in snapshots]
    leaves = {leaf.location for root in roots for leaf in leaves_in(root)}
    sizes = {
        leaf: _rewrite(folder / leaf, lambda name: (below or spell)(str(folder), name), columns)
        for leaf in leaves
    }
    for snapshot in snapshots:
        path = folder / str(snapshot.root_manifest)
        _rewrite(path, lambda name: spell(str(folder), name), columns, sizes)


def _rewrite(
    path: Path,
    spell: Callable[[str], str],
    columns: Collection[str],
    sizes: dict[str, int] | None = None,
) -> int:
    content = path.read_bytes()
    found = pq.read_table(pa.BufferReader(content))
    if sizes is not None:
        named = found["location"].to_pylist()
        told = found["file_size_in_bytes"].to_pylist()
        new = [sizes.get(name, size) for name, size in zip(named, told, strict=True)]
        found = _set(found, "file_size_in_bytes", new)
    for column in columns:
        if column in found.column_names:
            names: list[Any] = found[column].to_pylist()
            found = _set(found, column, [name and spell(name) for name in names])
    path.unlink()
    pq.write_table(found, path)
    return path.stat().st_size


def _set(table: pa.Table, column: str, values: list[Any]) -> pa.Table:
    at = table.schema.get_field_index(column)
    field = table.schema.field(at)
    return table.set_column(at, field, pa.array(values, field.type))
