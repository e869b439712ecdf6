"""What a server has done: counted for Prometheus, and told in the log, a line of JSON a request."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from icetree.serve.protocol.request import Answer, Request
from icetree.spec.texts import json_bytes
from icetree.visible import visible_json

log = logging.getLogger("icetree.access")

#: Upper ends of the histogram, in seconds.
_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)
#: A longer path is cut in the log.
_LONGEST: Final = 500
_KNOWN: Final = frozenset({"GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"})


@dataclass(slots=True)
class Watching:
    """Counts requests by route and status; threads may tell at the same time."""

    _lock: Lock = field(default_factory=Lock)
    _requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    _buckets: Counter[tuple[str, float]] = field(default_factory=Counter)
    _seconds: Counter[str] = field(default_factory=Counter)

    def tell(
        self, request: Request, answer: Answer, *, route: str, who: str, seconds: float
    ) -> None:
        """Take note of a request; of headers, queries and bodies nothing is kept."""
        method = request.method if request.method in _KNOWN else "other"
        with self._lock:
            self._requests[route, method, answer.status] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]
            for bound in _BUCKETS:
                if seconds <= bound:
                    self._buckets[route, bound] += 1
        if log.isEnabledFor(logging.INFO):
            told = {
                "method": method,
                "path": request.path[:_LONGEST],
                "status": answer.status,
                "ms": round(seconds * 1000, 1),
                "who": who,
                "peer": request.peer,
            }
            log.info("%s", visible_json(json_bytes(told).decode()))

    def text(self) -> str:
        """Return the counts in Prometheus's format."""
        with self._lock:
            return "".join(f"{line}\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        yield "# TYPE icetree_requests_total counter"
        for (route, method, status), count in sorted(self._requests.items()):
            labels = f'route="{route}",method="{method}",status="{status}"'
            yield f"icetree_requests_total{{{labels}}} {count}"
        yield "# TYPE icetree_request_seconds histogram"
        totals: Counter[str] = Counter()
        for (route, _, _), count in self._requests.items():
            totals[route] += count
        for route, count in sorted(totals.items()):
            for bound in _BUCKETS:
                within = self._buckets[route, bound]
                yield f'icetree_request_seconds_bucket{{route="{route}",le="{bound}"}} {within}'
            yield f'icetree_request_seconds_bucket{{route="{route}",le="+Inf"}} {count}'
            yield f'icetree_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'icetree_request_seconds_count{{route="{route}"}} {count}'
