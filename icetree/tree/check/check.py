"""Every invariant of a snapshot's tree, in one place.

Used by tests after each commit, and by `icetree verify`. What a manifest
must keep by itself is in `spec.rules.entry`; here is what only the whole tree can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CorruptTable, NotFound
from icetree.spec.arrays import every, one_chunk, without
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    ROOT,
    Content,
    Entries,
    Status,
    concat,
    has_status,
    is_content,
    is_data_dv,
    is_data_file,
    is_live,
    is_of_spec,
    kind_of,
    only,
)
from icetree.spec.entry.equality import broken_equality
from icetree.spec.rules import entry as entry_rules
from icetree.spec.schema.shape import Shape
from icetree.tree.aggregate import aggregate
from icetree.tree.check.change import left_behind
from icetree.tree.live import LEAF, live_parts
from icetree.tree.partitions import spans
from icetree.tree.reading import Leaf, Reader, leaves_in
from icetree.visible import visible


class Kind(Enum):
    """What a broken rule is about, where that decides what can be done."""

    TREE = "tree"
    DANGLING_DATA_DV = "dangling data DV"
    ROW_IDS = "row ids"


#: Returns what a look at a leaf finds, which follows from the leaf and from what the root says of it.
OfLeaf: TypeAlias = Callable[[Leaf, Callable[[], Iterator[str]]], Iterable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule: which file breaks it, and how."""

    file: str
    rule: str
    kind: Kind = Kind.TREE

    def __str__(self) -> str:
        return visible(f"{self.file}: {self.rule}")


def check(
    root: Entries,
    reader: Reader,
    shape: Shape,
    *,
    root_file: str = "root",
    snapshot_id: int | None = None,
    sequence_number: int | None = None,
    next_row_id: int | None = None,
    of_leaf: OfLeaf = lambda _, look: look(),
    files: Callable[[], Entries] | None = None,
) -> list[Finding]:
    """Return every broken rule of a snapshot's tree; an empty list for a sound one.

    What the snapshot itself says of the tree (`snapshot_id`, `sequence_number`, `next_row_id`)
    is checked where it is given. `of_leaf` may know what comes of a look at a leaf, and `files`
    gives the live files, for who asks for them anyhow.
    """
    findings = [
        Finding(file=root_file, rule=rule)
        for rule in (
            *entry_rules.broken_rules(root, ROOT),
            *entry_rules.broken_uniqueness(root),
            *_newer_than_snapshot(root, sequence_number),
        )
    ]
    if findings:
        return findings
    try:
        for leaf in leaves_in(only(root, is_live(root))):
            findings += [
                Finding(file=leaf.location, rule=rule)
                for rule in of_leaf(
                    leaf, partial(_broken_in_leaf, leaf, root, reader, shape, snapshot_id)
                )
            ]
        live = concat(live_parts(root, reader, root_file=root_file)) if files is None else files()
    except CorruptTable as found:
        return [*findings, Finding(file=found.file, rule=found.rule)]
    across = (
        (Kind.TREE, _twice(live)),
        (Kind.DANGLING_DATA_DV, _dangling(live)),
        (Kind.TREE, _bad_data_dvs(live)),
        (Kind.TREE, _strays(live, root)),
        (Kind.TREE, left_behind(live, root, reader, root_file=root_file)),
        (Kind.ROW_IDS, _shared_row_ids(live, next_row_id)),
        (Kind.TREE, _partitions(live, shape)),
        (Kind.TREE, broken_equality(live, shape)),
    )
    return findings + [
        Finding(file=root_file, rule=rule, kind=kind) for kind, rules in across for rule in rules
    ]


def _twice(files: Entries) -> Iterator[str]:
    """Yield what is live twice: a data file may have many position delete files of v2, and a DV."""
    files = files.select(["content_type", "file_format", "location", "referenced_file", "status"])
    once = pc.or_(pc.invert(is_content(files, Content.POSITION_DELETES)), is_data_dv(files))
    return entry_rules.broken_uniqueness(only(files, once))


