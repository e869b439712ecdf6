"""Schema evolution beside PyIceberg's, and the law of ids: whatever the edits, a column keeps its own."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
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

from icetree.errors import InvalidInput
from icetree.spec.apply.apply import apply
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.rules.metadata import broken_rule
from icetree.spec.schema.columns import column_ids
from icetree.spec.schema.tree import walk
from icetree.spec.schema.types import parse_schema
from tests.effort import law
from tests.spec.edit.editing import column, edited, ids, table


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


@law(30)
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
