"""`CALL system.snapshot(…)` and `system.migrate(…)`: which folder is meant, and what becomes of its name.

A source is a folder, as `parquet`.`path` or `delta`.`path`, a table of Spark's own, or for `snapshot`
a table of the lake that is of an earlier format version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from icetree.errors import InvalidInput, NotFound, Unsupported
from icetree.spark.complaints import plainly
from icetree.spark.names import quoted
from icetree.spark.sql.names import SESSION, find_table
from icetree.spark.types import table_schema
from icetree.spec.location import canonical, prefix_of
from icetree.table.table import Table
from icetree.tree.summary import data_files

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_FORMATS: Final = ("parquet", "delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spark:
    """A table of Spark's own, by its parts, and where its files are."""

    parts: Sequence[str]
    location: str
    provider: str
    is_external: bool
    #: Of Parquet files; a Delta table tells its own.
    schema: Any

    @property
    def name(self) -> str:
        return ".".join(map(quoted, self.parts))


def snapshot_table(
    lake: SparkLake,
    source: Sequence[str],
    name: str,
    *,
    location: str | None,
    properties: Mapping[str, str],
    dry_run: bool,
) -> int:
    """Make a table that shares the files of a source; return how many data files it has."""
    ours = find_table(lake, source)
    if ours is not None:
        made = lake.trial_table(name, ours.name, location=location, dry_run=dry_run)
        if properties:
            made.set_properties(properties)
        return _files(made)
    place, schema = _folder(lake, source)
    made = lake.snapshot_table(
        name, place, schema=schema, location=location, properties=properties, dry_run=dry_run
    )
    return _files(made)


def migrate_table(
    lake: SparkLake,
    source: Sequence[str],
    name: str,
    *,
    properties: Mapping[str, str],
    backup: str | None,
    drop_backup: bool,
    dry_run: bool,
) -> int:
    """Make a table of Spark's own one of the lake, under its name; return how many files it has.

    To Spark it has the name of a backup then, or none.
    """
    table = _spark_table(lake, source)
    if not table.is_external:
        raise InvalidInput(
            f"{'.'.join(source)} is managed by Spark, which moves and deletes the files with the "
            "name: make it EXTERNAL, or take a snapshot"
        )
    made = lake.migrate_table(
        name, table.location, schema=table.schema, properties=properties, dry_run=dry_run
    )
    if dry_run:
        return _files(made)
    with plainly():
        if drop_backup:
            lake.spark.sql(f"DROP TABLE {table.name}")
        else:
            kept = backup or f"{table.parts[-1]}_BACKUP_"
            space = ".".join(map(quoted, [*table.parts[:-1], kept]))
            lake.spark.sql(f"ALTER TABLE {table.name} RENAME TO {space}")
    return _files(made)


def _files(made: Table) -> int:
    now = made.current_snapshot
    return (now and data_files(now.summary)) or 0


def _folder(lake: SparkLake, source: Sequence[str]) -> tuple[str, Any]:
    kind = source[0].lower()
    if len(source) == 2 and kind in _FORMATS:
        return (source[1] if "/" in source[1] else f"./{source[1]}"), None
    table = _spark_table(lake, source)
    return table.location, table.schema


def _spark_table(lake: SparkLake, source: Sequence[str]) -> _Spark:
    parts = [*source]
    if parts[0].lower() == SESSION:
        parts = parts[1:]
    name, called = ".".join(map(quoted, parts)), ".".join(source)
    if not lake.spark.catalog.tableExists(name):
        raise NotFound(
            f"there is no {called}: give a table of Spark's, `parquet`.`path` or `delta`.`path`"
        )
    with plainly():
        rows = lake.spark.sql(f"DESCRIBE TABLE EXTENDED {name}").collect()
        facts = {row["col_name"]: row["data_type"] for row in rows}
        frame = lake.spark.table(name)
        files = frame.inputFiles()
    provider, location = facts.get("Provider", "").lower(), facts.get("Location")
    if provider not in _FORMATS or not location:
        raise Unsupported(
            f"{called} is {provider or 'a view'}: tables of Parquet files and of Delta can be taken "
            "over, INSERT INTO … SELECT copies the rows of others"
        )
    root = prefix_of(canonical(location, location))
    for file in files:
        if not canonical(unquote(file), location).startswith(unquote(root)):
            raise InvalidInput(f"{called} has files outside of {location}, such as {file}")
    return _Spark(
        parts=parts,
        location=location,
        provider=provider,
        is_external=facts.get("Type", "").upper() == "EXTERNAL",
        schema=None if provider == "delta" else table_schema(frame.schema),
    )
