"""Answers that are given again: a request repeated under its key is carried out once."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
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
#: How many keys are remembered, and how many bytes of answers: those go first of who has the most.
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
    """What was answered under each key, of late.

    Whoever has many answers kept loses its own: what others are told again does not depend on it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        #: By client and key, the oldest first; and the bytes of answers, by client.
        self._kept: dict[str, dict[str, _Kept]] = {}
        self._sizes_bytes: Counter[str] = Counter()

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
                self._keep(who, mine, answer)
            return answer
        finally:
            if mine.answer is None:
                self._forget(who, key, mine)

    def _take(self, who: str, key: str, mine: _Kept) -> _Kept:
        """Return what is kept under a key, which is now this request's where nothing was."""
        with self._lock:
            self._make_room(oldest_s=mine.at_s - LIFETIME_S)
            return self._kept.setdefault(who, {}).setdefault(key.lower(), mine)

    def _keep(self, who: str, mine: _Kept, answer: Answer) -> None:
        size_bytes = len(answer.body())
        with self._lock:
            mine.answer, mine.size_bytes = answer, size_bytes
            self._sizes_bytes[who] += size_bytes

    def _make_room(self, *, oldest_s: float) -> None:
        """Forget answers that are too old, or too many; what is in the works stays, and keeps none."""
        for who in [*self._kept]:
            while (oldest := self._oldest(who)) and self._kept[who][oldest].at_s < oldest_s:
                self._drop(who, oldest)
        while (most := self._most()) and (oldest := self._oldest(most)):
            self._drop(most, oldest)

    def _most(self) -> str | None:
        """Return the client that has the most, of those with answers, where all is too much."""
        counts = Counter({who: len(kept) for who, kept in self._kept.items() if self._oldest(who)})
        if self._sizes_bytes.total() > _MOST_BYTES:
            return max(counts, key=lambda who: self._sizes_bytes[who], default=None)
        is_full = sum(map(len, self._kept.values())) >= _MOST
        return max(counts, key=lambda who: counts[who], default=None) if is_full else None

    def _oldest(self, who: str) -> str | None:
        """Return the key of a client's oldest answer."""
        kept = self._kept.get(who, {}).items()
        return next((key for key, each in kept if each.answer is not None), None)

    def _forget(self, who: str, key: str, mine: _Kept) -> None:
        with self._lock:
            if self._kept.get(who, {}).get(key.lower()) is mine:
                self._drop(who, key.lower())

    def _drop(self, who: str, key: str) -> None:
        """Forget a key, and a client that has no other."""
        self._sizes_bytes[who] -= self._kept[who].pop(key).size_bytes
        if not self._kept[who]:
            del self._kept[who], self._sizes_bytes[who]


def _digest(request: Request) -> bytes:
    told = f"{request.method} {request.path} {sorted(request.query.items())}\n".encode()
    return hashlib.sha256(told + request.body).digest()
