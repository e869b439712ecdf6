"""Going back to v3, in place: manifests and metadata are written anew, data files are shared.

What stays is what branches and tags point to, with the same rows, row ids and sequence numbers. All
files are written first; one swap makes the table v3, for whoever reads it. Nothing is deleted: the
trees of v4 lie there as orphans then, and so do files that only forgotten snapshots had.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from icetree.catalog.base import Stale, Swapped, Unknown
from icetree.errors import (
    CommitExhausted,
    CommitUnknown,
    CorruptTable,
    IcetreeError,
    InvalidInput,
    NotFound,
    Unsupported,
)
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.location import absolute
from icetree.spec.metadata.encryption import require_told
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.short import short
from icetree.surroundings import now_ms
from icetree.table.commit.attempt import metadata_file
from icetree.table.export.shown import shown
from icetree.table.export.snapshot import export_snapshot, told_of
from icetree.table.maintain.newest import has_gone_on
from icetree.table.state import State
from icetree.visible import visible

if TYPE_CHECKING:
    from icetree.table.table import Table

_TO: Final = 3
#: How often it is begun anew, when others commit meanwhile: manifests are there by then.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Downgraded:
    """What was done to a table, or with `dry_run` would be."""

    table: str
    #: The metadata that the table had before.
    metadata_location: str
    format_version: int
    #: How many stay, being what branches and tags point to, and how many are forgotten.
    snapshots: int
    loses: int
    #: Why it cannot be; then nothing happens.
    reason: str | None
    dry_run: bool

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        if self.reason is not None:
            return visible(f"table {self.table} cannot become v{_TO}: {self.reason}")
        verb = "would become" if self.dry_run else "is now"
        return visible(
            f"table {self.table} {verb} v{_TO}; it was v{self.format_version}; snapshots kept: "
            f"{self.snapshots:,}, which branches and tags point to; forgotten: {self.loses:,}"
        )


def downgrade(table: Table, *, dry_run: bool) -> Downgraded:
    """Make a table of v4 one of v3; CommitConflict where others commit all the time."""
    for _ in range(_TRIES):
        state = table.refresh().state
        told = _told(state, dry_run=dry_run)
        if dry_run:
            return told
        if told.reason is not None:
            raise Unsupported(str(told))
        try:
            if _downgraded(table, state):
                return told
        except (CorruptTable, NotFound):
            if not has_gone_on(table, state):
                raise
    raise CommitExhausted(
        f"table {table.name}: others commit to it all the time; stop them, then go back"
    )


def _told(state: State, *, dry_run: bool) -> Downgraded:
    metadata = state.metadata
    every = len(metadata.snapshots) + sum(page.count for page in metadata.snapshot_pages)
    kept = len(_pinned(metadata).snapshots)
    return Downgraded(
        table=str(state.name),
        metadata_location=state.metadata_location,
        format_version=metadata.format_version,
        snapshots=kept,
        loses=every - kept,
        reason=_reason(metadata),
        dry_run=dry_run,
    )


def _reason(metadata: TableMetadata) -> str | None:
    """Return why v3 cannot say what the table is, None when it can."""
    if metadata.format_version < FORMAT_VERSION:
        return f"it is v{metadata.format_version} already"
    try:
        require_told(metadata)
        shown(_pinned(metadata), format_version=_TO)
    except (InvalidInput, Unsupported) as error:
        return str(error)
    return None


def _pinned(metadata: TableMetadata) -> TableMetadata:
    """Return the metadata with what branches and tags point to, and no other snapshot."""
    ids = {ref.snapshot_id for ref in metadata.refs.values()}
    return replace(
        metadata,
        snapshots=tuple(each for each in metadata.snapshots if each.snapshot_id in ids),
        snapshot_log=tuple(each for each in metadata.snapshot_log if each.snapshot_id in ids),
        snapshot_pages=(),
        statistics=tuple(each for each in metadata.statistics if each.snapshot_id in ids),
        partition_statistics=tuple(
            each for each in metadata.partition_statistics if each.snapshot_id in ids
        ),
    )


def _downgraded(table: Table, state: State) -> bool:
    """Write the table as v3 and swap it in; False where another commit came first."""
    files, pinned = table.files, _pinned(state.metadata)
    after = shown(pinned, format_version=_TO)
    for each in pinned.snapshots:
        made = export_snapshot(state.metadata, files, each, _TO)
        after = told_of(after, each, made, files)
    after = replace(after, last_updated_ms=max(now_ms(), after.last_updated_ms))
    file = metadata_file(after, after=state.metadata_location)
    at = absolute(file.location, after.location)
    files.store.write_new(at, file.content)
    match table.catalog.swap(state.name, expected=state.metadata_location, to=at):
        case Swapped():
            table.state = state.at(after, at)
            return True
        case Stale(metadata_location=newest) if newest == at:
            table.state = state.at(after, at)
            return True
        case Stale():
            with suppress(IcetreeError):
                files.store.delete([at])
            return False
        case Unknown(reason=reason):
            raise CommitUnknown(
                f"table {state.name} may or may not be v{_TO} now ({reason}); look at it before "
                "trying again"
            )
