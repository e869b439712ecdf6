"""Schema evolution: what each edit does, what it is refused for, and that ids never move."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update.schema import UpdateSchema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
)

from icetree.codec import manifest
from icetree.errors import InvalidInput
from icetree.spec.apply import apply
from icetree.spec.columns import column_ids
from icetree.spec.edit.create import table_metadata
from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.entry import ROOT, Entry, to_table
from icetree.spec.metadata import TableMetadata
from icetree.spec.metadata_rules import broken_rule
from icetree.spec.schema_tree import walk
from icetree.spec.stats import FieldStats
from icetree.spec.types import parse_schema
from icetree.spec.update import RemoveProperties, SetProperties

COLUMNS = (
    "id int not null, name string, price decimal(9, 2), day date, ratio float, "
    "address struct<zip: int, city: string>, tags list<struct<x: int, y: float>>, "
    "prices map<struct<k: int>, struct<net: int>>, nothing unknown"
)


def table(columns: Any = COLUMNS, **more: Any) -> TableMetadata:
    return table_metadata(columns, location="s3://b/t", uuid="u", at_ms=1, **more)


def edited(*edits: Callable[[SchemaEdit], Any], on: TableMetadata | None = None) -> TableMetadata:
    metadata = table() if on is None else on
    edit = SchemaEdit(metadata)
    for one in edits:
        one(edit)
    return apply(metadata, edit.updates(), at_ms=2)


def refused(one: Callable[[SchemaEdit], Any], on: TableMetadata | None = None) -> str:
    edit = SchemaEdit(table() if on is None else on)
    before = edit.schema
    with pytest.raises(InvalidInput) as caught:
        one(edit)
    assert edit.schema == before
    return str(caught.value)


def column(metadata: TableMetadata, name: str) -> dict[str, Any]:
    return next(place.holder for place in walk(metadata.schema_json()) if place.name == name)


def names(metadata: TableMetadata) -> list[str]:
    return [field["name"] for field in metadata.schema_json()["fields"]]


def ids(metadata: TableMetadata) -> dict[str, int]:
    return {place.name: place.id for place in walk(metadata.schema_json())}


def test_no_edit_is_no_update() -> None:
    assert SchemaEdit(table()).updates() == ()
    assert SchemaEdit(table()).rename("id", "x").rename("x", "id").updates() == ()


def test_a_column_is_added_last_with_the_next_id_and_the_old_schema_stays() -> None:
    before = table()
    after = edited(lambda e: e.add("note", "string", doc="why"), on=before)
    assert after.schemas[0] == before.schemas[0]
    assert after.current_schema_id == 1
    assert after.schema_json()["fields"][-1] == {
        "id": before.last_column_id + 1,
        "name": "note",
        "required": False,
        "type": "string",
        "doc": "why",
    }


def test_ids_of_expressions_are_never_given_to_columns() -> None:
    before = table(partition_by=["bucket(4, id)"])
    after = edited(lambda e: e.add("note", "string"), on=before)
    assert ids(after)["note"] == before.last_column_id + 1 > before.expressions[0].expr_id


def test_columns_are_placed_where_told() -> None:
    after = edited(
        lambda e: e.add("a", "int", first=True),
        lambda e: e.add("b", "int", after="id"),
        lambda e: e.add("c", "int", before="name"),
        lambda e: e.add("address.street", "string", before="address.city"),
        on=table("id int, name string, address struct<zip: int, city: string>"),
    )
    assert names(after) == ["a", "id", "b", "c", "name", "address"]
    assert [f["name"] for f in column(after, "address")["type"]["fields"]] == [
        "zip",
        "street",
        "city",
    ]


def test_nested_columns_are_added_inside_structs_lists_and_maps() -> None:
    after = edited(
        lambda e: e.add("address.country", "string"),
        lambda e: e.add("tags.element.z", "long"),
        lambda e: e.add("prices.gross", "long"),
        lambda e: e.add(("a.b",), "int"),
    )
    have = ids(after)
    assert {"address.country", "tags.element.z", "prices.value.gross", "a.b"} <= set(have)


def test_types_may_be_arrow_words_or_pyiceberg() -> None:
    kinds: list[Any] = [
        "list<struct<x: int, y: map<string, long not null>>>",
        pa.list_(pa.struct([("x", pa.int32()), ("y", pa.map_(pa.string(), pa.field("v", pa.int64(), nullable=False)))])),
        ListType(
            element_id=7,
            element_type=StructType(
                NestedField(7, "x", IntegerType(), required=False),
                NestedField(
                    8,
                    "y",
                    MapType(1, StringType(), 1, LongType(), value_required=True),
                    required=False,
                ),
            ),
            element_required=False,
        ),
    ]  # fmt: skip
    found = [column(edited(lambda e, k=k: e.add("n", k)), "n") for k in kinds]
    assert found[0] == found[1] == found[2]
    start = found[0]["id"]
    element = found[0]["type"]["element"]["fields"]
    assert found[0]["type"]["element-id"] == start + 1
    assert [f["id"] for f in element] == [start + 2, start + 3]
    assert (element[1]["type"]["key-id"], element[1]["type"]["value-id"]) == (start + 4, start + 5)


def test_dropped_renamed_and_moved_columns_keep_their_ids() -> None:
    before = ids(table())
    after = edited(
        lambda e: e.drop("ratio"),
        lambda e: e.rename("address.zip", "code"),
        lambda e: e.move_first("tags"),
        lambda e: e.move_after("id", "name"),
        lambda e: e.move_before("address.city", "code"),
    )
    assert names(after) == ["tags", "name", "id", "price", "day", "address", "prices", "nothing"]
    now = ids(after)
    assert now["address.code"] == before["address.zip"]
    assert [f["name"] for f in column(after, "address")["type"]["fields"]] == ["city", "code"]
    assert "ratio" not in now


def test_a_name_can_be_used_again_and_is_another_column() -> None:
    after = edited(lambda e: e.drop("ratio"), lambda e: e.add("ratio", "string"))
    assert ids(after)["ratio"] > table().last_column_id


def test_manifests_tell_a_column_from_a_dropped_one_of_the_same_name() -> None:
    metadata = table("a long, b string")
    after = edited(lambda e: e.drop("a"), lambda e: e.add("a", "string"), on=metadata)
    shape = after.shape()
    bounds = {1: FieldStats(lower=1, upper=2), 3: FieldStats(lower="x", upper="y")}
    entry = Entry(
        location="f", record_count=1, file_size_in_bytes=1, snapshot_id=1, sequence_number=1,
        file_sequence_number=1, first_row_id=0, stats=bounds,
    )  # fmt: skip
    stored = manifest.encode(to_table([entry], shape), ROOT, shape)
    read = manifest.decode(stored, ROOT, shape, file="f")
    assert (read["1:lower"].to_pylist(), read["3:lower"].to_pylist()) == ([1], ["x"])


def test_unknown_members_of_a_schema_survive() -> None:
    metadata = table()
    schema = deepcopy(metadata.schema_json())
    schema["x-owner"] = "me"
    schema["fields"][0]["x-mask"] = {"by": "hash"}
    after = edited(
        lambda e: e.rename("id", "key"), on=replace(metadata, schemas=(schema,))
    ).schema_json()
    assert after["x-owner"] == "me"
    assert after["fields"][0] == {**schema["fields"][0], "name": "key"}


def test_columns_become_optional_and_only_knowingly_required() -> None:
    after = edited(
        lambda e: e.make_optional("id"),
        lambda e: e.make_required("name", allow_incompatible=True),
        lambda e: e.make_required("tags.element", allow_incompatible=True),
    )
    assert column(after, "id")["required"] is False
    assert column(after, "name")["required"] is True
    assert column(after, "tags")["type"]["element-required"] is True
    assert "allow_incompatible" in refused(lambda e: e.make_required("day"))


@pytest.mark.parametrize(
    ("path", "type", "stored"),
    [
        ("id", "long", "long"),
        ("ratio", "double", "double"),
        ("price", "decimal(12, 2)", "decimal(12, 2)"),
        ("day", "timestamp", "timestamp"),
        ("day", "timestamp_ns", "timestamp_ns"),
        ("nothing", "string", "string"),
        ("tags.element.x", "long", "long"),
        ("prices.value.net", "long", "long"),
    ],
)
def test_types_widen(path: str, type: str, stored: str) -> None:
    after = edited(lambda e: e.widen(path, type))
    assert column(after, path)["type"] == stored


def test_an_unknown_column_can_become_nested_with_fresh_ids() -> None:
    before = table()
    after = edited(lambda e: e.widen("nothing", "list<string>"), on=before)
    assert ids(after)["nothing.element"] == before.last_column_id + 1


@pytest.mark.parametrize(
    ("path", "type", "why"),
    [
        ("id", "string", "can only become a long"),
        ("price", "decimal(12, 3)", "same scale"),
        ("price", "decimal(8, 2)", "higher precision"),
        ("day", "timestamptz", "timestamp or a timestamp_ns"),
        ("name", "int", "cannot be widened"),
        ("prices.key.k", "long", "keys of a map never change"),
        ("address", "int", "cannot be widened"),
    ],
)
def test_other_changes_of_type_are_refused(path: str, type: str, why: str) -> None:
    assert why in refused(lambda e: e.widen(path, type))


def test_a_date_cannot_widen_where_partition_values_would_change() -> None:
    by_bucket, by_month = (
        table(partition_by=[f"{how}"]) for how in ("bucket(4, day)", "month(day)")
    )
    assert "'day_bucket_4'" in refused(lambda e: e.widen("day", "timestamp"), on=by_bucket)
    assert column(edited(lambda e: e.widen("day", "timestamp"), on=by_month), "day")
    # Files of the former spec keep their values, so removing the field is no way out.
    removed = apply(by_bucket, SpecEdit(by_bucket).remove("day_bucket_4").updates(), at_ms=2)
    assert "add a new column" in refused(lambda e: e.widen("day", "timestamp"), on=removed)


def test_a_widened_column_keeps_its_default() -> None:
    after = edited(
        lambda e: e.add("since", "date", default=date(2020, 1, 2)),
        lambda e: e.widen("since", "timestamp_ns"),
    )
    assert column(after, "since")["initial-default"] == "2020-01-02T00:00:00.000000000"


UTC2 = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("type", "value", "stored"),
    [
        ("boolean", True, True),
        ("int", 34, 34),
        ("long", 2**40, 2**40),
        ("float", 1, 1.0),
        ("double", 1.5, 1.5),
        ("decimal(4, 2)", Decimal("14.2"), "14.20"),
        ("decimal(4, 2)", "-0.5", "-0.50"),
        ("decimal(4, 2)", 3, "3.00"),
        ("date", date(2017, 11, 16), "2017-11-16"),
        ("time", time(22, 31, 8, 123456), "22:31:08.123456"),
        ("time", "22:31:08", "22:31:08.000000"),
        ("timestamp", datetime(2017, 11, 16, 22, 31, 8), "2017-11-16T22:31:08.000000"),  # noqa: DTZ001
        ("timestamp", "2017-11-16 22:31:08.12", "2017-11-16T22:31:08.120000"),
        ("timestamptz", datetime(2017, 11, 16, 1, tzinfo=UTC2), "2017-11-15T23:00:00.000000+00:00"),
        ("timestamptz", "2017-11-16T22:31:08Z", "2017-11-16T22:31:08.000000+00:00"),
        ("timestamp_ns", "2017-11-16T22:31:08.123456789", "2017-11-16T22:31:08.123456789"),
        ("timestamptz_ns", "2017-11-16T22:31:08+00:00", "2017-11-16T22:31:08.000000000+00:00"),
        ("string", "iceberg", "iceberg"),
        ("uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("fixed[2]", b"\x00\xff", "00ff"),
        ("binary", b"\x01", "01"),
        ("list<int>", [1, None], [1, None]),
        ("map<string, int>", {"a": 1}, {"keys": ["a"], "values": [1]}),
        ("struct<x: int>", {}, {}),
    ],
)
def test_defaults_are_stored_as_single_values_in_json(type: str, value: Any, stored: Any) -> None:
    added = column(edited(lambda e: e.add("n", type, required=True, default=value)), "n")
    assert (added["initial-default"], added["write-default"]) == (stored, stored)
    again = column(edited(lambda e: e.add("n", type, default=stored)), "n")
    assert again["initial-default"] == stored


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("boolean", 1),
        ("int", True),
        ("int", 2**31),
        ("long", "1"),
        ("float", 1e300),
        ("double", float("nan")),
        ("decimal(4, 2)", "1.234"),
        ("decimal(4, 2)", 100),
        ("decimal(4, 2)", 1.5),
        ("decimal(4, 2)", "x"),
        ("date", "16.11.2017"),
        ("date", datetime(2017, 1, 1)),  # noqa: DTZ001
        ("timestamp", "2017-11-16T22:31:08Z"),
        ("timestamptz", "2017-11-16T22:31:08"),
        ("timestamp", "2017-11-16T22:31:08.123456789"),
        ("string", 1),
        ("uuid", "x"),
        ("fixed[2]", b"x"),
        ("binary", "xyz"),
        ("list<int not null>", [None]),
        ("list<int>", "12"),
        ("struct<x: int>", {"x": 1}),
        ("struct<x: int not null>", {}),
        ("unknown", 1),
        ("variant", 1),
    ],
)
def test_a_default_of_another_type_is_refused(type: str, value: Any) -> None:
    assert "'n'" in refused(lambda e: e.add("n", type, default=value))


def test_write_defaults_change_and_initial_ones_do_not() -> None:
    first = edited(lambda e: e.add("n", "int", default=1))
    second = edited(lambda e: e.set_default("n", 2), on=first)
    assert (column(second, "n")["initial-default"], column(second, "n")["write-default"]) == (1, 2)
    third = edited(lambda e: e.set_default("n", None), on=second)
    assert column(third, "n").get("write-default") is None
    assert "'n'" in refused(lambda e: e.set_default("n", "x"), on=first)


def test_docs_are_set_and_removed() -> None:
    first = edited(lambda e: e.set_doc("id", "key"))
    assert column(first, "id")["doc"] == "key"
    assert "doc" not in column(edited(lambda e: e.set_doc("id", None), on=first), "id")


def test_identifier_fields_are_chosen_by_name() -> None:
    after = edited(lambda e: e.set_identifier_fields(["id"]))
    assert after.schema_json()["identifier-field-ids"] == [1]
    none = edited(lambda e: e.set_identifier_fields([]), on=after)
    assert none.schema_json()["identifier-field-ids"] == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("name", "'name' is optional"),
        ("ratio", "float"),
        ("address", "it is a struct"),
        ("address.zip", "'address' is optional"),
        ("tags.element.x", "list or map"),
    ],
)
def test_columns_that_cannot_identify_rows_are_refused(path: str, why: str) -> None:
    assert why in refused(lambda e: e.set_identifier_fields([path]))


def test_columns_in_use_cannot_be_dropped_and_the_error_says_by_what() -> None:
    used = table(partition_by=["bucket(4, id)", "address.zip"], order_by=["name desc"])
    assert "'id_bucket_4' (bucket[4] of it); remove 'id_bucket_4'" in refused(
        lambda e: e.drop("id"), on=used
    )
    assert "'address.zip'" in refused(lambda e: e.drop("address"), on=used)
    assert "sorted" in refused(lambda e: e.drop("name"), on=used)
    keyed = edited(lambda e: e.set_identifier_fields(["id"]))
    assert "identifier" in refused(lambda e: e.drop("id"), on=keyed)
    assert "identifier" in refused(lambda e: e.make_optional("id"), on=keyed)
    freed = apply(used, SpecEdit(used).remove("id_bucket_4").updates(), at_ms=2)
    assert "id" not in names(edited(lambda e: e.drop("id"), on=freed))


def test_an_update_cannot_take_a_column_that_the_head_is_partitioned_by() -> None:
    before = table()
    updates = SchemaEdit(before).drop("id").updates()
    head = apply(before, SpecEdit(before).add("id").updates(), at_ms=2)
    with pytest.raises(InvalidInput, match="partitioned by 'id'"):
        apply(head, updates, at_ms=3)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (lambda e: e.drop("nam"), "there is no column 'nam'; did you mean 'name'?"),
        (lambda e: e.drop("NAME"), "did you mean 'name'?"),
        (lambda e: e.rename("address.zap", "x"), "did you mean 'address.zip'?"),
        (lambda e: e.add("id", "int"), "there is a column 'id' already"),
        (lambda e: e.add("ID", "int"), "differs only in case from column 'id'"),
        (lambda e: e.add("address.Zip", "int"), "differs only in case from column 'zip'"),
        (lambda e: e.add(("address.zip",), "int"), "there is a column 'address.zip' already"),
        (lambda e: e.rename("id", "name"), "there is a column 'name' already"),
        (lambda e: e.rename("id", "a.b"), "its own name alone"),
        (lambda e: e.rename("id", ""), "empty name"),
        (lambda e: e.rename("tags.element", "x"), "the element of 'tags'"),
        (lambda e: e.add("address.", "int"), "empty part"),
        (lambda e: e.add("a..b", "int"), "empty part"),
        (lambda e: e.add((), "int"), "empty part"),
        (lambda e: e.add("id.x", "int"), "'id' is no struct"),
        (lambda e: e.add("nowhere.x", "int"), "there is no column 'nowhere'"),
        (lambda e: e.add("prices.key.x", "int"), "keys of a map"),
        (lambda e: e.add("n", "int", required=True), "give it a default"),
        (lambda e: e.add("n", "strang"), "'strang'"),
        (lambda e: e.add("n", "list<int"), "expected '>'"),
        (lambda e: e.add("n", "struct<a: int, A: int>"), "only in case"),
        (lambda e: e.add("n", 3), "3 is no type"),
        (lambda e: e.add("n", "int", first=True, after="id"), "choose one"),
        (lambda e: e.add("n", "int", after="x"), "next to 'x'"),
        (lambda e: e.move_after("address.zip", "id"), "next to 'id'"),
        (lambda e: e.move_after("id", "id"), "no other such column"),
        (lambda e: e.drop("prices.value.net"), "only field of 'prices.value'"),
        (lambda e: e.drop("tags.element"), "not a field of a struct"),
        (lambda e: e.drop("prices.key"), "keys of a map"),
        (lambda e: e.union_by_name("id string, brand_new int"), "'id' is a int"),
    ],
)
def test_refusals_name_the_culprit_and_the_way_out(one: Any, why: str) -> None:
    assert why in refused(one)


def test_what_newer_versions_brought_is_refused_in_older_tables() -> None:
    old = replace(table("id int, day date"), format_version=2, next_row_id=None)
    assert "upgrade" in refused(lambda e: e.add("n", "list<timestamp_ns>"), on=old)
    assert "upgrade" in refused(lambda e: e.add("n", "int", default=1), on=old)
    assert "version 3" in refused(lambda e: e.widen("day", "timestamp"), on=old)


def test_a_column_cannot_take_the_name_of_a_partition_field() -> None:
    used = table(partition_by=["bucket(4, id)", "name"])
    assert "partition field" in refused(lambda e: e.add("id_bucket_4", "int"), on=used)
    renamed = edited(lambda e: e.rename("name", "title"), on=used)
    assert "partition field" in refused(lambda e: e.add("name", "int"), on=renamed)
    assert "name" in names(edited(lambda e: e.rename("title", "name"), on=renamed))


def test_settings_of_a_column_follow_it() -> None:
    prefix = "write.metadata.metrics.column."
    props = {prefix + "name": "full", prefix + "ratio": "none", "a": "b"}
    edit = SchemaEdit(table(properties=props)).rename("name", "title").drop("ratio")
    assert edit.updates()[2:] == (
        RemoveProperties(removals=(prefix + "name", prefix + "ratio")),
        SetProperties(updates={prefix + "title": "full"}),
    )


def test_a_union_adds_widens_and_loosens() -> None:
    after = edited(
        lambda e: e.union_by_name(
            pa.schema(
                [
                    pa.field("id", pa.int64()),
                    pa.field("ratio", pa.float32()),
                    pa.field("price", pa.decimal128(5, 2)),
                    pa.field("day", pa.null()),
                    pa.field("address", pa.struct([("zip", pa.int64()), ("street", pa.string())])),
                    pa.field("tags", pa.list_(pa.struct([("z", pa.bool_())]))),
                    pa.field("new", pa.list_(pa.timestamp("ns", tz="UTC")), nullable=False),
                ]
            )
        )
    )
    assert column(after, "id")["type"] == "long"
    assert column(after, "id")["required"] is False
    assert column(after, "price")["type"] == "decimal(9, 2)"
    assert column(after, "day")["type"] == "date"
    assert column(after, "address.zip")["type"] == "long"
    assert {"address.street", "tags.element.z"} <= set(ids(after))
    assert column(after, "new")["required"] is False
    assert column(after, "new")["type"]["element"] == "timestamptz_ns"


def test_a_union_with_itself_changes_nothing() -> None:
    assert SchemaEdit(table()).union_by_name(table().schema()).updates() == ()


PEER = Schema(
    NestedField(1, "id", IntegerType(), required=True),
    NestedField(2, "name", StringType(), required=False, doc="n"),
    NestedField(3, "price", DecimalType(9, 2), required=False),
    NestedField(
        4,
        "address",
        StructType(
            NestedField(5, "zip", IntegerType(), required=False),
            NestedField(6, "city", StringType(), required=False),
        ),
        required=False,
    ),
    NestedField(
        7,
        "tags",
        ListType(8, StructType(NestedField(9, "x", IntegerType(), required=False))),
        required=False,
    ),
    NestedField(
        10,
        "m",
        MapType(11, StringType(), 12, StructType(NestedField(13, "v", IntegerType(), required=False))),
        required=False,
    ),
)  # fmt: skip
NEW_STRUCT = StructType(
    NestedField(1, "a", IntegerType(), required=False),
    NestedField(
        2, "b", ListType(3, StructType(NestedField(4, "c", LongType(), required=False))), required=True
    ),
    NestedField(5, "d", MapType(6, StringType(), 7, DoubleType()), required=False),
)  # fmt: skip


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda e: e.add("n", "long", doc="d"), lambda u: u.add_column("n", LongType(), "d")),
        (lambda e: e.add("n", NEW_STRUCT), lambda u: u.add_column("n", NEW_STRUCT)),
        (
            lambda e: e.add("n", "int", required=True, default=3),
            lambda u: u.add_column("n", IntegerType(), required=True, default_value=3),
        ),
        (
            lambda e: e.add("address.n", "int").add("tags.n", "int").add("m.n", NEW_STRUCT),
            lambda u: (
                u.add_column(("address", "n"), IntegerType())
                .add_column(("tags", "n"), IntegerType())
                .add_column(("m", "n"), NEW_STRUCT)
            ),
        ),
        (lambda e: e.drop("name"), lambda u: u.delete_column("name")),
        (lambda e: e.drop("address.zip"), lambda u: u.delete_column(("address", "zip"))),
        (lambda e: e.rename("tags.x", "y"), lambda u: u.rename_column("tags.x", "y")),
        (lambda e: e.make_optional("id"), lambda u: u.make_column_optional("id")),
        (
            lambda e: e.widen("id", "long").widen("price", "decimal(11,2)").widen("m.v", "long"),
            lambda u: (
                u.update_column("id", LongType())
                .update_column("price", DecimalType(11, 2))
                .update_column("m.v", LongType())
            ),
        ),
        (lambda e: e.set_doc("name", "x"), lambda u: u.update_column("name", doc="x")),
        (
            lambda e: e.move_first("tags").move_after("id", "name").move_before("price", "id"),
            lambda u: u.move_first("tags").move_after("id", "name").move_before("price", "id"),
        ),
        (
            lambda e: e.move_before("address.city", "zip"),
            lambda u: u.move_before("address.city", "address.zip"),
        ),
        (
            lambda e: e.drop("name").add("name", "int"),
            lambda u: u.delete_column("name").add_column("name", IntegerType()),
        ),
        (lambda e: e.set_identifier_fields(["id"]), lambda u: u.set_identifier_fields("id")),
        (
            lambda e: e.union_by_name(
                Schema(
                    NestedField(1, "q", NEW_STRUCT, required=False),
                    NestedField(9, "id", LongType(), required=False),
                )
            ),
            lambda u: u.union_by_name(
                Schema(
                    NestedField(1, "q", NEW_STRUCT, required=False),
                    NestedField(9, "id", LongType(), required=False),
                )
            ),
        ),
    ],
)
def test_edits_give_what_pyiceberg_gives(
    ours: Callable[[SchemaEdit], Any], theirs: Callable[[UpdateSchema], Any]
) -> None:
    peer = new_table_metadata(
        PEER, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, "s3://b/t", {"format-version": "3"}
    )
    metadata = table(PEER)
    assert metadata.schema() == peer.schema()
    update = UpdateSchema(SimpleNamespace(table_metadata=peer))  # type: ignore[arg-type]
    theirs(update)
    wanted = update._apply()
    after = edited(ours, on=metadata).schema_json()
    assert parse_schema(after).as_struct() == wanted.as_struct()
    assert set(after.get("identifier-field-ids", ())) == set(wanted.identifier_field_ids)


WORDS = st.sampled_from(["a", "b", "c", "d", "e"])
KINDS = st.sampled_from(
    ["int", "long", "float", "date", "struct<a: int, b: float>", "list<struct<a: int>>"]
)


@st.composite
def steps(draw: st.DrawFn) -> Callable[[SchemaEdit, str], Any]:
    kind, word = draw(KINDS), draw(WORDS)
    return draw(
        st.sampled_from(
            [
                lambda e, _: e.add(word, kind),
                lambda e, at: e.add(f"{at}.{word}", kind),
                lambda e, at: e.drop(at),
                lambda e, at: e.rename(at, word),
                lambda e, at: e.move_first(at),
                lambda e, at: e.move_after(at, word),
                lambda e, at: e.widen(at, kind),
                lambda e, at: e.make_optional(at),
                lambda e, _: e.union_by_name([(word, kind)]),
            ]
        )
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(steps(), st.integers(0, 30)), max_size=4), max_size=6))
def test_whatever_the_edits_a_column_keeps_its_id_and_no_id_is_given_twice(
    rounds: list[list[tuple[Callable[[SchemaEdit, str], Any], int]]],
) -> None:
    metadata = table("a int, b struct<a: int, c: date>", partition_by=["bucket(4, a)"])
    given_out: set[int] = set(column_ids(metadata.schema_json()))
    given_out |= {each.expr_id for each in metadata.expressions}
    for edits in rounds:
        edit = SchemaEdit(metadata)
        for step, pick in edits:
            before = {place.id: place.own_name for place in walk(edit.schema)}
            places = [place.name for place in walk(edit.schema)]
            try:
                step(edit, places[pick % len(places)])
            except InvalidInput:
                continue
            after = {place.id: place.own_name for place in walk(edit.schema)}
            changed = [id for id in before.keys() & after.keys() if before[id] != after[id]]
            assert len(changed) <= 1
            assert not (after.keys() - before.keys()) & given_out
        after_all = apply(metadata, edit.updates(), at_ms=2)
        assert broken_rule(after_all) is None
        assert after_all.schemas[: len(metadata.schemas)] == metadata.schemas
        assert after_all.last_column_id >= metadata.last_column_id
        given_out |= column_ids(after_all.schema_json())
        after_all.shape()
        metadata = after_all
