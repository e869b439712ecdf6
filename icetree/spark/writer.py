"""Writing a DataFrame to a table, in the manner of `df.writeTo`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from typing_extensions import Self, Unpack

from icetree.errors import CommitConflict, CommitUnknown, InvalidInput, NotFound
from icetree.filters.filter import Filter
from icetree.spark.progress import telling
from icetree.spark.types import table_schema
from icetree.spark.wap import begin, branch_to_read
from icetree.spark.write.arrange import arranged
from icetree.spark.write.fit import fit
from icetree.spark.write.options import Options
from icetree.spark.write.sink import sink
from icetree.spec.edit.new_columns import SchemaLike
from icetree.spec.entry.entry import Entries
from icetree.spec.metadata.snapshot import MAIN
from icetree.spec.spelled import spelled, spelled_out
from icetree.spec.texts import shortened
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import CommitOptions
from icetree.table.table import Table
from icetree.table.transaction import Transaction

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


@spelled
class Write:
    """What to write and where; nothing happens until `append` or one of its kin is called."""

    @spelled_out(CommitOptions)
    def __init__(
        self, lake: SparkLake, name: str, rows: DataFrame, **how: Unpack[CommitOptions]
    ) -> None:
        self._lake = lake
        self._rows = rows
        self._name = name
        self._options = Options(how=how)

    def __repr__(self) -> str:
        return f"Write({self._name!r}, columns={shortened(self._rows.columns)})"

    def branch(self, name: str | None) -> Self:
        """Commit to a branch instead of `main`, or of the one that the session says."""
        return self if name is None else self._noting(branch=name)

    def key(self, key: str | None) -> Self:
        """Commit only if nothing was committed under this key before."""
        return self._noting(key=key)

    def isolation(self, level: str) -> Self:
        """Choose what counts as a conflict: `serializable` or `snapshot`."""
        return self._noting(isolation=level)

    def summary(self, summary: Mapping[str, str]) -> Self:
        """Note facts in the snapshot's summary."""
        return self._noting(summary=summary)

    def merge_schema(self) -> Self:
        """Add columns that the table lacks and widen those that are too narrow, by the rows."""
        return self.option("merge-schema", "true")

    def option(self, name: str, value: object) -> Self:
        """Say how to write, by Iceberg's names; see `write.options` for what there is."""
        self._options = self._options.option(name, value)
        return self

    def options(self, options: Mapping[str, object]) -> Self:
        """Say several options at once."""
        for name, value in options.items():
            self.option(name, value)
        return self

    # --- into a table that is there ----------------------------------------------------------

    def append(self) -> Committed:
        """Add the rows, as one snapshot."""
        return self._commit(self._lake.table(self._name), Transaction.append_files)

    def overwrite(self, where: Filter | Column, *, strict: bool = False) -> Committed:
        """Replace the rows that match by these, which need not match, as `writeTo` has it.

        With `strict` they must: then the same can be overwritten again. `where` means to Spark what
        it says, as text or as a column; a PyIceberg expression means what it means to a scan.
        """
        from icetree.spark.rows.overwrite import overwrite

        table, transaction, rows = self._ready(self._lake.table(self._name))
        ref = branch_to_read(self._lake.spark, table, self._options.how.get("branch"))
        metadata = self._options.over(transaction.metadata)
        with telling(self._lake.spark, f"overwrite of {self._name} where {where!s}"):
            return overwrite(
                self._lake,
                table,
                transaction,
                rows,
                where,
                ref=ref,
                metadata=metadata,
                strict=strict,
            )

    def replace_partitions(self) -> Committed:
        """Replace every partition that the rows are in."""
        return self._commit(self._lake.table(self._name), Transaction.replace_partitions)

    # --- into a new table --------------------------------------------------------------------

    def create(
        self,
        *,
        partition_by: Iterable[str] = (),
        order_by: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
    ) -> Table:
        """Make a table of the rows' schema and put them in."""
        table = self._lake.create_table(
            self._name,
            table_schema(self._rows.schema),
            partition_by=partition_by,
            order_by=order_by,
            properties=properties,
            location=location,
        )
        try:
            self._commit(table, Transaction.append_files)
        except CommitUnknown:
            raise
        except Exception:
            # What somebody else has done to the table meanwhile, or has put in its place, is theirs.
            with suppress(CommitConflict, NotFound):
                self._lake.catalog.drop(table.name, expected=table.state.metadata_location)
            raise
        return table

    def replace(
        self,
        *,
        schema: SchemaLike | None = None,
        partition_by: Iterable[str] = (),
        order_by: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Give a table the rows' schema and the rows in place of its own; its history stays."""
        from icetree.spark.write.replace import replace

        if self._options.merges:
            raise InvalidInput(
                f"table {self._name} gets the schema of the rows: leave out merge_schema"
            )
        if self._options.how.get("branch", MAIN) != MAIN:
            raise InvalidInput(f"table {self._name} is replaced on every branch: leave out branch")
        return replace(
            self._lake,
            self._name,
            self._rows,
            schema=table_schema(self._rows.schema) if schema is None else schema,
            partition_by=partition_by,
            order_by=order_by,
            properties=properties,
            options=self._options,
        )

    def create_or_replace(
        self,
        *,
        partition_by: Iterable[str] = (),
        order_by: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
    ) -> Table:
        """Do `replace`, or `create` where there is no such table."""
        there = self._lake.table_exists(self._name)
        do = self.replace if there else self.create
        return do(partition_by=partition_by, order_by=order_by, properties=properties)

    # --- within ------------------------------------------------------------------------------

    def _noting(self, **how: Unpack[CommitOptions]) -> Self:
        self._options = self._options.noting(**how)
        return self

    def _ready(self, table: Table) -> tuple[Table, Transaction, DataFrame]:
        transaction = begin(self._lake.spark, table, **self._options.how)
        if self._options.merges:
            with transaction.edit_schema() as edit:
                edit.union_by_name(table_schema(self._rows.schema))
        rows = fit(self._rows, transaction.metadata.schema(), table=self._name)
        return table, transaction, rows

    def _commit(self, table: Table, add: Callable[[Transaction, Entries], None]) -> Committed:
        """Write the rows as files, hand them to a transaction, commit; on failure nothing stays."""
        table, transaction, rows = self._ready(table)
        metadata, store = self._options.over(transaction.metadata), table.files.store
        with telling(self._lake.spark, f"write to {self._name}"), transaction:
            made = sink(arranged(rows, metadata), table=self._name, metadata=metadata, store=store)
            add(transaction, transaction.adopt(made.files))
            return transaction.commit()
