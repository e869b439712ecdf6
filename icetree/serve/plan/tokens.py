"""Plan tasks: a part of a plan as a text that says all of what is asked, so that none is forgotten."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from typing import Final

import msgspec

from icetree.errors import InvalidInput
from icetree.serve.plan.asked import Asked
from icetree.serve.protocol.bodies import require_few
from icetree.serve.protocol.refusals import Refused

#: The longest filter and the like that a token may hold, once it is unpacked.
_MOST_BYTES: Final = 32 << 20
#: Characters of a token of which an answer has one alone.
_LONG: Final = 8 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Some of a plan's tasks."""

    asked: Asked
    tasks: range
    #: Whether who fetches it is told where the plan goes on.
    leads_on: bool = False


class _Packed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    asked: Asked
    start: int
    stop: int
    leads_on: bool = False


_decoder: Final = msgspec.json.Decoder(_Packed)


def tokens(asked: Asked, start: int, count: int, page: int) -> list[str]:
    """Return a token for each page of a plan of so many tasks, from one of them on.

    Where a token is long, for the filter in it, there is but one, which leads on to the next: an
    answer does not tell a filter many times over.
    """
    if start >= count:
        return []
    stop = min(start + page, count)
    first = _packed(_Packed(asked=asked, start=start, stop=stop))
    if len(first) > _LONG:
        return [_packed(_Packed(asked=asked, start=start, stop=stop, leads_on=True))]
    rest = (
        _Packed(asked=asked, start=at, stop=min(at + page, count))
        for at in range(stop, count, page)
    )
    return [first, *map(_packed, rest)]


def read_token(token: str) -> Part:
    """Return what a token stands for; one that was not made here stands for nothing."""
    try:
        unpacker = zlib.decompressobj()
        packed = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
        told = unpacker.decompress(packed, _MOST_BYTES)
        require_few(told)
        found = _decoder.decode(told)
        if not unpacker.eof or unpacker.unused_data:
            raise ValueError(token)
    except (ValueError, zlib.error, msgspec.DecodeError, RecursionError, InvalidInput):
        raise no_such_task("it was not made by this server") from None
    if not 0 <= found.start < found.stop:
        raise no_such_task("it was not made by this server")
    tasks = range(found.start, found.stop)
    return Part(asked=found.asked, tasks=tasks, leads_on=found.leads_on)


def no_such_task(why: str) -> Refused:
    """Return the refusal of a plan task."""
    return Refused(404, "NoSuchPlanTaskException", f"there is no such plan task: {why}; plan again")


def _packed(part: _Packed) -> str:
    return base64.urlsafe_b64encode(zlib.compress(msgspec.json.encode(part))).decode("ascii")
