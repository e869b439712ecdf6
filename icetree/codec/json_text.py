"""JSON as text: how much there is in it, held against the limit for metadata before it becomes objects.

`{}` and a comma are three bytes, and take 72 once they are a dictionary in a list.
"""

from __future__ import annotations

from typing import Final

from icetree.codec import limits

#: What a value may follow; that of a member follows its name, too.
_STARTS: Final = (b",", b"[", b"{")
#: A name or a value takes more than its text: up to so many bytes.
_BYTES_EACH: Final = 96
#: Objects of ordinary metadata take up to so many times the bytes of its text.
_TIMES: Final = 4


def values_in(text: bytes) -> int:
    """Return how many values JSON has at the most, each member of an object being one."""
    return sum(map(text.count, _STARTS))


def require_modest(text: bytes, *, file: str) -> None:
    """Refuse JSON that may become objects of more than four times the limit."""
    allowed = _TIMES * limits.METADATA.bytes // _BYTES_EACH
    # Of text as short as it nearly always is, nothing needs to be counted.
    if len(text) > allowed and (values := values_in(text) + text.count(b":")) > allowed:
        raise limits.METADATA.exceeded(file, f"its {values:,} values of JSON would take more")
