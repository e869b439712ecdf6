"""MERGE: what becomes of each row of the table, and of each row of a source beside it.

The table's rows that may match are joined with the source; each clause that applies turns a pair
into an action, the first one that does wins. One pass writes new rows and gathers deleted ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import reduce
from typing import TYPE_CHECKING, Final

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from typing_extensions import Unpack, override

from icetree.errors import InvalidInput
from icetree.spark.complaints import one_line
from icetree.spark.names import as_column, as_value, column, quoted
from icetree.spark.progress import telling
from icetree.spark.pushdown.plan import Pruned, marker, optimized, pruned_by
from icetree.spark.read.nothing import nothing
from icetree.spark.rows.change import NEW, PLACE, mark, rewrite, sunk, touched_by
from icetree.spark.rows.sides import Side, speaking_of
from icetree.spark.rows.target import Target, target
from icetree.spark.types import spark_schema
from icetree.spark.write import sink
from icetree.spark.write.fit import cast, default, fit, like, raising_casts
from icetree.spark.write.lineage import AGE, ROW_ID
from icetree.spark.write.sink import ACTION
from icetree.spec.schema.columns import required_identifiers
from icetree.spec.spelled import spelled_out
from icetree.spec.texts import did_you_mean
from icetree.table.arguments import texts
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import CommitOptions
from icetree.table.rows.clauses import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    REPLACE,
    Clause,
    Clauses,
    only_deletes,
)

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: Which clause applies to a pair: its number, or null for none.
_CLAUSE: Final = "__icetree_clause"
_IN_SOURCE: Final = "__icetree_in_source"
_IN_TABLE: Final = "__icetree_in_table"
_SEEN: Final = "__icetree_seen"
#: Which join, by whether it has clauses for rows without a match of either side.
_JOIN: Final = {
    (True, True): "full",
    (True, False): "right",
    (False, True): "left",
    (False, False): "inner",
}
#: A source of so many bytes, by Spark's reckoning, is handed to every executor.
_SMALL_BYTES: Final = 64 * 1024 * 1024


#: How the sink is told what becomes of a row.
_CODE: Final = {DELETE: sink.DELETE, INSERT: sink.INSERT, REPLACE: sink.REPLACE}


class Merge(Clauses["str | Column", Committed]):
    """A MERGE on Spark; `run` carries it out as one snapshot."""

    @spelled_out(CommitOptions)
    def __init__(
        self,
        lake: SparkLake,
        name: str,
        rows: DataFrame,
        on: str | Column | Iterable[str],
        *,
        target_alias: str = "target",
        source_alias: str = "source",
        **how: Unpack[CommitOptions],
    ) -> None:
        super().__init__(name)
        self._lake, self._how = lake, how
        self._aliases = (target_alias, source_alias)
        self._source = rows
        self._on = self._joined_by(on)

    @override
    def _carried_out(self, clauses: Sequence[Clause[str | Column]]) -> Committed:
        into = self._target()
        doing = telling(self._lake.spark, f"MERGE into {self._table}")
        with one_line(), doing, ExitStack() as held:
            acts = self._acts(into, held)
            if into.merges_on_read:
                return mark(into, sunk(into, acts, often=only_deletes(clauses)))
            acts = _hold(acts, held)
            touched = touched_by(acts)
            # A row may have several partners and still not change: it is kept once.
            kept = into.rows(into.only(touched)).join(acts, list(PLACE), "left_anti")
            everything = acts.unionByName(kept.withColumn(ACTION, f.lit(sink.KEEP)))
            return rewrite(into, touched, everything, often=only_deletes(clauses))

    # --- within ------------------------------------------------------------------------------

    @property
    def _condition(self) -> Column:
        return as_column(self._on)

    def _joined_by(self, on: str | Column | Iterable[str]) -> str | Column:
        if isinstance(on, Column):
            return on
        if isinstance(on, str):
            # The name of a column, as in a list of one, or else a condition.
            name = like(on, self._source.columns)
            if name is None:
                return on
            on = [name]
        table, source = (quoted(alias) for alias in self._aliases)
        return " AND ".join(f"{table}.{quoted(c)} = {source}.{quoted(c)}" for c in on)

    def _target(self) -> Target:
        return target(
            self._lake,
            self._table,
            "merge",
            None,
            how=self._how,
            pruning=self._pruning,
        )

    def _pruning(self, schema: Schema) -> BooleanExpression:
        """Return what a row of the table must be like to have a match, as far as that is known."""
        if any(each.when == NOT_MATCHED_BY_SOURCE for each in self._clauses):
            return AlwaysTrue()
        empty = nothing(self._lake.spark, spark_schema(schema.fields))
        mark = marker(optimized(empty))
        with one_line():
            source = self._source.alias(self._aliases[1])
            pairs = empty.alias(self._aliases[0]).join(source, self._condition)
            plan = optimized(pairs)
        return pruned_by(plan, {mark: Pruned(view="", schema=schema)})[""]

    def _acts(self, into: Target, held: ExitStack) -> DataFrame:
        """Return the rows that change, old and new."""
        rows = into.rows().withColumn(_IN_TABLE, f.lit(True)).alias(self._aliases[0])
        # Looked at more than once, and it may be another each time.
        source = _hold(self._source.withColumn(_IN_SOURCE, f.monotonically_increasing_id()), held)
        whens = {each.when for each in self._clauses}
        if NOT_MATCHED_BY_SOURCE in whens or not _is_small(source):
            how = _JOIN[NOT_MATCHED in whens, NOT_MATCHED_BY_SOURCE in whens]
            pairs = rows.join(self._named(source), self._condition, how)
            return _acting(self._judged(pairs, into))
        # A small source goes to the table's rows, which then need not move; those of it without
        # a match are told afterwards.
        matched = self._judged(rows.join(f.broadcast(self._named(source)), self._condition), into)
        if NOT_MATCHED not in whens:
            return _acting(matched)
        # Held are new values only: columns of the table that go into none are not even read.
        matched = _hold(matched, held)
        seen = matched.select(f.col(_IN_SOURCE).alias(_SEEN)).distinct()
        others = source.join(seen, f.col(_IN_SOURCE) == f.col(_SEEN), "left_anti")
        alone = rows.where(f.lit(False)).join(self._named(others), self._condition, "right")
        return _acting(matched).unionByName(_acting(self._judged(alone, into)))

    def _named(self, source: DataFrame) -> DataFrame:
        return source.alias(self._aliases[1])

    def _judged(self, pairs: DataFrame, into: Target) -> DataFrame:
        """Return what becomes of pairs of a table's row and a source's, of which one may lack.

        Pairs that no clause applies to have no action.
        """
        clauses = [(self._applies(each, into), number) for number, each in enumerate(self._clauses)]
        chosen = reduce(
            lambda found, each: found.when(each[0], f.lit(each[1])),
            clauses[1:],
            f.when(clauses[0][0], f.lit(clauses[0][1])),
        )
        pairs = pairs.withColumn(_CLAUSE, chosen)
        new = self._new_values(into)
        # Each in a column of its own: beside an old value both would take a type in common.
        judged = pairs.select(
            *(self._of_table(name) for name in (*into.columns, ROW_ID, *PLACE)),
            _CLAUSE,
            _IN_SOURCE,
            *(
                f.when(f.col(_CLAUSE) == number, value).alias(f"{NEW}{number}_{name}")
                for (number, name), value in new.items()
            ),
        )
        with raising_casts(judged.sparkSession):
            columns = {name: column(name) for name in into.columns}
            for number, name in new:
                given = f"{NEW}{number}_{name}"
                type = into.assigned({name: judged.schema[given].dataType})[name]
                mine = f.col(_CLAUSE) == number
                columns[name] = f.when(mine, cast(given, type)).otherwise(columns[name])
            actions = [
                f.when(f.col(_CLAUSE) == n, _CODE[c.action]) for n, c in enumerate(self._clauses)
            ]
            return judged.select(
                *(each.alias(name) for name, each in columns.items()),
                ROW_ID,
                f.lit(None).cast("long").alias(AGE),
                *PLACE,
                f.coalesce(*actions).alias(ACTION),
                _IN_SOURCE,
            )

    def _said(self, value: str | Column, clause: Clause[str | Column], into: Target) -> Column:
        """Return an expression of a clause, over the rows that there are when it applies."""
        if clause.when == MATCHED or not isinstance(value, str):
            return as_value(value)
        table = Side(alias=self._aliases[0], columns=into.columns)
        source = Side(alias=self._aliases[1], columns=self._source.columns)
        side, other = (source, table) if clause.when == NOT_MATCHED else (table, source)
        return as_column(speaking_of(side, value, other=other, spark=self._lake.spark))

    def _applies(self, clause: Clause[str | Column], into: Target) -> Column:
        in_table, in_source = (f.col(c).isNotNull() for c in (_IN_TABLE, _IN_SOURCE))
        when = {
            MATCHED: in_table & in_source,
            NOT_MATCHED: ~in_table,
            NOT_MATCHED_BY_SOURCE: ~in_source,
        }[clause.when]
        if clause.where is None:
            return when
        return when & self._said(clause.where, clause, into)

    def _new_values(self, into: Target) -> dict[tuple[int, str], Column]:
        """Return what each clause sets columns to, by its number and the column."""
        found = {}
        for number, clause in enumerate(self._clauses):
            if clause.action != DELETE:
                for name in into.columns:
                    value = self._value(clause, name, into)
                    if value is not None:
                        found[number, name] = value
        return found

    def _value(self, clause: Clause[str | Column], name: str, into: Target) -> Column | None:
        """Return what a clause sets a column to; None for what it was."""
        if clause.set is None:
            theirs = like(name, self._source.columns)
            # What goes by its own name to another column is none of this one.
            if theirs is None or (theirs != name and theirs in into.columns):
                raise InvalidInput(
                    f"table {self._table}: the source has no column {name!r}, so * cannot tell "
                    "it: say which columns are set to what"
                    f"{did_you_mean(name, self._source.columns)}"
                )
            return column(self._aliases[1], theirs)
        given = {into.own(each): value for each, value in clause.set.items()}
        if name in given:
            return self._said(given[name], clause, into)
        return default(into.table.schema.find_field(name)) if clause.action == INSERT else None

    def _of_table(self, name: str) -> Column:
        return column(self._aliases[0], name)


def _acting(judged: DataFrame) -> DataFrame:
    """Return the pairs to which a clause applies."""
    return judged.where(f.col(ACTION).isNotNull()).drop(_IN_SOURCE)


def _hold(rows: DataFrame, held: ExitStack) -> DataFrame:
    """Return the rows worked out once, until the end."""
    found = rows.persist()
    held.callback(found.unpersist)
    return found


def _is_small(source: DataFrame) -> bool:
    """Tell whether rows are few enough for every executor; works them out."""
    source.count()
    return int(optimized(source).stats().sizeInBytes()) <= _SMALL_BYTES


def upsert(
    lake: SparkLake,
    name: str,
    rows: DataFrame,
    on: Iterable[str] | None = None,
    **how: Unpack[CommitOptions],
) -> Committed:
    """Replace the rows that are equal in the key columns by these, and add the others.

    Without `on`, the table's identifier fields are the key.
    """
    schema = lake.table(name).schema
    # Which columns there are, and of which types, as with rows that are appended.
    fit(rows, schema, table=name)
    if on is None:
        otherwise = ", or say on which columns"
        keys = required_identifiers(schema, of=name, otherwise=otherwise)
    else:
        keys = texts(on, what="on")
    if not keys:
        raise InvalidInput(f"table {name}: on= names no column, by which a row would be known")
    merge = Merge(lake, name, rows, keys, **how)
    return merge.when_matched_update_all().when_not_matched_insert_all().run()
