"""Names in statements: which table of the lake, at which version, or which part of its metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from icetree.catalog.base import parse_name
from icetree.errors import InvalidInput, NotFound
from icetree.spark.complaints import hinting, plainly
from icetree.spark.names import quoted
from icetree.spark.read.metadata_tables import KINDS
from icetree.spark.sql.views.temporary import temporary_view
from icetree.spark.trees import kind, seq
from icetree.table.commit.options import CommitOptions
from icetree.table.nearest import instead_of

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: The catalog that is Spark's own.
SESSION: Final = "spark_catalog"
_BRANCH: Final = "branch_"
_TAG: Final = "tag_"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRef:
    """A table of the lake, as a statement names it."""

    name: str
    #: The branch or tag of `db.t.branch_x` and `db.t.tag_x`.
    branch: str | None = None
    tag: str | None = None
    #: The metadata table of `db.t.snapshots` and its like.
    metadata: str | None = None

    @property
    def how(self) -> CommitOptions:
        """How to commit to it: to its branch, where one was named."""
        return {} if self.branch is None else {"branch": self.branch}

    @property
    def ref(self) -> str | None:
        """The branch or tag."""
        return self.branch or self.tag


def parts_of(lake: SparkLake, name: str) -> list[str]:
    """Return the parts of a name, in which backticks may stand."""
    parser = lake.spark._jsparkSession.sessionState().sqlParser()  # noqa: SLF001  # Spark's only door
    with plainly():
        return seq(parser.parseMultipartIdentifier(name))


def without_catalog(lake: SparkLake, name: str, catalogs: Collection[str]) -> str:
    """Return a table's name without that of its catalog, which may stand first as in Iceberg.

    What the lake has by all of the name, as a table or as the namespace of one, is meant as it is.
    """
    parts = parts_of(lake, name)
    if len(parts) < 3 or parts[0].lower() not in catalogs:
        return name
    if find_table(lake, parts) is not None or _is_namespace(lake, parts[:-1]):
        return name
    return ".".join(map(quoted, parts[1:]))


def _is_namespace(lake: SparkLake, parts: Sequence[str]) -> bool:
    try:
        lake.namespace_properties(".".join(parts))
    except NotFound:
        return False
    return True


def find_table(lake: SparkLake, parts: Sequence[str]) -> TableRef | None:
    """Return the table that a name stands for; None where the lake has none of that name."""
    return find_among(lake, _in_session(lake, parts))


def find_lasting(lake: SparkLake, parts: Sequence[str]) -> str | None:
    """Return the full name of the lake's view that a name stands for; None where it has none."""
    return find_view_among(lake, _in_session(lake, parts))


def find_among(lake: SparkLake, names: Iterable[Sequence[str]]) -> TableRef | None:
    """Return the table of the first of some full names that a table has."""
    return next(filter(None, (_find(lake, each) for each in names)), None)


def find_view_among(lake: SparkLake, names: Iterable[Sequence[str]]) -> str | None:
    """Return the first of some full names that a view of the lake has."""
    full = (".".join(each) for each in names if _can_be(each))
    return next(filter(lake.view_exists, full), None)


def _in_session(lake: SparkLake, parts: Sequence[str]) -> list[list[str]]:
    names = [list(parts)]
    if lake.namespace is not None:
        # As in Spark, a name of several parts is a full one first.
        names.insert(0 if len(parts) == 1 else 1, [*lake.namespace.split("."), *parts])
    return names


def writable(lake: SparkLake, parts: Sequence[str]) -> TableRef | None:
    """Return the table and branch to change; None where the lake has none of that name."""
    found = find_table(lake, parts)
    if found is not None and found.metadata is not None:
        raise InvalidInput(
            f"{'.'.join(parts)} is metadata of table {found.name}: it can only be read"
        )
    if found is not None and found.tag is not None:
        raise InvalidInput(f"{found.tag!r} is a tag of table {found.name}: write to a branch")
    if found is None and (view := find_lasting(lake, parts)) is not None:
        raise InvalidInput(f"{view} is a view: write to the tables that it reads")
    if found is not None:
        _require_no_view(lake, parts, found)
    return found


