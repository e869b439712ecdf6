"""Every rule of a manifest's entries, broken by hand: named with its file, on read and on write."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import pytest

from icetree.codec import bitmap, manifest
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import DATA, DELETE, ROOT, Entries, Entry, Status, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.rules.entry import RULES_OF
from icetree.tree.files import FileReader
from icetree.tree.manifest_dvs import read_manifest_dvs
from tests.codec.bad_manifests import (
    DATA_LEAF,
    DELETE_LEAF,
    EQUALITY,
    FIELD_OF,
    FILE,
    FILE_ENTRY,
    IN_PUFFIN,
    INLINE,
    LEAF,
    REVERSED,
    SHAPE,
    SOUND,
    TRACKED,
    VECTOR,
    decoded,
)
from tests.codec.raw_manifests import raw
from tests.laws.kinds import GEO_KINDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Entries that break one rule and no other."""

    rule: str
    entries: list[Entry]
    kind: str = ROOT

    def __str__(self) -> str:
        return f"{self.kind}: {self.rule}"


def with_bad(entry: Entry, **bad: Any) -> list[Entry]:
    """Return a sound file and a bad entry, so that the message must tell which one it is."""
    return [replace(FILE_ENTRY, location="data/sound"), replace(entry, **bad)]


def required(column: str) -> Case:
    return Case(rule=f"{column} is required", entries=with_bad(FILE_ENTRY, **{column: None}))


def only_for(column: str, names: str, value: Any, entry: Entry = FILE_ENTRY) -> Case:
    rule = f"{column} may be set only for content {names}"
    return Case(rule=rule, entries=with_bad(entry, **{column: value}))


def needed_for(column: str, names: str, entry: Entry) -> Case:
    rule = f"{column} must be set for content {names}"
    return Case(rule=rule, entries=with_bad(entry, **{column: None}))


def untracked(column: str, kind: str) -> Case:
    bad = replace(SOUND[kind][0], status=Status.EXISTING, **{column: None})
    rule = f"{column} may be null only for an ADDED entry, which inherits it"
    return Case(rule=rule, entries=[bad], kind=kind)


def not_negative(column: str, entry: Entry = FILE_ENTRY) -> Case:
    rule = f"{column} must not be negative"
    return Case(rule=rule, entries=with_bad(entry, **{column: -1}))


_COUNTS = tuple(
    f"{s}_{what}_count" for what in ("files", "rows") for s in ("added", "existing", "deleted")
)
_LEAVES = "DATA_MANIFEST and DELETE_MANIFEST"
_VECTORS = "POSITION_DELETES and MANIFEST_DV"

