"""The procedures of `CALL`, each declared with Iceberg's names for its arguments and columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from icetree.errors import InvalidInput, NotFound
from icetree.spark.read.condition import condition_filter
from icetree.spark.sql.add_files import source_files
from icetree.spark.sql.changelog import create_changelog_view
from icetree.spark.sql.moving import migrate_table, snapshot_table
from icetree.spark.sql.names import known_table, new_table, parts_of
from icetree.spark.sql.procedure import (
    FLAG,
    NUMBER,
    NUMBERS,
    OPTIONS,
    TEXT,
    TEXTS,
    TIME,
    Parameter,
    Procedure,
    idle,
    needed,
    optional,
    refused,
)
from icetree.spec.edit.refs import ancestors
from icetree.spec.texts import did_you_mean
from icetree.table.table import Table
from icetree.tree.cherry_pick import SOURCE_SNAPSHOT

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

_Rows: TypeAlias = Iterable[Sequence[Any]]

_TABLE: Final = needed("table")
_DRY_RUN: Final = optional("dry_run", FLAG)


def _table(lake: SparkLake, name: str) -> Table:
    return lake.table(known_table(lake, parts_of(lake, name)))


def _longs(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int64()) for name in names])


def _ints(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int32()) for name in names])


# --- branches and snapshots --------------------------------------------------------------------


def _rollback_to_snapshot(lake: SparkLake, *, table: str, snapshot_id: int) -> _Rows:
    return _moved(_table(lake, table), lambda found: found.rollback(snapshot_id))


def _rollback_to_timestamp(lake: SparkLake, *, table: str, timestamp: datetime) -> _Rows:
    return _moved(_table(lake, table), lambda found: found.rollback(timestamp))


def _set_current_snapshot(
    lake: SparkLake, *, table: str, snapshot_id: int | None = None, ref: str | None = None
) -> _Rows:
    if (snapshot_id is None) == (ref is None):
        raise InvalidInput("CALL system.set_current_snapshot: give snapshot_id or ref, one of them")
    found = _table(lake, table)
    if ref is not None and ref not in found.refs:
        raise NotFound(
            f"table {found.name} has no branch or tag {ref!r}{did_you_mean(ref, found.refs)}"
        )
    to = ref if snapshot_id is None else snapshot_id
    assert to is not None
    return _moved(found, lambda table: table.set_current(to))


def _moved(table: Table, move: Any) -> _Rows:
    before = table.metadata.current_snapshot_id
    move(table)
    return [(before, table.metadata.current_snapshot_id)]


def _cherrypick_snapshot(lake: SparkLake, *, table: str, snapshot_id: int) -> _Rows:
    found = _table(lake, table)
    found.cherry_pick(snapshot_id)
    return [(snapshot_id, found.metadata.current_snapshot_id)]


def _publish_changes(lake: SparkLake, *, table: str, wap_id: str) -> _Rows:
    found = _table(lake, table)
    found.publish(wap_id)
    now = found.current_snapshot
    assert now is not None
    # Where nothing came in between, what was staged is now current itself.
    source = (now.summary or {}).get(SOURCE_SNAPSHOT, now.snapshot_id)
    return [(int(source), now.snapshot_id)]


def _fast_forward(lake: SparkLake, *, table: str, branch: str, to: str) -> _Rows:
    found = _table(lake, table)
    before = found.refs.get(branch)
    found.fast_forward(branch, to)
    return [(branch, before and before.snapshot_id, found.refs[branch].snapshot_id)]


def _ancestors_of(lake: SparkLake, *, table: str, snapshot_id: int | None = None) -> _Rows:
    found = _table(lake, table)
    last = found.metadata.current_snapshot_id if snapshot_id is None else snapshot_id
    if last is None:
        return []
    every = ancestors(found.metadata, last, found.files.page)
    return [(each.snapshot_id, each.timestamp_ms) for each in every]


_MOVED: Final = _longs("previous_snapshot_id", "current_snapshot_id")
_PICKED: Final = _longs("source_snapshot_id", "current_snapshot_id")


# --- changes, files and tables -----------------------------------------------------------------


def _create_changelog_view(
    lake: SparkLake,
    *,
    table: str,
    changelog_view: str | None = None,
    options: Mapping[str, str] | None = None,
    net_changes: bool = False,
    compute_updates: bool | None = None,
    identifier_columns: Sequence[str] | None = None,
) -> _Rows:
    name = known_table(lake, parts_of(lake, table))
    view = changelog_view or f"{name.rpartition('.')[2]}_changes"
    on = identifier_columns or None
    images = on is not None if compute_updates is None else compute_updates
    create_changelog_view(
        lake, name, view, options=options or {}, net=net_changes, images=images, on=on
    )
    return [(view,)]


def _add_files(
    lake: SparkLake,
    *,
    table: str,
    source_table: str,
    partition_filter: Mapping[str, str] | None = None,
    check_duplicate_files: bool = True,
) -> _Rows:
    if not check_duplicate_files:
        raise InvalidInput(
            "CALL system.add_files: check_duplicate_files => false: a file is in a table once; "
            "leave it out"
        )
    found = _table(lake, table)
    files = source_files(lake, found, parts_of(lake, source_table), partition_filter or {})
    if not files:
        raise NotFound(f"{source_table} has no files to add: nothing was changed")
    added = found.add_files(files).files.added
    # How many partitions, Iceberg does not tell of tables as new as ours.
    return [(added, None)]


def _snapshot(
    lake: SparkLake,
    *,
    source_table: str,
    table: str,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> _Rows:
    name = new_table(lake, parts_of(lake, table))
    source = parts_of(lake, source_table)
    return [(snapshot_table(lake, source, name, location=location, properties=properties or {}),)]


def _migrate(
    lake: SparkLake,
    *,
    table: str,
    properties: Mapping[str, str] | None = None,
    drop_backup: bool = False,
    backup_table_name: str | None = None,
) -> _Rows:
    parts = parts_of(lake, table)
    named = new_table(lake, parts[1:] if parts[0].lower() == "spark_catalog" else parts)
    count = migrate_table(
        lake,
        parts,
        named,
        properties=properties or {},
        backup=backup_table_name,
        drop_backup=drop_backup,
    )
    return [(count,)]


def _register_table(lake: SparkLake, *, table: str, metadata_file: str) -> _Rows:
    made = lake.register_table(new_table(lake, parts_of(lake, table)), metadata_file)
    now = made.current_snapshot
    totals = ("total-records", "total-data-files")
    told = [((now and now.summary) or {}).get(total, "") for total in totals]
    # Another writer's summary may say anything.
    counts = [int(count) if count.isdecimal() else None for count in told]
    return [(made.metadata.current_snapshot_id, *counts)]


# --- maintenance -------------------------------------------------------------------------------


#: Verbs that a lake on Spark has too, with the work on executors.
AT_SCALE: Final = frozenset({"rewrite_data_files"})


def _maintenance(verb: str, *takes: Parameter, gives: pa.Schema) -> Procedure:
    """Return a verb of `table.maintenance` as a procedure.

    What it returns has the columns as attributes: tuples, where there is more than one row to tell,
    and None in all of them where there is nothing.
    """

    def run(lake: SparkLake, *, table: str, **given: Any) -> _Rows:
        found = _table(lake, table)
        if "where" in given:
            given["where"] = _files_where(lake, found, given["where"])
        if verb in AT_SCALE:
            done = getattr(lake, verb)(str(found.name), **given)
        else:
            done = getattr(found.maintenance, verb)(**given)
        told = [getattr(done, name) for name in gives.names]
        if isinstance(told[0], tuple):
            return zip(*told, strict=True)
        return [] if all(value is None for value in told) else [told]

    dry_run = () if _DRY_RUN in takes else (_DRY_RUN,)
    return Procedure(takes=(_TABLE, *takes, *dry_run), gives=gives, run=run)


def _files_where(lake: SparkLake, table: Table, where: str) -> BooleanExpression:
    """Return a condition of Spark's as a filter of files, which may let more of them through."""
    filter = condition_filter(lake.spark, table.schema, where, alias=table.name.name)
    if filter == AlwaysTrue():
        raise InvalidInput(
            f"where => {where!r}: statistics tell no file by that, so all would be meant; give a "
            "condition that compares columns with constants, or leave it out"
        )
    return filter