def target_of(lake: SparkLake, relation: Any) -> tuple[TableRef | None, list[str], str | None]:
    """Return the table that a statement changes, its name as given, and its alias."""
    alias = None
    if kind(relation) == "SubqueryAlias":
        alias = relation.identifier().name()
        relation = relation.child()
    parts = seq(relation.multipartIdentifier())
    return writable(lake, parts), parts, alias


def table_to_alter(lake: SparkLake, parts: Sequence[str]) -> str:
    """Return the full name of a table that is there, and that the session calls by this name."""
    name = known_table(lake, parts)
    _require_no_view(lake, parts, TableRef(name=name))
    return name


def _require_no_view(lake: SparkLake, parts: Sequence[str], found: TableRef) -> None:
    """Refuse a table whose name is a temporary view's: queries mean that, as in Spark."""
    if temporary_view(lake.spark, parts) is not None:
        raise InvalidInput(
            f"{'.'.join(parts)} is a temporary view, which hides table {found.name}: say {found.name}, or "
            "drop the view"
        )


def known_table(lake: SparkLake, parts: Sequence[str]) -> str:
    """Return the full name of a table that is there."""
    found = find_table(lake, parts)
    if found is None:
        if (view := find_lasting(lake, parts)) is not None:
            raise InvalidInput(f"{view} is a view, not a table: say VIEW")
        raise NotFound(f"there is no table {'.'.join(parts)}{_instead(lake, parts)}")
    if found.ref or found.metadata:
        raise InvalidInput(f"{'.'.join(parts)}: name the table itself, {found.name}")
    return found.name


def _instead(lake: SparkLake, parts: Sequence[str]) -> str:
    """Return a hint at the tables and views that there are."""
    if len(parts) > 2 and parts[0].lower() == SESSION:
        parts = parts[1:]
    full = parts if len(parts) > 1 or lake.namespace is None else [lake.namespace, *parts]
    try:
        return instead_of(parse_name(".".join(full)), lake.catalog, either=True)
    except InvalidInput:
        return ": SHOW TABLES IN a namespace lists those there are"


def naming_others(lake: SparkLake) -> AbstractContextManager[None]:
    """Have what Spark says of a table that is not there name what the lake has in its place."""
    return hinting(lambda name: _instead(lake, parts_of(lake, name)))


def new_table(lake: SparkLake, parts: Sequence[str]) -> str:
    """Return the full name for a table to be."""
    if len(parts) > 1:
        return ".".join(parts)
    if lake.namespace is None:
        raise InvalidInput(
            f"{parts[0]!r} names no namespace: write db.{parts[0]}, or choose one with USE db"
        )
    return f"{lake.namespace}.{parts[0]}"


def _find(lake: SparkLake, parts: Sequence[str]) -> TableRef | None:
    if len(parts) < 2:
        return None
    if _exists(lake, parts):
        return TableRef(name=".".join(parts))
    table, last = parts[:-1], parts[-1]
    if len(table) < 2 or not _exists(lake, table) or lake.view_exists(".".join(parts)):
        return None
    name = ".".join(table)
    if last.startswith(_BRANCH):
        return TableRef(name=name, branch=last[len(_BRANCH) :])
    if last.startswith(_TAG):
        return TableRef(name=name, tag=last[len(_TAG) :])
    if last.lower() in KINDS:
        return TableRef(name=name, metadata=last.lower())
    known = ", ".join(sorted(KINDS))
    raise NotFound(f"table {name} has no {last!r}: there are branch_…, tag_…, {known}")


def _exists(lake: SparkLake, parts: Sequence[str]) -> bool:
    return _can_be(parts) and lake.table_exists(".".join(parts))


def _can_be(parts: Sequence[str]) -> bool:
    """Tell whether these can be a full name."""
    return len(parts) > 1 and not any("." in part or not part for part in parts)
