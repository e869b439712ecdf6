"""What a commit is meant to do, told before it is tried: the judge compares what lands with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from campaigns.simulate.model import Part, State
from icetree.catalog.base import TableName
from icetree.spec.metadata.metadata import TableMetadata
from icetree.table.table import Table

#: Given the metadata before and after, what is wrong with it.
MetadataLaw = Callable[[TableMetadata, TableMetadata], str | None]
#: Given the state before and after, what is wrong with it.
RowLaw = Callable[[State, State], str | None]
#: Given the metadata before, which snapshots are to expire.
ExpiryLaw = Callable[[TableMetadata], frozenset[int]]


def _no_law(*_: object) -> None:
    return None


@dataclass(slots=True, kw_only=True)
class Commit:
    """One commit to be; `landed` counts how often it did."""

    text: str
    table: TableName
    #: Where the table was when the writer looked.
    base_location: str
    base: TableMetadata
    branch: str | None = "main"
    isolation: str = "serializable"
    parts: tuple[Part, ...] = ()
    key: str | None = None
    #: Facts of the base that must still hold.
    relies_on: frozenset[str] = frozenset()
    #: Refs that are to point somewhere else, None for one that goes.
    refs: Mapping[str, int | None] = field(default_factory=dict)
    #: Whether properties, schema, spec or order may change; `metadata_law` says how.
    evolves: bool = False
    metadata_law: MetadataLaw = _no_law
    row_law: RowLaw = _no_law
    #: Whether it may change files and leaves as it likes, in any number of snapshots, but no row.
    maintains: bool = False
    #: Properties that it sets.
    sets: Mapping[str, str] = field(default_factory=dict)
    #: Which snapshots are to go; None for a commit that keeps all.
    expires: ExpiryLaw | None = None
    #: Snapshots that must still be there.
    needs: frozenset[int] = frozenset()
    #: Whether icetree may refuse it as it stands, and whether it has to.
    may_refuse: bool = False
    must_refuse: bool = False
    #: Whether nothing may be left to do, so that no new head is made.
    may_be_idle: bool = False
    #: The snapshot that it does again.
    source: int | None = None
    #: Commits that land with one swap, and whether this one, as the last try made it, is one of them.
    members: tuple[Commit, ...] = ()
    stands: bool = False
    landed: int = 0

    @property
    def is_serializable(self) -> bool:
        """Whether it must look as if nobody else had been there."""
        return self.isolation == "serializable"


def commit_on(table: Table, text: str, **what: object) -> Commit:
    """Return a commit on what a handle has seen."""
    return Commit(
        text=text,
        table=table.name,
        base_location=table.state.metadata_location,
        base=table.metadata,
        **what,  # type: ignore[arg-type]
    )
