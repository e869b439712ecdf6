"""Tokens that the server gives out: who it is and until when, signed with a key.

The key is given, or kept beside the file of grants: then tokens are good for every server that has it,
and for the one that is started next. Else it is drawn for this process.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from icetree.errors import InvalidInput, NotFound
from icetree.surroundings import now_ms, random_bits

#: How long a token is good for.
LIFETIME_S: Final = 3_600
#: The variable that holds a key, as a file of one does.
VARIABLE: Final = "ICETREE_TOKEN_KEY"
_KEY_BITS: Final = 256
#: How many letters a key is written with at least: fewer could be guessed.
_LETTERS: Final = 32


class Tokens:
    """Gives tokens and knows its own; without a key, nobody's once this process has ended.

    A token is bound to a proof of whom it is given to: where that is another one day, it is good no more.
    """

    def __init__(self, key: bytes | None = None) -> None:
        drawn = random_bits(_KEY_BITS).to_bytes(_KEY_BITS // 8, "big")
        self._key = drawn if key is None else key

    def give(self, name: str, proof: str = "") -> str:
        """Return a token for a client."""
        until = -(-now_ms() // 1000) + LIFETIME_S
        told = f"{until} {name}".encode()
        return f"{_text(told)}.{_text(self._sign(told, proof))}"

    def read(self, token: str, proof_of: Callable[[str], str]) -> str | None:
        """Return the client that a token was given to, None where it is none, or too old."""
        told, dot, signature = token.partition(".")
        try:
            content, signed = _bytes(told), _bytes(signature)
            until, _, name = content.decode().partition(" ")
        except (binascii.Error, ValueError):
            return None
        if not dot or not hmac.compare_digest(self._sign(content, proof_of(name)), signed):
            return None
        return name if int(until) * 1000 > now_ms() else None

    def _sign(self, told: bytes, proof: str) -> bytes:
        bound = hashlib.sha256(proof.encode()).digest()
        return hmac.new(self._key, bound + told, hashlib.sha256).digest()


def read_key(path: str | None) -> bytes | None:
    """Return the key in a file, without one that of the environment; None where there is neither."""
    source = f"the file {path}" if path is not None else VARIABLE
    try:
        told = os.environ.get(VARIABLE) if path is None else Path(path).read_text()
    except FileNotFoundError:
        raise NotFound(f"there is no file {path} with a key for tokens") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the key for tokens in {source} cannot be read: {error}") from None
    return None if told is None else key_in(told, source)


def key_in(text: str, source: str) -> bytes:
    """Return the key that a text is; InvalidInput for one that could be guessed."""
    if len(text.strip()) < _LETTERS:
        raise InvalidInput(
            f"the key for tokens in {source} has fewer than {_LETTERS} letters: "
            "icetree serve --new-secret makes one that nobody guesses"
        )
    return hashlib.sha256(text.strip().encode()).digest()


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    padded = text + "=" * (-len(text) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True)
