"""What an input may take of a process: time, and memory."""

from __future__ import annotations

import os
import resource
from typing import Final

#: An input that takes longer hangs: an alarm ends the process.
SECONDS_AN_INPUT: Final = 30
#: The limits that inputs are read with, by the names they are set under.
_LIMITS: Final = {
    "ICETREE_MAX_METADATA_BYTES": 64 * 1024**2,
    "ICETREE_MAX_ROW_GROUP_BYTES": 256 * 1024**2,
}
#: By how much a process may grow on an input: what the limits allow, and some to spare.
MOST_BYTES: Final = sum(_LIMITS.values()) + 512 * 1024**2
_ADDRESSES: Final = 16 * 1024**3


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def confine() -> None:
    """Set the limits that inputs are read with, and one that ends the process."""
    os.environ.update({name: str(most) for name, most in _LIMITS.items()})
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESSES, _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
