"""Keys that a process holds itself: given to it, or read from a file or its environment."""

from __future__ import annotations

import os
import re
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from icetree.codec.encryption.gcm import KEY_BYTES, Cipher, NotAuthentic
from icetree.errors import InvalidInput

#: The variable that holds keys, as a file of them does.
VARIABLE: Final = "ICETREE_ENCRYPTION_KEYS"
#: The number of a version before the key.
_VERSION: Final = re.compile(r"(\d{1,9})\s*:\s*(.*)")


class LocalKeys:
    """Keys by id, in memory; of one that has versions, the newest comes last and wraps."""

    def __init__(
        self, keys: Mapping[str, bytes | Sequence[bytes]], *, source: str = "memory"
    ) -> None:
        self._keys = {
            id: [key] if isinstance(key, bytes) else list(key) for id, key in keys.items()
        }
        self._source = source
        for key_id, versions in self._keys.items():
            for key in versions:
                if len(key) not in KEY_BYTES:
                    raise InvalidInput(
                        f"key {key_id!r} of {source} has {len(key)} bytes: AES takes 16, 24 or 32"
                    )

    def __repr__(self) -> str:
        return f"LocalKeys({', '.join(map(repr, self._keys)) or 'none'}; {self._source})"

    def __reduce__(self) -> str:
        raise TypeError("keys stay in the process that they were given to")

    def wrap(self, key: bytes, key_id: str) -> bytes:
        """Return a key as it may be stored: encrypted with the one of this id."""
        return self._ciphers(key_id)[0].encrypt(key)

    def unwrap(self, wrapped: bytes, key_id: str) -> bytes:
        """Return the key that `wrap` made this of, with whichever version of the one of this id."""
        for cipher in self._ciphers(key_id):
            with suppress(NotAuthentic):
                return cipher.decrypt(wrapped)
        raise InvalidInput(
            f"key {key_id!r} of {self._source} is not the one that the table was encrypted with"
        )

    def is_newest(self, wrapped: bytes, key_id: str) -> bool:
        """Tell whether the version that `wrap` takes now is the one that this was wrapped with."""
        try:
            self._ciphers(key_id)[0].decrypt(wrapped)
        except NotAuthentic:
            return False
        return True

    def _ciphers(self, key_id: str) -> list[Cipher]:
        """Return the versions of a key, the newest first."""
        if key_id not in self._keys:
            known = ", ".join(map(repr, sorted(self._keys))) or "none"
            raise InvalidInput(f"there is no key {key_id!r} in {self._source}, which has {known}")
        return [Cipher(key) for key in reversed(self._keys[key_id])]


def from_file(path: str) -> LocalKeys:
    """Read keys from a file: a line each, its id, `=` and the key in base64.

    Of a key with versions each has a line, with its number and a colon before the key.
    """
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


def _parsed(lines: Iterable[str], *, source: str) -> dict[str, list[bytes]]:
    found: dict[str, dict[int, bytes]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        key_id, equals, text = (part.strip() for part in line.partition("="))
        # What stands there may be a key: no part of the line is shown.
        if not (key_id and equals):
            raise InvalidInput(f"{source}, line {number}: write the id of a key, =, and its base64")
        told = _VERSION.fullmatch(text)
        version, text = (int(told[1]), told[2]) if told else (0, text)
        versions = found.setdefault(key_id, {})
        if version in versions:
            which = f" of version {version}" if told else ""
            raise InvalidInput(
                f"{source}, line {number}: there are two keys {key_id!r}{which}: number the versions "
                "of one, as in 2:, before the base64"
            )
        try:
            versions[version] = b64decode(text, validate=True)
        except (NotBase64, ValueError):
            raise InvalidInput(f"{source}: key {key_id!r} is no base64") from None
    return {id: [versions[each] for each in sorted(versions)] for id, versions in found.items()}
