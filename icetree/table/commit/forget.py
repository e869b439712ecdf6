"""Former metadata that a commit deletes, where the table's properties ask for it.

The log of a metadata file names the ones before it. What it no longer names, and pages of history that
only such files knew, nobody needs who asks the catalog: a commit deletes them once it has landed.
"""

from __future__ import annotations

from contextlib import suppress

from icetree.errors import IcetreeError
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles, read_metadata
from icetree.spec.location import absolute
from icetree.spec.metadata import DELETE_AFTER_COMMIT, TableMetadata
from icetree.spec.properties import flag
from icetree.spec.retention import GC_ENABLED, OWN_LOCATION_ONLY


def forgotten(before: TableMetadata, after: TableMetadata, files: TableFiles) -> list[str]:
    """Return the files that were needed before a commit and, by the table's word, may go now."""
    kept = {each.metadata_file for each in after.metadata_log}
    gone = [each.metadata_file for each in before.metadata_log if each.metadata_file not in kept]
    return [*gone, *_pages(gone, after, files)] if gone and _may_go(after) else []


def _may_go(metadata: TableMetadata) -> bool:
    has = metadata.properties
    alone = flag(has, GC_ENABLED, default=True) and not flag(has, OWN_LOCATION_ONLY, default=False)
    return alone and flag(has, DELETE_AFTER_COMMIT, default=False)


def _pages(gone: list[str], after: TableMetadata, files: TableFiles) -> set[str]:
    """Return the pages of history that only metadata names which goes.

    A page that was left out once never comes back: the oldest metadata that stays names all of those
    that goes which any that stays does.
    """

    def pages_of(file: str) -> set[str]:
        found = read_metadata(files.store, absolute(file, after.location))
        return {each.location for each in found.snapshot_pages}

    now = {each.location for each in after.snapshot_pages}
    # Where one cannot be read, the search for orphans finds what is left.
    with suppress(IcetreeError):
        oldest, *others = in_order(pages_of, [after.metadata_log[0].metadata_file, *gone])
        return set().union(*others) - oldest - now
    return set()
