"""Tokens that the server gives out: who it is and until when, signed with a key of this process."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

from icetree.surroundings import now_ms, random_bits

#: How long a token is good for.
LIFETIME_S: Final = 3_600
_KEY_BITS: Final = 256


class Tokens:
    """Gives tokens and knows its own; those of a server that was stopped are nobody's any more."""

    def __init__(self) -> None:
        self._key = random_bits(_KEY_BITS).to_bytes(_KEY_BITS // 8, "big")

    def give(self, name: str) -> str:
        """Return a token for a client."""
        told = f"{now_ms() // 1000 + LIFETIME_S} {name}".encode()
        return f"{_text(told)}.{_text(self._sign(told))}"

    def read(self, token: str) -> str | None:
        """Return the client that a token was given to, None where it is none, or too old."""
        told, dot, signature = token.partition(".")
        try:
            content, signed = _bytes(told), _bytes(signature)
        except (binascii.Error, ValueError):
            return None
        if not dot or not hmac.compare_digest(self._sign(content), signed):
            return None
        until, _, name = content.decode().partition(" ")
        return name if int(until) > now_ms() // 1000 else None

    def _sign(self, told: bytes) -> bytes:
        return hmac.new(self._key, told, hashlib.sha256).digest()


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    padded = text + "=" * (-len(text) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True)
