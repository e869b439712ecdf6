"""What stock clients can do, where that is not all that the protocol asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """What whoever asks can do; by default all that the protocol asks for."""

    #: Tables of v3: PyIceberg reads them alone.
    writes_v3: bool = True

    #: A partition with a null in it.
    reads_nulls: bool = True
    #: Deletion vectors: v2 has position delete files in their place.
    reads_vectors: bool = True
    #: No equality deletes, and no vector but by the full name of the data file, beside the vector.
    reads_plain_vectors_alone: bool = False
    #: Ask for a plan again that takes long: the protocol has it, and PyIceberg does not.
    polls: bool = False
    #: Forget snapshots and leave files alone: others delete those that they see nobody name.
    leaves_files: bool = False


#: By which a client asks for another format version than v3.
VERSION_HEADER: Final = "x-icetree-format-version"
#: How any client says that it can be told to ask again.
_ASYNC: Final = "respond-async"
_PYICEBERG: Final = Stock(
    writes_v3=False, reads_nulls=False, reads_plain_vectors_alone=True, leaves_files=True
)


def stock_of(headers: Mapping[str, str]) -> Stock:
    """Return what the client can do that sends these headers."""
    told = (headers.get("x-client-version", "") or headers.get("user-agent", "")).lower()
    if told.startswith("pyiceberg"):
        return _PYICEBERG
    polls = told.startswith("apache iceberg") or _ASYNC in headers.get("prefer", "").lower()
    # Iceberg Java replaces the deletes of a plan, and must find them in the manifests that it was shown.
    return Stock(polls=polls, reads_vectors=headers.get(VERSION_HEADER) != "2")
