"""Statements as Spark's own parser reads them, and the tables they name in their text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

from icetree.errors import Unsupported
from icetree.spark.complaints import plainly
from icetree.spark.jvm import java_of
from icetree.spark.tokens import Cursor
from icetree.spec.schema.metadata_columns import NAMES

#: What carries out each kind of statement, told the lake, the plan and the text; false where it is not
#: about the lake.
Statements: TypeAlias = Mapping[str, Callable[[Any, Any, str], bool]]

_COMMAND = "org.apache.spark.sql.catalyst.plans.logical.Command"
#: What may stand between a list of columns and the tables that they are of.
_TRANSPARENT = frozenset(
    {"Filter", "Generate", "Join", "LateralJoin", "Sample", "GlobalLimit", "LocalLimit"}
)
#: What has a list of columns.
_LISTS = frozenset({"Project", "Aggregate"})
#: Joins that show one side alone.
_ONE_SIDED = frozenset({"LeftSemi", "LeftAnti"})
_RELATIONS = frozenset({"UnresolvedRelation", "RelationTimeTravel"})
_STATEMENT = "org.apache.spark.sql.catalyst.plans.logical.ParsedStatement"


def parse(spark: SparkSession, text: str) -> Any:
    """Return the plan of a statement, unresolved; what is no SQL is `InvalidInput`."""
    session = spark._jsparkSession  # noqa: SLF001  # Spark has no other door
    with plainly():
        return session.sessionState().sqlParser().parsePlan(text)


def parse_query(spark: SparkSession, text: str) -> Any:
    """Return the plan of a query, unresolved; what is none, or does anything, is `InvalidInput`."""
    session = spark._jsparkSession  # noqa: SLF001  # Spark has no other door
    with plainly():
        return session.sessionState().sqlParser().parseQuery(text)


def analyzed(spark: SparkSession, text: str) -> Any:
    """Return the plan of a statement as Spark resolves its names, and carry out nothing."""
    plan = described(parse(spark, text))
    state = spark._jsparkSession.sessionState()  # noqa: SLF001  # Spark has no other door
    mode = getattr(state, "executePlan$default$2")()
    query = state.executePlan(plan, mode)
    query.assertAnalyzed()
    return query.analyzed()


def described(plan: Any) -> Any:
    """Return the plan that a statement tells about, or else its own."""
    match kind(plan):
        case "ExplainCommand":
            return plan.logicalPlan()
        case "DescribeQueryCommand":
            return plan.plan()
    return plan


def substituted(spark: SparkSession, text: str) -> str:
    """Return a statement with the session's variables in place of `${…}`, as Spark reads it."""
    if "${" not in text:
        return text
    java = java_of(spark)
    found: str = java.org.apache.spark.sql.internal.VariableSubstitution().substitute(text)
    return found


def kind(node: Any) -> str:
    """Return what a node is, such as `Filter`."""
    name: str = node.getClass().getSimpleName()
    return name.rstrip("$")


def carry_out(statements: Statements, lake: Any, plan: Any, text: str) -> bool:
    """Carry out a statement; false where it is none of these, or is not about the lake."""
    run = statements.get(kind(plan))
    return run is not None and run(lake, plan, text)


def seq(found: Any) -> list[Any]:
    """Return the members of a Scala sequence."""
    return [found.apply(at) for at in range(found.size())]


def option(found: Any) -> Any:
    """Return what a Scala option holds, or None."""
    return found.get() if found.isDefined() else None


def pairs(found: Any) -> dict[Any, Any]:
    """Return a Scala map."""
    members = found.toSeq()
    return {each._1(): each._2() for each in seq(members)}  # noqa: SLF001  # Scala's own names


def walk(node: Any) -> Iterator[Any]:
    """Yield a node and all that is below it."""
    yield node
    for child in seq(node.children()):
        yield from walk(child)


def as_column(spark: SparkSession, expression: Any) -> Column:
    """Return an expression of a plan as a column."""
    java = java_of(spark)
    return ClassicColumn(java.org.apache.spark.sql.classic.ExpressionUtils.column(expression))


