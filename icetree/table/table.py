"""A table as users hold it: a handle on the newest state it has seen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pyiceberg.schema import Schema

from icetree.catalog.base import Catalog, TableName
from icetree.errors import InvalidInput
from icetree.files.table_files import TableFiles
from icetree.filters.filter import Filter
from icetree.spec.edit.words import partition_words, sort_words
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history
from icetree.spec.metadata.snapshot import MAIN, Ref, Snapshot
from icetree.spec.metadata.update import Update
from icetree.spec.spelled import spelled
from icetree.table.arguments import whole
from icetree.table.changes.appends import AppendScan
from icetree.table.changes.changes import ChangeRange
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import CommitOptions
from icetree.table.commits import Commits
from icetree.table.evolve.evolve import Evolution
from icetree.table.evolve.refs import References
from icetree.table.inspect.inspect import Inspect
from icetree.table.inspect.shown import Shown
from icetree.table.point import Point, snapshot_at
from icetree.table.rehearsal import catalog_of, files_of
from icetree.table.scan.scan import Scan
from icetree.table.state import State, read_newest
from icetree.table.transaction import Transaction
from icetree.tree.conflict.conflict import Isolation

if TYPE_CHECKING:
    from icetree.table.export.export import Exported
    from icetree.table.maintain.maintain import Maintenance
    from icetree.table.progress import Progress as Tell
    from icetree.table.repair import Repair
    from icetree.table.scan.explain import Explanation
    from icetree.table.verify.findings import Report
    from icetree.table.verify.verify import Which


@spelled
class Table(Commits, Evolution[Committed], References, Shown):
    """One table: read its metadata, commit to it. `refresh` to see what others committed."""

    def __init__(self, *, catalog: Catalog, files: TableFiles, state: State) -> None:
        self.catalog = catalog
        self.files = files
        self.state = state
        #: Called when a commit of this handle is over, whatever became of it.
        self.after_commit: Callable[[], None] = lambda: None
        #: Says how a verb commits, of what it was told: where the table is from may have a say in that.
        self.settle: Callable[[CommitOptions], CommitOptions] = lambda how: how

    def __repr__(self) -> str:
        return f"Table({str(self.name)!r}, snapshot={self.metadata.current_snapshot_id})"

    @property
    def name(self) -> TableName:
        """The table's full name."""
        return self.state.name

    @property
    def metadata(self) -> TableMetadata:
        """All that the table is, as of the newest state seen."""
        return self.state.metadata

    @property
    def location(self) -> str:
        """The folder that relative locations are relative to."""
        return self.metadata.location

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        return self.metadata.properties

    @property
    def schema(self) -> Schema:
        """The current schema."""
        return self.metadata.schema()

    @property
    def spec(self) -> tuple[str, ...]:
        """What new files are partitioned by, in the words of `partition_by`."""
        return partition_words(self.metadata)

    @property
    def sort_order(self) -> tuple[str, ...]:
        """What rows of new files are sorted by, in the words of `order_by`."""
        return sort_words(self.metadata)

    @property
    def current_snapshot(self) -> Snapshot | None:
        """The newest snapshot of `main`; none while the table is empty."""
        return self.metadata.current_snapshot()

    @property
    def refs(self) -> Mapping[str, Ref]:
        """Branches and tags by name."""
        return self.metadata.refs

    def refresh(self) -> Table:
        """See what others committed to this table; NotFound when its name is another's now."""
        store, known = self.files.store, self.state.metadata_location
        newest = read_newest(lambda: self.catalog.load(self.name), lambda _: store, known)
        if newest is not None:
            self.state = self.state.at(*newest)
            self.files.ring.learn(self.metadata.encryption_keys)
            self.files = replace(self.files, location=self.location)
        return self

    def _newer(self) -> Table | None:
        """Return a handle on the newest state; None where this one has seen it."""
        newest = copy.copy(self).refresh()
        return None if newest.state is self.state else newest

    def _follow(self, newer: Table) -> None:
        """See what another handle of this table has seen."""
        self.state, self.files = newer.state, newer.files

    # --- rows ------------------------------------------------------------------------------

    def scan(
        self,
        where: Filter | None = None,
        *,
        columns: Iterable[str] | None = None,
        at: Point | None = None,
        case_sensitive: bool = True,
        limit: int | None = None,
    ) -> Scan:
        """Say which rows to read, of the current snapshot or of another; nothing is read yet.

        `where` is text such as `country = 'DE' and n > 3` (see `filters.parser`) or a
        PyIceberg expression. `at` is a snapshot id, a branch or tag, or a time.
        Beside the table's own columns there are `_file`, `_pos`, `_spec_id`, `_row_id` and
        `_last_updated_sequence_number`, where they are asked for.
        """
        return Scan(
            self,
            where=where,
            columns=columns,
            at=at,
            case_sensitive=case_sensitive,
            limit=limit,
        )

    def changes(self, since: Point | None = None, upto: Point | None = None) -> ChangeRange:
        """Say which changes to look at: those after `since`, up to and with `upto`.

        Each is a snapshot id, a branch or tag, or a time; without them, all up to now.
        """
        return ChangeRange(self, since=since, upto=upto)

    def scan_appends(
        self,
        since: Point | None = None,
        upto: Point | None = None,
        *,
        where: Filter | None = None,
        columns: Iterable[str] | None = None,
        case_sensitive: bool = True,
    ) -> AppendScan:
        """Say which appended rows to read: of append snapshots after `since`, up to `upto`."""
        return AppendScan(
            self,
            since=since,
            upto=upto,
            where=where,
            columns=columns,
            case_sensitive=case_sensitive,
        )

    # --- history ---------------------------------------------------------------------------

    @property
    def inspect(self) -> Inspect:
        """What the table is made of, as Arrow tables."""
        return Inspect(self)

    def snapshot(self, at: Point | None = None) -> Snapshot | None:
        """Return the snapshot at a point; without one the current, of which there may be none."""
        if at is None:
            return self.metadata.current_snapshot()
        return snapshot_at(self.metadata, self.files, at)

    def history(self) -> Iterator[Snapshot]:
        """Yield every snapshot the table still has, newest first."""
        return history(self.metadata, self.files.page)

    def export(
        self, *, format_version: int = 3, at: Point | None = None, history: bool = False
    ) -> Exported:
        """Write a snapshot as v3 or v2 has it, for clients that read manifests themselves.

        Data files and DVs are shared, and so are manifests with exports before: only what changed
        is written, and what of it is gone or broken. It lives as long as the snapshot. With `history`,
        every snapshot that the table has.
        """
        from icetree.table.export.export import export
        from icetree.table.export.shown import older_pages

        if history and at is not None:
            raise InvalidInput("give at, or history, not both: history is every snapshot")
        snapshot = self.snapshot(at)
        format_version = whole(format_version, what="format_version")
        pages = older_pages(self.metadata, self.files.page) if history else None
        return export(
            self.state,
            self.files,
            snapshot,
            format_version=format_version,
            pages=pages,
            mends=True,
        )

    # --- questions -------------------------------------------------------------------------

    def explain(
        self,
        where: Filter,
        *,
        at: Point | None = None,
        case_sensitive: bool = True,
        row_groups: bool = False,
        objects: int = 1_000,
    ) -> Explanation:
        """Tell what a scan with this filter skips, and which part of the filter does it.

        With `row_groups`, of data files too; of `objects` at most each is told by itself.
        """
        from icetree.table.scan.explain import explain

        return explain(
            self,
            where,
            at=at,
            case_sensitive=case_sensitive,
            row_groups=row_groups,
            objects=objects,
        )

    def verify(
        self,
        *,
        deep: bool = False,
        snapshots: Which = "all",
        progress: Tell | None = None,
    ) -> Report:
        """Return every broken rule of the table; with `deep`, of its data files too.

        With "current" snapshots, of the current one's tree and of history itself.
        """
        from icetree.table.verify.verify import verify

        return verify(self, deep=deep, snapshots=snapshots, progress=progress)

    def repair(self, *, dry_run: bool = True) -> Repair:
        """Put right what can be put right safely; unless told otherwise, only say what."""
        from icetree.table.repair import repair

        return repair(self, dry_run=dry_run)

    @property
    def maintenance(self) -> Maintenance:
        """The verbs that keep the table fast and small."""
        from icetree.table.maintain.maintain import Maintenance

        return Maintenance(self)

    # --- commits ---------------------------------------------------------------------------

    def transaction(
        self,
        *,
        branch: str | None = MAIN,
        isolation: Isolation | str = Isolation.SERIALIZABLE,
        key: str | None = None,
        summary: Mapping[str, str] | None = None,
        create_branch: bool = False,
    ) -> Transaction:
        """Start a transaction on the state this handle has seen.

        With a `key`, a commit that was made before under the same key is not made again. With
        `create_branch`, a branch that is not there yet starts where the table is.
        """
        return Transaction(
            self,
            branch=branch,
            isolation=isolation,
            key=key,
            summary=summary,
            create_branch=create_branch,
        )

    def update_metadata(self, *updates: Update) -> Committed:
        """Change table metadata, as one commit without a snapshot."""
        transaction = self.transaction()
        transaction.update_metadata(*updates)
        return transaction.commit()

    def _rehearsed(self) -> Table:
        """Return the newest table, with commits that nobody sees."""
        state = copy.copy(self).refresh().state
        rehearsed = Table(catalog=catalog_of(state), files=files_of(self.files), state=state)
        rehearsed.settle = self.settle
        return rehearsed
