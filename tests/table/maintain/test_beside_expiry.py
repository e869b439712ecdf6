"""Every verb of maintenance, and an expiry by another at every request that it makes to the store.

What goes then goes by rights: nobody may call it lost, nor fail for it where there is a newest state
to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final, TypeVar

import pytest

from icetree.errors import CommitConflict
from icetree.files.cache import Cache
from icetree.store.base import Store
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.store.wrapped import Request, WrappedStore
from tests.table.changing import some
from tests.table.maintain.old_tables import lake_of, old_table

T = TypeVar("T")

#: So many of a verb's requests are tried in the usual run.
_TRIED: Final = 2

VERBS: Final[Mapping[str, Callable[[Lake], Any]]] = MappingProxyType(
    {
        "table statistics": lambda lake: _maintained(lake).compute_table_stats(columns=["id"]),
        "partition statistics": lambda lake: _maintained(lake).compute_partition_stats(),
        "expire": lambda lake: _maintained(lake).expire_snapshots(
            older_than="2100-01-01", retain_last=2
        ),
        "orphans": lambda lake: _maintained(lake).remove_orphan_files(
            older_than="2100-01-01", force=True, dry_run=True
        ),
        "data files": lambda lake: _maintained(lake).rewrite_data_files(
            options={"rewrite-all": True}
        ),
        "deletes": lambda lake: _maintained(lake).rewrite_position_delete_files(
            rewrite_equality_deletes=True
        ),
        "manifests": lambda lake: _maintained(lake).rewrite_manifests(by="id"),
        "optimize": lambda lake: _maintained(lake).optimize(),
        "verify": lambda lake: _clean(lake.table("db.rows").verify(deep=True)),
        "repair": lambda lake: _idle(lake.table("db.rows").repair(dry_run=False)),
        "backup": lambda lake: lake.backup_table("db.rows", "memory://safe/rows"),
        "copy": lambda lake: lake.copy_table("db.rows", "db.copy"),
        "share": lambda lake: lake.copy_table("db.rows", "db.share", metadata_only=True),
    }
)


def _maintained(lake: Lake) -> Any:
    return lake.table("db.rows").maintenance


def _clean(report: Any) -> None:
    assert report.is_clean, str(report)


def _idle(repaired: Any) -> None:
    assert not repaired.actions
    assert not repaired.left


class _Overtaken(WrappedStore):
    """A store on which somebody else does something before the request of a number."""

    def __init__(self, store: Store, at: int, do: Callable[[], object]) -> None:
        super().__init__(store)
        self.requests = 0
        self._at = at
        self._do = do

    def _pass(self, request: Request, effect: Callable[[], T]) -> T:  # noqa: ARG002  # any of them
        self.requests += 1
        if self.requests == self._at:
            self._do()
        return effect()


def _partitioned() -> Table:
    table = old_table()
    with table.edit_spec() as spec:
        spec.add("bucket(2, id)")
    return table


def _overtaken(verb: str, at: int) -> int:
    """Carry out a verb that is overtaken at a request; return how many it made."""
    table = _partitioned()

    def expire() -> None:
        table.append(some((9_000, "late")))
        table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=1)

    store = _Overtaken(table.files.store, at, expire)
    lake = Lake(catalog=table.catalog, store=store, warehouse="memory://lake", cache=Cache(0))
    # What a verb names may be what went: then nothing of it has happened.
    with suppress(CommitConflict):
        VERBS[verb](lake)
    fresh = lake_of(table).table("db.rows")
    assert fresh.verify(deep=True).is_clean
    rows = fresh.scan().to_arrow().num_rows
    assert rows == old_table().scan().to_arrow().num_rows + (at > 0 and store.requests >= at)
    return store.requests


@pytest.mark.law
@pytest.mark.parametrize("verb", VERBS)
def test_what_expires_at_any_moment_is_nothing_to_fail_for(verb: str) -> None:
    count = _overtaken(verb, 0)
    step = max(1, count // (_TRIED * EFFORT))
    for at in range(1, count + 1, step):
        _overtaken(verb, at)
