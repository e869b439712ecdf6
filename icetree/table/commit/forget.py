"""Former metadata that a commit deletes, where the table's properties ask for it.

The log of a metadata file names the ones before it. What it no longer names, and pages of history that
only such files knew, nobody needs who asks the catalog: a commit deletes them once it has landed.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from icetree.errors import IcetreeError
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles, read_metadata
from icetree.spec.location import absolute, is_relative, stored_form
from icetree.spec.metadata.metadata import DELETE_AFTER_COMMIT, TableMetadata
from icetree.spec.metadata.retention import GC_ENABLED, OWN_LOCATION_ONLY
from icetree.spec.metadata.snapshot import MetadataLogEntry
from icetree.spec.properties.values import flag
from icetree.table.state import State


def forgotten(before: State, after: State, files: TableFiles) -> list[str]:
    """Return the files that were needed before a commit and, by the table's word, may go now.

    Only what lies in the table's own location is: a log may name files of a table that this one
    was made from.
    """
    metadata = after.metadata
    if not _may_go(metadata):
        return []

    def names(log: Iterable[MetadataLogEntry]) -> list[str]:
        return [stored_form(each.metadata_file, metadata.location) for each in log]

    heads = [before.metadata_location, after.metadata_location]
    kept = {*names(metadata.metadata_log), *(stored_form(at, metadata.location) for at in heads)}
    former = names(before.metadata.metadata_log)
    gone = [each for each in former if each not in kept and is_relative(each)]
    pages = _pages(gone, metadata, files) if gone else set()
    return [*gone, *filter(is_relative, pages)]


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
        return {stored_form(each.location, after.location) for each in found.snapshot_pages}

    now = {stored_form(each.location, after.location) for each in after.snapshot_pages}
    # Where one cannot be read, the search for orphans finds what is left.
    with suppress(IcetreeError):
        oldest, *others = in_order(pages_of, [after.metadata_log[0].metadata_file, *gone])
        return set().union(*others) - oldest - now
    return set()
