"""JSON bodies as typed values: what does not fit is refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from icetree.codec.json_text import values_in
from icetree.errors import InvalidInput

T = TypeVar("T")

#: How many values a body may have: one takes up to a hundred bytes once it is read, and as few as three as JSON.
_MOST_VALUES: Final = 2_000_000


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A JSON object of a request: fields that are not known are ignored, as the protocol asks."""


def reads(kind: type[T]) -> Callable[[bytes], T]:
    """Return what reads a body of a kind.

    Made when a module is imported: msgspec works a type out at its first use, which must not happen
    in two threads at once.
    """
    decoder = msgspec.json.Decoder(kind)

    def read(body: bytes) -> T:
        require_few(body)
        try:
            found: T = decoder.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the body cannot be read: {error}") from None
        return found

    return read


def require_few(body: bytes) -> None:
    """Refuse JSON that would take many times its size once it is read; InvalidInput."""
    if len(body) > _MOST_VALUES < values_in(body):
        raise InvalidInput(f"the body cannot be read: more than {_MOST_VALUES:,} values are in it")
