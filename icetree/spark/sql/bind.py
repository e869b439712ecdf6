"""The tables of the lake that a query names, and its text with views in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from icetree.errors import InvalidInput
from icetree.spark.cache import Held
from icetree.spark.complaints import plainly
from icetree.spark.names import quoted
from icetree.spark.read.scan import dataframe
from icetree.spark.sql.apart import Calling, Mention, Name, callings
from icetree.spark.sql.moments import milliseconds
from icetree.spark.sql.names import TableRef
from icetree.spark.sql.pipes import Way, way_out
from icetree.spark.sql.scope import Scope
from icetree.spark.sql.views.lasting import LastingView, lasting_view, refuse_unknown
from icetree.spark.sql.views.temporary import TemporaryView, temporary_view, view_of
from icetree.spark.tokens import Edit, edited, origin, tokens
from icetree.spark.trees import Named, Span, Star, named_tables, parse
from icetree.spark.types import is_known
from icetree.spark.wap import branch_to_read
from icetree.surroundings import random_bits
from icetree.table.point import Point, time_of
from icetree.table.scan.scan import Scan
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_PREFIX: Final = "__icetree_"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundTable:
    """A table that a query names, and the view that stands for it."""

    named: Named
    ref: TableRef
    view: str
    #: Its handle, and the version to read; none for a metadata table.
    table: Table | None = None
    at: Point | None = None
    #: Metadata columns that it shows, which `*` leaves out.
    hidden: tuple[str, ...] = ()
    #: What to read; none for a metadata table.
    scan: Callable[[BooleanExpression], Scan] | None = None
    #: Its rows, where they are kept.
    kept: DataFrame | None = None

    @property
    def mention(self) -> Mention:
        """What its columns may call it."""
        part = self.named.parts[-1:] if self.ref.ref or self.ref.metadata else ()
        full = (*self.ref.name.split("."), *part)
        return Mention(named=self.named, called=(full, self.named.parts))

    def can_show(self, name: str) -> bool:
        """Tell whether it has a metadata column of the name, and does not show it."""
        if self.table is None or name in self.hidden:
            return False
        own = self.table.scan(at=self.at).schema.fields
        return all(field.name.lower() != name for field in own)

    def showing(self, name: str) -> BoundTable:
        """Return it with one more metadata column."""
        assert self.table is not None
        hidden = (*self.hidden, name)
        scan = _scan(self.table, self.at, hidden)
        # What is kept has the table's own columns alone.
        return replace(self, hidden=hidden, scan=scan, kept=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundView:
    """A view that a query names, and a temporary one that stands for it as it is now."""

    named: Named
    saved: TemporaryView | LastingView
    view: str
    #: What its own query names.
    within: tuple[Bound, ...] = ()
    #: What is kept of it, where its rows are to be.
    held: Held | None = None

    @property
    def mention(self) -> Mention:
        """What its columns may call it."""
        own = [tuple(self.saved.name.split("."))] if isinstance(self.saved, LastingView) else []
        return Mention(named=self.named, called=(*own, self.named.parts))


Bound: TypeAlias = BoundTable | BoundView


def tables_of(bound: Iterable[Bound]) -> Iterator[BoundTable]:
    """Yield the tables, those of views among them."""
    for each in bound:
        if isinstance(each, BoundView):
            yield from tables_of(each.within)
        else:
            yield each


def texts_of(text: str, bound: Iterable[Bound]) -> Iterator[str]:
    """Yield a query's text, and those of the views that it reads."""
    yield text
    for each in bound:
        if isinstance(each, BoundView):
            yield from texts_of(each.saved.text, each.within)


def called(bound: Iterable[Bound]) -> dict[str, str]:
    """Return what the user calls the views that stand for tables, by their names."""
    found = {}
    for each in bound:
        found[each.view] = ".".join(each.named.parts)
        if isinstance(each, BoundView):
            found |= called(each.within)
    return found


