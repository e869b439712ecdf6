"""What a filter leaves of a snapshot: told by `explain` and by the plan, beside a whole scan and v3."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.explore.film import read_root
from icetree.explore.plain import plain
from icetree.filters.filter import parse_filter
from icetree.picture.rows import stats_columns
from icetree.spec.entry import BASE_COLUMNS, Content, Entries, is_content, is_live, only
from icetree.spec.shape import Shape
from icetree.table.scan.explain import explain_scan
from icetree.table.table import Table
from icetree.tree.bind import bind
from icetree.tree.predicates import Predicate
from icetree.tree.prune import may_match

#: Objects whose fate is told one by one, leaves first; sums are of all, whatever is told.
_OBJECTS: Final = 3_000
#: Up to so many files, a whole scan is planned to say how many bytes they are.
_FILES: Final = 100_000


def pruned(table: Table, *, where: str, at: str | None = None) -> dict[str, Any]:
    """Return what a scan with a filter reads and skips, and which part of the filter does it."""
    scan = table.scan(where, at=at)
    explained = explain_scan(scan, objects=_OBJECTS)
    plan = scan.plan()
    shape = scan.metadata.shape(scan.schema.schema_id)
    root = read_root(table, scan.snapshot, shape)
    leaves = only(root, pc.and_(is_live(root), is_content(root, Content.DATA_MANIFEST)))
    bound = bind(parse_filter(where), shape, case_sensitive=scan.case_sensitive)
    manifests = [
        each
        for each in explained.objects.to_pylist()
        if each["level"] == "root" and each["kind"].endswith("manifest")
    ]
    kept = only(leaves, may_match(leaves, bound))
    return {
        "where": explained.where,
        "conjuncts": list(explained.conjuncts),
        "text": explained.text(),
        "groups": plain(explained.groups.to_pylist()),
        "planned": {
            "files": plan.metrics.data_files,
            "file_size_in_bytes": _sum(plan.tasks["file_size_in_bytes"]),
            **_told_of(kept),
        },
        "by_partitions": _told_of(_by_partitions(leaves, bound, shape)),
        "full": _whole(table, at, root, leaves),
        "leaves": {each["object"]: {"kept": each["kept"], "by": each["by"]} for each in manifests},
    }


def _whole(table: Table, at: str | None, root: Entries, leaves: Entries) -> dict[str, Any]:
    """Return what a scan without a filter reads; of very many files, bytes as the summary has them."""
    own = only(root, pc.and_(is_live(root), is_content(root, Content.DATA)))
    gone = only(root, pc.and_(is_live(root), is_content(root, Content.MANIFEST_DV)))
    gone = only(
        gone, pc.is_in(gone["referenced_file"], value_set=leaves["location"].combine_chunks())
    )
    held = _sum(leaves["added_files_count"]) + _sum(leaves["existing_files_count"])
    files = own.num_rows + held - _sum(gone["record_count"])
    snapshot = table.snapshot(at)
    told = (snapshot.summary or {}).get("total-files-size", "") if snapshot is not None else ""
    if files > _FILES and told.isascii() and told.isdigit():
        size = int(told)
    else:
        size = _sum(table.scan(at=at).plan().tasks["file_size_in_bytes"])
    return {"files": files, "file_size_in_bytes": size, **_told_of(leaves)}


def _by_partitions(leaves: Entries, bound: Predicate, shape: Shape) -> Entries:
    """Return the leaves that are read when a root knows of partitions alone, as lists of v3 do.

    Which files are left in them is the same in all versions: bounds of files are nothing new.
    """
    known = {*BASE_COLUMNS, *stats_columns(shape)}
    return only(
        leaves, may_match(leaves.select([n for n in leaves.column_names if n in known]), bound)
    )


def _told_of(leaves: Entries) -> dict[str, int]:
    return {"leaves": leaves.num_rows, "leaf_bytes": _sum(leaves["file_size_in_bytes"])}


def _sum(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0
