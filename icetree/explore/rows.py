"""The first rows of one data file, as a scan of the snapshot reads it: without what was deleted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import NotFound
from icetree.explore.named import stored, told
from icetree.explore.plain import first_plain
from icetree.files.parallel import in_order
from icetree.rows.read.read import read_tasks
from icetree.rows.schema import arrow_schema
from icetree.spec.arrays import is_among
from icetree.spec.entry.entry import Content, Entries, is_content, is_named, only
from icetree.table.table import Table
from icetree.tree.plan.plan import Planner

#: Rows that are told.
MOST: Final = 100


def rows(
    table: Table, *, file_path: str, at: str | None = None, leaf: str | None = None
) -> dict[str, Any]:
    """Return the first rows of a file that is live in a snapshot; `leaf` says where it is tracked.

    A name that is no file of the snapshot is not opened.
    """
    scan = table.scan(at=at)
    shape = scan.metadata.shape(scan.schema.schema_id)
    root = table.files.root(scan.snapshot, shape, keep=True)
    plan = Planner(
        _near(root, None if leaf is None else stored(table, leaf)),
        table.files.reader(shape),
        shape,
        root_file=scan.snapshot.root_file if scan.snapshot else "root",
        table_location=table.location,
        stats_columns=True,
        run=in_order,
    ).whole()
    tasks = plan.tasks.filter(is_named(plan.tasks, stored(table, file_path)))
    if not tasks.num_rows:
        raise NotFound(f"{file_path} is no data file of this snapshot")
    reading = read_tasks(
        replace(plan, tasks=tasks.slice(0, 1)),
        store=table.files.store,
        metadata=scan.metadata,
        columns=scan.columns,
        schema=scan.schema,
    )
    batches = first_rows(reading, MOST)
    found = pa.Table.from_batches(batches, arrow_schema(scan.columns))
    return {
        "file_path": told(table, file_path),
        "columns": [{"name": each.name, "type": str(each.type)} for each in found.schema],
        "rows": first_plain(found),
        "record_count": tasks["record_count"][0].as_py(),
        "deleted_rows": tasks["dv_cardinality"][0].as_py() or 0,
    }


def first_rows(batches: Iterator[pa.RecordBatch], most: int) -> list[pa.RecordBatch]:
    """Return batches of so many rows together at most; no more is read."""
    found: list[pa.RecordBatch] = []
    for batch in batches:
        left = most - sum(each.num_rows for each in found)
        found.append(batch.slice(0, left))
        if batch.num_rows >= left:
            break
    batches.close()  # type: ignore[attr-defined]
    return found


def _near(root: Entries, leaf: str | None) -> Entries:
    """Return a root without the data manifests, and the files, among which the file is not."""
    is_far = is_content(root, Content.DATA_MANIFEST)
    if leaf is not None:
        is_far = pc.or_(is_far, is_content(root, Content.DATA))
        is_far = pc.and_(is_far, pc.invert(is_named(root, leaf)))
    near, far = only(root, pc.invert(is_far)), only(root, is_far)
    # Nor is what removes from a leaf that is left out.
    of_far = pc.and_(
        is_content(near, Content.MANIFEST_DV), is_among(near["referenced_file"], far["location"])
    )
    return only(near, pc.invert(of_far))
