"""What transactions do to files: data files, data DVs and equality deletes that exist already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from icetree.errors import InvalidInput
from icetree.filters.filter import Filter, parse_filter
from icetree.spec.entry.entry import Content, Entries, is_content
from icetree.spec.spelled import spelled
from icetree.table.commit.adopting import Paths, Progress, found_files
from icetree.table.commit.counts import RowCounts, rows_of
from icetree.table.commit.removing import (
    Going,
    Removed,
    files_matching,
    in_same_partitions,
    named_files,
    removal_of_tasks,
    whole_table,
)
from icetree.tree.changes import Changes, Intent
from icetree.tree.grow.cherry_pick import REPLACE_PARTITIONS

if TYPE_CHECKING:
    from icetree.table.transaction import Files, New, Transaction


@spelled
class FileVerbs:
    """What a transaction can do to files."""

    def append_files(self: Transaction, files: Files) -> None:  # type: ignore[misc]
        """Add data files; conflicts with no change of rows."""
        added = self.entries_of(files)
        _require_only(added, Content.DATA)
        self._add(Changes(intent=Intent.APPEND, added=added), inserting(added))

    def add_files(self: Transaction, paths: Paths, *, progress: Progress | None = None) -> None:  # type: ignore[misc]
        """Add files where they are; see `Table.add_files`."""
        store = self._table.files.store
        found = found_files(paths, metadata=self.metadata, store=store, progress=progress)
        if found.properties:
            self.set_properties(found.properties)
        self.append_files(found.entries)

    def delete_files(self: Transaction, files: Removed) -> None:  # type: ignore[misc]
        """Remove data files, with the DVs they have."""
        self._add(Changes(intent=Intent.DELETE_FILES, removed=named_files(files, self.metadata)))

    def overwrite_files(  # type: ignore[misc]
        self: Transaction, remove: Removed, rows: New, *, where: Filter | None = None
    ) -> None:
        """Replace data files by rows, or by files that hold them; `where` tells which rows the replacement looked at."""
        self._add(
            Changes(
                intent=Intent.OVERWRITE_FILES,
                added=self.entries_of(self._as_files(rows)),
                removed=named_files(remove, self.metadata),
                filter=None if where is None else parse_filter(where),
            )
        )

    def replace_partitions(self: Transaction, rows: New) -> None:  # type: ignore[misc]
        """Replace every partition that the new rows, or files that hold them, are in."""
        added = self.entries_of(self._as_files(rows))
        root, reader = self._tree()
        going = in_same_partitions(added, root, reader, self._shape, before=self._so_far())
        self.note(REPLACE_PARTITIONS, "true")
        changes = Changes(intent=Intent.REPLACE_PARTITIONS, added=added, removed=going.files)
        self._add(changes, inserting(added, instead_of=going))

    def row_delta(  # type: ignore[misc]
        self: Transaction,
        files: Files,
        *,
        remove: Removed = (),
        where: Filter | None = None,
        tasks: pa.Table | None = None,
    ) -> None:
        """Add data files, data DVs and equality deletes; a DV replaces the one its file has.

        `tasks` are those of the plan by which the rows were found: with them, the data files of
        the DVs need not be looked for again.
        """
        seen = {} if tasks is None else {"seen": removal_of_tasks(tasks)}
        self._add(
            Changes(
                intent=Intent.ROW_DELTA,
                added=self.entries_of(files),
                removed=named_files(remove, self.metadata),
                filter=None if where is None else parse_filter(where),
                **seen,
            )
        )

    def rewrite(self: Transaction, remove: Removed, files: Files) -> None:  # type: ignore[misc]
        """Replace files by others that hold the same rows; readers see no change.

        New data files keep the age of the base, so that deletes which came since still apply.
        """
        age = 0 if self.snapshot is None else self.snapshot.sequence_number
        self._add(
            Changes(
                intent=Intent.REWRITE,
                added=self.entries_of(files, sequence_number=age),
                removed=named_files(remove, self.metadata),
            ),
            RowCounts(),
        )

    def truncate(self: Transaction) -> None:  # type: ignore[misc]
        """Remove every file."""
        root, reader = self._tree()
        going = whole_table(root, reader, before=self._so_far())
        every = AlwaysTrue()
        self._add(
            Changes(intent=Intent.DELETE_BY_FILTER, removed=going.files, filter=every),
            RowCounts(deleted=going.rows),
        )

    def delete_by_files(self: Transaction, where: BooleanExpression) -> None:  # type: ignore[misc]
        """Remove the files whose rows all match; refused when some file matches in part."""
        going = self._matching(where, verb="delete")
        changes = Changes(intent=Intent.DELETE_BY_FILTER, removed=going.files, filter=where)
        self._add(changes, RowCounts(deleted=going.rows))

    def overwrite_by_files(  # type: ignore[misc]
        self: Transaction, where: BooleanExpression, rows: New, *, strict: bool
    ) -> None:
        """Replace files whose rows all match; refused when some file matches in part."""
        going = self._matching(where, verb="overwrite")
        added = self.entries_of(self._as_files(rows))
        self._add(
            Changes(
                intent=Intent.OVERWRITE_BY_FILTER,
                added=added,
                removed=going.files,
                filter=where,
                strict=strict,
            ),
            inserting(added, instead_of=going),
        )

    def _matching(self: Transaction, predicate: BooleanExpression, *, verb: str) -> Going:  # type: ignore[misc]
        root, reader = self._tree()
        before, name = self._so_far(), self._base.name
        return files_matching(
            predicate, root, reader, self._shape, before=before, name=name, verb=verb
        )


def inserting(files: Entries, *, instead_of: Going | None = None) -> RowCounts:
    """Return how many rows come with files, and go with others."""
    return RowCounts(inserted=rows_of(files), deleted=0 if instead_of is None else instead_of.rows)


def _require_only(added: Entries, content: Content) -> None:
    if added.filter(is_content(added, content)).num_rows < added.num_rows:
        raise InvalidInput("append takes data files only: deletes go through row_delta")
