"""Numbers, sizes and names, short enough for a box."""

from __future__ import annotations

import re
from typing import Final

_UUID: Final = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEX: Final = re.compile(r"(?<![0-9a-f])([0-9a-f]{8})[0-9a-f]{16,}(?![0-9a-f])")
_NAME_LENGTH: Final = 22

#: What is not ASCII in our own words, and what stands for it.
_PLAIN: Final = str.maketrans({"…": "...", "·": "|", "✓": "ok", "✗": "NO", "█": "#"})


def plain(text: str) -> str:
    """Return a text in ASCII."""
    return text.translate(_PLAIN).encode("ascii", "replace").decode()


def number(value: int) -> str:
    """Return a count: exact up to a million, then rounded."""
    for size, unit in ((10**9, "G"), (10**6, "M")):
        if value >= size:
            return (
                f"{value / size:.3g}{unit}" if value < 1000 * size else f"{value // size:,}{unit}"
            )
    return f"{value:,}"


def counted(value: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun: `1 file`, `2,000 files`."""
    return f"{number(value)} {noun if value == 1 else plural or noun + 's'}"


def size(value: int) -> str:
    """Return a size in bytes."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if value >= factor:
            return f"{value / factor:.1f} {unit}"
    return f"{value} B"


def short_name(location: str) -> str:
    """Return a file's name without folders and extension, long ids and middles cut."""
    name = location.rstrip("/").rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    if dot and extension in ("parquet", "avro", "orc", "puffin"):
        name = stem
    name = _HEX.sub(r"\1", _UUID.sub(r"\1", name))
    if len(name) > _NAME_LENGTH:
        half = (_NAME_LENGTH - 1) // 2
        name = f"{name[:half]}…{name[-half:]}"
    return name
