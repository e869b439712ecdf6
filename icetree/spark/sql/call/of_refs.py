"""The procedures of `CALL` that are about branches and snapshots; each can be a dry run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from icetree.errors import InvalidInput
from icetree.spark.sql.call.procedure import FLAG, NUMBER, TIME, Procedure, needed, optional
from icetree.spark.sql.names import known_table, parts_of
from icetree.spec.edit.refs import ancestors
from icetree.table.evolve.rehearsal import Rehearsal
from icetree.table.table import Table
from icetree.tree.grow.cherry_pick import SOURCE_SNAPSHOT

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

Rows: TypeAlias = Iterable[Sequence[Any]]
#: What takes ref verbs: a table, or a rehearsal of one.
_Refs: TypeAlias = Table | Rehearsal

TABLE: Final = needed("table")
DRY_RUN: Final = optional("dry_run", FLAG)


def table_of(lake: SparkLake, name: str) -> Table:
    """Return the table that an argument names."""
    return lake.table(known_table(lake, parts_of(lake, name)))


def longs(*names: str) -> pa.Schema:
    """Return columns of longs."""
    return pa.schema([(name, pa.int64()) for name in names])


def _refs_of(lake: SparkLake, name: str, dry_run: bool) -> _Refs:
    found = table_of(lake, name)
    return Rehearsal(found) if dry_run else found


def _rollback_to_snapshot(
    lake: SparkLake, *, table: str, snapshot_id: int, dry_run: bool = False
) -> Rows:
    return _moved(_refs_of(lake, table, dry_run), lambda found: found.rollback(snapshot_id))


def _rollback_to_timestamp(
    lake: SparkLake, *, table: str, timestamp: datetime, dry_run: bool = False
) -> Rows:
    return _moved(_refs_of(lake, table, dry_run), lambda found: found.rollback(timestamp))


def _set_current_snapshot(
    lake: SparkLake,
    *,
    table: str,
    snapshot_id: int | None = None,
    ref: str | None = None,
    dry_run: bool = False,
) -> Rows:
    if (snapshot_id is None) == (ref is None):
        raise InvalidInput("CALL system.set_current_snapshot: give snapshot_id or ref, one of them")
    found = _refs_of(lake, table, dry_run)
    if ref is not None:
        found.metadata.ref(ref)
    to = ref if snapshot_id is None else snapshot_id
    assert to is not None
    return _moved(found, lambda refs: refs.set_current(to))


def _moved(refs: _Refs, move: Callable[[_Refs], object]) -> Rows:
    before = refs.metadata.current_snapshot_id
    move(refs)
    return [(before, refs.metadata.current_snapshot_id)]


def _cherrypick_snapshot(
    lake: SparkLake, *, table: str, snapshot_id: int, dry_run: bool = False
) -> Rows:
    found = _refs_of(lake, table, dry_run)
    found.cherry_pick(snapshot_id)
    return [_picked(found)]


def _publish_changes(lake: SparkLake, *, table: str, wap_id: str, dry_run: bool = False) -> Rows:
    found = _refs_of(lake, table, dry_run)
    found.publish(wap_id)
    return [_picked(found)]


def _picked(refs: _Refs) -> tuple[int | None, int | None]:
    """Return which snapshot was picked, and which is current now; one to be made has no id."""
    if isinstance(refs, Rehearsal):
        now = refs.metadata.current_snapshot_id
        return (now, now) if refs.picked is None else (refs.picked, None)
    made = refs.current_snapshot
    assert made is not None
    # Where nothing came in between, what was staged is now current itself.
    source = (made.summary or {}).get(SOURCE_SNAPSHOT, made.snapshot_id)
    return int(source), made.snapshot_id


def _fast_forward(
    lake: SparkLake, *, table: str, branch: str, to: str, dry_run: bool = False
) -> Rows:
    found = _refs_of(lake, table, dry_run)
    before = found.metadata.refs.get(branch)
    found.fast_forward(branch, to)
    return [(branch, before and before.snapshot_id, found.metadata.refs[branch].snapshot_id)]


def _ancestors_of(lake: SparkLake, *, table: str, snapshot_id: int | None = None) -> Rows:
    found = table_of(lake, table)
    last = found.metadata.current_snapshot_id if snapshot_id is None else snapshot_id
    if last is None:
        return []
    every = ancestors(found.metadata, last, found.files.page)
    return [(each.snapshot_id, each.timestamp_ms) for each in every]


_MOVED: Final = longs("previous_snapshot_id", "current_snapshot_id")
_PICKED: Final = longs("source_snapshot_id", "current_snapshot_id")

OF_REFS: Final[Mapping[str, Procedure]] = {
    "rollback_to_snapshot": Procedure(
        takes=(TABLE, needed("snapshot_id", NUMBER), DRY_RUN),
        gives=_MOVED,
        run=_rollback_to_snapshot,
    ),
    "rollback_to_timestamp": Procedure(
        takes=(TABLE, needed("timestamp", TIME), DRY_RUN), gives=_MOVED, run=_rollback_to_timestamp
    ),
    "set_current_snapshot": Procedure(
        takes=(TABLE, optional("snapshot_id", NUMBER), optional("ref"), DRY_RUN),
        gives=_MOVED,
        run=_set_current_snapshot,
    ),
    "cherrypick_snapshot": Procedure(
        takes=(TABLE, needed("snapshot_id", NUMBER), DRY_RUN),
        gives=_PICKED,
        run=_cherrypick_snapshot,
    ),
    "publish_changes": Procedure(
        takes=(TABLE, needed("wap_id"), DRY_RUN), gives=_PICKED, run=_publish_changes
    ),
    "fast_forward": Procedure(
        takes=(TABLE, needed("branch"), needed("to"), DRY_RUN),
        gives=pa.schema(
            [
                ("branch_updated", pa.string()),
                ("previous_ref", pa.int64()),
                ("updated_ref", pa.int64()),
            ]
        ),
        run=_fast_forward,
    ),
    "ancestors_of": Procedure(
        takes=(TABLE, optional("snapshot_id", NUMBER)),
        gives=longs("snapshot_id", "timestamp"),
        run=_ancestors_of,
    ),
}
