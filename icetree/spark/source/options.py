"""What a user says of a table in the options of `format("icetree")`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from icetree.catalog.base import parse_name
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import InvalidInput
from icetree.files.table_files import TableFiles, read_metadata
from icetree.keys.ring import Ring
from icetree.spark.write.options import NAMES
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.texts import did_you_mean
from icetree.store.base import Store
from icetree.table.lake import Lake, open_lake
from icetree.table.state import State
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


class Face(Enum):
    """What is done by the format; an option is for some of these, and refused by the others."""

    READ = "reading a snapshot"
    CHANGES = "reading changes"
    STREAM = "a stream of appended rows"
    CHANGE_STREAM = "a stream of changes"
    APPEND = "appending"
    OVERWRITE = "overwriting"
    STREAM_WRITE = "writing a stream"


_STREAMS: Final = frozenset({Face.STREAM, Face.CHANGE_STREAM})
_CHANGES: Final = frozenset({Face.CHANGES, Face.CHANGE_STREAM})
_READING: Final = _STREAMS | _CHANGES | {Face.READ}
_BATCHES: Final = frozenset({Face.APPEND, Face.OVERWRITE})
_WRITING: Final = _BATCHES | {Face.STREAM_WRITE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """An option: what it says, to which faces, and what others do without it."""

    says: str
    faces: frozenset[Face] = frozenset(Face)
    #: What is to be done instead; of faces that are not named, nothing is.
    instead: Mapping[frozenset[Face], str] = field(default_factory=dict)

    def way_out(self, face: Face) -> str:
        """Return what to do where a face does not take the option."""
        told = (says for faces, says in self.instead.items() if face in faces)
        return next(
            told, f"it is for {' and '.join(each.value for each in Face if each in self.faces)}"
        )


_SELECT: Final = "select the columns of the rows that are written"
_FILTER: Final = "filter the rows themselves, with .where(…)"

OPTIONS: Final[Mapping[str, Option]] = {
    "catalog": Option(says="the catalog's address, or its name in PyIceberg's configuration"),
    "catalog-name": Option(says="the name under which a SQL catalog keeps its rows"),
    "warehouse": Option(says="where the catalog's tables are"),
    "path": Option(says="the table's name, as load() and save() give it"),
    "columns": Option(
        says="the columns to read, with commas between; all by default",
        faces=_READING,
        instead={_WRITING: _SELECT},
    ),
    "where": Option(
        says="which rows to read, or to replace by others that match as well, as text",
        faces=frozenset({Face.READ, Face.OVERWRITE}),
        instead={
            frozenset({Face.APPEND}): "it says which rows mode('overwrite') replaces",
            frozenset(Face): _FILTER,
        },
    ),
    "push-filters": Option(
        says="true to skip files by a query's own filters; with Spark 4.1 a DataFrame is then "
        "good for one query, and spark.sql.python.filterPushdown.enabled must be true",
        faces=frozenset({Face.READ}),
    ),
    "at": Option(
        says="what to read: a snapshot id, a branch or tag, or an ISO time",
        faces=frozenset({Face.READ}),
        instead={
            frozenset({Face.CHANGES}): "say option 'upto', where a range ends",
            _STREAMS: "say option 'since', where a stream begins, and 'branch', what it follows",
            _WRITING: "say option 'branch', where a write goes",
        },
    ),
    "since": Option(
        says="the snapshot id, branch, tag or ISO time to start after",
        faces=_STREAMS | _CHANGES,
        instead={
            frozenset({Face.READ}): "say option changes=true with it, for the changes since then, "
            "or read a stream, for the rows appended since then"
        },
    ),
    "upto": Option(
        says="the snapshot id, branch, tag or ISO time to end with; else the current snapshot",
        faces=frozenset({Face.CHANGES}),
        instead={
            frozenset({Face.READ}): "say option 'at', or changes=true for the changes up to it",
            _STREAMS: "a stream goes on: for a range that ends, read changes without a stream",
        },
    ),
    "branch": Option(
        says="the branch to commit to, or that a stream follows",
        faces=_STREAMS | _WRITING,
        instead={
            frozenset({Face.READ}): "say option 'at', which takes branches too",
            frozenset({Face.CHANGES}): "say option 'upto', which takes branches too",
        },
    ),
    "changes": Option(
        says="true for all changes of rows, with what became of each", faces=_READING
    ),
    "images": Option(
        says="true to have an update as what was and what is, not as a delete and an insert",
        faces=_CHANGES,
        instead={frozenset({Face.READ, Face.STREAM}): "say option changes=true with it"},
    ),
    "skip": Option(
        says="kinds of snapshots to pass over: overwrite, delete",
        faces=frozenset({Face.STREAM}),
        instead={_CHANGES: "changes are all told: leave out what you do not want, by _change_type"},
    ),
    "max-snapshots-per-trigger": Option(
        says="how many snapshots a micro-batch takes at most",
        faces=_STREAMS,
        instead={frozenset({Face.CHANGES}): "say option 'upto'"},
    ),
    "overwrite-mode": Option(
        says="static replaces all rows, dynamic the partitions written to",
        faces=frozenset({Face.OVERWRITE}),
        instead={frozenset({Face.APPEND}): "say mode('overwrite') with it"},
    ),
    "key": Option(
        says="a commit made before under the same key is not made again",
        faces=_BATCHES,
        instead={
            frozenset({Face.STREAM_WRITE}): "say option 'query-id': each batch has a key by it"
        },
    ),
    "query-id": Option(
        says="what tells this query from others that write to the table",
        faces=frozenset({Face.STREAM_WRITE}),
        instead={_BATCHES: "say option 'key', of this one commit"},
    ),
    "checkpointlocation": Option(says="Spark's own", faces=frozenset({Face.STREAM_WRITE})),
    "queryname": Option(says="Spark's own", faces=frozenset({Face.STREAM_WRITE})),
}

#: Options that a connection has by another name, or by the same.
_CONNECTION: Final[Mapping[str, str]] = {"catalog-name": "name", "warehouse": "warehouse"}

#: What others call an option, Iceberg first of all, by what says the same here.
_SAID_BY: Final[Mapping[str, str]] = {
    "name": "path",
    "snapshot-id": "at",
    "as-of-timestamp": "at",
    "tag": "at",
    "filter": "where",
    "start-snapshot-id": "since",
    "end-snapshot-id": "upto",
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
        properties = {
            _CONNECTION.get(name, name): value
            for name, value in self.values.items()
            if name in _CONNECTION or name not in OPTIONS
        }
        return open_lake(self.values.get("catalog"), properties)

    def load(self) -> Table:
        """Return the table's handle, on its newest state."""
        with self.connect() as connection:
            return connection.table(self.table)

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