CASES = [
    Case(
        rule="content that may not stand in a root manifest",
        entries=with_bad(FILE_ENTRY, content_type=6),
    ),
    *(
        Case(rule=f"content that may not stand in a {kind} manifest", entries=[entry], kind=kind)
        for kind in (DATA, DELETE)
        for entry in SOUND[ROOT]
        if entry.content_type not in {each.content_type for each in SOUND[kind]}
    ),
    *map(required, ("content_type", "file_format", "status", "partition_spec_id", "record_count")),
    *map(required, TRACKED),
    *(untracked(column, kind) for column in list(TRACKED)[1:] for kind in (DATA, DELETE)),
    Case(
        rule="status must be 0 EXISTING, 1 ADDED or 2 DELETED",
        entries=with_bad(FILE_ENTRY, status=3),
    ),
    Case(
        rule="file_format must be one of parquet, avro, orc, puffin",
        entries=with_bad(FILE_ENTRY, file_format="csv"),
    ),
    Case(
        rule="location may be null only for an inline manifest DV",
        entries=with_bad(FILE_ENTRY, location=None, file_size_in_bytes=None),
    ),
    Case(
        rule="file_size_in_bytes must be set whenever location is",
        entries=with_bad(FILE_ENTRY, file_size_in_bytes=None),
    ),
    not_negative("record_count"),
    not_negative("file_size_in_bytes"),
    not_negative("first_row_id"),
    not_negative("dv_offset", VECTOR),
    not_negative("dv_size_in_bytes", VECTOR),
    only_for("sort_order_id", "DATA", 1, VECTOR),
    only_for("equality_ids", "EQUALITY_DELETES", (1,)),
    needed_for("equality_ids", "EQUALITY_DELETES", EQUALITY),
    Case(
        rule="equality_ids must name a field to delete by",
        entries=with_bad(EQUALITY, equality_ids=()),
    ),
    only_for("first_row_id", "DATA and DATA_MANIFEST", 1, EQUALITY),
    only_for("referenced_file", "POSITION_DELETES and MANIFEST_DV and DELETE_MANIFEST", "x"),
    needed_for("referenced_file", _VECTORS, VECTOR),
    needed_for("referenced_file", _VECTORS, INLINE),
    *(only_for(column, _LEAVES, 1) for column in (*_COUNTS, "min_sequence_number")),
    *(needed_for(column, _LEAVES, DATA_LEAF) for column in _COUNTS[:3]),
    *(needed_for(column, _LEAVES, DELETE_LEAF) for column in _COUNTS[:3]),
    only_for("dv_offset", _VECTORS, 4),
    only_for("dv_size_in_bytes", _VECTORS, 4),
    needed_for("dv_offset", "POSITION_DELETES", VECTOR),
    needed_for("dv_size_in_bytes", "POSITION_DELETES", VECTOR),
    only_for("dv_inline_content", "MANIFEST_DV", b"x", VECTOR),
    only_for("dv_added_positions", "MANIFEST_DV", b"x", VECTOR),
    *(
        Case(rule="a manifest DV is either inline or a range of a Puffin file", entries=[entry])
        for entry in (
            replace(IN_PUFFIN, dv_inline_content=b"x"),
            replace(IN_PUFFIN, dv_offset=None),
            replace(IN_PUFFIN, dv_size_in_bytes=None),
        )
    ),
    *(
        Case(
            rule="a deletion vector's file_format must be puffin",
            entries=with_bad(entry, file_format="parquet"),
        )
        for entry in (VECTOR, INLINE, IN_PUFFIN)
    ),
    *(
        Case(
            rule="added_positions belongs to an ADDED manifest DV only",
            entries=with_bad(INLINE, status=status),
        )
        for status in (Status.EXISTING, Status.DELETED)
    ),
    *(
        Case(
            rule="a manifest's sequence_number must equal its file_sequence_number",
            entries=with_bad(entry, file_sequence_number=2),
        )
        for entry in (DATA_LEAF, DELETE_LEAF)
    ),
    *(
        Case(rule="split_offsets must ascend", entries=with_bad(FILE_ENTRY, split_offsets=offsets))
        for offsets in ((8, 4), (4, 4), (1, 2, 3, 2))
    ),
]


@pytest.mark.parametrize("kind", SOUND)
def test_a_sound_manifest_of_another_writer_is_read(kind: str) -> None:
    entries = to_table(SOUND[kind], SHAPE)
    assert decoded(raw(entries, kind), kind).equals(entries)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_broken_rule_is_named_with_the_file_and_the_entry(case: Case) -> None:
    entries = to_table(case.entries, SHAPE)
    bad = case.entries[-1]
    where = f"(entry {len(case.entries) - 1}" + (f", {bad.location})" if bad.location else ")")
    message = f"^{re.escape(f'{FILE}: {case.rule} {where}')}$"
    with pytest.raises(CorruptTable, match=message):
        decoded(raw(entries, case.kind), case.kind)
    with pytest.raises(CorruptTable, match=message):
        manifest.encode(entries, case.kind, SHAPE, file=FILE)
    if case.kind != ROOT:
        with pytest.raises(CorruptTable, match=message):
            decoded(raw(entries, case.kind), case.kind, tracking=LEAF)


@pytest.mark.parametrize("kind", RULES_OF)
def test_every_rule_has_a_case(kind: str) -> None:
    """Rules that all kinds of manifest share are broken in a root."""
    shared = {rule.says for rule in RULES_OF[ROOT]}
    told = {case.rule for case in CASES if case.kind == kind}
    rules = {rule.says for rule in RULES_OF[kind]}
    assert (rules if kind == ROOT else rules - shared) == told


