"""The procedures of `CALL`, each declared with Iceberg's names for its arguments and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from icetree.errors import InvalidInput, NotFound
from icetree.spark.read.condition import condition_filter
from icetree.spark.sql.call.add_files import source_files
from icetree.spark.sql.call.changelog import create_changelog_view
from icetree.spark.sql.call.moving import migrate_table, snapshot_table
from icetree.spark.sql.call.of_refs import DRY_RUN, OF_REFS, TABLE, Rows, longs, table_of
from icetree.spark.sql.call.procedure import (
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
from icetree.spark.sql.names import known_table, new_table, parts_of
from icetree.table.table import Table

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


def _ints(*names: str) -> pa.Schema:
    return pa.schema([(name, pa.int32()) for name in names])


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
) -> Rows:
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
    dry_run: bool = False,
) -> Rows:
    if not check_duplicate_files:
        raise InvalidInput(
            "CALL system.add_files: check_duplicate_files => false: a file is in a table once; "
            "leave it out"
        )
    found = table_of(lake, table)
    files = source_files(lake, found, parts_of(lake, source_table), partition_filter or {})
    if not files:
        raise NotFound(f"{source_table} has no files to add: nothing was changed")
    added = found.add_files(files, dry_run=dry_run).files.added
    # How many partitions, Iceberg does not tell of tables as new as ours.
    return [(added, None)]


def _snapshot(
    lake: SparkLake,
    *,
    source_table: str,
    table: str,
    location: str | None = None,
    properties: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> Rows:
    name = new_table(lake, parts_of(lake, table))
    count = snapshot_table(
        lake,
        parts_of(lake, source_table),
        name,
        location=location,
        properties=properties or {},
        dry_run=dry_run,
    )
    return [(count,)]


def _migrate(
    lake: SparkLake,
    *,
    table: str,
    properties: Mapping[str, str] | None = None,
    drop_backup: bool = False,
    backup_table_name: str | None = None,
    dry_run: bool = False,
) -> Rows:
    parts = parts_of(lake, table)
    named = new_table(lake, parts[1:] if parts[0].lower() == "spark_catalog" else parts)
    count = migrate_table(
        lake,
        parts,
        named,
        properties=properties or {},
        backup=backup_table_name,
        drop_backup=drop_backup,
        dry_run=dry_run,
    )
    return [(count,)]


def _register_table(
    lake: SparkLake, *, table: str, metadata_file: str, dry_run: bool = False
) -> Rows:
    name = new_table(lake, parts_of(lake, table))
    made = lake.register_table(name, metadata_file, dry_run=dry_run)
    now = made.current_snapshot
    totals = ("total-records", "total-data-files")
    told = [((now and now.summary) or {}).get(total, "") for total in totals]
    # Another writer's summary may say anything.
    counts = [int(count) if count.isdecimal() else None for count in told]
    return [(made.metadata.current_snapshot_id, *counts)]


# --- maintenance -------------------------------------------------------------------------------


#: Verbs that a lake on Spark has too, with the work on executors, or with much of it.
AT_SCALE: Final = frozenset({"rewrite_data_files", "rewrite_manifests", "remove_orphan_files"})


def _maintenance(verb: str, *takes: Parameter, gives: pa.Schema) -> Procedure:
    """Return a verb of `table.maintenance` as a procedure.

    What it returns has the columns as attributes: tuples, where there is more than one row to tell,
    and None in all of them where there is nothing.
    """

    def run(lake: SparkLake, *, table: str, **given: Any) -> Rows:
        found = table_of(lake, table)
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

    dry_run = () if DRY_RUN in takes else (DRY_RUN,)
    return Procedure(takes=(TABLE, *takes, *dry_run), gives=gives, run=run, tells=True)


def _optimize(lake: SparkLake, *, table: str, **given: Any) -> Rows:
    done = table_of(lake, table).maintenance.optimize(**given)
    return [(each.verb, each.reason, each.cost_bytes, each.left) for each in done.steps]


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
    **OF_REFS,
    "create_changelog_view": Procedure(
        takes=(
            TABLE,
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
            TABLE,
            needed("source_table"),
            optional("partition_filter", OPTIONS),
            optional("check_duplicate_files", FLAG),
            idle("parallelism", NUMBER),
            DRY_RUN,
        ),
        gives=longs("added_files_count", "changed_partition_count"),
        run=_add_files,
    ),
    "snapshot": Procedure(
        takes=(
            needed("source_table"),
            TABLE,
            optional("location"),
            optional("properties", OPTIONS),
            idle("parallelism", NUMBER),
            DRY_RUN,
        ),
        gives=longs("imported_files_count"),
        run=_snapshot,
    ),
    "migrate": Procedure(
        takes=(
            TABLE,
            optional("properties", OPTIONS),
            optional("drop_backup", FLAG),
            optional("backup_table_name"),
            idle("parallelism", NUMBER),
            DRY_RUN,
        ),
        gives=longs("migrated_files_count"),
        run=_migrate,
    ),
    "register_table": Procedure(
        takes=(TABLE, needed("metadata_file"), DRY_RUN),
        gives=longs("current_snapshot_id", "total_records_count", "total_data_files_count"),
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
        gives=longs(
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
        DRY_RUN,
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
        optional("sort_order", ours="order_by"),
        optional("options", OPTIONS),
        optional("where"),
        optional("branch"),
        gives=pa.schema(
            [
                *_ints("rewritten_data_files_count", "added_data_files_count"),
                *longs("rewritten_bytes_count"),
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
                *longs("rewritten_bytes_count", "added_bytes_count"),
            ]
        ),
    ),
    # Not one of Iceberg's: a row for each step.
    "optimize": Procedure(
        takes=(
            TABLE,
            optional("max_seconds", NUMBER),
            optional("max_bytes", NUMBER),
            optional("branch"),
            DRY_RUN,
        ),
        gives=pa.schema(
            [
                ("verb", pa.string()),
                ("reason", pa.string()),
                ("cost_bytes", pa.int64()),
                ("left", pa.string()),
            ]
        ),
        run=_optimize,
        tells=True,
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
