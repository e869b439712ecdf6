"""Well-known binary by hand, as the specification of it has it."""

from __future__ import annotations

import struct
from collections.abc import Sequence

Place = Sequence[float]
#: What a kind of geometry has beside x and y.
_MORE = {2: 0, 3: 1000, 4: 3000}


def point(*place: float, order: str = "<") -> bytes:
    kind = 1 + _MORE[len(place)]
    return struct.pack(f"{order}BI{len(place)}d", order == "<", kind, *place)


def measured(x: float, y: float, m: float) -> bytes:
    """A point with a measure and no height."""
    return struct.pack("<BI3d", 1, 2001, x, y, m)


def line(*places: Place, order: str = "<") -> bytes:
    size = len(places[0]) if places else 2
    head = struct.pack(f"{order}BII", order == "<", 2 + _MORE[size], len(places))
    return head + b"".join(struct.pack(f"{order}{size}d", *each) for each in places)


def polygon(*rings: Sequence[Place]) -> bytes:
    made = struct.pack("<BII", 1, 3, len(rings))
    for ring in rings:
        made += struct.pack("<I", len(ring))
        made += b"".join(struct.pack("<2d", *each) for each in ring)
    return made


def square(x: float, y: float, size: float = 1) -> bytes:
    far_x, far_y = x + size, y + size
    return polygon([(x, y), (far_x, y), (far_x, far_y), (x, far_y), (x, y)])


def collection(*parts: bytes, kind: int = 7) -> bytes:
    return struct.pack("<BII", 1, kind, len(parts)) + b"".join(parts)
