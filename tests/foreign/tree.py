"""A tree as another writer keeps it: root and leaves, and every legal way to write them down."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from random import Random
from typing import Any

from tests.foreign import blobs, parquet
from tests.foreign.columns import Json
from tests.foreign.dress import Dress, aside
from tests.foreign.layout import Layout
from tests.foreign.model import File

EXISTING, ADDED, DELETED = 0, 1, 2
DATA_LEAF, DELETE_LEAF, MANIFEST_DV = 3, 4, 5


@dataclass(slots=True, kw_only=True, eq=False)
class Vector:
    """A manifest DV as its root entry tells of it."""

    positions: frozenset[int]
    snapshot_id: int
    sequence_number: int
    location: str | None = None
    size: int | None = None
    offset: int | None = None
    length: int | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Leaf:
    """A leaf manifest: its entries as they were written, and what became of them."""

    content: int
    location: str
    format: str
    #: Each with its status there.
    entries: list[tuple[File, int]]
    snapshot_id: int
    sequence_number: int
    first_row_id: int | None = None
    size: int = 0
    stats: dict[int, dict[str, Any]] = field(default_factory=dict)
    counts: Json = field(default_factory=dict)
    owner: Leaf | None = None
    vector: Vector | None = None

    @property
    def removed(self) -> frozenset[int]:
        return frozenset() if self.vector is None else self.vector.positions

    def live(self) -> list[File]:
        """Return the files that count."""
        return [
            file
            for at, (file, status) in enumerate(self.entries)
            if status != DELETED and at not in self.removed
        ]

    def position(self, file: File) -> int:
        """Return where a live file stands."""
        return next(
            at
            for at, (each, status) in enumerate(self.entries)
            if each is file and status != DELETED and at not in self.removed
        )


@dataclass(slots=True, kw_only=True)
class Tree:
    """The live entries of a root."""

    files: list[File] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)

    def live(self) -> list[File]:
        return [*self.files, *(file for leaf in self.leaves for file in leaf.live())]

    def copy(self) -> Tree:
        return Tree(files=list(self.files), leaves=list(self.leaves))


@dataclass(slots=True, kw_only=True)
class Commit:
    """A root in the making."""

    id: int
    sequence_number: int
    #: Entries of the root, with the file or leaf that each is for.
    rows: list[tuple[Json, File | Leaf | None]] = field(default_factory=list)
    new_leaves: list[tuple[Leaf, int]] = field(default_factory=list)
    #: Leaves that this commit must leave as they are.
    touched: set[Leaf] = field(default_factory=set)

    def is_new(self, leaf: Leaf) -> bool:
        return any(leaf is each for each, _ in self.new_leaves)


def replaced(leaf: Leaf, **changes: Any) -> Leaf:
    return Leaf(**({each.name: getattr(leaf, each.name) for each in fields(leaf)} | changes))


def follow(tree: Tree, old: Leaf, new: Leaf | None, commit: Commit) -> None:
    """Let delete manifests follow the data manifest that they are affiliated with."""
    for at, leaf in enumerate(tree.leaves):
        if leaf.owner is old:
            after = tree.leaves[at] = replaced(leaf, owner=new)
            commit.new_leaves = [
                (after if each is leaf else each, status) for each, status in commit.new_leaves
            ]
            if leaf in commit.touched:
                commit.touched.add(after)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Locations as this writer likes to store them: in full, or relative to the table."""

    table: str
    rng: Random
    #: How often they are in full.
    full: float

    def __call__(self, location: str) -> str:
        if self.rng.random() < self.full:
            return location
        return location.removeprefix(self.table + "/")


def file_entry(file: File, status: int, names: Names, *, tracking: Json | None = None) -> Json:
    """Return a file's entry, with all its tracking or with that which is given."""
    told = {
        "snapshot_id": file.snapshot_id,
        "sequence_number": file.sequence_number,
        "file_sequence_number": file.file_sequence_number,
        "first_row_id": file.first_row_id,
    }
    entry: Json = {
        "content_type": file.content,
        "location": names(file.location),
        "file_format": file.format,
        "tracking_info": {"status": status} | told | (tracking or {}),
        "partition_spec_id": file.spec_id,
        "sort_order_id": file.sort_order_id,
        "record_count": file.record_count,
        "file_size_in_bytes": file.size,
        "key_metadata": file.key_metadata,
        "split_offsets": file.split_offsets,
        "equality_ids": file.equality_ids,
        "content_stats": file.stats,
    }
    if file.is_vector:
        assert file.target is not None
        entry["deletion_vector"] = {"offset": file.offset, "size_in_bytes": file.length}
        entry["referenced_file"] = names(file.target.location)
    return entry


