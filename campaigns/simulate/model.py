"""What a table should be, in plain Python: files of rows, what was deleted of them, and history."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType

from campaigns.simulate.by_hand import Tree
from icetree.spec.metadata.metadata import TableMetadata
from icetree.tree.changes import Intent

#: Values of a row by field id; a column that its file does not have is absent.
Values = Mapping[int, Any]
#: Partition spec and values.
Place = tuple[int, tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row as a file has it, with its lineage."""

    values: Values
    row_id: int
    updated: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file, dead rows and all."""

    name: str
    place: Place
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Equal:
    """A delete of all older rows whose column has a value, in one partition or everywhere."""

    field_id: int
    value: Any
    #: None for everywhere.
    place: Place | None

    def reaches(self, file: DataFile) -> bool:
        """Tell whether rows of the file are looked at."""
        return self.place is None or self.place == file.place

    def kills(self, row: Row) -> bool:
        """Tell whether a row of such a file goes."""
        return bool(row.values.get(self.field_id) == self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """A filter on one column that every file has."""

    text: str
    field_id: int
    kind: str
    literals: tuple[Any, ...] = ()

    def matches(self, values: Values) -> bool:
        """Tell whether a row matches."""
        value = values.get(self.field_id)
        if self.kind == "null":
            return value is None
        return value is not None and self._holds(value, value)

    def may_match(self, file: DataFile) -> bool:
        """Tell whether least and greatest value leave room for a match."""
        known = [row.values.get(self.field_id) for row in file.rows]
        there = [value for value in known if value is not None]
        if self.kind == "null":
            return len(there) < len(known)
        return bool(there) and self._holds(min(there), max(there))

    def must_match(self, file: DataFile) -> bool:
        """Tell whether least and greatest value leave room for nothing but matches."""
        known = {row.values.get(self.field_id) for row in file.rows}
        if self.kind in ("=", "in") and len(known) > 1:
            return False
        return all(self.matches(row.values) for row in file.rows)

    def _holds(self, least: Any, greatest: Any) -> bool:
        match self.kind:
            case ">=":
                return bool(greatest >= self.literals[0])
            case "<":
                return bool(least < self.literals[0])
        return any(least <= each <= greatest for each in self.literals)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one operation of a commit intends."""

    intent: Intent
    where: Where | None = None
    #: Rows that are new.
    added: tuple[Values, ...] = ()
    #: Rows that move to other files and stay themselves; `updated` is -1 for those that change.
    carried: tuple[Row, ...] = ()
    #: The partition spec of new files, and where in it rows are that move, by row id.
    spec: int = 0
    into: Mapping[int, Place] = field(default_factory=dict)
    #: Names of data files.
    removed: frozenset[str] = frozenset()
    #: Names of equality deletes.
    lifted: frozenset[str] = frozenset()
    vectors: Mapping[str, frozenset[int]] = field(default_factory=dict)
    equal: tuple[Equal, ...] = ()
    #: Where new files of a replacement of partitions are.
    places: frozenset[Place] = frozenset()

    @property
    def adds_rows(self) -> bool:
        """Whether there will be new data files."""
        return bool(self.added or self.carried)

    @property
    def minds_others(self) -> bool:
        """Whether what others did meanwhile matters: not to new rows, nor where no row moves."""
        if self.intent is Intent.REWRITE:
            return bool(self.removed or self.lifted)
        return self.intent is not Intent.APPEND


@dataclass(frozen=True, slots=True, kw_only=True)
class Did:
    """What a snapshot changed."""

    is_rewrite: bool = False
    added: Mapping[str, DataFile] = field(default_factory=dict)
    removed: Mapping[str, DataFile] = field(default_factory=dict)
    lifted: frozenset[str] = frozenset()
    #: Data files that got a DV, and the rows that went by it.
    vectors: Mapping[str, tuple[Row, ...]] = field(default_factory=dict)
    equal: tuple[Equal, ...] = ()
    #: Rows that went by equality deletes.
    erased: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A table as of a snapshot."""

    id: int | None = None
    parent: int | None = None
    sequence: int = 0
    files: Mapping[str, DataFile] = field(default_factory=dict)
    #: Positions that DVs name, by file.
    gone: Mapping[str, frozenset[int]] = field(default_factory=dict)
    #: Positions that equality deletes reach, by file.
    erased: Mapping[str, frozenset[int]] = field(default_factory=dict)
    #: Names of equality deletes.
    equality: frozenset[str] = frozenset()
    did: Did = field(default_factory=Did)
    #: What was meant by it, and the snapshot that it did again.
    parts: tuple[Part, ...] = ()
    source: int | None = None

    def live(self) -> Iterator[tuple[DataFile, int, Row]]:
        """Yield every row that is there, with where it stands."""
        for file in self.files.values():
            dead = self.gone.get(file.name, frozenset()) | self.erased.get(file.name, frozenset())
            for position, row in enumerate(file.rows):
                if position not in dead:
                    yield file, position, row

    def live_in(self, name: str) -> list[tuple[int, Row]]:
        """Return the rows of a file that are there, by position."""
        return [(position, row) for file, position, row in self.live() if file.name == name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A table as of a swap."""

    location: str
    metadata: TableMetadata


