"""INSERT, DELETE and UPDATE: a statement's clauses, handed to the lake's own verbs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.expressions import AlwaysTrue, BooleanExpression, EqualTo, IsNull
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from icetree.errors import InvalidInput, Unsupported
from icetree.spark.fit import default
from icetree.spark.names import quoted
from icetree.spark.plainly import plainly
from icetree.spark.sql_columns import own_name, own_path
from icetree.spark.sql_merge import merge
from icetree.spark.sql_names import TableRef, writable
from icetree.spark.sql_plan import kind, option, pairs, seq
from icetree.spark.sql_select import select
from icetree.spark.sql_tokens import Cursor, tokens
from icetree.spark.types import spark_type
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import Lake

_QUERY: Final = ("SELECT", "VALUES", "WITH", "FROM", "TABLE", "MAP", "REDUCE")


def run_dml(lake: Lake, plan: Any, text: str) -> bool:
    """Carry out a statement; false where it is none of these, or changes no table of the lake."""
    statement = plan
    if kind(plan) == "UnresolvedWith":
        [statement] = seq(plan.children())
    run = _STATEMENTS.get(kind(statement))
    return run is not None and run(lake, statement, text)


def target_of(lake: Lake, relation: Any) -> tuple[TableRef | None, list[str], str | None]:
    """Return the table that a statement changes, its name as given, and its alias."""
    alias = None
    if kind(relation) == "SubqueryAlias":
        alias = relation.identifier().name()
        relation = relation.child()
    parts = seq(relation.multipartIdentifier())
    return writable(lake, parts), parts, alias


# --- INSERT ------------------------------------------------------------------------------------


def _insert(lake: Lake, plan: Any, text: str) -> bool:
    found, parts, _ = target_of(lake, plan.table())
    if found is None:
        return False
    table = lake.handle(found.name)
    given = seq(plan.userSpecifiedCols())
    fixed: dict[str, str | None] = {
        own_name(table.schema, name): option(value)
        for name, value in pairs(plan.partitionSpec()).items()
        if value.isDefined()
    }
    rows = select(lake, _insert_query(text, has_columns=bool(given)))
    rows = _placed(rows, table, given, fixed, by_name=plan.byName(), name=".".join(parts))
    write = lake.write(rows, found.name).branch(found.branch)
    if not plan.overwrite():
        write.append()
    elif fixed:
        write.overwrite(_partition(fixed))
    else:
        write.overwrite_partitions()
    return True


def _insert_query(text: str, *, has_columns: bool) -> str:
    """Return the query that gives the rows, with the CTEs that stand before INSERT."""
    cursor = Cursor(text)
    start = cursor.at
    before = cursor.until("INSERT")
    end = start + len(before)
    cursor.expect("INSERT")
    cursor.accept("OVERWRITE") or cursor.expect("INTO")
    cursor.accept("TABLE")
    cursor.name()
    if cursor.accept("PARTITION"):
        cursor.bracket()
    cursor.accept("IF", "NOT", "EXISTS")
    if not cursor.accept("BY", "NAME") and has_columns:
        cursor.bracket()
    return f"{text[:end]} {cursor.rest()}"


def _placed(
    rows: DataFrame,
    table: Table,
    given: Sequence[str],
    fixed: Mapping[str, str | None],
    *,
    by_name: bool,
    name: str,
) -> DataFrame:
    """Return the rows with the table's names for their columns."""
    schema = table.schema
    if not by_name:
        own = [field.name for field in schema.fields]
        wanted = [own_name(schema, each) for each in given] or own
        wanted = [each for each in wanted if each not in fixed]
        unknown = [each for each in wanted if each not in own]
        if unknown:
            raise InvalidInput(f"{name} has no column {unknown[0]!r}; there are: {', '.join(own)}")
        if len(wanted) != len(rows.columns):
            raise InvalidInput(
                f"{name} takes {len(wanted)} columns ({', '.join(wanted)}), but the rows have "
                f"{len(rows.columns)}: name the columns, as in INSERT INTO {name} (…)"
            )
        rows = rows.toDF(*wanted)
    for column, value in fixed.items():
        type = spark_type(schema.find_field(column).field_type, column=column)
        rows = rows.withColumn(column, f.lit(value).cast(type))
    return rows


def _partition(fixed: Mapping[str, str | None]) -> BooleanExpression:
    found: BooleanExpression = AlwaysTrue()
    for name, value in fixed.items():
        one: Any = IsNull(name) if value is None else EqualTo(name, value)
        found = found & one
    return found


