"""What clients make of a plan, where that is not what the protocol says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What whoever asks can do; by default all that the protocol asks for."""

    #: A partition with a null in it.
    reads_nulls: bool = True
    #: No equality deletes, and no vector but by the full name of the data file, beside the vector.
    reads_plain_vectors_alone: bool = False


_PYICEBERG: Final = Client(reads_nulls=False, reads_plain_vectors_alone=True)


def client_of(headers: Mapping[str, str]) -> Client:
    """Return what the client can do that sends these headers."""
    told = headers.get("x-client-version", "") or headers.get("user-agent", "")
    return _PYICEBERG if told.lower().startswith("pyiceberg") else Client()