def bind(lake: SparkLake, text: str, plan: Any, scope: Scope | None = None) -> list[Bound]:
    """Return the tables of the lake, and views over some, that a query names.

    Without a scope, names are looked for in the namespace in use. No table shows metadata columns yet.
    """
    scope = Scope(namespace=lake.namespace) if scope is None else scope
    found = (_bound(lake, named, scope) for named in named_tables(plan, text))
    return [each for each in found if each is not None]


def _bound(lake: SparkLake, named: Named, scope: Scope) -> Bound | None:
    temporary = temporary_view(lake.spark, named.parts)
    if temporary is not None and not scope.is_lasting:
        saved = view_of(lake, temporary)
        return None if saved is None else _bound_view(lake, saved, named, scope)
    ref = scope.table(lake, named.parts)
    if ref is not None:
        return _bound_table(lake, ref, named)
    view = scope.view(lake, named.parts)
    if view is not None:
        return _bound_view(lake, lasting_view(lake, lake.view(view), scope), named, scope)
    if scope.is_lasting and (temporary is not None or len(named.parts) == 1):
        refuse_unknown(scope.path[-1], named.parts, scope)
    return None


def rewrite(text: str, bound: Sequence[Bound]) -> str:
    """Return the text of a query with views in place of tables."""
    return edited(text, _edits(text, bound))


def place_of(text: str, bound: Sequence[Bound], place: int) -> int:
    """Return where in the text of a query something stands that `rewrite` has at a place."""
    return origin(_edits(text, bound), place)


