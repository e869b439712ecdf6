"""What it takes to apply a snapshot's changes a second time, on another head."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.spec.entry.entry import (
    BASE_SCHEMA,
    POSITION,
    Content,
    Status,
    is_content,
    with_columns,
)
from icetree.spec.metadata.snapshot import Snapshot
from icetree.tree.changes import REMOVED, Changes, Intent, Operation
from icetree.tree.diff.diff import Diff
from icetree.tree.live import LEAF

#: The summary field by which Iceberg's writers mark a dynamic overwrite.
REPLACE_PARTITIONS: Final = "replace-partitions"
#: What the new snapshot's summary says of the one it was picked from.
SOURCE_SNAPSHOT: Final = "source-snapshot-id"


def picked_changes(snapshot: Snapshot, diff: Diff) -> Changes:
    """Return the changes of a snapshot as new ones, to be validated and committed again.

    As in Iceberg, only an append or a replacement of whole partitions can be picked: what
    others remove depends on the head they were made on. Files come as new: they get sequence
    numbers and row ids of the commit to be.
    """
    is_replacement = (snapshot.summary or {}).get(REPLACE_PARTITIONS) == "true"
    if snapshot.operation == Operation.APPEND and not diff.removed.num_rows:
        return Changes(intent=Intent.APPEND, added=_as_new(diff.added))
    if snapshot.operation == Operation.OVERWRITE and is_replacement:
        return Changes(
            intent=Intent.REPLACE_PARTITIONS,
            added=_as_new(diff.added),
            removed=_named(diff.removed),
        )
    raise InvalidInput(
        f"snapshot {snapshot.snapshot_id} ({snapshot.operation}) cannot be cherry-picked: only "
        "appends and dynamic partition overwrites can; fast-forward to it if it follows the "
        "branch's head, or redo the change"
    )


def _as_new(added: pa.Table) -> pa.Table:
    entries = added.drop_columns([LEAF, POSITION])
    unset = ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")
    nulls = {name: pa.nulls(entries.num_rows, BASE_SCHEMA.field(name).type) for name in unset}
    return with_columns(entries, status=int(Status.ADDED), **nulls)


def _named(removed: pa.Table) -> pa.Table:
    """Return removed files by name alone: where they were tracked then need not hold now."""
    # Data DVs are left out: a data file takes its DV along, whichever it has by now.
    files = removed.filter(pc.invert(is_content(removed, Content.POSITION_DELETES)))
    columns = {name: pa.nulls(files.num_rows, REMOVED.field(name).type) for name in REMOVED.names}
    columns |= {"content_type": files["content_type"], "key": files["location"]}
    return pa.table(columns, schema=REMOVED)
