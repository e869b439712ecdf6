"""What transactions do to rows, and to files that hold nothing but such rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyiceberg.expressions import BooleanExpression

from icetree.errors import InvalidInput
from icetree.filters.filter import parse_filter
from icetree.rows.matching.source import held
from icetree.rows.write.fit import ArrowData
from icetree.spec.schema.columns import required_identifiers
from icetree.spec.spelled import spelled
from icetree.spec.texts import did_you_mean
from icetree.table.arguments import texts
from icetree.table.commit.counts import RowCounts
from icetree.table.rows.clauses import UPSERT, Clause
from icetree.table.rows.condition import Condition, condition_of
from icetree.table.rows.delete import delete, split
from icetree.table.rows.merge import Merge, Merging
from icetree.table.rows.overwrite import overwrite
from icetree.table.rows.target import Target
from icetree.table.rows.update import update

if TYPE_CHECKING:
    from icetree.table.transaction import New, Transaction

Where = BooleanExpression | str


@spelled
class RowVerbs:
    """What a transaction can do to rows."""

    def delete(self: Transaction, where: Where) -> None:  # type: ignore[misc]
        """Delete the rows that match; files that hold nothing else go without being read."""
        delete_rows(self, where)

    def overwrite(  # type: ignore[misc]
        self: Transaction, where: Where, rows: New, *, strict: bool = True
    ) -> None:
        """Replace the rows that match by others, or by files that hold them.

        All of those must match too, so that the same can be overwritten again, unless `strict`
        is false.
        """
        predicate = parse_filter(where)
        target = Target(transaction=self, verb="delete", filter=predicate)
        whole, part = split(target, Condition(filter=predicate))
        if part and not self.has_changes:
            self.count(overwrite(target, rows, whole, part, strict=strict))
        else:
            self.overwrite_by_files(predicate, rows, strict=strict)

    def update(  # type: ignore[misc]
        self: Transaction, set: Mapping[str, Any], where: Where | None = None
    ) -> None:
        """Set columns of the rows that match, of all without a filter.

        A text is an expression over columns, such as `n + 1` or `upper(name)`; so is one of
        `pyarrow.compute`. Any other value is itself.
        """
        self.count(update_rows(self, set, where))

    def upsert(  # type: ignore[misc]
        self: Transaction, rows: ArrowData, on: Iterable[str] | None = None
    ) -> None:
        """Replace the rows that are equal in some columns by these, and add the others.

        Without `on`, the table's identifier fields are these columns.
        """
        self.count(upsert_rows(self, rows, on))

    def merge(  # type: ignore[misc]
        self: Transaction, rows: ArrowData, on: Iterable[str]
    ) -> Merge[None]:
        """Say how to merge rows, which match by columns; clauses follow, then `run`."""

        return Merge(self.table_name, lambda clauses: self.merge_by(rows, on, clauses))

    def merge_by(  # type: ignore[misc]
        self: Transaction, rows: ArrowData, on: Iterable[str], clauses: Sequence[Clause[Any]]
    ) -> None:
        """Merge rows, which match by columns, as clauses say."""
        self.count(merge_rows(self, rows, on, clauses))


def delete_rows(transaction: Transaction, where: Where) -> None:
    """Add to a transaction that rows go which match."""
    condition = condition_of(where, transaction.metadata.shape())
    target = Target(transaction=transaction, verb="delete", filter=condition.filter)
    whole, part = split(target, condition)
    if condition.test is None and (not part or transaction.has_changes):
        transaction.delete_by_files(condition.filter)
        return
    transaction.require_first("delete")
    found = delete(target, condition, whole, part)
    transaction.count(RowCounts(deleted=found) + RowCounts(deleted=target.rows_in(whole)))


def update_rows(transaction: Transaction, to: Mapping[str, Any], where: Where | None) -> RowCounts:
    """Add to a transaction that columns of rows are set which match; return how many."""
    transaction.require_first("update")
    condition = condition_of(where, transaction.metadata.shape())
    target = Target(transaction=transaction, verb="update", filter=condition.filter)
    return RowCounts(updated=update(target, to, condition, table=transaction.table_name))


def merge_rows(
    transaction: Transaction,
    rows: ArrowData,
    on: Iterable[str] | str,
    clauses: Sequence[Clause[Any]],
) -> RowCounts:
    """Add to a transaction what clauses make of rows and of those beside them; return how many."""
    transaction.require_first("merge")
    name, metadata = transaction.table_name, transaction.metadata
    source = held(rows, metadata.properties, table=name)
    merging = Merging(
        lambda filter: Target(transaction=transaction, verb="merge", filter=filter),
        metadata.shape(),
        source,
        texts(on, what="on"),
        clauses,
        table=name,
    )
    return merging.carry_out()


def upsert_rows(
    transaction: Transaction, rows: ArrowData, on: Iterable[str] | str | None
) -> RowCounts:
    """Add to a transaction that rows replace those of equal key, or are added; return how many."""
    name, schema = transaction.table_name, transaction.metadata.schema()
    if on is None:
        on = required_identifiers(schema, of=name, otherwise=", or say on which columns")
    source = held(rows, transaction.metadata.properties, table=name)
    known = [field.name for field in schema.fields]
    for column in source.column_names:
        if column not in known:
            raise InvalidInput(
                f"table {name} has no column {column!r} (it has {', '.join(known)}): "
                "leave it out, or add the column to the table's schema first"
                f"{did_you_mean(column, known)}"
            )
    return merge_rows(transaction, source, on, UPSERT)
