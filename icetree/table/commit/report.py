"""What a commit cost, phase by phase."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from icetree.spec.spelled import spelled
from icetree.surroundings import elapsed_s

P = ParamSpec("P")
R = TypeVar("R")


@spelled
@dataclass(slots=True, kw_only=True)
class Report:
    """What a commit cost, phase by phase."""

    attempts: int = 0
    #: Milliseconds spent in validate, grow, encode, store, swap and wait; none counted twice.
    phases_ms: dict[str, float] = field(default_factory=dict)
    files: int = 0
    size_bytes: int = 0
    _inner_ms: float = field(default=0.0, repr=False)

    def __repr__(self) -> str:
        spent = sum(self.phases_ms.values())
        return f"Report(attempts={self.attempts}, files={self.files}, {spent:,.0f} ms)"

    @property
    def retries(self) -> int:
        """How often another commit came first."""
        return max(0, self.attempts - 1)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Time a phase; what a phase inside it takes is that one's alone."""
        start, outer = elapsed_s(), self._inner_ms
        self._inner_ms = 0.0
        try:
            yield
        finally:
            spent = (elapsed_s() - start) * 1000
            own = spent - self._inner_ms
            self.phases_ms[name] = self.phases_ms.get(name, 0.0) + own
            self._inner_ms = outer + spent

    def timed(self, name: str, run: Callable[P, R]) -> Callable[P, R]:
        """Return the function as a phase of its own."""

        def timed(*args: P.args, **kwargs: P.kwargs) -> R:
            with self.phase(name):
                return run(*args, **kwargs)

        return timed
