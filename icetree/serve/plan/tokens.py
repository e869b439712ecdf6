"""Plan tasks: a part of a plan as a text that says all of what is asked, so that none is forgotten."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Iterable
from typing import Final

import msgspec

from icetree.serve.plan.asked import Asked
from icetree.serve.refusals import Refused

#: The longest filter and the like that a token may hold, once it is unpacked.
_MOST_BYTES: Final = 32 << 20


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    asked: Asked
    #: The first of the plan's tasks that are meant, and the one after the last.
    start: int
    stop: int


_decoder: Final = msgspec.json.Decoder(_Part)


def tokens(asked: Asked, parts: Iterable[range]) -> list[str]:
    """Return a token for each of these parts of a plan's tasks."""
    return [_packed(_Part(asked=asked, start=part.start, stop=part.stop)) for part in parts]


def read_token(token: str) -> tuple[Asked, range]:
    """Return what a token stands for; one that was not made here stands for nothing."""
    try:
        unpacker = zlib.decompressobj()
        packed = base64.b64decode(token.encode("ascii"), altchars=b"-_", validate=True)
        part = _decoder.decode(unpacker.decompress(packed, _MOST_BYTES))
        if not unpacker.eof or unpacker.unused_data:
            raise ValueError(token)
    except (ValueError, zlib.error, binascii.Error, msgspec.DecodeError, RecursionError):
        raise no_such_task("it was not made by this server") from None
    if not 0 <= part.start < part.stop:
        raise no_such_task("it was not made by this server")
    return part.asked, range(part.start, part.stop)


def no_such_task(why: str) -> Refused:
    """Return the refusal of a plan task."""
    return Refused(404, "NoSuchPlanTaskException", f"there is no such plan task: {why}; plan again")


def _packed(part: _Part) -> str:
    return base64.urlsafe_b64encode(zlib.compress(msgspec.json.encode(part))).decode("ascii")
