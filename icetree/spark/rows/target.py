"""The rows of a table that a statement may change, each with where it stands and its lineage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import DataType

from icetree.errors import InvalidInput
from icetree.filters.filter import Filter
from icetree.spark.read.condition import condition_filter
from icetree.spark.read.listing import ORDINAL
from icetree.spark.read.scan import dataframe
from icetree.spark.types import spark_type
from icetree.spark.wap import begin, branch_to_read
from icetree.spark.write.fit import assigned, like
from icetree.spark.write.lineage import STORED
from icetree.spec.properties.names import MODE, MODES
from icetree.spec.properties.values import choice
from icetree.spec.texts import did_you_mean
from icetree.table.commit.options import CommitOptions, isolated
from icetree.table.scan.planning import planner
from icetree.table.scan.scan import Scan
from icetree.table.table import Table
from icetree.table.transaction import Transaction
from icetree.tree.plan.tasks import Plan

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A table as a statement finds it: what it may touch, planned."""

    lake: SparkLake
    table: Table
    #: `delete`, `update` or `merge`, as table properties name them.
    verb: str
    #: What the statement will be committed as: on the state that is planned here.
    transaction: Transaction
    scan: Scan
    plan: Plan
    #: What the statement calls the table.
    alias: str
    #: What of the statement's condition files and conflicts are told by.
    filter: BooleanExpression

    @property
    def merges_on_read(self) -> bool:
        """Whether rows are marked as deleted, instead of files rewritten."""
        name = MODE.format(self.verb)
        return choice(self.table.properties, name, MODES, default=MODES[0]) == MODES[0]

    @property
    def columns(self) -> list[str]:
        """The table's own columns."""
        return [field.name for field in self.table.schema.fields]

    def own(self, name: str) -> str:
        """Return a column to set as the table spells it: names may be in any case."""
        found = like(name, self.columns)
        if found is None:
            raise InvalidInput(
                f"table {self.table.name} has no column {name!r} to set; there are: "
                f"{', '.join(self.columns)}{did_you_mean(name, self.columns)}"
            )
        return found

    def assigned(self, given: Mapping[str, DataType]) -> dict[str, DataType | None]:
        """Return what new values for some columns are to be cast to; see `write.fit`."""
        fields = [field for field in self.table.schema.fields if field.name in given]
        types = assigned(given, fields, str(self.table.name))
        for field in fields:
            have, want = given[field.name], spark_type(field.field_type, column=field.name)
            if types[field.name] is None and have.simpleString() != want.simpleString():
                raise InvalidInput(
                    f"table {self.table.name}: column {field.name} is {have.simpleString()} in the data, "
                    f"but {want.simpleString()} in the table: give all fields in this order"
                )
        return types

    def rows(self, plan: Plan | None = None) -> DataFrame:
        """Return the rows of the planned files, where they stand and their stored lineage."""
        return dataframe(
            self.lake.spark,
            self.scan,
            plan=self.plan if plan is None else plan,
            located=True,
            lineage_as_stored=True,
        ).alias(self.alias)

    def only(self, ordinals: list[int]) -> Plan:
        """Return the plan of some of the files, which keep their numbers."""
        numbers = pa.array(ordinals, pa.int32())
        tasks = self.plan.tasks.take(numbers).append_column(ORDINAL, numbers)
        return replace(self.plan, tasks=tasks)


def target(
    lake: SparkLake,
    name: str,
    verb: str,
    condition: Filter | Column | None,
    *,
    how: CommitOptions,
    alias: str | None = None,
    pruning: Callable[[Schema], BooleanExpression] | None = None,
) -> Target:
    """Return the table with the files planned that may hold a row the condition is true of.

    The condition may call the table `alias`, or else by the last part of its name. `pruning` says the
    same of conditions that are not of the table's rows alone.
    """
    table = lake.table(name)
    alias = alias or table.name.name
    transaction = begin(lake.spark, table, **isolated(how, verb, table.properties))
    where: BooleanExpression = AlwaysTrue()
    if pruning is not None:
        where = pruning(table.schema)
    elif isinstance(condition, BooleanExpression):
        where = condition
    elif condition is not None:
        where = condition_filter(lake.spark, table.schema, condition, alias=alias)
    ref = branch_to_read(lake.spark, table, how.get("branch"))
    # Files are chosen by the filter, rows by the condition itself, which may say more.
    scan = table.scan(at=ref)
    scan.columns = Schema(*table.schema.fields, *STORED, schema_id=table.schema.schema_id)
    plan = planner(
        table.files, table.metadata, scan.snapshot, where, stats_columns=True, every_row=True
    ).whole()
    return Target(
        lake=lake,
        table=table,
        verb=verb,
        transaction=transaction,
        scan=scan,
        plan=plan,
        alias=alias,
        filter=where,
    )
