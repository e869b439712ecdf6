"""A store and a catalog that end with the process at some step, and what is asked of them till then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from icetree.catalog.base import Catalog
from icetree.store.base import Store
from tests.store.wrapped import Request, WrappedStore


class Killed(SystemExit):
    """The process is gone: no `except` of ours may catch it."""


class Steps:
    """Counts what is asked of store and catalog; at one step the process is gone, and stays so."""

    def __init__(self, die_at: int | None = None, *, after: bool = False) -> None:
        self.count, self._die_at, self._after = 0, die_at, after
        self._dead = False

    @property
    def is_over(self) -> bool:
        """Whether the process is gone."""
        return self._dead

    def take(self, do: Callable[[], Any]) -> Any:
        if self._dead:
            raise Killed
        number, self.count = self.count, self.count + 1
        if number != self._die_at:
            return do()
        self._dead = True
        if self._after:
            do()
        raise Killed


class DyingStore(WrappedStore):
    def __init__(self, inner: Store, steps: Steps) -> None:
        super().__init__(inner)
        self._steps = steps

    def _pass(self, request: Request, effect: Callable[[], Any]) -> Any:
        del request
        return self._steps.take(effect)

    def write_many(self, files: Any) -> None:
        for location, content in files:
            self.write_new(location, content)


class DyingCatalog:
    """A catalog whose every answer is a step."""

    def __init__(self, inner: Catalog, steps: Steps) -> None:
        self._inner, self._steps = inner, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found) or name in ("turn", "turn_taken"):
            return found
        return lambda *args, **how: self._steps.take(lambda: found(*args, **how))