def dangling_data_dvs(files: Entries) -> pa.Array:
    """Return the names that data DVs among live files give for data files that are not live."""
    data = files["location"].filter(is_data_file(files))
    return without(one_chunk(files["referenced_file"].filter(is_data_dv(files))), data)


def _newer_than_snapshot(entries: Entries, sequence_number: int | None) -> Iterator[str]:
    if sequence_number is None:
        return
    for column in ("sequence_number", "file_sequence_number"):
        newest = pc.max(entries[column]).as_py()
        if newest is not None and newest > sequence_number:
            yield f"{column} {newest} is above the snapshot's own, {sequence_number}"


def _broken_in_leaf(
    leaf: Leaf,
    root: Entries,
    reader: Reader,
    shape: Shape,
    snapshot_id: int | None,
) -> Iterator[str]:
    kind = kind_of(leaf.content_type)
    entries = reader.leaf(leaf)
    if leaf.file_format == "parquet":
        yield from entry_rules.broken_rules(entries, kind)
        yield from entry_rules.broken_uniqueness(entries)
    row = only(root, pc.and_(is_live(root), pc.equal(root["location"], leaf.location)))
    yield from _wrong_counts(entries, row)
    yield from _wrong_aggregate(only(entries, is_live(entries)), row, shape)
    is_moved = leaf.snapshot_id == snapshot_id and row["status"][0].as_py() == Status.EXISTING
    if is_moved and not every(has_status(entries, Status.EXISTING)):
        yield "a leaf that a commit wrote as EXISTING holds entries that are not"
    newest = pc.max(entries["sequence_number"]).as_py()
    if newest is not None and newest > (leaf.sequence_number or 0):
        yield f"holds sequence number {newest}, above its own, {leaf.sequence_number}"


def _wrong_counts(entries: Entries, row: Entries) -> Iterator[str]:
    if row["record_count"][0].as_py() != entries.num_rows:
        yield f"has {entries.num_rows} entries, the root says {row['record_count'][0]}"
    for status in Status:
        rows = entries["record_count"].filter(has_status(entries, status))
        for what, count in (("files", len(rows)), ("rows", pc.sum(rows).as_py() or 0)):
            told = row[f"{status.name.lower()}_{what}_count"][0].as_py()
            if told is not None and told != count:
                yield f"has {count} {status.name} {what}, the root says {told}"
    told = row["min_sequence_number"][0].as_py()
    oldest = pc.min(entries["sequence_number"].filter(is_live(entries))).as_py()
    if told is not None and oldest is not None and told > oldest:
        yield f"holds sequence number {oldest}, below the root's minimum {told}"


def _wrong_aggregate(live: Entries, row: Entries, shape: Shape) -> Iterator[str]:
    """Yield a sentence for each stat of the leaf's entry that does not contain its children's."""
    derived, present = aggregate(live), set(row.column_names)
    for field_id in stats.fields_in(row):
        name = shape.names.get(field_id, str(field_id))
        for stat in ("lower", "upper", "values", "nulls", "nans"):
            column = stats.column(field_id, stat)
            if column not in present or not (told := row[column][0]).is_valid:
                continue
            known = derived.get(column)
            if known is None:
                # All children may be known to hold nulls only; otherwise the bound was guessed.
                if stat in ("lower", "upper") and live.num_rows:
                    yield f"{stat} bound of {name} in the root, but not of every entry"
            elif not _contains(stat, told, known):
                if stat in ("lower", "upper"):
                    yield f"{stat} bound of {name} in the root does not contain its entries'"
                else:
                    yield f"{stat} of {name} is {told} in the root, {known} over its entries"


