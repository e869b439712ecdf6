"""A table as of one metadata file, and what a transaction asks to be made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from icetree.catalog.base import TableName
from icetree.errors import CommitConflict, NotFound
from icetree.files.table_files import read_metadata
from icetree.spec.edit.refs import KEPT
from icetree.spec.metadata.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from icetree.spec.metadata.snapshot import MAIN, Ref, Snapshot
from icetree.spec.metadata.update import Update
from icetree.store.base import Store
from icetree.surroundings import new_uuid, random_bits
from icetree.tree.changes import Changes
from icetree.tree.conflict.conflict import Isolation
from icetree.tree.leaves.rewritten import Rewritten


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A table as of one metadata file."""

    name: TableName
    metadata: TableMetadata
    #: Absolute.
    metadata_location: str

    def at(self, metadata: TableMetadata, metadata_location: str) -> State:
        """Return the same table as of another metadata file.

        NotFound where that is of another table, which has taken the name.
        """
        require_same(self.name, metadata, was=self.metadata.table_uuid)
        return State(name=self.name, metadata=metadata, metadata_location=metadata_location)

    def head(self, branch: str) -> Snapshot | None:
        """Return the newest snapshot of a branch; None when the table is empty.

        A branch that does not exist yet starts where the table is.
        """
        ref = self.metadata.refs.get(branch)
        if ref is None:
            return self.metadata.current_snapshot()
        return self.metadata.snapshot(ref.snapshot_id)


def read_newest(
    load: Callable[[], str], store: Callable[[str], Store], known: str | None = None
) -> tuple[TableMetadata, str] | None:
    """Return the metadata that a catalog names, and where it is; None where that is `known`.

    While it was on its way, others may have committed so often that it was deleted: then the catalog
    names another one by now.
    """
    at = load()
    if at == known:
        return None
    try:
        return read_metadata(store(at), at), at
    except NotFound:
        if load() == at:
            raise
    return read_newest(load, store, known)


def require_same(name: TableName, metadata: TableMetadata, *, was: str | None) -> None:
    """Raise NotFound when metadata is not that of the table that had the name before."""
    now = metadata.table_uuid
    # Only a v1 table may be without, and gets one with its first upgrade.
    if was is not None and now != was:
        raise NotFound(
            f"table {name} is another table now ({now}; it was {was}, which was dropped or given "
            "another name): load it again to go on with the new one"
        )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """An id with what it means, for that of what went may be given again."""

    id: int
    meaning: Any

    def __str__(self) -> str:
        return str(self.id)


def _current_schema(m: TableMetadata) -> _Chosen:
    return _Chosen(m.current_schema_id, m.schema_json())


def _default_spec(m: TableMetadata) -> _Chosen:
    id = m.default_spec_id
    return _Chosen(id, [each.fields for each in m.partition_specs if each.spec_id == id])


def _default_order(m: TableMetadata) -> _Chosen:
    id = m.default_sort_order_id
    # Order 0 is unsorted, whether or not it is listed.
    return _Chosen(id, [each.fields for each in m.sort_orders if id and each.order_id == id])


_FACTS: Final[Mapping[str, Callable[[TableMetadata], Any]]] = {
    "table uuid": lambda m: m.table_uuid,
    "format version": lambda m: m.format_version,
    "current schema": _current_schema,
    "last column id": lambda m: m.last_column_id,
    "last sequence number": lambda m: m.last_sequence_number,
    "default partition spec": _default_spec,
    "default sort order": _default_order,
    "last partition id": lambda m: m.last_partition_id,
    "location": lambda m: m.location,
}

#: Facts of one ref, by how their names start.
_REF_FACTS: Final[Mapping[str, Callable[[Ref], Any]]] = {
    "ref ": lambda ref: ref.snapshot_id,
    "retention of ": lambda ref: {name: getattr(ref, name) for name in KEPT},
}

_Statistics: TypeAlias = "Sequence[StatisticsFile | PartitionStatisticsFile]"

#: Facts of one snapshot, by how their names start.
_FACTS_OF_SNAPSHOTS: Final[Mapping[str, Callable[[TableMetadata], _Statistics]]] = {
    "statistics of ": lambda m: m.statistics,
    "partition statistics of ": lambda m: m.partition_statistics,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """A fact of the base that must still hold on the head for the work to make sense there."""

    fact: str
    value: Any

    def require(self, metadata: TableMetadata, name: TableName) -> None:
        """Raise `CommitConflict` when the fact does not hold any more."""
        now = fact_of(metadata, self.fact)
        if now != self.value:
            new = f"another {now}" if str(now) == str(self.value) else now
            raise CommitConflict(
                f"table {name}: another commit changed the {self.fact} from {self.value} to {new}; "
                "refresh the table and make the change again"
            )


def fact_of(metadata: TableMetadata, fact: str) -> Any:
    """Return a fact of table metadata by its name.

    `ref NAME` is what a ref points to, `retention of NAME` how long it is kept; `statistics of ID`
    and `partition statistics of ID` are the files that a snapshot has of them.
    """
    for start, named in _FACTS_OF_SNAPSHOTS.items():
        if fact.startswith(start):
            id = int(fact.removeprefix(start))
            return [each.statistics_path for each in named(metadata) if each.snapshot_id == id]
    for start, told in _REF_FACTS.items():
        if fact.startswith(start):
            ref = metadata.refs.get(fact.removeprefix(start))
            return None if ref is None else told(ref)
    return _FACTS[fact](metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one commit is to do, independent of the head it will land on."""

    base: State
    changes: tuple[Changes, ...] = ()
    updates: tuple[Update, ...] = ()
    requirements: tuple[Requirement, ...] = ()
    #: The branch to commit to; None to leave the snapshot staged.
    branch: str | None = MAIN
    #: A branch that is not there starts where the table is.
    create_branch: bool = False
    isolation: Isolation = Isolation.SERIALIZABLE
    #: Added to the snapshot's summary.
    summary: Mapping[str, str] = field(default_factory=dict)
    #: A commit with a key that the table has already seen does nothing.
    key: str | None = None
    #: A snapshot whose files are added again: it must not expire before.
    picked: int | None = None
    #: Leaves that were made to take the place of others.
    rewritten: Rewritten | None = None
    #: Files that were written for this work: they go when it comes to nothing.
    written: tuple[str, ...] = ()
    snapshot_id: int = field(default_factory=lambda: random_bits(62) + 1)
    commit_id: str = field(default_factory=new_uuid)
