"""Schema evolution: what each edit does, what it is refused for, and that ids never move."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from pyiceberg.types import (
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
from icetree.spec.apply.apply import apply
from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.entry.entry import ROOT, Entry, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import RemoveProperties, SetProperties
from tests.spec.edit.editing import column, edited, ids, refused, table


def names(metadata: TableMetadata) -> list[str]:
    return [field["name"] for field in metadata.schema_json()["fields"]]


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
