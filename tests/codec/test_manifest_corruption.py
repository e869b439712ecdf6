"""Bad manifests: each broken rule is named with its file, and no bytes whatever do worse."""

from __future__ import annotations

import multiprocessing
import random
import re
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from icetree.codec import bitmap, manifest
from icetree.codec.inherit import Inherited
from icetree.errors import CorruptTable
from icetree.spec.entry import DATA, DELETE, ROOT, Content, Entries, Entry, Status, to_table
from icetree.spec.entry_rules import RULES_OF
from icetree.spec.fields import ENTRY
from icetree.spec.shape import Shape
from icetree.spec.stats import FieldStats
from icetree.tree.files import FileReader
from icetree.tree.vectors import manifest_vectors
from tests.codec.raw_manifests import METADATA, field, raw
from tests.laws.kinds import GEO_KINDS, KINDS

FILE = "metadata/m7.parquet"
ALL = KINDS | GEO_KINDS
FIELD_OF = {name: id for id, name in enumerate(ALL, start=1)}
SHAPE = Shape(
    schema=Schema(*(NestedField(FIELD_OF[name], name, kind.type) for name, kind in ALL.items()))
)
TRACKED = {"snapshot_id": 1, "sequence_number": 1, "file_sequence_number": 1}
LEAF = Inherited(snapshot_id=7, sequence_number=8, first_row_id=1000)

FILE_ENTRY = Entry(location="data/a", file_size_in_bytes=9, record_count=3, **TRACKED)
VECTOR = Entry(
    content_type=Content.POSITION_DELETES,
    location="data/v.puffin",
    file_format="puffin",
    file_size_in_bytes=9,
    referenced_file="data/a",
    dv_offset=4,
    dv_size_in_bytes=5,
    **TRACKED,
)
EQUALITY = Entry(
    content_type=Content.EQUALITY_DELETES,
    location="data/e",
    file_size_in_bytes=9,
    equality_ids=(1,),
    **TRACKED,
)
DATA_LEAF = Entry(
    content_type=Content.DATA_MANIFEST,
    location="metadata/l",
    file_size_in_bytes=9,
    record_count=2,
    added_files_count=2,
    existing_files_count=0,
    deleted_files_count=0,
    added_rows_count=5,
    existing_rows_count=0,
    deleted_rows_count=0,
    min_sequence_number=1,
    **TRACKED,
)
DELETE_LEAF = replace(DATA_LEAF, content_type=Content.DELETE_MANIFEST, location="metadata/k")
INLINE = Entry(
    content_type=Content.MANIFEST_DV,
    file_format="puffin",
    referenced_file="metadata/l",
    record_count=1,
    dv_inline_content=bitmap.encode(bitmap.of([1])),
    dv_added_positions=bitmap.encode(bitmap.of([1])),
    **TRACKED,
)
IN_PUFFIN = replace(
    INLINE,
    referenced_file="metadata/k",
    location="metadata/p.puffin",
    file_size_in_bytes=99,
    dv_inline_content=None,
    dv_offset=4,
    dv_size_in_bytes=40,
)
SOUND = {
    ROOT: [FILE_ENTRY, VECTOR, EQUALITY, DATA_LEAF, DELETE_LEAF, INLINE, IN_PUFFIN],
    DATA: [FILE_ENTRY, replace(FILE_ENTRY, location="data/b", split_offsets=(4, 8))],
    DELETE: [VECTOR, EQUALITY],
}


def decoded(stored: bytes, kind: str, **more: Any) -> Entries:
    return manifest.decode(stored, kind, SHAPE, file=FILE, **more)


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


_COUNTS = tuple(f"{s}_{what}_count" for what in ("files", "rows") for s in ("added", "existing", "deleted"))
_LEAVES = "DATA_MANIFEST and DELETE_MANIFEST"
_VECTORS = "POSITION_DELETES and MANIFEST_DV"

