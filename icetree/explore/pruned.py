"""What a filter leaves of a snapshot: told by `explain` and by the plan, beside a whole scan and v3."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.explore.film import own_files, own_leaves, read_root
from icetree.explore.plain import plain
from icetree.filters.filter import parse_filter
from icetree.picture.rows import stats_columns
from icetree.spec.entry.entry import BASE_COLUMNS, Content, Entries, is_content, is_live, only
from icetree.spec.locations import absolute_array
from icetree.spec.schema.shape import Shape
from icetree.table.scan.explain import explain_scan
from icetree.table.table import Table
from icetree.tree.plan.delete_stats import judged
from icetree.tree.prune.bind import bind
from icetree.tree.prune.predicates import Predicate
from icetree.tree.prune.prune import conjunct_masks, may_match

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
    bound = bind(parse_filter(where), shape, case_sensitive=scan.case_sensitive)
    manifests = [
        each
        for each in explained.objects.to_pylist()
        if each["level"] == "root" and each["kind"].endswith("manifest")
    ]
    data = only(root, pc.and_(is_live(root), is_content(root, Content.DATA, Content.DATA_MANIFEST)))
    gone = _gone(root)
    return {
        "snapshot_id": None if scan.snapshot is None else str(scan.snapshot.snapshot_id),
        "where": explained.where,
        "conjuncts": list(explained.conjuncts),
        "text": explained.text(),
        "groups": plain(explained.groups.to_pylist()),
        "planned": {
            "files": plan.metrics.data_files,
            "file_size_in_bytes": _sum(plan.tasks["file_size_in_bytes"]),
            **_told_of(only(data, may_match(data, bound)), gone),
        },
        "by_partitions": _told_of(_by_partitions(data, bound, shape), gone),
        "full": _whole(table, at, data, gone),
        "leaves": {each["object"]: {"kept": each["kept"], "by": each["by"]} for each in manifests},
        "kept": may_match(judged(own_leaves(root), shape), bound).to_pylist(),
        "cells": _cells(root, bound, shape, explained.conjuncts, table.location),
    }


def _cells(
    root: Entries, bound: Predicate, shape: Shape, names: tuple[str, ...], table_location: str
) -> list[dict[str, Any]]:
    """Return the files of a frame's root that the filter rules out, with the parts of it that do."""
    shown = own_files(root)
    shown = only(shown, is_live(shown))
    masks = conjunct_masks(judged(shown, shape), bound)
    fates = [may.to_pylist() for _, may in masks]
    locations = (
        absolute_array(shown[name], table_location).to_pylist()
        for name in ("location", "referenced_file")
    )
    places = zip(*locations, strict=True)
    told = (
        (place, owner, [names[part] for part, may in enumerate(fates) if not may[row]])
        for row, (place, owner) in enumerate(places)
    )
    return [
        {"file_path": place, "affiliated_with": owner, "by": by} for place, owner, by in told if by
    ]


def _gone(root: Entries) -> Entries:
    """Return the manifest DVs of a root: which leaf each is of, and how many entries it removes."""
    return only(root, pc.and_(is_live(root), is_content(root, Content.MANIFEST_DV)))


def _whole(table: Table, at: str | None, data: Entries, gone: Entries) -> dict[str, Any]:
    """Return what a scan without a filter reads; of very many files, bytes as the summary has them."""
    looked = _told_of(data, gone)
    snapshot = table.snapshot(at)
    told = (snapshot.summary or {}).get("total-files-size", "") if snapshot is not None else ""
    if looked["looked_through"] > _FILES and told.isascii() and told.isdigit():
        size = int(told)
    else:
        size = _sum(table.scan(at=at).plan().tasks["file_size_in_bytes"])
    return {"files": looked["looked_through"], "file_size_in_bytes": size, **looked}


def _by_partitions(data: Entries, bound: Predicate, shape: Shape) -> Entries:
    """Return the leaves and files that are left where partitions alone are known of, as lists of v3 do.

    Which files are left in them is the same in all versions: bounds of files are nothing new.
    """
    known = {*BASE_COLUMNS, *stats_columns(shape)}
    return only(data, may_match(data.select([n for n in data.column_names if n in known]), bound))


def _told_of(kept: Entries, gone: Entries) -> dict[str, int]:
    """Return which leaves are opened, and how many live files are to be looked through one by one."""
    leaves = only(kept, is_content(kept, Content.DATA_MANIFEST))
    mine = pc.is_in(gone["referenced_file"], value_set=leaves["location"].combine_chunks())
    held = _sum(leaves["added_files_count"]) + _sum(leaves["existing_files_count"])
    own = kept.num_rows - leaves.num_rows
    return {
        "leaves": leaves.num_rows,
        "leaf_bytes": _sum(leaves["file_size_in_bytes"]),
        "looked_through": own + held - _sum(only(gone, mine)["record_count"]),
    }


def _sum(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0
