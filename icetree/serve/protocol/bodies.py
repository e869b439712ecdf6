"""JSON bodies as typed values: what does not fit is refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from icetree.errors import InvalidInput

T = TypeVar("T")


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """A JSON object of a request: fields that are not known are ignored, as the protocol asks."""


def reads(kind: type[T]) -> Callable[[bytes], T]:
    """Return what reads a body of a kind.

    Made when a module is imported: msgspec works a type out at its first use, which must not happen
    in two threads at once.
    """
    decoder = msgspec.json.Decoder(kind)

    def read(body: bytes) -> T:
        try:
            found: T = decoder.decode(body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise InvalidInput(f"the body cannot be read: {error}") from None
        return found

    return read
