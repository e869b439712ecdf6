"""AES-GCM as Iceberg uses it: a fresh nonce, the ciphertext, a tag, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from icetree.errors import Unsupported
from icetree.surroundings import random_bits

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: Lengths of keys that AES has.
KEY_BYTES: Final = (16, 24, 32)
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
#: How much longer a ciphertext is than its text.
OVERHEAD: Final = NONCE_BYTES + TAG_BYTES


class NotAuthentic(Exception):
    """The bytes are not those that were encrypted with this key, or not in this place."""


def new_bytes(count: int) -> bytes:
    """Return bytes that nobody can guess: a key, a nonce, a file's own prefix."""
    return random_bits(8 * count).to_bytes(count, "big")


class Cipher:
    """Encrypts and decrypts with one key; its text form does not show it."""

    __slots__ = ("_aes",)

    def __init__(self, key: bytes) -> None:
        self._aes: AESGCM = _aes(key)

    def encrypt(self, text: bytes, aad: bytes | None = None) -> bytes:
        """Return nonce, ciphertext and tag; `aad` must be told again to decrypt it."""
        nonce = new_bytes(NONCE_BYTES)
        return nonce + self._aes.encrypt(nonce, text, aad)

    def decrypt(self, stored: bytes, aad: bytes | None = None) -> bytes:
        """Return what was encrypted; NotAuthentic for any other bytes, key or `aad`."""
        from cryptography.exceptions import InvalidTag

        if len(stored) < OVERHEAD:
            raise NotAuthentic
        try:
            return self._aes.decrypt(stored[:NONCE_BYTES], stored[NONCE_BYTES:], aad)
        except InvalidTag:
            raise NotAuthentic from None


def _aes(key: bytes) -> AESGCM:
    # Late: most tables are not encrypted.
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise Unsupported(
            "encrypted tables need the package cryptography: install icetree[encryption]"
        ) from None
    return AESGCM(key)
