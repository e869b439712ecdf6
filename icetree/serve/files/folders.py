"""Where a table's files are, for who reaches them by itself: its folder, and how S3 is reached."""

from __future__ import annotations

from icetree.serve.call import Call
from icetree.serve.protocol.refusals import Refused
from icetree.spec.location import S3, scheme_of
from icetree.store.open import EveryStore
from icetree.store.s3_options import S3Options
from icetree.table.export.places import METADATA
from icetree.table.lake import Lake


def options_for(lake: Lake, location: str) -> S3Options | None:
    """Return how a table's files are reached, where that is in S3."""
    if scheme_of(location) not in S3 or not isinstance(lake.store, EveryStore):
        return None
    return lake.store.s3_options()


def folder_of(call: Call) -> str:
    """Return the folder of the table by what the catalog says, which no client can write."""
    folder = folder_in(call.lake.catalog.load(call.table_name))
    if folder is None:
        raise Refused(
            406, "UnsupportedOperationException", "the table has no folder to reach files in"
        )
    return folder


def folder_in(metadata_location: str) -> str | None:
    """Return the folder that a table's metadata file is of."""
    folder, parted, _ = metadata_location.rpartition(f"/{METADATA}")
    return folder if parted else None
