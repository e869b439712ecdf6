"""Long lists in pages: a token says where the next begins, whatever came and went meanwhile."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Final

from icetree.errors import InvalidInput

#: What a client that pages and says no size is given at a time.
DEFAULT_SIZE: Final = 1_000


def page(names: Sequence[str], query: Mapping[str, str]) -> tuple[Sequence[str], str | None]:
    """Return a page of sorted names and the token of the next; all of them to who does not page."""
    if "pageToken" not in query and "pageSize" not in query:
        return names, None
    size = _size(query)
    after = _read(query.get("pageToken", ""))
    left = [each for each in names if after is None or each > after]
    if len(left) <= size:
        return left, None
    return left[:size], _written(left[size - 1])


def _size(query: Mapping[str, str]) -> int:
    given = query.get("pageSize", str(DEFAULT_SIZE))
    if not given.isascii() or not given.isdigit() or not int(given[:10]):
        raise InvalidInput(f"pageSize={given[:20]!r}: give a number above 0")
    return min(int(given[:10]), DEFAULT_SIZE)


def _written(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _read(token: str) -> str | None:
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode() if token else None
    except (binascii.Error, ValueError):
        raise InvalidInput("pageToken is none that this server gave") from None
