"""The verbs of a table that commit one operation each, as one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from typing_extensions import Self, Unpack

from icetree.catalog.base import TableName
from icetree.filters.filter import Filter
from icetree.rows.write.fit import ArrowData
from icetree.spec.spelled import spelled_out
from icetree.table.commit.adopting import Paths, Progress
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import CommitOptions, isolated
from icetree.table.commit.removing import Removed
from icetree.table.rows.clauses import Clause
from icetree.table.rows.merge import Merge
from icetree.table.transaction import Files, New, Transaction


class Commits:
    """What a table can do to rows and files, a commit each; a transaction makes one of several."""

    if TYPE_CHECKING:

        @property
        def name(self) -> TableName: ...

        @property
        def properties(self) -> Mapping[str, str]: ...

        settle: Callable[[CommitOptions], CommitOptions]

        def transaction(self, **how: Unpack[CommitOptions]) -> Transaction: ...

        def _rehearsed(self) -> Self: ...

    def _once(self, how: CommitOptions, do: Callable[[Transaction], None]) -> Committed:
        """Commit one operation; what it wrote goes when it fails."""
        with self.transaction(**self.settle(how)) as transaction:
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
        """Add files that are there already, as one snapshot; none is copied or changed.

        They are of Parquet, ORC or Avro. A path that ends with a slash is a folder, of which all such
        files are added. Columns are found by field ids, else by names; stats come from the footers of
        Parquet, and of the others from all rows. A file belongs to one partition:
        a column that it lacks is told by its path (`country=DE/…`). `progress` is told how many
        files have been looked at, and of how many. With `dry_run` all is looked at and refused as
        ever, and nothing changes: what is returned is the commit as it would be.
        """
        if dry_run:
            return self._rehearsed().add_files(paths, progress=progress, **how)
        return self._once(how, lambda tx: tx.add_files(paths, progress=progress))

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
        remove: Removed,
        rows: New,
        *,
        where: Filter | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Replace data files by rows, or by files that hold them, as one snapshot."""
        return self._once(how, lambda tx: tx.overwrite_files(remove, rows, where=where))

    @spelled_out(CommitOptions)
    def overwrite(
        self, where: Filter, rows: New, *, strict: bool = True, **how: Unpack[CommitOptions]
    ) -> Committed:
        """Replace the rows that match by others, or by files that hold them, as one snapshot.

        All that is new must match too, unless `strict` is false.
        """
        return self._once(how, lambda tx: tx.overwrite(where, rows, strict=strict))

    @spelled_out(CommitOptions)
    def replace_partitions(self, rows: New, **how: Unpack[CommitOptions]) -> Committed:
        """Replace every partition that the new rows, or files that hold them, are in, as one snapshot."""
        return self._once(how, lambda tx: tx.replace_partitions(rows))

    @spelled_out(CommitOptions)
    def row_delta(
        self,
        files: Files,
        *,
        remove: Removed = (),
        where: Filter | None = None,
        tasks: pa.Table | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Add data files, data DVs and equality deletes, as one snapshot."""
        return self._once(
            how, lambda tx: tx.row_delta(files, remove=remove, where=where, tasks=tasks)
        )

    @spelled_out(CommitOptions)
    def rewrite(self, remove: Removed, files: Files, **how: Unpack[CommitOptions]) -> Committed:
        """Replace files by others that hold the same rows, as one snapshot."""
        return self._once(how, lambda tx: tx.rewrite(remove, files))

    @spelled_out(CommitOptions)
    def truncate(self, **how: Unpack[CommitOptions]) -> Committed:
        """Remove every file, as one snapshot."""
        return self._once(how, lambda tx: tx.truncate())
