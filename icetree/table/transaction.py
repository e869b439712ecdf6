"""Several operations that become one commit, with one snapshot at most."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from typing_extensions import Self

from icetree.errors import InvalidInput, Unsupported
from icetree.files.table_files import TableFiles
from icetree.rows.read.equality_files import require_fields
from icetree.rows.write.fit import ArrowData
from icetree.rows.write.write import write_files
from icetree.spec.apply import apply as updating
from icetree.spec.entry.entry import Entries, Entry, concat
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.locations import stored_form_array
from icetree.spec.metadata.encryption import require_told
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import MAIN, Snapshot
from icetree.spec.metadata.update import SetLocation, SetProperties, Update
from icetree.spec.schema.shape import Shape
from icetree.spec.spelled import spelled
from icetree.table.commit.adding import is_arrow_data, require_keys, stored_entries
from icetree.table.commit.commit import Committed, commit
from icetree.table.commit.counts import UNCOUNTED, RowCounts
from icetree.table.commit.merge import merge
from icetree.table.commit.options import branch_of, isolation_of, key_of, summary_of
from icetree.table.commit.relying import facts_for, is_idle
from icetree.table.commit.widen import widen_changes
from icetree.table.evolve.evolve import Evolution
from icetree.table.file_verbs import FileVerbs, inserting
from icetree.table.properties import check_properties
from icetree.table.rows.rows import RowVerbs
from icetree.table.state import Requirement, State, Work, fact_of
from icetree.tree.changes import Changes, Intent, Operation
from icetree.tree.conflict.conflict import Isolation
from icetree.tree.leaves.rewritten import Rewritten

if TYPE_CHECKING:
    from icetree.table.table import Table

#: New files: columns, or a few values.
Files: TypeAlias = "Entries | Iterable[Entry]"
#: New files, or rows that are still to be written to files.
New: TypeAlias = "Files | ArrowData"


@spelled
class Transaction(Evolution[None], FileVerbs, RowVerbs):
    """Collects changes on one base; `commit` carries them out together.

    Used as a context manager it commits at the end of the block, and on an error does nothing:

        with table.transaction() as tx:
            tx.delete("country = 'DE'")
            tx.append_files(files)
    """

    def __init__(
        self,
        table: Table,
        *,
        branch: str | None = MAIN,
        isolation: Isolation | str = Isolation.SERIALIZABLE,
        key: str | None = None,
        summary: Mapping[str, str] | None = None,
        create_branch: bool = False,
    ) -> None:
        self._table = table
        self._base: State = table.state
        self._branch = branch_of(branch, self._base.metadata, create=create_branch)
        self._create_branch = create_branch
        self._isolation = isolation_of(isolation)
        self._key = key_of(key)
        self._summary = summary_of(summary)
        self._changes: list[Changes] = []
        self._updates: list[Update] = []
        self._relied_on: set[str] = set()
        self._over = False
        #: The table's metadata as the updates so far would leave it.
        self.metadata: TableMetadata = self._base.metadata
        #: Files that were written for this transaction.
        self._written: list[str] = []
        self._picked: int | None = None
        self._rewritten: Rewritten | None = None
        self._snapshot_id: int | None = None
        self._rows = RowCounts()

    def __repr__(self) -> str:
        where = "staged" if self._branch is None else f"branch={self._branch!r}"
        done = "over" if self._over else f"{len(self._changes) + len(self._updates)} changes"
        return f"Transaction({str(self._base.name)!r}, {where}, {done})"

    # --- data ------------------------------------------------------------------------------

    def append(self, rows: ArrowData) -> None:
        """Write Arrow data as data files at once, to be added; conflicts with no change of rows.

        Files of a transaction that comes to nothing are deleted again.
        """
        self.append_files(self.write(rows))

    def rearrange(self, rewritten: Rewritten) -> None:
        """Put leaves that were made in the place of others; every file stays as it is."""
        self._add(Changes(intent=Intent.REWRITE), RowCounts())
        self._rewritten = rewritten

    def adopt(self, written: Entries) -> Entries:
        """Take charge of files that were written for this transaction, and return them.

        They are deleted when it comes to nothing: what adopts files belongs in a `with` block.
        """
        self._written += written["location"].drop_null().to_pylist()
        return written

    def apply(self, changes: Changes) -> None:
        """Add changes that were worked out elsewhere, such as those of a cherry-pick."""
        appends = changes.operation is Operation.APPEND
        self._add(changes, inserting(changes.added) if appends else UNCOUNTED)

    def identify(self, snapshot_id: int) -> None:
        """Give the snapshot the id that a client has chosen for it."""
        self._require_open()
        self._snapshot_id = snapshot_id

    def count(self, rows: RowCounts) -> None:
        """Say how many rows all changes so far come to, for who looked at the rows."""
        self._require_open()
        self._rows = rows

    def note(self, name: str, value: str) -> None:
        """Put something into the snapshot's summary, under names of icetree's own too."""
        self._require_open()
        self._summary[name] = value

    # --- metadata --------------------------------------------------------------------------

    def update_metadata(self, *updates: Update) -> None:
        """Change table metadata; checked at once, so that a mistake shows where it is made."""
        self._require_open()
        if any(isinstance(each, SetLocation) for each in updates):
            raise InvalidInput(
                f"table {self._base.name} cannot be pointed elsewhere, since its files would stay: "
                "copy its folder and register the copy"
            )
        at_ms = self._base.metadata.last_updated_ms
        after = updating.apply(self.metadata, updates, at_ms=at_ms)
        for each in updates:
            if isinstance(each, SetProperties):
                check_properties(each.updates, after)
        self._relied_on |= {fact for each in updates for fact in facts_for(each)}
        if not all(is_idle(each, self.metadata) for each in updates):
            self._updates += updates
            self.metadata = after

    def rely_on(self, *facts: str) -> None:
        """Conflict when a fact of the base, named as in `table.state`, changes before the end."""
        self._require_open()
        self._relied_on |= {*facts}

    def pick(self, at: int) -> None:
        """Conflict when a snapshot expires before the end: files of it are added again."""
        self._require_open()
        self._picked = at

    # --- the end ---------------------------------------------------------------------------

    def commit(self) -> Committed:
        """Carry everything out as one commit; the transaction cannot be used afterwards."""
        self._require_open()
        self._over = True
        work = Work(
            base=self._base,
            changes=tuple(self._changes),
            updates=tuple(self._updates),
            requirements=tuple(self._requirements()),
            branch=self._branch,
            create_branch=self._create_branch,
            isolation=self._isolation,
            summary=self._summary,
            key=self._key,
            picked=self._picked,
            rewritten=self._rewritten,
            written=tuple(self._written),
        )
        if self._snapshot_id is not None:
            work = replace(work, snapshot_id=self._snapshot_id)
        try:
            done = commit(work, self._table.catalog, self._table.files, self._table.state)
        finally:
            self._table.after_commit()
        if len(self._changes) > 1 and not done.repeated:
            self._discard_undone()
        self._table.state = done.state
        return done if done.repeated else replace(done, rows=self._rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and not self._over:
            if self._changes or self._updates or self._relied_on:
                self.commit()
            self._over = True
        elif not self._over:
            self._over = True
            self._discard()

    def _discard(self) -> None:
        """Delete what this transaction wrote, once it is certain that no snapshot names it."""
        self._delete(self._written)

    def _discard_undone(self) -> None:
        """Delete what this transaction wrote and added, and then took away again."""
        with suppress(Exception):
            kept = merge(self._changes).added["location"]
            staged = concat([each.added.select(["location"]) for each in self._changes])["location"]
            written = pa.array(self._written, pa.string())
            names = stored_form_array(written, self._base.metadata.location)
            gone = pc.and_not(pc.is_in(names, staged), pc.is_in(names, kept))
            self._delete(written.filter(gone).to_pylist())

    def _delete(self, locations: list[str]) -> None:
        if locations:
            with suppress(Exception):
                self._table.files.delete(locations)

    # --- for who works on rows ---------------------------------------------------------------

    @property
    def table_name(self) -> str:
        """The table's full name."""
        return str(self._base.name)

    @property
    def table_files(self) -> TableFiles:
        """The table's files."""
        return self._table.files

    @property
    def snapshot(self) -> Snapshot | None:
        """The snapshot that the transaction starts from."""
        return self._base.head(self._branch or MAIN)

    @property
    def has_changes(self) -> bool:
        """Whether something was done to rows or files already."""
        return bool(self._changes)

    def require_first(self, verb: str) -> None:
        """Refuse to look at rows after others were changed, which are not to be seen yet."""
        self._require_open()
        if self._changes:
            raise InvalidInput(
                f"table {self._base.name}: rows that this transaction changed cannot be seen before its "
                f"end: commit it, then {verb} in another"
            )

    # --- within ----------------------------------------------------------------------------

    @property
    def _shape(self) -> Shape:
        return self.metadata.shape()

    def _tree(self) -> tuple[Entries, Any]:
        files, shape = self._table.files, self._shape
        return files.root(self._base.head(self._branch or MAIN), shape), files.reader(shape)

    def _so_far(self) -> Changes:
        """Return what the changes up to now come to, which the next one must see."""
        if not self._changes:
            return Changes(intent=Intent.APPEND)
        return merge([widen_changes(each, self._shape) for each in self._changes])

    def _as_files(self, new: New) -> Files:
        return self.write(new) if is_arrow_data(new) else new

    def write(self, rows: ArrowData) -> Entries:
        """Write rows as data files of the table, which are deleted when this comes to nothing."""
        self._require_open()
        name, store = self.table_name, self._table.files.store
        return self.adopt(write_files(rows, table=name, metadata=self.metadata, store=store))

    def entries_of(self, files: Files, *, sequence_number: int | None = None) -> Entries:
        """Return new files as entries; InvalidInput for what cannot be added."""
        entries = stored_entries(
            files, self.metadata, self._shape, self._base.name, sequence_number=sequence_number
        )
        require_keys(entries, self.metadata)
        self._table.files.require_open(entries["location"])
        store, made = self._table.files.store, self._written
        require_fields(entries, metadata=self.metadata, store=store, made=made)
        return entries

    def _add(self, changes: Changes, rows: RowCounts = UNCOUNTED) -> None:
        self._require_open()
        require_told(self.metadata)
        self.require_version()
        self._changes.append(changes)
        self._rows += rows

    def _require_open(self) -> None:
        if self._over:
            raise InvalidInput(
                f"this transaction on {self._base.name} is over: "
                "start another with table.transaction()"
            )

    def require_version(self) -> None:
        """Refuse rows unless the table has our version, or has it by now in this transaction.

        Files that were laid out before would tell their partitions by ids that are given to
        columns meanwhile.
        """
        version = self.metadata.format_version
        if version < FORMAT_VERSION:
            raise Unsupported(
                f"table {self._base.name} has format version {version}; "
                f"upgrade it to {FORMAT_VERSION} before writing"
            )

    def _requirements(self) -> Iterable[Requirement]:
        # A copy of the table is the same table, but files under the old place are not its own.
        facts = {"table uuid", "location", *self._relied_on}
        if any(change.filter is not None for change in self._changes):
            # A filter names columns: they must mean what they meant.
            facts.add("current schema")
        metadata = self._base.metadata
        if self._changes and metadata.format_version < FORMAT_VERSION:
            # Files tell their partitions by ids that the upgrade allots, after the last column's.
            facts.add("last column id")
        return [Requirement(fact=fact, value=fact_of(metadata, fact)) for fact in sorted(facts)]