def leaf_entry(leaf: Leaf, status: int, spec_id: int, names: Names, **tracking: Any) -> Json:
    """Return a leaf's entry in a root."""
    told = {
        "snapshot_id": leaf.snapshot_id,
        "sequence_number": leaf.sequence_number,
        "file_sequence_number": leaf.sequence_number,
        "first_row_id": leaf.first_row_id,
    }
    return {
        "content_type": leaf.content,
        "location": names(leaf.location),
        "file_format": leaf.format,
        "tracking_info": {"status": status} | told | tracking,
        "partition_spec_id": spec_id,
        "record_count": len(leaf.entries),
        "file_size_in_bytes": leaf.size,
        "manifest_stats": leaf.counts,
        "referenced_file": None if leaf.owner is None else names(leaf.owner.location),
        "content_stats": leaf.stats,
    }


def vector_entry(
    leaf: Leaf, vector: Vector, status: int, spec_id: int, names: Names, added: bytes | None = None
) -> Json:
    """Return a manifest DV's entry in a root."""
    inline = None
    if vector.location is None:
        inline = blobs.bitmap(set(vector.positions), names.rng if names.full else None)
    return {
        "content_type": MANIFEST_DV,
        "location": None if vector.location is None else names(vector.location),
        "file_format": "puffin",
        "tracking_info": {
            "status": status,
            "snapshot_id": vector.snapshot_id,
            "sequence_number": vector.sequence_number,
            "file_sequence_number": vector.sequence_number,
        },
        "deletion_vector": {
            "offset": vector.offset,
            "size_in_bytes": vector.length,
            "inline_content": inline,
            "added_positions": added,
        },
        "partition_spec_id": spec_id,
        "record_count": len(vector.positions),
        "file_size_in_bytes": vector.size,
        "referenced_file": names(leaf.location),
    }


def counts(leaf: Leaf, rng: Random) -> Json:
    """Return a leaf's `manifest_stats`; what may be left out sometimes is."""
    found: Json = {}
    for status, name in ((ADDED, "added"), (EXISTING, "existing"), (DELETED, "deleted")):
        held = [file for file, each in leaf.entries if each == status]
        found[f"{name}_files_count"] = len(held)
        found[f"{name}_rows_count"] = sum(file.record_count for file in held)
    ages = [file.sequence_number for file, status in leaf.entries if status != DELETED]
    if ages and rng.random() < 0.8:
        found["min_sequence_number"] = min(age or 0 for age in ages)
    if (chance := aside(rng, "counts")).random() < 0.2:
        del found[chance.choice([name for name in found if "rows" in name])]
    return found


def aggregate(leaf: Leaf, layout: Layout, rng: Random) -> dict[int, dict[str, Any]]:
    """Return stats of a leaf that contain those of its live entries; some may be left out."""
    told = [file.stats for file, status in leaf.entries if status != DELETED]
    found: dict[int, dict[str, Any]] = {}
    if not told or rng.random() < 0.2:
        return found
    for each in layout.stats_fields:
        known = [stats[each.id] for stats in told if each.id in stats]
        if len(known) == len(told) and rng.random() < 0.9 and (one := _sum_of(known, rng)):
            found[each.id] = one
    return found


def _sum_of(known: list[dict[str, Any]], rng: Random) -> dict[str, Any]:
    """Return stats that contain all of these."""
    one: dict[str, Any] = {}
    for name in ("value_count", "null_value_count", "nan_value_count"):
        values = [stats.get(name) for stats in known]
        if None not in values and rng.random() < 0.9:
            one[name] = sum(values)
    longest = [stats.get("max_value_size_in_bytes") for stats in known]
    if None not in longest:
        one["max_value_size_in_bytes"] = max(longest)
    bounded = [stats for stats in known if not _is_empty(stats)]
    for name, pick in (("lower_bound", least), ("upper_bound", greatest)):
        values = [stats.get(name) for stats in bounded]
        if values and all(value is not None for value in values):
            one[name] = pick(values)
    if "lower_bound" in one and all(stats.get("tight_bounds") for stats in bounded):
        one["tight_bounds"] = rng.random() < 0.7
    return one


def _is_empty(stats: dict[str, Any]) -> bool:
    values, nulls = stats.get("value_count"), stats.get("null_value_count")
    if values is None or nulls is None:
        return False
    return nulls + (stats.get("nan_value_count") or 0) >= values


def least(values: list[Any]) -> Any:
    """Return the least value; -0.0 comes before 0.0."""
    return min(values, key=_order)


def greatest(values: list[Any]) -> Any:
    return max(values, key=_order)


def _order(value: Any) -> Any:
    if isinstance(value, float):
        return (value, str(value)[0] != "-")
    return value.encode() if isinstance(value, str) else value


def encode_leaf(
    leaf: Leaf, layout: Layout, names: Names, dress: Dress, tracking: dict[int, Json]
) -> bytes:
    """Return a columnar leaf; `tracking` says what an entry leaves for others to say."""
    entries = [
        file_entry(file, status, names, tracking=tracking.get(at))
        for at, (file, status) in enumerate(leaf.entries)
    ]
    kind = "data" if leaf.content == DATA_LEAF else "delete"
    return parquet.manifest(entries, kind, layout, dress)
