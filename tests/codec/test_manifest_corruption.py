"""Bad manifests: the file is named with what is wrong, and no bytes whatever do worse."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from icetree.codec import manifest
from icetree.codec.manifest import stored as codec
from icetree.codec.manifest.write import LEAF_ROW_GROUP
from icetree.errors import CorruptTable
from icetree.spec.entry.entry import DATA, ROOT, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.fields import ENTRY
from tests.apart import apart
from tests.codec.bad_manifests import (
    FIELD_OF,
    FILE,
    FILE_ENTRY,
    LEAF,
    REVERSED,
    SHAPE,
    SOUND,
    decoded,
)
from tests.codec.raw_manifests import METADATA, field, raw
from tests.effort import EFFORT, SEED
from tests.laws.kinds import GEO_KINDS

FLIPS = 200 * EFFORT


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


def _replaced(
    table: pa.Table, name: str, new: pa.Field, values: pa.Array | None = None
) -> pa.Table:
    at = table.column_names.index(name)
    column = table[name].combine_chunks() if values is None else values
    return table.set_column(at, new, column.cast(new.type) if values is None else column)


def _restruct(
    table: pa.Table, path: list[str], edit: Callable[[pa.Field], list[pa.Field]]
) -> pa.Table:
    """Replace the fields of a struct, at a path of names, each by those that `edit` returns."""

    def inside(array: pa.StructArray, rest: list[str]) -> pa.StructArray:
        members, fields = [], []
        for i, each in enumerate(array.type):
            child = array.field(i)
            if rest and each.name == rest[0]:
                child = inside(child, rest[1:])
                each = each.with_type(child.type)
            made = [each] if rest else edit(each)
            members += [
                child if f.type == child.type else pa.nulls(len(child), f.type) for f in made
            ]
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
        return _restruct(table, [column.group.name], lambda f: [] if f.name == column.name else [f])

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
    with pytest.raises(CorruptTable, match=f"^{FILE}: (no Parquet file|broken Parquet footer): "):
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
            table,
            ["content_stats", "field 3"],
            lambda f: [f, *([field("n", f.type, 10_699)] if f.name == "lower_bound" else [])],
        )

    entries = to_table([replace(FILE_ENTRY, stats={3: FieldStats(lower=1, upper=2)})], SHAPE)
    assert decoded(raw(entries, DATA, change=extend), DATA).equals(entries)


def sample(kind: str) -> bytes:
    """Return a root with bounds of every type, or a leaf of two row groups."""
    corner = {"x": 1.0, "y": 2.0, "z": None, "m": None}
    bounds = {name: low for name, (low, _) in REVERSED.items()} | dict.fromkeys(GEO_KINDS, corner)
    few = ("long", "double", "decimal(9, 2)", "date", "string", "uuid")
    stats = {
        FIELD_OF[name]: FieldStats(lower=low, upper=low, values=3, nulls=1)
        for name, low in bounds.items()
        if kind == ROOT or name in few
    }
    entries = [replace(each, stats=stats) for each in SOUND[kind]]
    if kind != ROOT:
        entries = [replace(entries[0], location=f"data/{i}") for i in range(LEAF_ROW_GROUP + 100)]
    return manifest.encode(to_table(entries, SHAPE), kind, SHAPE)


def survives(stored: bytes, kind: str) -> bool:
    """Tell whether bytes decode; whatever else they do must be a `CorruptTable` of that file."""

    def keep(bounds: pa.Table) -> pa.BooleanArray:
        return pa.array([i % 2 == 0 for i in range(bounds.num_rows)])

    more = {} if kind == ROOT else {"tracking": LEAF, "keep": keep}
    try:
        decoded(stored, kind, **more).validate(full=True)
    except CorruptTable as error:
        named = error.file
    else:
        return True
    assert named == FILE
    return False


def cut_short(kind: str) -> list[int]:
    """Return the lengths, of 200 random ones, to which a manifest can be cut and still decodes."""
    stored, chance = sample(kind), random.Random(kind)
    cuts = [0, 1, 4, 8, len(stored) - 1, *(chance.randrange(len(stored)) for _ in range(195))]
    return [cut for cut in cuts if survives(stored[:cut], kind)]


def flipped(kind: str) -> int:
    """Return how many of so many random flips of a bit make a manifest corrupt."""
    codec.WORTH_IT = 1
    stored, chance = sample(kind), random.Random(f"{kind} {SEED}")
    footer = int.from_bytes(stored[-8:-4], "little") + 8
    corrupt = 0
    for i in range(FLIPS):
        # Half of them where the structure is.
        start = len(stored) - footer if i % 2 else 0
        at, bit = chance.randrange(start, len(stored)), 1 << chance.randrange(8)
        bad = bytearray(stored)
        bad[at] ^= bit
        corrupt += not survives(bytes(bad), kind)
    return corrupt


@pytest.mark.parametrize("kind", [ROOT, DATA])
def test_a_manifest_cut_short_anywhere_is_corrupt(kind: str) -> None:
    assert apart(cut_short, kind) == []


@pytest.mark.law
@pytest.mark.parametrize("kind", [ROOT, DATA])
def test_no_flipped_bit_does_worse_than_a_corrupt_table(kind: str) -> None:
    assert apart(flipped, kind) > FLIPS / 10
