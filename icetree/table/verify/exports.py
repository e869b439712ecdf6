"""Are the files there that exports of a table's snapshots name: for who reads manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from icetree.codec.legacy.encode_list import Listed, read_listed
from icetree.errors import CorruptTable, NotFound
from icetree.files.table_files import TableFiles
from icetree.spec.location import absolute, stored_form
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.export.known import Present
from icetree.table.export.places import (
    EXPORTS,
    FORMAT_VERSIONS,
    export_folder,
    is_list,
    manifest_list_at,
)
from icetree.table.verify.findings import Gathering, Kind, Severity

_ANEW = "export the table again, and it is made anew"


def check_exports(
    snapshots: Iterable[Snapshot], metadata: TableMetadata, files: TableFiles, found: Gathering
) -> None:
    """Report what exports that are there name and the store does not have as they say.

    Whoever reads rows by the tree does not need them. What names no file of an export was looked at with
    the trees.
    """
    location = metadata.location
    present = Present.seen(files, absolute(EXPORTS, location))
    if not any(is_list(each.rpartition("/")[2]) for each in present.sizes):
        return
    for snapshot in snapshots:
        for version in FORMAT_VERSIONS:
            at = absolute(manifest_list_at(export_folder(location, version), snapshot), location)
            if at not in present.sizes:
                continue
            for file, rule in _broken(at, version, files, present):
                found.add(
                    Kind.LOST_EXPORT,
                    stored_form(file, location),
                    rule,
                    snapshot_id=snapshot.snapshot_id,
                    severity=Severity.WARNING,
                )


def _broken(
    at: str, version: int, files: TableFiles, present: Present
) -> Iterator[tuple[str, str]]:
    try:
        listed = read_listed(files.store.read(at), file=at)
    except CorruptTable as error:
        yield at, f"this list of an export as v{version} cannot be read: {error.rule}; {_ANEW}"
    except NotFound:
        # It went since, with its snapshot.
        return
    else:
        for each in present.missing(listed):
            yield each.location, f"{_told(each, present)}, in an export as v{version}; {_ANEW}"


def _told(listed: Listed, present: Present) -> str:
    size = present.sizes.get(listed.location)
    if size is None:
        return "is missing"
    return f"has {size} bytes, and {listed.size_bytes} where it is named"
