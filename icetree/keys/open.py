"""Which keeper of keys a connection has, by its properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icetree.errors import InvalidInput
from icetree.keys.base import Keeper
from icetree.keys.local import VARIABLE, from_environment, from_file

#: Who keeps the keys; Iceberg's name.
KIND: Final = "encryption.kms-type"
#: The file that has them.
FILE: Final = "encryption.key-file"
#: Every property of a connection that is about keys.
KEY_PROPERTIES: Final = frozenset({KIND, FILE})
KINDS: Final = ("file", "environment")


def open_keeper(properties: Mapping[str, str]) -> Keeper | None:
    """Return the keeper that properties name; None where they name none."""
    kind, file = properties.get(KIND), properties.get(FILE)
    kind = ("file" if file else None) if kind is None else kind.lower()
    if kind is None:
        return None
    if kind not in KINDS:
        raise InvalidInput(f"{KIND}={kind!r}: allowed are {', '.join(KINDS)}")
    if (kind == "file") != bool(file):
        raise InvalidInput(
            f"{FILE} is for {KIND}=file, and needed there: with {KIND}=environment keys are in "
            f"the variable {VARIABLE}"
        )
    return from_file(file) if file else from_environment()