def options(given: Mapping[str, str], *faces: Face) -> Options:
    """Read options, for what is done, or may be as far as it is known; without a face, for anything.

    One that is not known is refused, since it may be another one misspelt; and so is one that means
    nothing to what is done: a word that is not heard may be about which rows are meant.
    """
    values = {name.lower(): value for name, value in given.items()}
    for name in values:
        option = OPTIONS.get(name)
        if option is None and "." not in name:
            hint = did_you_mean(name, OPTIONS) or f"; there are {', '.join(OPTIONS)}, and s3.*"
            if name in _SAID_BY:
                hint = f": say it with option {_SAID_BY[name]!r}"
            if name in NAMES:
                hint = ": lake.write takes it, and so does INSERT INTO t WITH (…)"
            raise InvalidInput(f"option {name!r} is not known to this format{hint}")
        if option is not None and faces and option.faces.isdisjoint(faces):
            raise InvalidInput(
                f"option {name!r} means nothing to {faces[0].value}: {option.way_out(faces[0])}"
            )
    return Options(values=values)


def options_of(lake: SparkLake, name: str) -> dict[str, str]:
    """Return the options by which other processes find a table of the lake."""
    if lake.kept.address is None:
        raise InvalidInput(
            "this lake was opened on a connection, which other processes cannot share: "
            "open it by its catalog's address"
        )
    said = {name: option for option, name in _CONNECTION.items()}
    given = {said.get(key, key): str(value) for key, value in lake.kept.properties.items()}
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