def two(entry: Entry, **other: Any) -> list[Entry]:
    return [entry, replace(entry, **other)]


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        (two(FILE_ENTRY), "data/a is live more than once"),
        (two(FILE_ENTRY, status=Status.EXISTING), "data/a is live more than once"),
        ([FILE_ENTRY, replace(EQUALITY, location="data/a")], "data/a is live more than once"),
        (two(DATA_LEAF), "metadata/l is live more than once"),
        (
            [DATA_LEAF, replace(DELETE_LEAF, location="metadata/l")],
            "metadata/l is live more than once",
        ),
        (two(VECTOR, dv_offset=20), "data/a has more than one data DV"),
        (two(VECTOR, location="data/w.puffin"), "data/a has more than one data DV"),
        (two(INLINE), "metadata/l has more than one manifest DV"),
        (
            [INLINE, replace(IN_PUFFIN, referenced_file="metadata/l")],
            "metadata/l has more than one manifest DV",
        ),
    ],
)
def test_a_name_that_is_live_twice_is_told(entries: list[Entry], rule: str) -> None:
    table = to_table(entries, SHAPE)
    with pytest.raises(CorruptTable, match=f"^{FILE}: {rule}$"):
        decoded(raw(table, ROOT), ROOT)
    with pytest.raises(CorruptTable, match=f"^{FILE}: {rule}$"):
        manifest.encode(table, ROOT, SHAPE, file=FILE)


def test_what_is_deleted_may_come_again() -> None:
    again = [replace(FILE_ENTRY, status=Status.DELETED), FILE_ENTRY]
    vectors = [replace(VECTOR, status=Status.DELETED), replace(VECTOR, dv_offset=20)]
    assert decoded(raw(to_table([*again, *vectors], SHAPE), ROOT), ROOT).num_rows == 4


def told(name: str, stats: FieldStats) -> Entries:
    return to_table(with_bad(FILE_ENTRY, stats={FIELD_OF[name]: stats}), SHAPE)


_CORNER = dict.fromkeys("xyzm", 1.0)

BAD_STATS = [
    *(
        (name, FieldStats(lower=low, upper=up), "lower bound above upper bound")
        for name, (low, up) in REVERSED.items()
    ),
    *(
        (
            name,
            FieldStats(lower=_CORNER | {axis: 2.0}, upper=_CORNER),
            f"lower bound above upper bound ({axis})",
        )
        for name in GEO_KINDS
        for axis in "yzm"
    ),
    *(
        (name, FieldStats(**{stat: float("nan")}), f"NaN as {stat} bound")
        for name in ("float", "double")
        for stat in ("lower", "upper")
    ),
    *(
        ("double", FieldStats(**{stat: -1}), f"negative count of {stat}")
        for stat in ("values", "nulls", "nans")
    ),
    ("long", FieldStats(values=3, nulls=4), "more nulls than values"),
]


@pytest.mark.parametrize("kind", [ROOT, DATA])
@pytest.mark.parametrize(("name", "stats", "rule"), BAD_STATS)
def test_stats_that_cannot_be_are_told(name: str, stats: FieldStats, rule: str, kind: str) -> None:
    message = re.escape(f"{FILE}: {rule} of field {FIELD_OF[name]} (entry 1, data/a)")
    with pytest.raises(CorruptTable, match=f"^{message}$"):
        decoded(raw(told(name, stats), kind), kind)
    with pytest.raises(CorruptTable, match=f"^{message}$"):
        manifest.encode(told(name, stats), kind, SHAPE, file=FILE)


def test_a_geography_may_cross_the_antimeridian() -> None:
    across = FieldStats(lower=_CORNER | {"x": 170.0}, upper=_CORNER | {"x": -170.0})
    assert decoded(raw(told("geography", across), DATA), DATA).num_rows == 2


def test_a_manifest_dv_past_the_end_of_its_leaf_is_told() -> None:
    beyond = bitmap.encode(bitmap.of([1, 2]))
    vector = replace(INLINE, dv_inline_content=beyond, record_count=2, dv_added_positions=None)
    root = decoded(raw(to_table([DATA_LEAF, vector], SHAPE), ROOT), ROOT)
    reader = FileReader(fetch={}.__getitem__, shape=SHAPE)
    with pytest.raises(
        CorruptTable, match=f"^{FILE}: .*metadata/l removes position 2 of 2 entries"
    ):
        read_manifest_dvs(root, reader, root_file=FILE)