PROCEDURES: Final[Mapping[str, Procedure]] = {
    "rollback_to_snapshot": Procedure(
        takes=(_TABLE, needed("snapshot_id", NUMBER)), gives=_MOVED, run=_rollback_to_snapshot
    ),
    "rollback_to_timestamp": Procedure(
        takes=(_TABLE, needed("timestamp", TIME)), gives=_MOVED, run=_rollback_to_timestamp
    ),
    "set_current_snapshot": Procedure(
        takes=(_TABLE, optional("snapshot_id", NUMBER), optional("ref")),
        gives=_MOVED,
        run=_set_current_snapshot,
    ),
    "cherrypick_snapshot": Procedure(
        takes=(_TABLE, needed("snapshot_id", NUMBER)), gives=_PICKED, run=_cherrypick_snapshot
    ),
    "publish_changes": Procedure(
        takes=(_TABLE, needed("wap_id")), gives=_PICKED, run=_publish_changes
    ),
    "fast_forward": Procedure(
        takes=(_TABLE, needed("branch"), needed("to")),
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
        takes=(_TABLE, optional("snapshot_id", NUMBER)),
        gives=_longs("snapshot_id", "timestamp"),
        run=_ancestors_of,
    ),
    "create_changelog_view": Procedure(
        takes=(
            _TABLE,
            optional("changelog_view"),
            optional("options", OPTIONS),
            optional("compute_updates", FLAG),
            optional("identifier_columns", TEXTS),
            optional("net_changes", FLAG),
        ),
        gives=pa.schema([("changelog_view", pa.string())]),
        run=_create_changelog_view,
    ),
    "add_files": Procedure(
        takes=(
            _TABLE,
            needed("source_table"),
            optional("partition_filter", OPTIONS),
            optional("check_duplicate_files", FLAG),
            idle("parallelism", NUMBER),
        ),
        gives=_longs("added_files_count", "changed_partition_count"),
        run=_add_files,
    ),
    "snapshot": Procedure(
        takes=(
            needed("source_table"),
            _TABLE,
            optional("location"),
            optional("properties", OPTIONS),
            idle("parallelism", NUMBER),
        ),
        gives=_longs("imported_files_count"),
        run=_snapshot,
    ),
    "migrate": Procedure(
        takes=(
            _TABLE,
            optional("properties", OPTIONS),
            optional("drop_backup", FLAG),
            optional("backup_table_name"),
            idle("parallelism", NUMBER),
        ),
        gives=_longs("migrated_files_count"),
        run=_migrate,
    ),
    "register_table": Procedure(
        takes=(_TABLE, needed("metadata_file")),
        gives=_longs("current_snapshot_id", "total_records_count", "total_data_files_count"),
        run=_register_table,
    ),
    "expire_snapshots": _maintenance(
        "expire_snapshots",
        optional("older_than", TIME),
        optional("retain_last", NUMBER),
        idle("max_concurrent_deletes", NUMBER),
        idle("stream_results", FLAG),
        optional("snapshot_ids", NUMBERS),
        optional("clean_expired_metadata", FLAG),
        gives=_longs(
            "deleted_data_files_count",
            "deleted_position_delete_files_count",
            "deleted_equality_delete_files_count",
            "deleted_manifest_files_count",
            "deleted_manifest_lists_count",
            "deleted_statistics_files_count",
        ),
    ),
    "remove_orphan_files": _maintenance(
        "remove_orphan_files",
        optional("older_than", TIME),
        optional("location"),
        _DRY_RUN,
        idle("max_concurrent_deletes", NUMBER),
        refused("file_list_view", TEXT, instead="the table's own folder is listed"),
        optional("equal_schemes", OPTIONS),
        optional("equal_authorities", OPTIONS),
        optional("prefix_mismatch_mode"),
        idle("prefix_listing", FLAG),
        idle("stream_results", FLAG),
        optional("force", FLAG),
        gives=pa.schema([("orphan_file_location", pa.string())]),
    ),
    "rewrite_manifests": _maintenance(
        "rewrite_manifests",
        idle("use_caching", FLAG),
        refused("spec_id", NUMBER, instead="manifests of all partition specs are looked at"),
        optional("sort_by", TEXTS, ours="by"),
        gives=_ints("rewritten_manifests_count", "added_manifests_count"),
    ),
    "rewrite_data_files": _maintenance(
        "rewrite_data_files",
        optional("strategy"),
        optional("sort_order"),
        optional("options", OPTIONS),
        optional("where"),
        optional("branch"),
        gives=pa.schema(
            [
                *_ints("rewritten_data_files_count", "added_data_files_count"),
                *_longs("rewritten_bytes_count"),
                *_ints("failed_data_files_count", "removed_delete_files_count"),
            ]
        ),
    ),
    "rewrite_position_delete_files": _maintenance(
        "rewrite_position_delete_files",
        refused("options", OPTIONS, instead="what gains is rewritten, and where narrows it down"),
        optional("where"),
        optional("rewrite_equality_deletes", FLAG),
        optional("branch"),
        gives=pa.schema(
            [
                *_ints("rewritten_delete_files_count", "added_delete_files_count"),
                *_longs("rewritten_bytes_count", "added_bytes_count"),
            ]
        ),
    ),
    "compute_table_stats": _maintenance(
        "compute_table_stats",
        optional("snapshot_id", NUMBER, ours="at"),
        optional("columns", TEXTS),
        gives=pa.schema([("statistics_file", pa.string())]),
    ),
    "compute_partition_stats": _maintenance(
        "compute_partition_stats",
        optional("snapshot_id", NUMBER, ours="at"),
        gives=pa.schema([("partition_statistics_file", pa.string())]),
    ),
}

#: Procedures of Iceberg's that are not there, and what to do instead.
ELSEWHERE: Final[Mapping[str, str]] = {
    "rewrite_table_path": "locations are relative: copy the table's folder, and register_table it",
    "undelete_column": "ALTER TABLE … ADD COLUMN adds one anew; VERSION AS OF reads the old one",
}