def is_query(spark: SparkSession, plan: Any) -> bool:
    """Tell whether a statement only reads."""
    load = java_of(spark).java.lang.Class.forName
    loader = plan.getClass().getClassLoader()
    return not any(
        load(name, True, loader).isInstance(each)
        for name in (_COMMAND, _STATEMENT)
        for each in (plan, *seq(plan.children()))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A stretch of the text; `stop` is behind it."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Star:
    """A `*` of a list of columns, and where it takes names of columns to leave out."""

    at: int
    #: Whether some stand before that place already, in an EXCEPT of its own.
    has_some: bool
    #: What it calls the table that it is of, in small letters; none for all.
    of: tuple[str, ...] | None

    def is_of(self, alias: str, parts: Sequence[str]) -> bool:
        """Tell whether it stands for columns of a table of this alias, or of these parts without one."""
        if self.of is None or self.of == (alias.lower(),):
            return True
        # A namespace that one of both leaves out says nothing.
        names = zip(reversed(self.of), (part.lower() for part in reversed(parts)), strict=False)
        return alias == parts[-1] and all(said == own for said, own in names)

    def without(self, names: Sequence[str]) -> str:
        """Return what to put there."""
        told = ", ".join(names)
        return f", {told}" if self.has_some else f" EXCEPT ({told})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A table that a query names in its text."""

    parts: tuple[str, ...]
    #: What stands for the table, with the version it asks for.
    span: Span
    #: Where its name ends, before the version.
    name_stop: int
    #: Where an alias goes, for a table that has none of its own.
    alias_at: int | None
    #: The name by which columns of it are called.
    alias: str
    #: Each `*` that stands for its columns, maybe for others too.
    stars: tuple[Star, ...] = ()
    #: `VERSION AS OF`, or the text after `TIMESTAMP AS OF`.
    version: str | None = None
    timestamp: str | None = None


def named_tables(plan: Any, text: str) -> list[Named]:
    """Return the tables that a query names, save those that are its own CTEs."""
    # What a `*` stands for matters only where something may be hidden from it.
    said = text.lower()
    starred = "*" in text and any(name in said for name in NAMES)
    return list(_named(plan, text, frozenset(), None, () if starred else None))


def _named(
    node: Any, text: str, scope: frozenset[str], above: Any, stars: Sequence[Star] | None
) -> Iterator[Named]:
    """Yield the tables below a node; `stars` are those above that may stand for columns of them."""
    none = None if stars is None else ()
    what = kind(node)
    if what in _RELATIONS:
        found = _table(node, what, text, above, stars or ())
        if found is not None and not (len(found.parts) == 1 and found.parts[0].lower() in scope):
            yield found
    if what == "UnresolvedWith":
        for each in seq(node.cteRelations()):
            name = each._1().lower()  # noqa: SLF001  # Scala's own name
            inner = scope | {name} if node.allowRecursion() else scope
            yield from _named(each._2(), text, inner, None, none)  # noqa: SLF001
            scope |= {name}
    if stars is not None:
        stars = _stars_below(node, what, text, stars)
    for at, child in enumerate(seq(node.children())):
        hides = at and what == "Join" and kind(node.joinType()) in _ONE_SIDED
        yield from _named(child, text, scope, node, none if hides else stars)
    for inner_plan in seq(node.subqueries()):
        yield from _named(inner_plan, text, scope, None, none)


def _stars_below(node: Any, what: str, text: str, above: Sequence[Star]) -> Sequence[Star]:
    """Return each `*` that may stand for columns of what is below a node."""
    if what == "SubqueryAlias":
        # What has an alias of its own shows no more than its own columns.
        return above if kind(node.child()) in _RELATIONS else ()
    if what in _TRANSPARENT:
        return [*above, *_stars(node, text)]
    return _stars(node, text) if what in _LISTS else ()


def _stars(node: Any, text: str) -> list[Star]:
    """Return each `*` in expressions of a node, but for those that only count rows."""
    found = []
    for each in (star for expression in seq(node.expressions()) for star in _unfolded(expression)):
        has_some = kind(each) == "UnresolvedStarExceptOrReplace"
        span = span_of(each)
        if span is not None and text[span.stop - 1] == (")" if has_some else "*"):
            of, at = option(each.target()), span.stop - has_some
            said = None if of is None else tuple(part.lower() for part in seq(of))
            found.append(Star(at=at, has_some=has_some, of=said))
    return found


def _unfolded(expression: Any) -> Iterator[Any]:
    """Yield each `*` in an expression."""
    what, children = kind(expression), seq(expression.children())
    if what in ("UnresolvedStar", "UnresolvedStarExceptOrReplace"):
        yield expression
    elif what == "UnresolvedFunction" and _counts_rows(expression, children):
        return
    for child in children:
        yield from _unfolded(child)


def _counts_rows(function: Any, arguments: Sequence[Any]) -> bool:
    """Tell whether this is `count(*)`."""
    every = [kind(each) == "UnresolvedStar" and not each.target().isDefined() for each in arguments]
    names = [each.lower() for each in seq(function.nameParts())]
    return names == ["count"] and every == [True] and not function.isDistinct()


def _table(node: Any, what: str, text: str, above: Any, stars: Sequence[Star]) -> Named | None:
    relation = node.relation() if what == "RelationTimeTravel" else node
    if kind(relation) != "UnresolvedRelation" or relation.isStreaming():
        return None
    span = span_of(relation)
    if span is None:
        return None
    name_stop = span.stop
    version = timestamp = None
    if what == "RelationTimeTravel":
        clause = span_of(node)
        assert clause is not None
        version = option(node.version())
        if version is None:
            said = text[clause.start : clause.stop]
            timestamp = said[said.upper().index("OF") + 2 :].strip()
        span = Span(start=span.start, stop=clause.stop)
    alias_at: int | None = span.stop
    parent = None if above is None else kind(above)
    parts = tuple(seq(relation.multipartIdentifier()))
    alias = parts[-1]
    if parent == "SubqueryAlias":
        alias_at, alias = None, above.identifier().name()
    else:
        alias_at = _after_sample(text, span.stop)
    _require_no_options(relation, ".".join(parts))
    return Named(
        parts=parts,
        span=span,
        name_stop=name_stop,
        alias_at=alias_at,
        alias=alias,
        stars=tuple(each for each in stars if each.is_of(alias, parts)),
        version=version,
        timestamp=timestamp,
    )


def _require_no_options(relation: Any, name: str) -> None:
    # Spark notes of a table that is to be changed what for.
    given = [each for each in relation.options().asCaseSensitiveMap() if not each.startswith("__")]
    if given:
        raise Unsupported(
            f"{name} WITH ({given[0]}): options are not for reading; VERSION AS OF, TIMESTAMP AS OF "
            "and branch_… choose a version"
        )


def _after_sample(text: str, stop: int) -> int:
    """Return where an alias goes: behind TABLESAMPLE, where that follows a table."""
    cursor = Cursor(text[stop:])
    if not cursor.accept("TABLESAMPLE"):
        return stop
    cursor.bracket()
    if cursor.accept("REPEATABLE"):
        cursor.bracket()
    return stop + cursor.passed


def span_of(node: Any) -> Span | None:
    """Return where a node stands in the text."""
    origin = node.origin()
    start, stop = option(origin.startIndex()), option(origin.stopIndex())
    return None if start is None or stop is None else Span(start=start, stop=stop + 1)