@dataclass(slots=True, kw_only=True)
class History:
    """All that ever was of a table: its heads in their order, and its snapshots."""

    versions: list[Version]
    states: dict[int | None, State] = field(default_factory=lambda: {None: State()})
    #: Snapshots as their files have them, which the states were held against.
    trees: dict[int | None, Tree] = field(default_factory=lambda: {None: Tree()})
    #: Files of exports, by their snapshots.
    exports: dict[int, set[str]] = field(default_factory=dict)
    #: The snapshot that landed with a key.
    keys: dict[str, int | None] = field(default_factory=dict)
    #: When snapshots say that they were made.
    made_ms: dict[int, int] = field(default_factory=dict)
    #: Snapshots that have expired, and the number of the version that they went with.
    expired: dict[int | None, int] = field(default_factory=dict)

    @property
    def head(self) -> Version:
        """The newest version."""
        return self.versions[-1]

    def number_of(self, location: str) -> int:
        """Return which version a metadata file is."""
        return next(n for n, each in enumerate(self.versions) if each.location == location)

    def knows(self, location: str, id: int | None) -> bool:
        """Tell whether a snapshot had not expired yet as of a metadata file."""
        return id not in self.expired or self.number_of(location) < self.expired[id]

    def retained(self) -> dict[int, State]:
        """Return the snapshots that are there."""
        there = self.states.keys() - self.expired.keys()
        return {id: self.states[id] for id in there if id is not None}

    def lost_since(self, location: str) -> bool:
        """Tell whether any snapshot has expired since a metadata file was made."""
        number = self.number_of(location)
        return any(at > number for at in self.expired.values())

    def ancestors(self, id: int | None) -> Iterator[State]:
        """Yield a snapshot and those before it."""
        while id is not None:
            yield self.states[id]
            id = self.states[id].parent

    def told(self, id: int | None) -> list[State]:
        """Return a snapshot and those before it, as far back as changes can be told from."""
        line = list(takewhile(lambda each: each.id not in self.expired, self.ancestors(id)))
        is_whole = not line or line[-1].parent is None
        return [*line, self.states[None]] if is_whole else line

    def between(self, since: int | None, upto: int | None) -> list[State] | None:
        """Return the snapshots after one, up to another; None where these do not follow it."""
        found: list[State] = []
        for state in self.ancestors(upto):
            if state.id == since:
                return found[::-1]
            found.append(state)
        return found[::-1] if since is None else None


def head_of(metadata: TableMetadata, branch: str | None) -> int | None:
    """Return the snapshot that a commit to a branch is made on; one not there starts at main."""
    ref = metadata.refs.get(branch or "main")
    return metadata.current_snapshot_id if ref is None else ref.snapshot_id


def is_gone(branch: str | None, base: TableMetadata, now: TableMetadata) -> bool:
    """Tell whether a branch that was there when a commit was begun is there no more."""
    return branch in base.refs and branch not in now.refs


def place_of(values: Values, metadata: TableMetadata, spec_id: int) -> Place:
    """Return the partition that a row belongs to."""
    spec = metadata.shape().spec(spec_id)
    return spec_id, tuple(
        _transformed(each.transform, values.get(each.source_ids[0])) for each in spec
    )


def _transformed(transform: str, value: Any) -> Any:
    name, _, width = transform.partition("[")
    if value is None or name == "void":
        return None
    if name == "truncate":
        return value - value % int(width[:-1])
    if name == "bucket":
        return BucketTransform(int(width[:-1])).transform(IntegerType())(value)
    assert name == "identity", transform
    return value


def projected(values: Values, schema: Schema) -> tuple[Any, ...]:
    """Return a row as a reader with the schema sees it."""
    return tuple(values.get(each.field_id, each.initial_default) for each in schema.fields)