def _replace_where(lake: Lake, plan: Any, text: str) -> bool:
    """INSERT INTO t REPLACE WHERE …."""
    found, parts, _ = target_of(lake, plan.table())
    if found is None:
        return False
    cursor = Cursor(text)
    before = cursor.until("INSERT")
    cursor.expect("INSERT", "INTO")
    cursor.accept("TABLE")
    cursor.name()
    cursor.expect("REPLACE", "WHERE")
    where = cursor.until(*_QUERY)
    rows = select(lake, f"{before} {cursor.rest()}")
    table = lake.handle(found.name)
    rows = _placed(rows, table, (), {}, by_name=False, name=".".join(parts))
    lake.write(rows, found.name).branch(found.branch).overwrite(where)
    return True


# --- DELETE and UPDATE ---------------------------------------------------------------------------


def _delete(lake: Lake, plan: Any, text: str) -> bool:
    found, parts, alias = target_of(lake, plan.table())
    if found is None:
        return False
    cursor = Cursor(text)
    cursor.until("WHERE", ";")
    condition = cursor.until(";") if cursor.accept("WHERE") else None
    if condition is not None:
        condition = _of_table(condition, parts, alias, "DELETE")
    lake.delete(found.name, condition, branch=found.branch)
    return True


def _update(lake: Lake, plan: Any, text: str) -> bool:
    found, parts, alias = target_of(lake, plan.table())
    if found is None:
        return False
    cursor = Cursor(text)
    cursor.until("SET")
    cursor.expect("SET")
    pairs_given = [_assignment(each) for each in cursor.listed("WHERE", ";")]
    condition = cursor.until(";") if cursor.accept("WHERE") else None
    table = lake.handle(found.name)
    values: dict[str, str | Column] = {}
    for path, value in pairs_given:
        own = own_path(table.schema, unqualified(path, parts, alias, table))
        assign(values, own, _of_table(value, parts, alias, "UPDATE"), table)
    if condition is not None:
        condition = _of_table(condition, parts, alias, "UPDATE")
    with plainly():
        lake.update(found.name, values, condition, branch=found.branch)
    return True


def _assignment(text: str) -> tuple[list[str], str]:
    cursor = Cursor(text)
    path = cursor.name()
    cursor.accept("=") or cursor.expect("=")
    cursor.accept("=")
    return path, cursor.rest()


def unqualified(
    path: Sequence[str], parts: Sequence[str], alias: str | None, table: Table
) -> Sequence[str]:
    """Return a column's path without the table's name or alias before it."""
    own = {field.name.lower() for field in table.schema.fields}
    for before in ([alias] if alias else [parts[-1]], [*parts]):
        if len(path) > len(before) and [p.lower() for p in path[: len(before)]] == [
            b.lower() for b in before
        ]:
            rest = path[len(before) :]
            if path[0].lower() not in own or rest[0].lower() in own:
                return rest
    return path


def assign(values: dict[str, str | Column], path: Sequence[str], value: str, table: Table) -> None:
    """Note what a column, or a field within one, is set to."""
    name = path[0]
    new: str | Column = value
    if value.strip().upper() == "DEFAULT":
        if len(path) > 1:
            raise Unsupported(f"{'.'.join(path)} = DEFAULT: only whole columns have one")
        new = default(table.schema.find_field(name))
    if len(path) > 1:
        held = values.get(name, f.col(quoted(name)))
        held = f.expr(held) if isinstance(held, str) else held
        new = held.withField(".".join(quoted(part) for part in path[1:]), f.expr(value))
    elif name in values:
        raise InvalidInput(f"column {name!r} is set twice")
    values[name] = new


def _of_table(text: str, parts: Sequence[str], alias: str | None, verb: str) -> str:
    """Return an expression on a table's columns, without its name or alias before them."""
    found = tokens(text)
    if any(token.says("SELECT") for token in found):
        raise Unsupported(
            f"{verb} with a subquery: use MERGE INTO, which joins, or find the values first"
        )
    names = [[alias]] if alias is not None else [[parts[-1]], [*parts]]
    for name in sorted(names, key=len, reverse=True):
        wanted = [word for part in name for word in (part.lower(), ".")]
        for at in reversed(range(len(found) - len(wanted))):
            run = found[at : at + len(wanted)]
            behind_dot = at > 0 and found[at - 1].text == "."
            if not behind_dot and [token.name.lower() for token in run] == wanted:
                text = text[: run[0].start] + text[run[-1].stop :]
        found = tokens(text)
    return text


def _merge(lake: Lake, plan: Any, text: str) -> bool:
    found, parts, alias = target_of(lake, plan.targetTable())
    if found is None:
        return False
    merge(lake, found, parts, alias, plan, text)
    return True


_STATEMENTS: Final[Mapping[str, Callable[[Any, Any, str], bool]]] = {
    "InsertIntoStatement": _insert,
    "OverwriteByExpression": _replace_where,
    "DeleteFromTable": _delete,
    "UpdateTable": _update,
    "MergeIntoTable": _merge,
}