CASES = [
    Case(rule="content that may not stand in a root manifest", entries=with_bad(FILE_ENTRY, content_type=6)),
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
    only_for("sort_order_id", "DATA", 1, VECTOR),
    only_for("equality_ids", "EQUALITY_DELETES", (1,)),
    needed_for("equality_ids", "EQUALITY_DELETES", EQUALITY),
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
        Case(rule="a deletion vector's file_format must be puffin", entries=with_bad(entry, file_format="parquet"))
        for entry in (VECTOR, INLINE, IN_PUFFIN)
    ),
    *(
        Case(rule="added_positions belongs to an ADDED manifest DV only", entries=with_bad(INLINE, status=status))
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
        ([DATA_LEAF, replace(DELETE_LEAF, location="metadata/l")], "metadata/l is live more than once"),
        (two(VECTOR, dv_offset=20), "data/a has more than one data DV"),
        (two(VECTOR, location="data/w.puffin"), "data/a has more than one data DV"),
        (two(INLINE), "metadata/l has more than one manifest DV"),
        ([INLINE, replace(IN_PUFFIN, referenced_file="metadata/l")], "metadata/l has more than one manifest DV"),
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


REVERSED: dict[str, tuple[Any, Any]] = dict.fromkeys(KINDS, (2, 1)) | {
    "boolean": (True, False),
    "string": ("b", "a"),
    "uuid": (b"b" * 16, b"a" * 16),
    "fixed(7)": (b"b" * 7, b"a" * 7),
    "binary": (b"b", b"a"),
}
_CORNER = dict.fromkeys("xyzm", 1.0)

BAD_STATS = [
    *(
        (name, FieldStats(lower=low, upper=up), "lower bound above upper bound")
        for name, (low, up) in REVERSED.items()
    ),
    *(
        (name, FieldStats(lower=_CORNER | {axis: 2.0}, upper=_CORNER), f"lower bound above upper bound ({axis})")
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


@pytest.mark.parametrize(
    ("metadata", "rule"),
    [
        ({}, "format-version must be 4, not ''"),
        ({"content": "root"}, "format-version must be 4, not ''"),
        ({"format-version": "3", "content": "root"}, "format-version must be 4, not '3'"),
        (METADATA, "content must be 'root' here, not ''"),
        ({**METADATA, "content": "data"}, "content must be 'root' here, not 'data'"),
        ({**METADATA, "content": "deletes"}, "content must be 'root' here, not 'deletes'"),
    ],
)
def test_a_file_that_says_to_be_something_else_is_refused(
    metadata: dict[str, str], rule: str
) -> None:
    stored = raw(to_table(SOUND[ROOT], SHAPE), ROOT, metadata=metadata)
    with pytest.raises(CorruptTable, match=f"^{FILE}: {rule}$"):
        decoded(stored, ROOT)


def refused(change: Callable[[pa.Table], pa.Table], rule: str) -> None:
    entry = replace(FILE_ENTRY, stats={FIELD_OF["long"]: FieldStats(lower=1, upper=2)})
    stored = raw(to_table([entry], SHAPE), DATA, change=change)
    with pytest.raises(CorruptTable, match=f"^{re.escape(f'{FILE}: {rule}')}$"):
        decoded(stored, DATA)


def _replaced(table: pa.Table, name: str, new: pa.Field, values: pa.Array | None = None) -> pa.Table:
    at = table.column_names.index(name)
    column = table[name].combine_chunks() if values is None else values
    return table.set_column(at, new, column.cast(new.type) if values is None else column)


def _restruct(table: pa.Table, path: list[str], edit: Callable[[pa.Field], list[pa.Field]]) -> pa.Table:
    """Replace the fields of a struct, at a path of names, each by those that `edit` returns."""

    def inside(array: pa.StructArray, rest: list[str]) -> pa.StructArray:
        members, fields = [], []
        for i, each in enumerate(array.type):
            child = array.field(i)
            if rest and each.name == rest[0]:
                child = inside(child, rest[1:])
                each = each.with_type(child.type)
            made = [each] if rest else edit(each)
            members += [child if f.type == child.type else pa.nulls(len(child), f.type) for f in made]
            fields += made
        return pa.StructArray.from_arrays(members, fields=fields)

    column = inside(table[path[0]].combine_chunks(), path[1:])
    at = table.column_names.index(path[0])
    return table.set_column(at, table.schema.field(at).with_type(column.type), column)


@pytest.mark.parametrize("column", [c for c in ENTRY if c.required], ids=lambda c: c.name)
def test_a_required_column_must_be_there(column: Any) -> None:
    def drop(table: pa.Table) -> pa.Table:
        if column.group is None:
            return table.drop_columns([column.name])
        return _restruct(
            table, [column.group.name], lambda f: [] if f.name == column.name else [f]
        )

    refused(drop, f"required column {column.name} ({column.id}) is missing")


@pytest.mark.parametrize("column", ENTRY, ids=lambda c: c.name)
def test_a_column_must_have_its_type(column: Any) -> None:
    is_text = column.type in (pa.string(), pa.binary())
    wrong = pa.int32() if is_text else pa.string()
    disk_name = column.disk_name or column.name

    def retype(table: pa.Table) -> pa.Table:
        if column.group is None:
            made = field(disk_name, wrong, column.id)
            return _replaced(table, disk_name, made, pa.nulls(table.num_rows, wrong))
        edit = lambda f: [field(f.name, wrong, column.id)] if f.name == disk_name else [f]  # noqa: E731
        return _restruct(table, [column.group.name], edit)

    refused(retype, f"column {column.name} has type {wrong}, expected {column.type}")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ([], "location"),
        ([], "tracking_info"),
        (["tracking_info"], "status"),
        ([], "content_stats"),
        (["content_stats"], "field 3"),
        (["content_stats", "field 3"], "lower_bound"),
    ],
)
def test_a_column_must_have_a_field_id(path: list[str], name: str) -> None:
    def strip(table: pa.Table) -> pa.Table:
        if not path:
            return _replaced(table, name, table.schema.field(name).remove_metadata())
        return _restruct(table, path, lambda f: [f.remove_metadata() if f.name == name else f])

    refused(strip, f"column {name!r} has no field id")


@pytest.mark.parametrize(
    ("path", "name"), [([], "tracking_info"), ([], "content_stats"), (["content_stats"], "field 3")]
)
def test_a_group_must_be_a_struct(path: list[str], name: str) -> None:
    def flatten(table: pa.Table) -> pa.Table:
        if not path:
            new = table.schema.field(name).with_type(pa.int32())
            return _replaced(table, name, new, pa.nulls(table.num_rows, pa.int32()))
        return _restruct(table, path, lambda f: [f.with_type(pa.int32()) if f.name == name else f])

    refused(flatten, f"column {name!r} must be a struct, not int32")


@pytest.mark.parametrize(
    "twin", [("location", 103), ("other", 100)], ids=["one name", "one field id"]
)
def test_no_two_columns_may_share_a_name_or_a_field_id(twin: tuple[str, int]) -> None:
    name, id = twin

    def double(table: pa.Table) -> pa.Table:
        if id != 100:
            table = table.drop_columns(["record_count"])
        type = pa.int64() if id == 103 else pa.string()
        return table.append_column(field(name, type, id), pa.nulls(table.num_rows, type))

    refused(double, "two columns share a field id or a name")


@pytest.mark.parametrize("junk", [b"", b"PAR1", b"PAR1PAR1", b"not Parquet at all", b"PAR1" * 9])
@pytest.mark.parametrize("kind", [ROOT, DATA])
def test_what_is_no_parquet_is_told(junk: bytes, kind: str) -> None:
    with pytest.raises(CorruptTable, match=f"^{FILE}: not a readable Parquet manifest: "):
        decoded(junk, kind)


@pytest.mark.parametrize("kind", [ROOT, DATA])
def test_text_that_is_no_text_is_told(kind: str) -> None:
    def spoil(table: pa.Table) -> pa.Table:
        bad = pa.array([b"data/\xff"]).view(pa.string())
        return _replaced(table, "location", table.schema.field("location"), bad)

    stored = raw(to_table([FILE_ENTRY], SHAPE), kind, change=spoil)
    with pytest.raises(CorruptTable, match=f"^{FILE}: not a readable Parquet manifest: .*UTF8"):
        decoded(stored, kind)


def test_unknown_columns_are_ignored() -> None:
    def extend(table: pa.Table) -> pa.Table:
        table = table.append_column(field("new", pa.int32(), 999), pa.array([1]).cast(pa.int32()))
        return _restruct(
            table, ["content_stats", "field 3"], lambda f: [f, *([field("n", f.type, 10_699)] if f.name == "lower_bound" else [])]
        )

    entries = to_table([replace(FILE_ENTRY, stats={3: FieldStats(lower=1, upper=2)})], SHAPE)
    assert decoded(raw(entries, DATA, change=extend), DATA).equals(entries)


def test_a_manifest_dv_past_the_end_of_its_leaf_is_told() -> None:
    beyond = bitmap.encode(bitmap.of([1, 2]))
    vector = replace(INLINE, dv_inline_content=beyond, record_count=2, dv_added_positions=None)
    root = decoded(raw(to_table([DATA_LEAF, vector], SHAPE), ROOT), ROOT)
    reader = FileReader(fetch={}.__getitem__, shape=SHAPE)
    with pytest.raises(CorruptTable, match=f"^{FILE}: .*metadata/l removes position 2 of 2 entries"):
        manifest_vectors(root, reader, root_file=FILE)


def sample(kind: str) -> bytes:
    """Return a manifest with bounds of every type, of some size."""
    corner = {"x": 1.0, "y": 2.0, "z": None, "m": None}
    stats = {
        FIELD_OF[name]: FieldStats(lower=low, upper=low, values=3, nulls=1)
        for name, (low, _) in (REVERSED | dict.fromkeys(GEO_KINDS, (corner, corner))).items()
    }
    entries = [replace(each, stats=stats) for each in SOUND[kind]]
    if kind != ROOT:
        entries = [replace(entries[0], location=f"data/{i}", referenced_file=None) for i in range(9000)]
    return manifest.encode(to_table(entries, SHAPE), kind, SHAPE)


def survives(stored: bytes, kind: str) -> bool:
    """Tell whether bytes decode; whatever else they do must be a `CorruptTable` of that file."""
    def keep(bounds: pa.Table) -> pa.BooleanArray:
        return pa.array([i % 2 == 0 for i in range(bounds.num_rows)])

    more = {} if kind == ROOT else {"tracking": LEAF, "keep": keep}
    try:
        found = decoded(stored, kind, **more)
        found.validate(full=True)
    except CorruptTable as error:
        assert error.file == FILE
        return False
    return True


def cut_short(kind: str) -> list[int]:
    """Return the lengths, of 200 random ones, to which a manifest can be cut and still decodes."""
    stored, chance = sample(kind), random.Random(kind)
    cuts = [0, 1, 4, 8, len(stored) - 1, *(chance.randrange(len(stored)) for _ in range(195))]
    return [cut for cut in cuts if survives(stored[:cut], kind)]


def flipped(kind: str) -> int:
    """Return how many of 1,000 random flips of a bit make a manifest corrupt."""
    stored, chance = sample(kind), random.Random(kind)
    footer = int.from_bytes(stored[-8:-4], "little") + 8
    corrupt = 0
    for i in range(1000):
        # Half of them where the structure is.
        start = len(stored) - footer if i % 2 else 0
        at, bit = chance.randrange(start, len(stored)), 1 << chance.randrange(8)
        bad = bytearray(stored)
        bad[at] ^= bit
        corrupt += not survives(bytes(bad), kind)
    return corrupt


def apart(task: Callable[[str], Any], kind: str) -> Any:
    """Run in a process of its own: what ends that process fails the test, not all of them."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned) as pool:
        return pool.submit(task, kind).result()


@pytest.mark.parametrize("kind", [ROOT, DATA])
def test_a_manifest_cut_short_anywhere_is_corrupt(kind: str) -> None:
    assert apart(cut_short, kind) == []


@pytest.mark.parametrize("kind", [ROOT, DATA])
def test_no_flipped_bit_does_worse_than_a_corrupt_table(kind: str) -> None:
    assert apart(flipped, kind) > 100
