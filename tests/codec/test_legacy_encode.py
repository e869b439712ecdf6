"""Manifests and manifest lists of v2 and v3 as icetree writes them: what goes in comes out."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.schema import Schema
from pyiceberg.types import DoubleType, LongType, NestedField

from icetree.codec import legacy
from icetree.codec.inherit import Inherited
from icetree.codec.legacy.encode_list import Listed, encode_manifest_list
from icetree.codec.legacy.encode_manifest import EncodedManifest, Layout, encode_manifest
from icetree.codec.legacy.tuples import summary
from icetree.errors import CorruptTable
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    DATA,
    DELETE,
    POSITION,
    Content,
    Entries,
    Entry,
    is_content,
    only,
    to_table,
    with_columns,
)
from icetree.spec.entry.stats import FieldStats
from icetree.spec.metadata.layout import PartitionField
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from tests.effort import law
from tests.laws.kinds import KINDS, plain
from tests.laws.leaves import EVERY_TYPE
from tests.laws.manifests import manifests
from tests.laws.same import require_same

LOCATION = "s3://b/t"


def layout(shape: Shape, spec_id: int = 0, version: int = 3) -> Layout:
    return Layout(
        format_version=version,
        spec_id=spec_id,
        fields=tuple(
            PartitionField(
                source_id=each.source_id,
                field_id=1000 + at,
                name=each.name,
                transform=each.transform,
            )
            for at, each in enumerate(shape.spec(spec_id))
        ),
        schema=shape.schema.model_dump(by_alias=True) | {"schema-id": 0},
        shape=shape,
        table_location=LOCATION,
    )


def read_back(found: EncodedManifest, shape: Shape, kind: str, spec_id: int = 0) -> Entries:
    content = Content.DATA_MANIFEST if kind == DATA else Content.DELETE_MANIFEST
    return legacy.decode_manifest(
        found.content,
        file="m.avro",
        shape=shape,
        table_location=LOCATION,
        inherit=Inherited(content_type=content, partition_spec_id=spec_id),
    )


def told_by_v3(entries: Entries, version: int = 3) -> Entries:
    """Return entries without what the version has no place for."""
    lost = [
        name
        for name in entries.column_names
        if name.split(":")[-1] in {"tight", "avg_size", "max_size"}
    ]
    entries = entries.drop_columns(lost)
    for name in entries.column_names:
        if name.endswith(":values"):
            entries = _less_odd_counts(entries, name.partition(":")[0])
    if version < 3:
        entries = with_columns(entries, first_row_id=None, dv_offset=None, dv_size_in_bytes=None)
    return entries


def _less_odd_counts(entries: Entries, field: str) -> Entries:
    """Return entries without counts of a column that has not as many values as there are rows."""
    whole = pc.fill_null(pc.equal(entries[f"{field}:values"], entries["record_count"]), True)
    for name in {f"{field}:values", f"{field}:nulls"} & {*entries.column_names}:
        column = pc.if_else(whole, entries[name], pa.scalar(None, pa.int64()))
        entries = entries.set_column(entries.column_names.index(name), name, column)
    return entries


def with_numbers(entries: Entries) -> Entries:
    """Return data files with first row ids all of them, as `encode_manifest` wants it."""
    ids = pc.if_else(
        is_content(entries, Content.DATA), pc.coalesce(entries["first_row_id"], 7), None
    )
    return with_columns(entries, first_row_id=ids.cast(pa.int64()))


def _counts_nanoseconds(field_id: int) -> bool:
    return EVERY_TYPE.bounds_type(field_id) in (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))


def stats_that_count(entries: Entries) -> Entries:
    """Return entries without stats that say nothing of rows: of deletes, but those of their fields."""
    ids = entries["equality_ids"].to_pylist()
    contents = entries["content_type"].to_pylist()
    for name in entries.column_names:
        if parsed := stats.parse_column(name):
            keeps = [
                content == Content.DATA or parsed[0] in (each or ())
                for content, each in zip(contents, ids, strict=True)
            ]
            if parsed[1] in ("lower", "upper", "tight") and _counts_nanoseconds(parsed[0]):
                # Whoever reads old manifests believes no such bounds of ORC files.
                formats = entries["file_format"].to_pylist()
                keeps = [k and each != "orc" for k, each in zip(keeps, formats, strict=True)]
            column = pc.if_else(pa.array(keeps), entries[name], pa.scalar(None, entries[name].type))
            entries = entries.set_column(entries.column_names.index(name), name, column)
    return entries


@pytest.mark.parametrize("version", [3, 2])
@pytest.mark.parametrize("kind", [DATA, DELETE])
@pytest.mark.parametrize("size", [1, 9, 5000])
def test_what_is_encoded_is_decoded(kind: str, size: int, version: int) -> None:
    @law(1 if size > 1000 else 8)
    @given(manifests(kind, size))
    def holds(entries: Entries) -> None:
        entries = with_columns(
            entries, partition_spec_id=0, sequence_number=5, file_sequence_number=5
        )
        if version < 3:
            entries = only(entries, pc.invert(is_content(entries, Content.POSITION_DELETES)))
        entries = with_numbers(stats_that_count(entries))
        found = encode_manifest(entries, layout(EVERY_TYPE, version=version))
        again = read_back(found, EVERY_TYPE, kind)
        require_same(again.drop_columns([POSITION]), told_by_v3(entries, version))
        assert encode_manifest(entries, layout(EVERY_TYPE, version=version)) == found
        for word, status in (("added", 1), ("existing", 0), ("deleted", 2)):
            some = entries.filter(pc.equal(entries["status"], status))
            assert found.counts[f"{word}_files_count"] == some.num_rows
            assert found.counts[f"{word}_rows_count"] == (pc.sum(some["record_count"]).as_py() or 0)

    holds()


#: Values of partition fields of every type that can be one.
PARTITIONED = {name: kind for name, kind in KINDS.items() if name not in {"float", "double"}}


@pytest.mark.parametrize("name", KINDS)
def test_a_partition_of_any_type_is_told_by_its_tuple(name: str) -> None:
    kind = KINDS[name]
    shape = Shape(
        schema=Schema(NestedField(1, "c", kind.type)),
        expressions={
            9: Expression(
                expr_id=9, source_ids=(1,), transform="identity", name="c", partition_field_id=1000
            )
        },
        specs={1: (9,)},
    )

    @law(8)
    @given(st.lists(st.none() | kind.values, min_size=1, max_size=5))
    def holds(values: list[Any]) -> None:
        rows = [
            Entry(
                location=f"d{at}",
                record_count=4,
                file_size_in_bytes=1,
                partition_spec_id=1,
                snapshot_id=7,
                sequence_number=5,
                file_sequence_number=5,
                stats={
                    1: FieldStats(
                        lower=value, upper=value, values=4, nulls=4 if value is None else 0
                    )
                },
            )
            for at, value in enumerate(values)
        ]
        entries = to_table(rows, shape)
        found = encode_manifest(entries, layout(shape, 1))
        again = read_back(found, shape, DATA, 1)
        for stat in ("lower", "upper", "values", "nulls"):
            name = stats.column(1, stat)
            mine = pa.table({name: again[name]})
            theirs = {name: entries[name]} if name in entries.column_names else {}
            require_same(mine, pa.table(theirs))
        [told] = found.partitions
        assert told.contains_null is (None in values)
        assert (told.lower is None) is (set(values) == {None})
        listed = read_list(found, shape, 1)
        assert listed.column_names.count("1:lower") == 1
        there = [kind.order(value) for value in values if value is not None]
        if there:
            low, high = (plain(listed[f"1:{end}"][0]) for end in ("lower", "upper"))
            assert kind.order(low) <= min(there)
            assert kind.order(high) >= max(there)
            assert low in values
            assert high in values

    holds()


def read_list(found: EncodedManifest, shape: Shape, spec_id: int) -> Entries:
    [data] = [
        encode_manifest_list([listed(found, spec_id)], {"snapshot-id": "7"}, format_version=3)
    ]
    return legacy.decode_manifest_list(data, file="l.avro", shape=shape, table_location=LOCATION)


def listed(found: EncodedManifest, spec_id: int, **more: Any) -> Listed:
    return Listed(
        **{
            "location": f"{LOCATION}/metadata/m.avro",
            "size_bytes": len(found.content),
            "spec_id": spec_id,
            "holds_data": True,
            "sequence_number": 5,
            "min_sequence_number": found.min_sequence_number,
            "snapshot_id": 7,
            "counts": found.counts,
            "partitions": found.partitions,
            "first_row_id": found.first_row_id,
            **more,
        }
    )


NAN = Shape(
    schema=Schema(NestedField(1, "c", DoubleType())),
    expressions={
        9: Expression(
            expr_id=9, source_ids=(1,), transform="identity", name="c", partition_field_id=1000
        )
    },
    specs={1: (9,)},
)


def file(name: str, **told: Any) -> Entry:
    return Entry(
        location=name,
        record_count=4,
        file_size_in_bytes=1,
        partition_spec_id=1,
        snapshot_id=7,
        sequence_number=5,
        file_sequence_number=5,
        stats={1: FieldStats(values=4, **told)},
    )


def test_nan_is_a_partition_of_its_own() -> None:
    entries = to_table(
        [file("a", nulls=0, nans=4), file("b", nulls=0, nans=0, lower=1.5, upper=1.5)], NAN
    )
    found = encode_manifest(entries, layout(NAN, 1))
    [told] = found.partitions
    assert (told.contains_null, told.contains_nan) == (False, True)
    assert read_back(found, NAN, DATA, 1)["1:nans"].to_pylist() == [4, 0]


def test_a_file_whose_stats_do_not_tell_its_partition_is_named() -> None:
    entries = to_table([file("a", nulls=0, lower=1.5, upper=2.5)], NAN)
    with pytest.raises(CorruptTable, match="a: its stats do not tell its partition: c "):
        encode_manifest(entries, layout(NAN, 1))


def test_a_manifest_list_says_what_it_was_told() -> None:
    counts = {
        f"{w}_{k}_count": at
        for at, (w, k) in enumerate(
            (w, k) for k in ("files", "rows") for w in ("added", "existing", "deleted")
        )
    }
    some = [
        Listed(
            location=f"{LOCATION}/metadata/{at}.avro",
            size_bytes=at,
            spec_id=0,
            holds_data=bool(at % 2),
            sequence_number=at + 3,
            min_sequence_number=at,
            snapshot_id=at + 9,
            counts=counts,
            partitions=None,
            key_metadata=b"k" if at else None,
            first_row_id=at if at % 2 else None,
        )
        for at in range(5000)
    ]
    data = encode_manifest_list(some, {}, format_version=3)
    found = legacy.decode_manifest_list(data, file="l", shape=EVERY_TYPE, table_location=LOCATION)
    assert found["location"].to_pylist() == [f"metadata/{at}.avro" for at in range(5000)]
    assert found["first_row_id"].to_pylist() == [each.first_row_id for each in some]
    assert found["key_metadata"].to_pylist() == [each.key_metadata for each in some]
    assert found["content_type"].to_pylist() == [3 if each.holds_data else 4 for each in some]
    for name, value in counts.items():
        assert set(found[name].to_pylist()) == {value}


def test_names_that_avro_does_not_take_are_spelt_in_its_letters() -> None:
    """Partition fields keep their ids, by which they are read, and of two alike both are there."""
    names = {9: "day of ü", 10: "day-of-ü", 11: "1st"}
    shape = Shape(
        schema=Schema(NestedField(1, "c", LongType())),
        expressions={
            id: Expression(
                expr_id=id,
                source_ids=(1,),
                transform=f"bucket[{id}]",
                name=name,
                partition_field_id=991 + id,
            )
            for id, name in names.items()
        },
        specs={1: (9, 10, 11)},
    )
    one = FieldStats(values=4, nulls=0, lower=3, upper=3)
    rows = to_table(
        [
            Entry(
                location="d",
                record_count=4,
                file_size_in_bytes=1,
                partition_spec_id=1,
                snapshot_id=7,
                sequence_number=5,
                file_sequence_number=5,
                stats=dict.fromkeys(names, one),
            )
        ],
        shape,
    )
    again = read_back(encode_manifest(rows, layout(shape, 1)), shape, DATA, 1)
    assert [again[f"{id}:lower"].to_pylist() for id in names] == [[3]] * 3


def test_of_a_type_without_nans_a_list_says_that_there_are_none() -> None:
    """Spark's metadata tables fail on what is not said."""
    assert summary(pa.array([1, None], pa.int64()), LongType()).contains_nan is False
    assert summary(pa.array([None], pa.float64()), DoubleType()).contains_nan is False
