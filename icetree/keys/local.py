"""Keys that a process holds itself: given to it, or read from a file or its environment."""

from __future__ import annotations

import os
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from icetree.codec.encryption.gcm import KEY_BYTES, Cipher, NotAuthentic
from icetree.errors import InvalidInput

#: The variable that holds keys, as a file of them does.
VARIABLE: Final = "ICETREE_ENCRYPTION_KEYS"


class LocalKeys:
    """Keys by id, in memory."""

    def __init__(self, keys: Mapping[str, bytes], *, source: str = "memory") -> None:
        for key_id, key in keys.items():
            if len(key) not in KEY_BYTES:
                raise InvalidInput(
                    f"key {key_id!r} of {source} has {len(key)} bytes: AES takes 16, 24 or 32"
                )
        self._keys = dict(keys)
        self._source = source

    def __repr__(self) -> str:
        return f"LocalKeys({', '.join(map(repr, self._keys)) or 'none'}; {self._source})"

    def __reduce__(self) -> str:
        raise TypeError("keys stay in the process that they were given to")

    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Return a key as it may be stored: encrypted with the one of this id."""
        return self._cipher(key_id).encrypt(key)

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Return the key that `wrap` made this of."""
        try:
            return self._cipher(key_id).decrypt(wrapped)
        except NotAuthentic:
            raise InvalidInput(
                f"key {key_id!r} of {self._source} is not the one that the table was encrypted with"
            ) from None

    def _cipher(self, key_id: str) -> Cipher:
        if key_id not in self._keys:
            known = ", ".join(map(repr, sorted(self._keys))) or "none"
            raise InvalidInput(f"there is no key {key_id!r} in {self._source}, which has {known}")
        return Cipher(self._keys[key_id])


def from_file(path: str) -> LocalKeys:
    """Read keys from a file: a line each, its id, `=` and the key in base64."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise InvalidInput(f"the file of keys {path!r} cannot be read: {why}") from None
    return LocalKeys(_parsed(lines, source=path), source=path)


def from_environment() -> LocalKeys:
    """Read keys from the environment: as in a file, with commas or line breaks between."""
    lines = os.environ.get(VARIABLE, "").replace(",", "\n").splitlines()
    return LocalKeys(_parsed(lines, source=VARIABLE), source=VARIABLE)


def _parsed(lines: Iterable[str], *, source: str) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key_id, equals, text = (part.strip() for part in line.partition("="))
        # What stands there may be a key: no part of the line is shown.
        if not (key_id and equals):
            raise InvalidInput(f"{source}, line {number}: write the id of a key, =, and its base64")
        if key_id in found:
            raise InvalidInput(f"{source}, line {number}: there are two keys {key_id!r}")
        try:
            found[key_id] = b64decode(text, validate=True)
        except (NotBase64, ValueError):
            raise InvalidInput(f"{source}: key {key_id!r} is no base64") from None
    return found
