"""What a user says of a table in the options of `format("icetree")`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from icetree.catalog.base import parse_name
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import InvalidInput
from icetree.files.table_files import TableFiles, read_metadata
from icetree.keys.ring import Ring
from icetree.spark.write.options import NAMES
from icetree.spec.snapshot import Snapshot
from icetree.spec.texts import did_you_mean
from icetree.store.base import Store
from icetree.table.lake import Lake, open_lake
from icetree.table.state import State
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: What each option is for.
OPTIONS: Final[Mapping[str, str]] = {
    "catalog": "the catalog's address, or its name in PyIceberg's configuration",
    "warehouse": "where the catalog's tables are",
    "name": "the name under which a SQL catalog keeps its rows",
    "path": "the table's name, as load() and save() give it",
    "columns": "the columns to read, with commas between; all by default",
    "where": "which rows to read, as text",
    "push-filters": "true to skip files by a query's own filters; with Spark 4.1 a DataFrame is then "
    "good for one query, and spark.sql.python.filterPushdown.enabled must be true",
    "at": "what to read: a snapshot id, a branch or tag, or an ISO time",
    "branch": "the branch to commit to; stream: the branch to follow",
    "since": "stream or changes: the snapshot id, branch, tag or ISO time to start after",
    "changes": "true for all changes of rows, with what became of each",
    "images": "changes: false to have updates as a delete and an insert",
    "skip": "stream: kinds of snapshots to pass over: overwrite, delete",
    "max-snapshots-per-trigger": "stream: how many snapshots a micro-batch takes at most",
    "overwrite-mode": "write: static replaces all rows, dynamic the partitions written to",
    "key": "write: a commit made before under the same key is not made again",
    "query-id": "stream: what tells this query from others that write to the table",
    "checkpointlocation": "stream: Spark's own",
}

#: Options of Iceberg's own, by what says the same here.
_SAID_BY: Final[Mapping[str, str]] = {
    "snapshot-id": "at",
    "as-of-timestamp": "at",
    "tag": "at",
    "filter": "where",
    "start-snapshot-id": "since",
    "stream-from-timestamp": "since",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one table, read."""

    #: Unread and so unshown: there may be keys and passwords among them.
    values: Mapping[str, str] = field(repr=False)

    @property
    def table(self) -> str:
        """The table's name."""
        name = self.values.get("path")
        if not name:
            raise InvalidInput("which table? give its name to load() or save(), such as db.orders")
        return name

    def connect(self) -> Lake:
        """Open the catalog."""
        own = {name for name in OPTIONS if name not in ("warehouse", "name")}
        properties = {name: value for name, value in self.values.items() if name not in own}
        return open_lake(self.values.get("catalog"), properties)

    def load(self) -> Table:
        """Return the table's handle, on its newest state."""
        with self.connect() as connection:
            return connection.table(self.table)

    @property
    def at(self) -> str | None:
        """What a query is to read, None for the current state."""
        if "branch" in self.values:
            raise InvalidInput(
                f"option branch={self.values['branch']!r} says where a write goes, or what a "
                "stream follows: to read a branch, give option at"
            )
        return self.values.get("at")

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return an option that is true or false."""
        value = self.values.get(name, str(default)).lower()
        if value not in ("true", "false"):
            raise InvalidInput(f"option {name}={value!r}: allowed are true and false")
        return value == "true"

    def number(self, name: str, *, least: int = 0) -> int | None:
        """Return an option that is a whole number."""
        value = self.values.get(name)
        if value is None:
            return None
        if not value.strip().lstrip("-").isdigit() or int(value) < least:
            raise InvalidInput(f"option {name}={value!r}: allowed are numbers of {least} or more")
        return int(value)

    def names(self, name: str) -> list[str] | None:
        """Return an option that is a list."""
        value = self.values.get(name)
        return None if value is None else [each.strip() for each in value.split(",")]


def options(given: Mapping[str, str]) -> Options:
    """Read options; one that is not known is refused, since it may be another one misspelt."""
    values = {name.lower(): value for name, value in given.items()}
    for name in values:
        if name not in OPTIONS and "." not in name:
            hint = did_you_mean(name, OPTIONS) or f"; there are {', '.join(OPTIONS)}, and s3.*"
            if name in _SAID_BY:
                hint = f": say it with option {_SAID_BY[name]!r}"
            if name in NAMES:
                hint = ": lake.write takes it, and so does INSERT INTO t WITH (…)"
            raise InvalidInput(f"option {name!r} is not known to this format{hint}")
    return Options(values=values)


def options_of(lake: SparkLake, name: str) -> dict[str, str]:
    """Return the options by which other processes find a table of the lake."""
    if lake.kept.address is None:
        raise InvalidInput(
            "this lake was opened on a connection, which other processes cannot share: "
            "open it by its catalog's address"
        )
    given = {key: str(value) for key, value in lake.kept.properties.items()}
    return {**given, "catalog": lake.kept.address, "path": name}


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTable:
    """A table as of one metadata file, which any process can open without a catalog."""

    name: str
    metadata_location: str
    store: Store
    ring: Ring

    def load(self) -> Table:
        """Return a handle to read from."""
        metadata = read_metadata(self.store, self.metadata_location)
        state = State(
            name=parse_name(self.name), metadata=metadata, metadata_location=self.metadata_location
        )
        files = TableFiles(store=self.store, location=metadata.location, ring=self.ring)
        return Table(catalog=MemoryCatalog("fixed"), files=files, state=state)


def fixed(table: Table, snapshots: Iterable[Snapshot]) -> FixedTable:
    """Return the table as it is now, of which other processes may open some snapshots."""
    return FixedTable(
        name=str(table.name),
        metadata_location=table.state.metadata_location,
        store=table.files.store,
        ring=table.files.ring.only(each.key_id for each in snapshots),
    )
