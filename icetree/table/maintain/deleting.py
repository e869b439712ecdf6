"""Deleting files that nothing names: when it is allowed, and how it is done."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from icetree.catalog.base import TableName
from icetree.errors import IcetreeError, InvalidInput
from icetree.files.table_files import TableFiles
from icetree.spec.entry import MANIFESTS, Content
from icetree.spec.metadata import TableMetadata
from icetree.spec.properties import flag
from icetree.spec.retention import GC_ENABLED
from icetree.table.progress import Progress

log = logging.getLogger(__name__)

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
    """Refuse a table whose files may be another's too."""
    if not flag(metadata.properties, GC_ENABLED, default=True):
        raise InvalidInput(
            f"table {name}: {GC_ENABLED} is false, so its files may be another table's too; "
            "set it to true if they are not"
        )


def delete(files: TableFiles, locations: Sequence[str], tell: Progress) -> tuple[str, ...]:
    """Delete files a batch at a time; return those that could not be."""
    left: list[str] = []
    for start in range(0, len(locations), BATCH):
        batch = locations[start : start + BATCH]
        try:
            files.delete(batch)
        except IcetreeError as error:
            log.warning("%d files stay behind, which nothing names: %s", len(batch), error)
            left += batch
        tell("files deleted", start + len(batch), len(locations))
    return tuple(left)


def counts_of(files: pa.Table) -> dict[str, int]:
    """Return how many files there are of each of Iceberg's kinds, by the names it counts them by."""
    counted = files["content_type"].value_counts().to_pylist()
    by_content = {each["values"]: each["counts"] for each in counted}
    return {
        f"deleted_{kind}_count": sum(by_content.get(content, 0) for content in contents)
        for kind, contents in _KINDS.items()
    }
