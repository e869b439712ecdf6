"""A store and a catalog that fail at random, within the process."""

from __future__ import annotations

import random
from typing import Any

from icetree.catalog.base import Outcome, TableName, Unknown
from icetree.errors import Unavailable
from tests.store.wrapped import Request, WrappedStore


class FaultyStore(WrappedStore):
    """Loses a request or its answer, at random."""

    def __init__(self, store: Any, choose: random.Random, share: float) -> None:
        super().__init__(store)
        self._choose, self._share = choose, share

    def _pass(self, request: Request, effect: Any) -> Any:
        if self._choose.random() >= self._share:
            return effect()
        if self._choose.random() < 0.5:
            effect()
        raise Unavailable(f"{request.operation} {request.location}: a fault of the test")


class FaultyCatalog:
    """Refuses a swap, or loses its request or answer, at random; all else passes."""

    def __init__(self, catalog: Any, choose: random.Random, share: float) -> None:
        self._inner, self._choose, self._share = catalog, choose, share

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        if self._choose.random() >= self._share:
            outcome: Outcome = self._inner.swap(table, expected=expected, to=to)
            return outcome
        fault = self._choose.choice(["refused", "request lost", "answer lost"])
        if fault == "refused":
            raise Unavailable("a fault of the test")
        if fault == "answer lost":
            self._inner.swap(table, expected=expected, to=to)
        return Unknown(reason=fault)
