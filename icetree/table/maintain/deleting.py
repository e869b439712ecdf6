"""Deleting files that nothing names: when it is allowed, and how it is done."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.catalog.base import TableName
from icetree.errors import IcetreeError, InvalidInput, Unavailable
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import MANIFESTS, Content
from icetree.spec.location import absolute
from icetree.spec.locations import is_uri, stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.retention import GC_ENABLED, OWN_LOCATION_ONLY
from icetree.spec.properties.values import flag
from icetree.store.base import NotDeleted
from icetree.table.progress import Progress
from icetree.visible import log_of

log = log_of(__name__)

#: So many files are deleted with one request, where the store has such.
BATCH: Final = 1_000

#: What counts as which of Iceberg's kinds; None is a root or a manifest list.
_KINDS: Final = {
    "data_files": (Content.DATA,),
    "position_delete_files": (Content.POSITION_DELETES,),
    "equality_delete_files": (Content.EQUALITY_DELETES,),
    "manifest_files": (*MANIFESTS, Content.MANIFEST_DV),
    "manifest_lists": (None,),
}


def require_own_files(metadata: TableMetadata, name: TableName) -> None:
    """Refuse a table whose files may be another's too, and cannot be told from them."""
    if not shares_files(metadata) and not flag(metadata.properties, GC_ENABLED, default=True):
        raise InvalidInput(
            f"table {name}: {GC_ENABLED} is false, so its files may be another table's too; "
            "set it to true if they are not"
        )


def shares_files(metadata: TableMetadata) -> bool:
    """Tell whether files outside the table's location are another table's."""
    return flag(metadata.properties, OWN_LOCATION_ONLY, default=False)


def own_files(metadata: TableMetadata, found: pa.Table) -> pa.Table:
    """Return the files that a table may delete: all, or those in its location where it shares some."""
    if not shares_files(metadata):
        return found
    names = stored_form_array(one_chunk(found["location"]), metadata.location)
    return found.filter(pc.invert(is_uri(names)))


def delete(
    metadata: TableMetadata, files: TableFiles, locations: Sequence[str], tell: Progress
) -> tuple[str, ...]:
    """Delete files of a table a batch at a time; return those that could not be.

    Of a table that shares files, those outside its location are not touched.
    """
    left: list[str] = []
    if shares_files(metadata):
        named = pa.table({"location": pa.array(locations, pa.string())})
        locations = own_files(metadata, named)["location"].to_pylist()
    for start in range(0, len(locations), BATCH):
        batch = locations[start : start + BATCH]
        try:
            files.delete(batch)
        except IcetreeError as error:
            known = error.locations if isinstance(error, NotDeleted) else frozenset[str]()
            stay = _still_there(files, batch, known)
            log.warning("%d files stay behind, which nothing names: %s", len(stay), error)
            left += stay
        tell("files deleted", start + len(batch), len(locations))
    return tuple(left)


def _still_there(files: TableFiles, stored: Sequence[str], known: frozenset[str]) -> list[str]:
    """Return the files that are there, or may be: once the store is silent, nothing more is asked.

    Nor is anything asked about files that are `known` to stay.
    """
    silent = Event()

    def stays(location: str) -> bool:
        full = absolute(location, files.location)
        if silent.is_set() or full in known:
            return True
        try:
            return files.store.exists(full)
        except Unavailable:
            silent.set()
        except IcetreeError as error:
            log.debug("%s may still be there: %s", location, error)
        return True

    return [each for each, stay in zip(stored, in_order(stays, stored), strict=True) if stay]


def counts_of(files: pa.Table) -> dict[str, int]:
    """Return how many files there are of each of Iceberg's kinds, by the names it counts them by."""
    counted = files["content_type"].value_counts().to_pylist()
    by_content = {each["values"]: each["counts"] for each in counted}
    return {
        f"deleted_{kind}_count": sum(by_content.get(content, 0) for content in contents)
        for kind, contents in _KINDS.items()
    }
