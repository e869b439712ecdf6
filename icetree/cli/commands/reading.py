"""The commands `files`, `plan` and `explain`."""

from __future__ import annotations

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import (
    as_json_option,
    at_option,
    limit_option,
    pass_lake,
    table_argument,
    where_option,
)


@click.command()
@table_argument
@where_option
@at_option
@limit_option(100)
@as_json_option
@pass_lake
def files(
    lake: Chosen, name: str, where: str | None, at: str | None, limit: int, as_json: bool
) -> None:
    """List live files, or those a filter may match."""
    from icetree.cli.commands.history import kind_of
    from icetree.cli.output import print_json, print_rows
    from icetree.table.told import told
    from icetree.tree.live import LEAF, live_files
    from icetree.tree.plan.delete_stats import judged
    from icetree.tree.prune.bind import bind
    from icetree.tree.prune.prune import may_match

    with lake.table(name) as table:
        scan = table.scan(where, at=at)
        shape = scan.metadata.shape(scan.schema.schema_id)
        root = table.files.counted_root(scan.snapshot, shape)
        live = live_files(root, table.files.reader(shape))
        if where is not None:
            live = live.filter(may_match(judged(live, shape), bind(scan.where, shape)))
    facts = ["content_type", "file_format", "location", "record_count", "file_size_in_bytes"]
    facts += ["partition_spec_id", "sequence_number", "first_row_id", "referenced_file", LEAF]
    found = told(live, facts, table.location)
    if as_json:
        print_json(found.to_pylist())
        return
    rows = found.slice(0, limit).to_pylist()
    for row in rows:
        row["kind"] = kind_of(row["content"], row["file_format"])
    headings = {
        "kind": "KIND",
        "record_count": "ROWS",
        "file_size_in_bytes": "BYTES",
        "sequence_number": "SEQUENCE",
        "file_path": "FILE",
        LEAF: "LEAF",
    }
    empty = "No files." if where is None else "No files that may match."
    more = found.num_rows - len(rows)
    print_rows(rows, headings, empty=empty, more=more, folder=table.location)


@click.command()
@table_argument
@where_option
@at_option
@limit_option(100)
@as_json_option
@pass_lake
def plan(
    lake: Chosen, name: str, where: str | None, at: str | None, limit: int, as_json: bool
) -> None:
    """Show what a scan would read."""
    from dataclasses import asdict

    from icetree.cli.output import print_json, print_rows
    from icetree.filters.text import predicate_text
    from icetree.table.told import told

    with lake.table(name) as table:
        found = table.scan(where, at=at).plan()
    residuals = [predicate_text(each) for each in found.residuals]
    wanted = ["location", "record_count", "file_size_in_bytes", "partition_spec_id", "leaf"]
    wanted += ["position", "dv_location", "dv_cardinality", "equality_deletes", "position_deletes"]
    tasks = told(found.tasks, [*wanted, "residual"], table.location)
    if not as_json:
        tasks = tasks.slice(0, limit)
    rows = tasks.to_pylist()
    for row in rows:
        row["residual"] = residuals[row["residual"]]
    if as_json:
        print_json(
            {
                "tasks": rows,
                "deletes": told(
                    found.deletes, found.deletes.column_names, table.location
                ).to_pylist(),
                "metrics": asdict(found.metrics),
            }
        )
        return
    for row in rows:
        row["residual"] = "nothing" if row["residual"] == "true" else row["residual"]
        row["equality"] = len(row["equality_deletes"] or ()) + len(row["position_deletes"] or ())
    headings = {
        "record_count": "ROWS",
        "file_size_in_bytes": "BYTES",
        "dv_cardinality": "DV ROWS",
        "equality": "DELETE FILES",
        "residual": "STILL TO CHECK",
        "file_path": "FILE",
    }
    print_rows(
        rows,
        headings,
        empty="Nothing to read: no file can hold a matching row.",
        more=found.tasks.num_rows - len(rows),
        folder=table.location,
    )
    seen = found.metrics
    print(
        f"\n{seen.data_files:,} files; read {seen.data_leaves_read} of {seen.data_leaves_total} "
        f"data manifests and {seen.delete_leaves_read} of {seen.delete_leaves_total} delete "
        "manifests"
    )


@click.command()
@table_argument
@click.option("--where", metavar="FILTER", required=True, help="Such as \"country = 'DE'\".")
@at_option
@click.option("--row-groups", is_flag=True, help="Look at the data files' row groups too.")
@as_json_option
@pass_lake
def explain(
    lake: Chosen, name: str, where: str, at: str | None, row_groups: bool, as_json: bool
) -> None:
    """Tell what a filter skips, where and why."""
    from icetree.cli.output import print_json, say_lines

    with lake.table(name) as table:
        told = table.explain(where, at=at, row_groups=row_groups)
    if as_json:
        print_json(
            {
                "where": told.where,
                "conjuncts": told.conjuncts,
                "groups": told.groups.to_pylist(),
                "objects": told.objects.to_pylist(),
                "total_objects": told.total_objects,
            }
        )
    else:
        say_lines(told.text())
