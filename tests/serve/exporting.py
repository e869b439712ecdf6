"""What is exported of a table that is served: counted as it is asked for, and looked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from typing_extensions import override

from icetree.codec.legacy.encode_list import read_listed
from icetree.spec.location import absolute
from icetree.store.memory import MemoryStore
from icetree.table.export.places import EXPORTS
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.store.wrapped import Request, WrappedStore

T = TypeVar("T")


class Asked(WrappedStore):
    """Counts what is asked of it, and has something happen before."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.counts: Counter[str] = Counter()
        self.before: Callable[[Request], object] = lambda _: None

    @override
    def _pass(self, request: Request, effect: Callable[[], T]) -> T:
        self.before(request)
        kind = "export" if EXPORTS in request.location else "other"
        self.counts[f"{request.operation} {kind}"] += 1
        return effect()


def missing(lake: Lake, shown: dict[str, Any]) -> list[int]:
    """Return the snapshots of which a manifest is not there, oldest first."""
    return [
        each["snapshot-id"]
        for each in shown["snapshots"]
        if not _is_whole(lake.store, each["manifest-list"])
    ]


def _is_whole(store: Any, at: str) -> bool:
    return store.exists(at) and all(
        store.size(each.location) == each.size_bytes
        for each in read_listed(store.read(at), file=at)
    )


def exports(table: Table) -> set[str]:
    place = absolute(EXPORTS, table.location)
    return {each.location for each in table.files.store.list(place)}
