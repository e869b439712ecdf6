"""Small manifests that were met before, by their bytes: these are not decoded again.

What a manifest says follows from its bytes and from how it is read, so whoever asks again, for
whichever table, is told the same. A commit, a plan and a feed of one table meet the same few roots
and leaves again and again, and of a small one the way in costs more than the entries.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import pyarrow as pa

from icetree.codec import limits
from icetree.codec.inherit import Inherited
from icetree.codec.manifest.read import Keep, decode
from icetree.spec.entry.entry import POSITION, Entries
from icetree.spec.recent import Recent
from icetree.spec.schema.shape import Shape

#: So many are kept, of so many bytes and so many entries each: a few megabytes in all.
_KEPT: Final = 128
_SMALL_BYTES: Final = 16 * 1024
_FEW_ENTRIES: Final = 64

_KNOWN: Final[Recent[tuple[Any, ...], Entries]] = Recent(most=_KEPT)


def decode_again(
    source: bytes | pa.NativeFile,
    kind: str,
    shape: Shape,
    *,
    file: str,
    tracking: Inherited | None = None,
    columns: Collection[str] | None = None,
    keep: Keep | None = None,
    table_location: str = "",
) -> Entries:
    """Do `decode`, at less cost for a small manifest that was met before; `keep` may not be asked."""
    how: dict[str, Any] = {"file": file, "tracking": tracking, "table_location": table_location}
    if not isinstance(source, bytes) or len(source) > _SMALL_BYTES:
        return decode(source, kind, shape, columns=columns, keep=keep, **how)
    # What is too large for a lower limit is refused again.
    way = (kind, shape.meaning, tracking, table_location, limits.METADATA.bytes)
    whole = _KNOWN.get((source, None, *way))
    if columns is None:
        return whole if whole is not None else _remember(source, kind, shape, None, way, how)
    wanted = frozenset(columns)
    if whole is not None:
        return whole.select([n for n in whole.schema.names if n in wanted or n == POSITION])
    known = _KNOWN.get((source, wanted, *way))
    return known if known is not None else _remember(source, kind, shape, wanted, way, how)


def _remember(
    source: bytes,
    kind: str,
    shape: Shape,
    columns: frozenset[str] | None,
    way: tuple[Any, ...],
    how: dict[str, Any],
) -> Entries:
    found = decode(source, kind, shape, columns=columns, **how)
    if found.num_rows <= _FEW_ENTRIES:
        _KNOWN.put((source, columns, *way), found)
    return found
