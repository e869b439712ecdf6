"""A snapshot's summary: Iceberg's keys, counted from what the commit changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.arrays import grouped
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    MANIFESTS,
    Content,
    Entries,
    empty,
    has_format,
    is_content,
    is_of_spec,
    only,
)
from icetree.spec.locations import origins
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Operation

#: total -> (what adds to it, what takes from it)
_TOTALS = {
    "total-data-files": ("added-data-files", "deleted-data-files"),
    "total-delete-files": ("added-delete-files", "removed-delete-files"),
    "total-records": ("added-records", "deleted-records"),
    "total-files-size": ("added-files-size", "removed-files-size"),
    "total-position-deletes": ("added-position-deletes", "removed-position-deletes"),
    "total-equality-deletes": ("added-equality-deletes", "removed-equality-deletes"),
}
#: What a commit did to the leaves of the tree: made, left, took away, and the entries it wrote.
TOLD_OF_LEAVES: Final = (
    "manifests-created",
    "manifests-kept",
    "manifests-replaced",
    "entries-processed",
)
_CHANGED_PARTITIONS: Final = "changed-partition-count"
#: The formats that data files may have, with commas between: readers that know one format only need
#: not look into leaves. Not there where some commit of another writer did not tell.
FILE_FORMATS: Final = "data-file-formats"
#: Whether the tree may name files outside the table's location: where none is, other tables need not
#: look into leaves to see that none is theirs. Not there where some commit did not tell.
FILES_OUTSIDE: Final = "files-outside-location"

_COUNTED = [
    "content_type",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "dv_size_in_bytes",
]


def summarise(
    operation: Operation,
    added: Entries,
    removed: pa.Table,
    previous: Mapping[str, str] | None,
    *,
    manifests: Mapping[str, int],
    changed_partitions: int | None,
    outside: bool | None = None,
) -> dict[str, str]:
    """Return the summary of a snapshot that adds and removes these files.

    `outside` tells whether files may lie outside the table, None where nobody knows. `previous` is the
    parent's summary, None for the first snapshot; a total that the parent does not tell as a number, or
    tells as less than what goes, is not told. Counts of zero are left out, manifests are always told.
    """
    counts = _counts(added, ("added", "added")) | _counts(removed, ("deleted", "removed"))
    summary = {"operation": operation.value}
    summary |= {key: str(count) for key, count in counts.items() if count}
    if changed_partitions is not None:
        summary[_CHANGED_PARTITIONS] = str(changed_partitions)
    for total, (plus, minus) in _TOTALS.items():
        base = 0 if previous is None else _number(previous.get(total))
        if base is not None and (now := base + counts[plus] - counts[minus]) >= 0:
            summary[total] = str(now)
    formats = _formats(added, previous)
    if formats:
        summary[FILE_FORMATS] = ",".join(sorted(formats))
    if outside is not None:
        summary[FILES_OUTSIDE] = "true" if outside else "false"
    return summary | {key: str(count) for key, count in manifests.items()}


def _formats(added: Entries, previous: Mapping[str, str] | None) -> set[str]:
    """Return the formats that data files may have; none where there are no files, or nobody knows."""
    new = set(pc.unique(_only(added.select(_COUNTED), Content.DATA)["file_format"]).to_pylist())
    if previous is None or _number(previous.get("total-data-files")) == 0:
        return new
    told = previous.get(FILE_FORMATS)
    return new | set(told.split(",")) if told else set()


def names_outside(
    root: Entries, added: Entries, before: Entries, previous: Mapping[str, str] | None
) -> bool | None:
    """Tell whether a tree may name files outside the table; None where nobody knows.

    `added` came with the new root, to leaves too. What leaves of the root `before` name, its summary
    told; Avro manifests name files in full, wherever the table is by now, so of these none is known.
    """
    if origins(root["location"]) or origins(added["location"]):
        return True
    if previous is None or not pc.any(is_content(root, *MANIFESTS)).as_py():
        return False
    avro = pc.and_(is_content(before, *MANIFESTS), has_format(before, "avro"))
    told = previous.get(FILES_OUTSIDE)
    return None if told is None or pc.any(avro).as_py() else told != "false"


def data_files(summary: Mapping[str, str] | None) -> int | None:
    """Return how many data files a snapshot has, as its summary says; None where it says nothing."""
    return _number((summary or {}).get("total-data-files"))


def _number(told: str | None) -> int | None:
    """Return a total as another writer told it; None for what is no number."""
    try:
        return None if told is None else int(told)
    except ValueError:
        return None


def totals(live: Entries) -> dict[str, int]:
    """Count live files under the keys of a summary's totals."""
    counts = _counts(live, ("total", "total"))
    return {key: counts[key] for key in _TOTALS}


def _counts(files: pa.Table, words: tuple[str, str]) -> dict[str, int]:
    for_data, for_deletes = words
    files = files.select(_COUNTED)
    data = _only(files, Content.DATA)
    equality = _only(files, Content.EQUALITY_DELETES)
    position = _only(files, Content.POSITION_DELETES)
    data_dvs = pc.sum(has_format(position, "puffin")).as_py() or 0
    return {
        f"{for_data}-data-files": data.num_rows,
        f"{for_data}-records": _sum(data, "record_count"),
        f"{for_deletes}-files-size": _size_bytes(files),
        f"{for_deletes}-delete-files": equality.num_rows + position.num_rows,
        f"{for_deletes}-equality-delete-files": equality.num_rows,
        f"{for_deletes}-position-delete-files": position.num_rows - data_dvs,
        f"{for_deletes}-dvs": data_dvs,
        f"{for_deletes}-position-deletes": _sum(position, "record_count"),
        f"{for_deletes}-equality-deletes": _sum(equality, "record_count"),
    }


def _only(files: pa.Table, content: Content) -> pa.Table:
    return only(files, is_content(files, content))


def _sum(files: pa.Table, column: str) -> int:
    return pc.sum(files[column]).as_py() or 0


def _size_bytes(files: pa.Table) -> int:
    # A Puffin file may hold many DVs: each counts for its own range of it.
    sizes = pc.coalesce(files["dv_size_in_bytes"], files["file_size_in_bytes"])
    return pc.sum(sizes).as_py() or 0


#: The names that a summary is made of here, which no caller may use for something else.
OWN_NAMES: Final = frozenset(
    {
        "operation",
        _CHANGED_PARTITIONS,
        FILE_FORMATS,
        FILES_OUTSIDE,
        *TOLD_OF_LEAVES,
        *_TOTALS,
        *_counts(empty(), ("added", "added")),
        *_counts(empty(), ("deleted", "removed")),
    }
)


def changed_partitions(files: Entries, shape: Shape) -> int:
    """Count the partitions that files which came or went belong to."""
    files = only(files, is_content(files, Content.DATA, Content.EQUALITY_DELETES))
    count = 0
    for spec_id in pc.unique(files["partition_spec_id"]).to_pylist():
        here = only(files, is_of_spec(files, spec_id))
        names = [stats.column(id, "lower") for id in shape.partition_fields(spec_id)]
        keys = here.select([name for name in names if name in here.schema.names])
        count += grouped(keys, keys.schema.names).aggregate([]).num_rows if keys.num_columns else 1
    return count
