"""A table as users hold it: a handle on the newest state it has seen."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyiceberg.schema import Schema
from typing_extensions import Unpack

from icetree.catalog.base import Catalog, TableName
from icetree.files.table_files import TableFiles
from icetree.filters.filter import Filter
from icetree.rows.fit import ArrowData
from icetree.spec.edit.words import partition_words, sort_words
from icetree.spec.metadata import TableMetadata
from icetree.spec.pages import history
from icetree.spec.snapshot import MAIN, Ref, Snapshot
from icetree.spec.update import Update
from icetree.table.arguments import spelled_out
from icetree.table.changes.appends import AppendScan
from icetree.table.changes.changes import ChangeRange
from icetree.table.commit.adopting import Paths, Progress
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import CommitOptions, isolated
from icetree.table.commit.removing import Removed
from icetree.table.evolve.evolve import Evolution
from icetree.table.evolve.refs import References
from icetree.table.inspect.inspect import Inspect
from icetree.table.inspect.shown import Shown
from icetree.table.point import Point, snapshot_at
from icetree.table.rehearsal import catalog_of, files_of
from icetree.table.rows.clauses import Clause
from icetree.table.rows.merge import Merge
from icetree.table.scan.scan import Scan
from icetree.table.state import State, read_newest
from icetree.table.transaction import Files, New, Transaction
from icetree.tree.conflict import Isolation

if TYPE_CHECKING:
    from icetree.table.export.export import Exported
    from icetree.table.maintain.maintain import Maintenance
    from icetree.table.progress import Progress as Tell
    from icetree.table.repair import Repair
    from icetree.table.scan.explain import Explanation
    from icetree.table.verify.findings import Report
    from icetree.table.verify.verify import Which


class Table(Evolution, References, Shown):
    """One table: read its metadata, commit to it. `refresh` to see what others committed."""

    def __init__(self, *, catalog: Catalog, files: TableFiles, state: State) -> None:
        self.catalog = catalog
        self.files = files
        self.state = state
        #: Called when a commit of this handle is over, whatever became of it.
        self.after_commit: Callable[[], None] = lambda: None

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

    @spelled_out()
    def export(self, *, format_version: int = 3, at: Point | None = None) -> Exported:
        """Write a snapshot as v3 or v2 has it, for clients that read manifests themselves.

        Data files and DVs are shared, and so are manifests with exports before: only what changed
        is written. It lives as long as the snapshot.
        """
        from icetree.table.export.export import export

        snapshot = self.snapshot(at)
        return export(self.state, self.files, snapshot, format_version=format_version)

    # --- questions -------------------------------------------------------------------------

    @spelled_out()
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

    @spelled_out()
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

    @spelled_out()
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

    def _once(self, how: CommitOptions, do: Callable[[Transaction], None]) -> Committed:
        """Commit one operation; what it wrote goes when it fails."""
        with self.transaction(**how) as transaction:
            do(transaction)
            return transaction.commit()

    @spelled_out(CommitOptions)
    def append(self, rows: ArrowData, **how: Unpack[CommitOptions]) -> Committed:
        """Write Arrow data as data files and add them, as one snapshot."""
        return self._once(how, lambda tx: tx.append(rows))

    @spelled_out(CommitOptions)
    def append_files(self, files: Files, **how: Unpack[CommitOptions]) -> Committed:
        """Add data files, as one snapshot."""
        return self._once(how, lambda tx: tx.append_files(files))

    @spelled_out(CommitOptions)
    def add_files(
        self,
        paths: Paths,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Add Parquet files that are there already, as one snapshot; none is copied or changed.

        A path that ends with a slash is a folder, of which all Parquet files are added. Columns are
        found by field ids, else by names; stats come from footers. A file belongs to one partition:
        a column that it lacks is told by its path (`country=DE/…`). `progress` is told how many
        files have been looked at, and of how many. With `dry_run` all is looked at and refused as
        ever, and nothing changes: what is returned is the commit as it would be.
        """
        if dry_run:
            return self._rehearsed().add_files(paths, progress=progress, **how)
        return self._once(how, lambda tx: tx.add_files(paths, progress=progress))

    def _rehearsed(self) -> Table:
        """Return the newest table, with commits that nobody sees."""
        state = copy.copy(self).refresh().state
        return Table(catalog=catalog_of(state), files=files_of(self.files), state=state)

    @spelled_out(CommitOptions)
    def delete_files(self, files: Removed, **how: Unpack[CommitOptions]) -> Committed:
        """Remove data files, as one snapshot."""
        return self._once(how, lambda tx: tx.delete_files(files))

    @spelled_out(CommitOptions)
    def delete(self, where: Filter, **how: Unpack[CommitOptions]) -> Committed:
        """Delete the rows that match, as one snapshot.

        Files that hold nothing else go without being read.
        """
        return self._once(isolated(how, "delete", self.properties), lambda tx: tx.delete(where))

    @spelled_out(CommitOptions)
    def update(
        self, set: Mapping[str, Any], where: Filter | None = None, **how: Unpack[CommitOptions]
    ) -> Committed:
        """Set columns of the rows that match, of all without a filter, as one snapshot.

        A text is an expression over columns, such as `n + 1` or `upper(name)`; so is one of
        `pyarrow.compute`. Any other value is itself.
        """
        return self._once(
            isolated(how, "update", self.properties), lambda tx: tx.update(set, where)
        )

    @spelled_out(CommitOptions)
    def upsert(
        self, rows: ArrowData, on: Iterable[str] | None = None, **how: Unpack[CommitOptions]
    ) -> Committed:
        """Replace the rows that are equal in some columns by these and add the others.

        All of it is one snapshot. Without `on`, the table's identifier fields are these columns.
        Rows are anything that exports Arrow.
        """
        return self._once(isolated(how, "merge", self.properties), lambda tx: tx.upsert(rows, on))

    @spelled_out(CommitOptions)
    def merge(
        self, rows: ArrowData, on: Iterable[str], **how: Unpack[CommitOptions]
    ) -> Merge[Committed]:
        """Say how to merge rows, which match by columns; clauses follow, then `run`.

        Expressions call the table's columns `target.x` and those of the rows `source.x`.
        """

        def run(clauses: Sequence[Clause[Any]]) -> Committed:
            told = isolated(how, "merge", self.properties)
            return self._once(told, lambda tx: tx.merge_by(rows, on, clauses))

        return Merge(str(self.name), run)

    @spelled_out(CommitOptions)
    def overwrite_files(
        self,
        add: New,
        remove: Removed,
        *,
        where: Filter | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Replace data files by others, or by Arrow data, as one snapshot."""
        return self._once(how, lambda tx: tx.overwrite_files(add, remove, where=where))

    @spelled_out(CommitOptions)
    def overwrite(
        self, where: Filter, add: New, *, strict: bool = True, **how: Unpack[CommitOptions]
    ) -> Committed:
        """Replace the rows that match by new files or Arrow data, as one snapshot.

        All that is new must match too, unless `strict` is false.
        """
        return self._once(how, lambda tx: tx.overwrite(where, add, strict=strict))

    @spelled_out(CommitOptions)
    def replace_partitions(self, add: New, **how: Unpack[CommitOptions]) -> Committed:
        """Replace every partition that the new files or Arrow data are in, as one snapshot."""
        return self._once(how, lambda tx: tx.replace_partitions(add))

    @spelled_out(CommitOptions)
    def row_delta(
        self,
        add: Files,
        *,
        remove: Removed = (),
        where: Filter | None = None,
        tasks: pa.Table | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Add data files, data DVs and equality deletes, as one snapshot."""
        return self._once(
            how, lambda tx: tx.row_delta(add, remove=remove, where=where, tasks=tasks)
        )

    @spelled_out(CommitOptions)
    def rewrite(self, remove: Removed, add: Files, **how: Unpack[CommitOptions]) -> Committed:
        """Replace files by others that hold the same rows, as one snapshot."""
        return self._once(how, lambda tx: tx.rewrite(remove, add))

    @spelled_out(CommitOptions)
    def truncate(self, **how: Unpack[CommitOptions]) -> Committed:
        """Remove every file, as one snapshot."""
        return self._once(how, lambda tx: tx.truncate())
