"""Answers that are given again: a request repeated under its key is carried out once."""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Final

from icetree.errors import InvalidInput
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import Answer, Request
from icetree.surroundings import elapsed_s

HEADER: Final = "idempotency-key"
#: How long a key is remembered, and how that is written.
LIFETIME_S: Final = 1_800
LIFETIME: Final = "PT30M"
#: How many keys are remembered, and how many bytes of answers: the oldest go first.
_MOST: Final = 10_000
_MOST_BYTES: Final = 128 << 20
_KEY: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(slots=True)
class _Kept:
    """A request under its key: in the works, or answered."""

    asked: bytes
    at_s: float
    #: None while it is in the works.
    answer: Answer | None = None
    size_bytes: int = 0


class Answered:
    """What was answered under each key, of late."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._size_bytes = 0

    def once(self, who: str, request: Request, carry_out: Callable[[], Answer]) -> Answer:
        """Return the answer to a request, carried out now or before under the same key.

        One that is in the works is not waited for: copies of it would take every thread there is.
        Its client comes back. Where the server failed, the next try is carried out.
        """
        key = request.headers.get(HEADER)
        if key is None or request.method not in ("POST", "DELETE"):
            return carry_out()
        if not _KEY.fullmatch(key):
            raise InvalidInput("Idempotency-Key is no UUID")
        asked = _digest(request)
        mine = _Kept(asked=asked, at_s=elapsed_s())
        kept = self._take(who, key, mine)
        if kept is not mine:
            if kept.asked != asked:
                raise InvalidInput("Idempotency-Key was given with another request: take a new one")
            if kept.answer is None:
                raise Refused(
                    503,
                    "ServiceUnavailableException",
                    "a request with this Idempotency-Key is in the works: ask again",
                )
            return kept.answer
        try:
            answer = carry_out()
            if answer.status < 500:
                self._keep(mine, answer)
            return answer
        finally:
            if mine.answer is None:
                self._forget(who, key, mine)

    def _take(self, who: str, key: str, mine: _Kept) -> _Kept:
        """Return what is kept under a key, which is now this request's where nothing was."""
        with self._lock:
            self._make_room(oldest_s=mine.at_s - LIFETIME_S)
            return self._kept.setdefault((who, key.lower()), mine)

    def _keep(self, mine: _Kept, answer: Answer) -> None:
        size_bytes = len(answer.body())
        with self._lock:
            mine.answer, mine.size_bytes = answer, size_bytes
            self._size_bytes += size_bytes

    def _make_room(self, *, oldest_s: float) -> None:
        """Forget the oldest answers; what is in the works stays, and keeps none of them."""
        for key, kept in [*self._kept.items()] if self._is_full(oldest_s) else ():
            if kept.answer is not None:
                self._size_bytes -= kept.size_bytes
                del self._kept[key]
                if not self._is_full(oldest_s):
                    return

    def _is_full(self, oldest_s: float) -> bool:
        oldest = next((each for each in self._kept.values() if each.answer is not None), None)
        return oldest is not None and (
            oldest.at_s < oldest_s or len(self._kept) >= _MOST or self._size_bytes > _MOST_BYTES
        )

    def _forget(self, who: str, key: str, mine: _Kept) -> None:
        with self._lock:
            if self._kept.get((who, key.lower())) is mine:
                del self._kept[who, key.lower()]


def _digest(request: Request) -> bytes:
    told = f"{request.method} {request.path} {sorted(request.query.items())}\n".encode()
    return hashlib.sha256(told + request.body).digest()
