"""What a keeper of keys does. Its keys never leave it: it wraps the keys of tables with them."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Keeper(Protocol):
    """Keys by id. Safe to share between threads; its text form shows no key.

    Every method raises InvalidInput, naming the id, where there is no such key or it does not fit,
    and Unavailable where trying later may help.
    """

    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Return a key as it may be stored: encrypted with the one of this id."""
        ...

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Return the key that `wrap` made this of, with whichever version of the one of this id."""
        ...


@runtime_checkable
class Versioned(Protocol):
    """What a keeper also does that tells the versions of a key apart."""

    def is_newest(self, wrapped: bytes, key_id: str) -> bool:
        """Tell whether the version that `wrap` takes now is the one that this was wrapped with."""
        ...