def _edits(text: str, bound: Sequence[Bound]) -> list[Edit]:
    edits: list[Edit] = []
    known = callings(text, [each.mention for each in bound])
    for each in bound:
        span, alias_at = each.named.span, each.named.alias_at
        edits.append((span.start, span.stop, each.view))
        if alias_at is not None and not _is_table_statement(text, span.start):
            # A view has no namespace.
            calling = known[each.mention.key]
            edits += [(alias_at, alias_at, f" AS {quoted(calling.alias)}"), *calling.edits]
    shown = list(_shown(text, bound, known))
    for star in dict.fromkeys(star for each in bound for star in each.named.stars):
        beside = [each.called for each in shown if each.is_for(star)]
        if beside:
            edits.append((star.at, star.at, star.without(beside)))
    return edits + _drops(shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """A metadata column that a table shows."""

    named: Named
    name: str
    #: What the query can call it.
    called: str
    #: Where it goes out of a pipe.
    way: Way | None

    def is_for(self, star: Star) -> bool:
        """Tell whether a `*` would stand for it."""
        return star in self.named.stars and (self.way is None or star.at <= self.way.at)


def _shown(text: str, bound: Sequence[Bound], known: Mapping[Name, Calling]) -> Iterator[_Shown]:
    for each in bound:
        if isinstance(each, BoundTable) and each.hidden:
            mention, named = each.mention, each.named
            alias = known[mention.key].alias if mention.is_bare else named.alias
            for name in each.hidden:
                way = way_out(text, named.span.start, name)
                yield _Shown(named=named, name=name, called=f"{quoted(alias)}.{name}", way=way)


def _drops(shown: Sequence[_Shown]) -> list[Edit]:
    """Return what has columns go out of pipes."""
    pipes = Counter((each.way.pipe, each.name) for each in shown if each.way is not None)
    for (_, name), tables in pipes.items():
        if tables > 1:
            raise InvalidInput(
                f"{name} is read of more than one table of a pipe, which could not drop it again: select it "
                f"first, under another name"
            )
    places: dict[int, list[str]] = {}
    for each in shown:
        if each.way is not None:
            places.setdefault(each.way.at, []).append(each.name)
    return [(at, at, f" |> DROP {', '.join(names)}") for at, names in places.items()]


def in_full(text: str, bound: Iterable[Bound]) -> str:
    """Return the text of a query in which tables of the lake have their full names."""
    edits = []
    for each in bound:
        if isinstance(each, BoundTable):
            part = [each.named.parts[-1]] if each.ref.ref or each.ref.metadata else []
            full = [*each.ref.name.split("."), *part]
        elif isinstance(each.saved, LastingView):
            full = each.saved.name.split(".")
        else:
            continue
        name = ".".join(map(quoted, full))
        edits.append((each.named.span.start, each.named.name_stop, name))
    return edited(text, edits)


def _is_table_statement(text: str, at: int) -> bool:
    """Tell whether this is `TABLE db.t`, which takes no alias."""
    before = tokens(text[:at])
    return bool(before) and before[-1].says("TABLE")


def within(edit: Edit, spans: Iterable[Span]) -> bool:
    """Tell whether an edit would change what stands for a table."""
    return any(span.start <= edit[0] < span.stop for span in spans)


# --- views -------------------------------------------------------------------------------------


def _bound_view(
    lake: SparkLake, saved: TemporaryView | LastingView, named: Named, scope: Scope
) -> BoundView:
    if named.version is not None or named.timestamp is not None:
        raise InvalidInput(f"{'.'.join(named.parts)} is a view: AS OF is for tables")
    view = f"{_PREFIX}{random_bits(128):032x}"
    if isinstance(saved, LastingView):
        inner = bind(lake, saved.text, saved.plan, saved.scope)
        return BoundView(named=named, saved=saved, view=view, within=tuple(inner))
    held = lake.cache.get(saved.mark) if lake.reads_cache else None
    if held is not None:
        return BoundView(named=named, saved=saved, view=view, held=held)
    inner = bind(lake, saved.text, parse(lake.spark, saved.text), scope.in_full())
    return BoundView(named=named, saved=saved, view=view, within=tuple(inner))


# --- tables ------------------------------------------------------------------------------------


def _bound_table(lake: SparkLake, ref: TableRef, named: Named) -> BoundTable:
    view = f"{_PREFIX}{random_bits(128):032x}"
    if ref.metadata is not None:
        return BoundTable(named=named, ref=ref, view=view)
    at = version_of(lake, ref, named)
    if at is None:
        at = branch_to_read(lake.spark, lake.table(ref.name))
    held = lake.cache.get(ref.name) if lake.reads_cache and at is None else None
    table = lake.table(ref.name) if held is None else _held_table(lake, ref.name, held)
    kept = None if held is None else held.rows
    scan = _scan(table, at)
    return BoundTable(named=named, ref=ref, view=view, table=table, at=at, scan=scan, kept=kept)


def _held_table(lake: SparkLake, name: str, held: Held) -> Table:
    """Return a table as its rows are kept; they are those of now, where nobody asked before.

    Rows of another table, which had the name before, are not kept on.
    """
    table = lake.table(name)
    if held.table is not None and held.table.metadata.table_uuid != table.metadata.table_uuid:
        held.let_go()
    if held.table is None:
        everything = _scan(table, None)
        held.keep(dataframe(lake.spark, everything(AlwaysTrue())), table)
    assert held.table is not None
    return held.table


def _scan(
    table: Table, at: Point | None, hidden: tuple[str, ...] = ()
) -> Callable[[BooleanExpression], Scan]:
    whole = table.scan(at=at)
    own = [field.name for field in whole.schema.fields if is_known(field)]
    columns = [*own, *hidden]
    # A column that Spark has no type for is not there, but the others are.
    simple = not hidden and len(own) == len(whole.schema.fields)

    def scan(where: BooleanExpression) -> Scan:
        return table.scan(where, columns=None if simple else columns, at=at)

    return scan


def version_of(lake: SparkLake, ref: TableRef, named: Named) -> Point | None:
    """Return which version of a table a query asks for, as a scan takes it."""
    asked = named.version if named.version is not None else named.timestamp
    if asked is not None and ref.ref is not None:
        raise InvalidInput(f"{'.'.join(named.parts)} names a version already: leave out AS OF")
    if named.version is not None:
        return named.version
    if named.timestamp is not None:
        return time_of(_moment(lake, named.timestamp))
    return ref.ref


def _moment(lake: SparkLake, text: str) -> int:
    with plainly():
        [[found]] = (
            lake.spark.sql(f"SELECT ({text}) AS at").select(milliseconds(f.col("at"))).collect()
        )
    if found is None:
        raise InvalidInput(f"TIMESTAMP AS OF {text}: that is no time")
    return int(found)
