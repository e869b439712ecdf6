"""Do data DVs hold what their entries say: blobs where they are told, as many rows, rows that are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from icetree.codec import puffin
from icetree.codec.encryption import key_metadata
from icetree.errors import CorruptTable, NotFound
from icetree.files.sealed import read_part, size_of
from icetree.spec.entry.entry import Entries
from icetree.spec.location import absolute
from icetree.store.base import Store
from icetree.table.verify.findings import Kind
from icetree.table.verify.tellings import SEEN_IN, TARGET_ROWS

_NEEDED: Final = [
    "location",
    "dv_offset",
    "dv_size_in_bytes",
    "key_metadata",
    "record_count",
    "referenced_file",
    TARGET_ROWS,
    SEEN_IN,
]
_Broken: TypeAlias = "tuple[Kind, str]"


def broken_vectors(
    data_dvs: Entries, store: Store, table_location: str
) -> Iterator[tuple[Kind, str, str, int]]:
    """Yield (kind, file, rule, snapshot) for each rule that the DV of a telling breaks."""
    footers: dict[tuple[str, bytes | None], set[tuple[int, int]]] = {}
    for one in data_dvs.select(_NEEDED).to_pylist():
        name, key = one["location"], key_metadata.standard(one["key_metadata"])
        try:
            if (name, key) not in footers:
                footers[name, key] = _blobs(name, key, store, table_location)
            for kind, rule in _broken(one, key, footers[name, key], store, table_location):
                yield kind, name, rule, one[SEEN_IN]
        except puffin.WrongChecksum as error:
            yield Kind.CHECKSUM, name, error.rule, one[SEEN_IN]
        except CorruptTable as error:
            yield Kind.UNREADABLE, name, error.rule, one[SEEN_IN]
        except NotFound:
            yield Kind.MISSING_FILE, name, "is missing", one[SEEN_IN]


def _blobs(name: str, key: bytes | None, store: Store, table_location: str) -> set[tuple[int, int]]:
    place = absolute(name, table_location)
    footer = puffin.read_footer(
        lambda offset, length: read_part(store, place, key, offset=offset, length=length),
        size_of(store, place, key),
        file=name,
    )
    return {(blob.offset, blob.length) for blob in footer.blobs}


def _broken(
    one: Mapping[str, Any],
    key: bytes | None,
    blobs: set[tuple[int, int]],
    store: Store,
    table_location: str,
) -> Iterator[_Broken]:
    name, target, rows = one["location"], one["referenced_file"], one[TARGET_ROWS]
    offset, length = one["dv_offset"], one["dv_size_in_bytes"]
    if (offset, length) not in blobs:
        yield Kind.UNREADABLE, f"its footer names no blob at {offset} of {length} bytes"
    place = absolute(name, table_location)
    blob = read_part(store, place, key, offset=offset, length=length)
    positions = puffin.decode_dv(blob, file=name)
    if len(positions) != one["record_count"]:
        rule = f"the DV of {target} has {len(positions)} rows, its entry says"
        yield Kind.STATS, f"{rule} {one['record_count']}"
    if positions and rows is not None and positions.max() >= rows:
        rule = f"the DV of {target} removes row {positions.max()} of {rows}"
        yield Kind.STATS, rule
