"""The row verbs of a lake: a table by its name, then what is done to its rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import Unpack

from icetree.filters.filter import Filter
from icetree.rows.write.fit import ArrowData
from icetree.spec.spelled import spelled_out
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import CommitOptions
from icetree.table.rows.clauses import Clauses
from icetree.table.table import Table


class LakeRows(ABC):
    """What a lake can do to rows: what its tables can, each verb one snapshot.

    Rows are anything that exports Arrow; options are those of `Table.transaction`.
    """

    @abstractmethod
    def table(self, name: str) -> Table:
        """Return a table's handle, on its newest state."""

    @spelled_out(CommitOptions)
    def append(self, name: str, rows: ArrowData, **how: Unpack[CommitOptions]) -> Committed:
        """Add rows."""
        return self.table(name).append(rows, **how)

    @spelled_out(CommitOptions)
    def overwrite(
        self,
        name: str,
        where: Filter,
        rows: ArrowData,
        *,
        strict: bool = True,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Replace the rows that match by these, which must match too, unless `strict` is false."""
        return self.table(name).overwrite(where, rows, strict=strict, **how)

    @spelled_out(CommitOptions)
    def replace_partitions(
        self, name: str, rows: ArrowData, **how: Unpack[CommitOptions]
    ) -> Committed:
        """Replace every partition that the rows are in."""
        return self.table(name).replace_partitions(rows, **how)

    @spelled_out(CommitOptions)
    def delete(self, name: str, where: Filter, **how: Unpack[CommitOptions]) -> Committed:
        """Delete the rows that match."""
        return self.table(name).delete(where, **how)

    @spelled_out(CommitOptions)
    def update(
        self,
        name: str,
        set: Mapping[str, Any],
        where: Filter | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Set columns of the rows that match, of all without a filter.

        A text is an expression over columns, such as `n + 1` or `upper(name)`. Any other value is
        itself.
        """
        return self.table(name).update(set, where, **how)

    @spelled_out(CommitOptions)
    def upsert(
        self,
        name: str,
        rows: ArrowData,
        on: Iterable[str] | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Replace the rows that are equal in the columns `on` by these, and add the others.

        Without `on`, the table's identifier fields are meant.
        """
        return self.table(name).upsert(rows, on, **how)

    @spelled_out(CommitOptions)
    def merge(
        self, name: str, rows: ArrowData, on: Iterable[str], **how: Unpack[CommitOptions]
    ) -> Clauses[Any, Committed]:
        """Say how to merge rows, which match by columns; clauses follow, then `run`.

        Expressions call the table's columns `target.x` and those of the rows `source.x`.
        """
        return self.table(name).merge(rows, on, **how)
