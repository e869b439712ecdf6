"""Tables of v1 and v2 as PyIceberg leaves them, and the same as folders with numbered versions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table as TheirTable
from pyiceberg.transforms import IdentityTransform

import icetree
from icetree.table.lake import Lake

SCHEMA = pa.schema([("id", pa.int64()), ("country", pa.string()), ("price", pa.float64())])


def rows(start: int, count: int = 10) -> pa.Table:
    """Return rows with ids from `start` on."""
    ids = range(start, start + count)
    return pa.table(
        [[*ids], [("DE", "FR")[id % 2] for id in ids], [id / 4 for id in ids]], schema=SCHEMA
    )


def uri(folder: Path) -> str:
    return f"sqlite:///{folder}/catalog.db"


def old_table(folder: Path, version: int = 2, name: str = "db.old") -> TheirTable:
    """Make a partitioned table of two appends and a delete, with a tag on the first append."""
    catalog = SqlCatalog("main", uri=uri(folder), warehouse=f"file://{folder}/lake")
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table(name, SCHEMA, properties={"format-version": str(version)})
    with table.update_spec() as spec:
        spec.add_field("country", IdentityTransform(), "country")
    table.append(rows(0))
    first = table.current_snapshot()
    assert first is not None
    if version > 1:
        table.manage_snapshots().create_tag(first.snapshot_id, "first").commit()
    table.append(rows(10))
    table.delete("id = 3")
    catalog.engine.dispose()
    return table


@contextmanager
def lake_on(folder: Path) -> Iterator[Lake]:
    """Open icetree on PyIceberg's catalog."""
    opened = icetree.connect(
        uri(folder), warehouse=str(folder / "ours"), properties={"name": "main"}
    )
    with opened as lake:
        lake.create_namespace("new", exist_ok=True)
        yield lake


def as_folder(folder: Path, *, hint: str | None = "1", version: int = 2) -> Path:
    """Make a table that is in no catalog: a folder whose metadata files are numbered."""
    theirs = old_table(folder, version)
    place = Path(theirs.location().removeprefix("file://"))
    newest = Path(theirs.metadata_location.removeprefix("file://"))
    document = {**json.loads(newest.read_text()), "metadata-log": []}
    for number in (1, 2):
        (place / "metadata" / f"v{number}.metadata.json").write_text(json.dumps(document))
    for each in place.glob("metadata/0*.metadata.json"):
        each.unlink()
    if hint is not None:
        (place / "metadata" / "version-hint.text").write_text(hint)
    with lake_on(folder) as lake:
        lake.drop_table("db.old")
    return place


def commit_to_folder(place: Path, number: int) -> None:
    """Write the next version of a folder, as another writer of it would."""
    before = json.loads((place / "metadata" / f"v{number - 1}.metadata.json").read_text())
    before["properties"]["written-by"] = "another"
    (place / "metadata" / f"v{number}.metadata.json").write_text(json.dumps(before))


def everything(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder, with what it holds."""
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file()}