def _contains(stat: str, told: pa.Scalar, known: pa.Scalar) -> bool:
    if pa.types.is_struct(told.type):
        return bool(told.equals(known))
    if pa.types.is_fixed_size_binary(told.type):
        told, known = told.cast(pa.binary()), known.cast(pa.binary())
    # Never by way of Python, which has no dates after 9999 and no nanoseconds.
    compare = {"lower": pc.less_equal, "upper": pc.greater_equal}.get(stat, pc.equal)
    return bool(compare(told, known).as_py())


def _dangling(files: Entries) -> Iterator[str]:
    for name in dangling_data_dvs(files)[:1]:
        yield f"{name} has a data DV but is not a live data file"


_AGES: Final = ("content_type", "file_format", "location", "record_count", "sequence_number")


def _bad_data_dvs(files: Entries) -> Iterator[str]:
    files = files.select([*_AGES, "referenced_file"])
    data = only(files, is_data_file(files))
    data_dvs = only(files, is_data_dv(files))
    at = pc.index_in(data_dvs["referenced_file"], data["location"].combine_chunks())
    for says, bad in (
        (
            "removes more rows than the file has",
            pc.greater(data_dvs["record_count"], data["record_count"].take(at)),
        ),
        (
            "is older than the file",
            pc.less(data_dvs["sequence_number"], data["sequence_number"].take(at)),
        ),
    ):
        for name in data_dvs["referenced_file"].filter(pc.fill_null(bad, False))[:1]:
            yield f"the data DV of {name} {says}"


def _strays(files: Entries, root: Entries) -> Iterator[str]:
    """Yield delete manifests that are affiliated with what does not track their data files."""
    owners = {
        leaf.location: leaf.referenced_file
        for leaf in leaves_in(only(root, is_live(root)))
        if leaf.content_type == Content.DELETE_MANIFEST and leaf.referenced_file is not None
    }
    if not owners:
        return
    data = files.select(["content_type", "location", LEAF])
    data = only(data, is_data_file(files))
    live = pc.and_(is_live(root), is_content(root, Content.DATA_MANIFEST))
    leaves = set(root["location"].filter(live).to_pylist())
    for leaf, owner in owners.items():
        if owner not in leaves:
            yield f"{leaf} is affiliated with {owner}, which is no live data manifest of the root"
            continue
        mine = files["referenced_file"].filter(pc.equal(files[LEAF], leaf))
        tracked = data["location"].filter(pc.equal(data[LEAF], owner))
        stray = without(mine, tracked)
        if len(stray):
            yield f"{leaf} is affiliated with {owner} but holds a DV of {stray[0]}"


def _shared_row_ids(files: Entries, next_row_id: int | None) -> Iterator[str]:
    numbered = pc.and_(pc.is_valid(files["first_row_id"]), pc.greater(files["record_count"], 0))
    data = files.select(["location", "first_row_id", "record_count"])
    data = only(data, pc.and_(is_data_file(files), numbered)).sort_by("first_row_id")
    ends = pc.add(data["first_row_id"], data["record_count"])
    if data.num_rows > 1:
        overlap = pc.less(data["first_row_id"].slice(1), ends.slice(0, data.num_rows - 1))
        for name in data["location"].slice(1).filter(overlap)[:1]:
            yield f"{name} shares row ids with another data file"
    last = pc.max(ends).as_py()
    if next_row_id is not None and last is not None and last > next_row_id:
        yield f"row id {last - 1} is in use, but the next one to give out is {next_row_id}"


def _partitions(files: Entries, shape: Shape) -> Iterator[str]:
    placed = is_content(files, Content.DATA, Content.EQUALITY_DELETES)
    for spec_id in pc.unique(files["partition_spec_id"].filter(placed)).to_pylist():
        try:
            fields = shape.partition_fields(spec_id)
        except NotFound as missing:
            yield str(missing)
            continue
        if not fields:
            continue
        here = only(files, pc.and_(placed, is_of_spec(files, spec_id)))
        for field_id in fields:
            for name in here["location"].filter(spans(here, field_id))[:1]:
                yield (
                    f"{name} is partitioned by {shape.names[field_id]}, but its stats there "
                    "do not say one value"
                )
