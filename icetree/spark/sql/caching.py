"""CACHE, UNCACHE and REFRESH: rows that are kept at their version until somebody refreshes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel

from icetree.errors import InvalidInput
from icetree.spark.cache import Held
from icetree.spark.names import quoted
from icetree.spark.sql.names import find_lasting, find_table
from icetree.spark.sql.select import select, select_view
from icetree.spark.sql.views.temporary import find_view, renew_view, temporary_view
from icetree.spark.sql.views.temporary_statements import new_view
from icetree.spark.tokens import query_of
from icetree.spark.trees import Statements, pairs, seq

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_LEVELS: Final = {
    name: level for name, level in vars(StorageLevel).items() if isinstance(level, StorageLevel)
}


def refresh_view(lake: SparkLake, parts: Sequence[str]) -> None:
    """Let Spark itself read what a view finds now."""
    view = find_view(lake, parts)
    if view is not None:
        rows, _ = select_view(lake.moment(), view)
        renew_view(view, parts, rows)


def _key(lake: SparkLake, parts: Sequence[str]) -> str | None:
    """Return what a table or view is held under; None where it is not of the lake."""
    if temporary_view(lake.spark, parts) is not None:
        view = find_view(lake, parts)
        return None if view is None else view.mark
    found = find_table(lake, parts)
    if found is not None and (found.ref or found.metadata):
        name = ".".join(parts)
        raise InvalidInput(
            f"{name} is a part of table {found.name}: CACHE TABLE x AS SELECT * FROM {name} keeps it"
        )
    if found is None and (lasting := find_lasting(lake, parts)) is not None:
        raise InvalidInput(
            f"{lasting} is a view of the lake: CACHE TABLE x AS SELECT * FROM {lasting} keeps its rows"
        )
    return None if found is None else found.name


def _cache(lake: SparkLake, plan: Any, _: str) -> bool:
    parts = seq(plan.multipartIdentifier())
    key = _key(lake, parts)
    if key is None:
        return False
    if lake.cache.get(key) is None:
        _hold(lake, key, parts, plan)
    return True


def _cache_as(lake: SparkLake, plan: Any, text: str) -> bool:
    name = plan.tempViewName()
    if not new_view(lake.moment(), name, query_of(text), replace=True):
        return False
    key = _key(lake, [name])
    assert key is not None
    _hold(lake, key, [name], plan)
    return True


def _hold(lake: SparkLake, key: str, parts: Sequence[str], plan: Any) -> None:
    """Keep rows from now on: they are of this moment, whenever they are read."""
    lake.cache.hold(key, Held(level=_level(plan), tables=frozenset({key})))
    try:
        rows = select(lake.moment(reads_cache=True), f"TABLE {'.'.join(map(quoted, parts))}")
        if not plan.isLazy():
            rows.count()
    except BaseException:
        lake.cache.release(key)
        raise


def _level(plan: Any) -> StorageLevel:
    given = {name.lower(): value for name, value in pairs(plan.options()).items()}
    name = given.get("storagelevel", "MEMORY_AND_DISK").upper()
    if name not in _LEVELS:
        raise InvalidInput(f"storageLevel {name!r} is none: use one of {', '.join(_LEVELS)}")
    return _LEVELS[name]


def _uncache(lake: SparkLake, plan: Any, _: str) -> bool:
    key = _key(lake, seq(plan.table().multipartIdentifier()))
    if key is None:
        return False
    lake.cache.release(key)
    return True


def _clear(lake: SparkLake, _: Any, __: str) -> bool:
    lake.cache.release_all()
    # Spark has some of its own to clear.
    return False


def _refresh(lake: SparkLake, plan: Any, _: str) -> bool:
    parts = seq(plan.child().multipartIdentifier())
    key = _key(lake, parts)
    if key is None:
        return False
    lake.cache.outdate(key)
    held = lake.cache.get(key)
    if held is not None:
        held.let_go()
    refresh_view(lake, parts)
    return True


STATEMENTS: Final[Statements] = {
    "CacheTable": _cache,
    "CacheTableAsSelect": _cache_as,
    "UncacheTable": _uncache,
    "ClearCacheCommand": _clear,
    "RefreshTable": _refresh,
}
