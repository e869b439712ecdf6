"""Making leaves: entries into a new manifest file and the root entry that points to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec import manifest
from icetree.codec.encryption.stream import seal
from icetree.spec.entry.entry import (
    BASE_SCHEMA,
    POSITION,
    Content,
    Entries,
    Status,
    complete,
    has_status,
    is_data_file,
    is_live,
    kind_of,
    only,
)
from icetree.spec.entry.equality import without_loose_stats
from icetree.spec.schema.shape import Shape
from icetree.tree.aggregate import aggregate
from icetree.tree.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """Bytes to be stored under a new name before the swap."""

    location: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class NewLeaf:
    """A leaf manifest that is not stored yet, with its entry for the root."""

    file: NewFile
    #: One row; its tracking is filled in by the commit that takes the leaf in.
    entry: Entries
    entries: Entries
    #: Rows of data files that will take their row ids from the leaf's entry.
    rows_without_ids: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshaped:
    """A root whose entries were moved between root and leaves, and the leaves made for it."""

    root: Entries
    leaves: tuple[NewLeaf, ...] = ()

    def then(self, root: Entries, *leaves: NewLeaf) -> Reshaped:
        """Return the next step: another root, and more leaves."""
        return Reshaped(root=root, leaves=(*self.leaves, *leaves))


def make_leaf(
    entries: Entries,
    content: Content,
    location: str,
    shape: Shape,
    *,
    status: Status,
    referenced_file: str | None = None,
    key_bytes: int | None = None,
) -> NewLeaf:
    """Encode entries, clustered already, as a leaf data or delete manifest.

    With `key_bytes` it is encrypted with a new key of that length, which its root entry has.
    """
    rows = entries.drop_columns([POSITION]) if POSITION in entries.schema.names else entries
    rows = without_loose_stats(rows, shape)
    encoded = manifest.encode(rows, kind_of(content), shape, file=location)
    stored, key = seal(encoded, key_bytes)
    file = NewFile(location=location, content=stored)
    live = only(rows, is_live(rows))
    facts = {
        "content_type": int(content),
        "location": location,
        "file_format": "parquet",
        "status": int(status),
        "partition_spec_id": shape.default_spec_id,
        "record_count": rows.num_rows,
        "file_size_in_bytes": len(file.content),
        "referenced_file": referenced_file,
        "key_metadata": key,
        "min_sequence_number": pc.min(live["sequence_number"]).as_py(),
    } | _counts(rows)
    columns = {
        name: pa.array([value], BASE_SCHEMA.field(name).type) for name, value in facts.items()
    }
    # Never by way of Python, which has no dates after 9999 and no nanoseconds.
    columns |= {name: pa.array([value], value.type) for name, value in aggregate(live).items()}
    return NewLeaf(
        file=file,
        entry=complete(pa.table(columns)),
        entries=rows,
        rows_without_ids=_rows_without_ids(rows),
    )


def split(entries: Entries, policy: Policy) -> Iterator[Entries]:
    """Cut clustered entries into leaves of about equal size, within the policy's limits."""
    most = entries_per_leaf(entries, policy)
    count = -(-entries.num_rows // most)
    for i in range(count):
        start, end = (entries.num_rows * k // count for k in (i, i + 1))
        yield entries.slice(start, end - start)


def entries_per_leaf(entries: Entries, policy: Policy) -> int:
    """Return how many entries of this shape a leaf should hold.

    An encoded entry takes about 2.5 bytes a column (measured at 10 and at 50 tracked fields).
    """
    by_size = 2 * policy.leaf_target_bytes // (5 * int(entries.num_columns))
    return max(1, min(policy.leaf_max_entries, by_size))


def _counts(entries: Entries) -> dict[str, int]:
    found = {}
    for status in Status:
        of_status = has_status(entries, status)
        name = status.name.lower()
        found[f"{name}_files_count"] = pc.sum(of_status).as_py() or 0
        found[f"{name}_rows_count"] = pc.sum(entries["record_count"].filter(of_status)).as_py() or 0
    return found


def _rows_without_ids(entries: Entries) -> int:
    takes = pc.and_(
        is_data_file(entries),
        pc.and_(pc.is_null(entries["first_row_id"]), has_status(entries, Status.ADDED)),
    )
    return pc.sum(entries["record_count"].filter(takes)).as_py() or 0
