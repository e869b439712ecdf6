"""Do the files of statistics open, and hold what the table's metadata tells of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from icetree.codec import puffin
from icetree.errors import CorruptTable, NotFound
from icetree.files.table_files import TableFiles
from icetree.spec.metadata.metadata import StatisticsFile, TableMetadata
from icetree.table.verify.findings import Gathering, Kind, Severity


def check_statistics(metadata: TableMetadata, files: TableFiles, found: Gathering) -> None:
    """Report statistics that cannot be read; those that are missing were told of before."""
    lost = found.files(Kind.LOST_STATISTICS)
    for each in metadata.statistics:
        path = each.statistics_path
        for rule in () if path in lost else _broken(each, files):
            found.add(
                Kind.LOST_STATISTICS,
                path,
                rule,
                snapshot_id=each.snapshot_id,
                severity=Severity.WARNING,
            )


def _broken(told: StatisticsFile, files: TableFiles) -> Iterator[str]:
    path, key = told.statistics_path, told.key_metadata
    try:
        opened = None if key is None else files.ring.unlock(key, file=path)
        content = files.fetch(path, opened)
        footer = puffin.read_footer(
            lambda offset, length: content[offset : offset + length], len(content), file=path
        )
    except CorruptTable as error:
        yield f"these statistics cannot be read: {error.rule}"
        return
    except NotFound:
        yield "these statistics are missing"
        return
    if not content.startswith(puffin.MAGIC):
        yield f"a Puffin file must start with {puffin.MAGIC!r}"
    there = {_told(each.type, each.fields, each.snapshot_id) for each in footer.blobs}
    for blob in told.blob_metadata:
        name = _told(blob.get("type"), blob.get("fields") or (), blob.get("snapshot-id"))
        if name not in there:
            yield f"the metadata tells of a blob {name[0]!r} of fields {[*name[1]]}, which it lacks"


def _told(type: Any, fields: Any, snapshot_id: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """Return what a blob is known by, in the file and in the metadata."""
    return type, tuple(fields), snapshot_id
