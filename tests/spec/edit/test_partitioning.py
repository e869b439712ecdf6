"""Partition and sort evolution: what each edit does, and what it is refused for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from icetree.errors import InvalidInput
from icetree.spec.apply.apply import apply
from icetree.spec.edit.create import table_metadata
from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.edit.sort import SortEdit
from icetree.spec.edit.terms import read_term, term_text
from icetree.spec.edit.words import partition_words, sort_words
from icetree.spec.metadata.layout import SortField
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import AddExpression, RenameExpressions
from icetree.spec.rules.metadata import broken_rule
from icetree.spec.schema.expressions import Expression
from tests.effort import law

COLUMNS = (
    "id long, name string, ts timestamp, day date, flag boolean, x_year int, x date, "
    "address struct<zip: int>, tags list<int>, any variant, at double"
)


def table(**more: Any) -> TableMetadata:
    return table_metadata(COLUMNS, location="s3://b/t", uuid="u", at_ms=1, **more)


def edited(one: Callable[[SpecEdit], Any], on: TableMetadata | None = None) -> TableMetadata:
    metadata = table() if on is None else on
    edit = SpecEdit(metadata)
    one(edit)
    return apply(metadata, edit.updates(), at_ms=2)


def partitioning(metadata: TableMetadata) -> list[tuple[str, str]]:
    found = metadata.shape().spec(metadata.default_spec_id)
    return [(each.name, each.transform) for each in found]


def refused(one: Callable[[SpecEdit], Any], on: TableMetadata | None = None) -> str:
    edit = SpecEdit(table() if on is None else on)
    before = edit.updates()
    with pytest.raises(InvalidInput) as caught:
        one(edit)
    assert edit.updates() == before
    return str(caught.value)


@pytest.mark.parametrize(
    ("term", "name", "transform"),
    [
        ("id", "id", "identity"),
        ("identity(id)", "id", "identity"),
        ("address.zip", "address.zip", "identity"),
        ("bucket(16, id)", "id_bucket_16", "bucket[16]"),
        ("BUCKET(id, 16)", "id_bucket_16", "bucket[16]"),
        ("truncate(4, name)", "name_trunc_4", "truncate[4]"),
        ("years(ts)", "ts_year", "year"),
        ("month(ts)", "ts_month", "month"),
        ("days( ts )", "ts_day", "day"),
        ("hours(`ts`)", "ts_hour", "hour"),
        ("bucket(8, id, name)", "id_name_bucket_8", "bucket[8]"),
    ],
)
def test_terms_have_icebergs_names(term: str, name: str, transform: str) -> None:
    before = table()
    after = edited(lambda e: e.add(term), on=before)
    assert partitioning(after) == [(name, transform)]
    assert after.expressions[0].expr_id == before.last_column_id + 1
    assert after.expressions[0].partition_field_id == 1000
    assert after.partition_specs[0] == before.partition_specs[0]
    assert broken_rule(after) is None


def test_a_term_of_many_columns_names_them_all() -> None:
    made = edited(lambda e: e.add("bucket(8, id, name)")).expressions[0]
    assert (made.source_ids, made.source_id) == ((1, 2), None)


def test_fields_are_added_named_removed_and_renamed() -> None:
    first = edited(lambda e: e.add("days(ts)").add("bucket(4, id)", name="shard"))
    assert partitioning(first) == [("ts_day", "day"), ("shard", "bucket[4]")]
    second = edited(lambda e: e.remove("days(ts)").rename("shard", "part"), on=first)
    assert partitioning(second) == [("part", "bucket[4]")]
    assert [each.spec_id for each in second.partition_specs] == [0, 1, 2]
    third = edited(lambda e: e.remove("part"), on=second)
    assert (third.default_spec_id, partitioning(third)) == (0, [])


def test_nothing_to_do_is_no_update() -> None:
    assert SpecEdit(table()).updates() == ()
    assert SpecEdit(table()).add("id").remove("id").updates() == ()


def test_what_the_table_had_before_is_used_again() -> None:
    first = edited(lambda e: e.add("days(ts)"))
    none = edited(lambda e: e.remove("ts_day"), on=first)
    again = edited(lambda e: e.add("day(ts)"), on=none)
    assert again.default_spec_id == first.default_spec_id
    assert (again.expressions, again.last_column_id) == (first.expressions, first.last_column_id)
    renamed = edited(lambda e: e.add("day(ts)", name="d"), on=none)
    assert [each.name for each in renamed.expressions] == ["d"]


def test_the_name_of_a_field_that_is_gone_can_be_taken() -> None:
    first = edited(lambda e: e.add("bucket(4, id)", name="shard"))
    second = edited(lambda e: e.remove("shard").add("bucket(8, id)", name="shard"), on=first)
    assert partitioning(second) == [("shard", "bucket[8]")]
    assert [each.name for each in second.expressions] == ["shard_1000", "shard"]


def test_ids_stay_apart_from_columns_added_later() -> None:
    first = edited(lambda e: e.add("days(ts)"))
    second = apply(first, SchemaEdit(first).add("n", "int").updates(), at_ms=3)
    third = edited(lambda e: e.add("n"), on=second)
    assert third.expressions[-1].expr_id == third.last_column_id == first.last_column_id + 2
    assert third.expressions[-1].partition_field_id == 1001


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (lambda e: e.add("nam"), "did you mean 'name'?"),
        (lambda e: e.add("bucket(4, ID)"), "did you mean 'id'?"),
        (lambda e: e.add("days(id)"), "'id' is a long, which day cannot take"),
        (lambda e: e.add("hours(day)"), "'day' is a date, which hour cannot take"),
        (lambda e: e.add("bucket(4, at)"), "'at' is a double, which bucket[4] cannot take"),
        (lambda e: e.add("truncate(4, flag)"), "'flag' is a boolean"),
        (lambda e: e.add("any"), "'any' is a variant"),
        (lambda e: e.add("address"), "'address' is a struct"),
        (lambda e: e.add("tags"), "'tags' is a list"),
        (lambda e: e.add("tags.element"), "inside a list or map"),
        (lambda e: e.add("bucket(0, id)"), "number of buckets above 0"),
        (lambda e: e.add("bucket(id)"), "bucket(16, column)"),
        (lambda e: e.add("lower(name)"), "there is no transform 'lower'"),
        (lambda e: e.add("day(ts, day)"), "takes one column, not 2"),
        (lambda e: e.add(""), "empty"),
        (lambda e: e.add("year(x)"), "'x_year' (year) would have the name of a column"),
        (lambda e: e.add("id", name="name"), "the name of a column"),
        (lambda e: e.add("id", name=" "), "empty name"),
        (lambda e: e.remove("id"), "it has no partitions"),
    ],
)
def test_refusals_name_the_culprit(one: Any, why: str) -> None:
    assert why in refused(one)


def test_fields_are_not_there_twice() -> None:
    used = edited(lambda e: e.add("days(ts)").add("bucket(4, id)"))
    assert "already: 'ts_day'" in refused(lambda e: e.add("day(ts)"), on=used)
    assert "'ts_day' (day) already" in refused(lambda e: e.add("id", name="ts_day"), on=used)
    assert "'ts_day' (day) already" in refused(lambda e: e.rename("id_bucket_4", "ts_day"), on=used)
    assert "did you mean 'ts_day'?" in refused(lambda e: e.remove("ts_dag"), on=used)
    assert edited(lambda e: e.add("hours(ts)"), on=used)
    twice = SpecEdit(table()).add("days(ts)")
    with pytest.raises(InvalidInput, match="same time twice"):
        twice.add("hours(ts)")


def test_tables_before_v4_must_be_upgraded() -> None:
    with pytest.raises(InvalidInput, match="upgrade it first"):
        SpecEdit(replace(table(), format_version=3))


def test_expressions_cannot_be_renamed_into_each_other_or_nothing() -> None:
    used = edited(lambda e: e.add("days(ts)").add("bucket(4, id)"))
    one, two = (each.expr_id for each in used.expressions)
    swapped = apply(used, [RenameExpressions(names={one: "b", two: "ts_day"})], at_ms=3)
    assert [each.name for each in swapped.expressions] == ["b", "ts_day"]
    for names in ({one: "id_bucket_4"}, {99: "x"}, {one: ""}):
        with pytest.raises(InvalidInput):
            apply(used, [RenameExpressions(names=names)], at_ms=3)


TERMS = ["id", "bucket(4, id)", "bucket(8, id)", "days(ts)", "months(ts)", "truncate(2, name)"]


@law(50)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["add", "remove", "rename"]),
            st.sampled_from(TERMS),
            st.sampled_from([None, "p", "q"]),
        ),
        max_size=12,
    )
)
def test_whatever_the_edits_an_expression_keeps_its_meaning(
    steps: list[tuple[str, str, str | None]],
) -> None:
    metadata = table()
    meaning: dict[int, Any] = {}
    for what, term, name in steps:
        edit = SpecEdit(metadata)
        try:
            if what == "add":
                edit.add(term, name)
            elif what == "remove":
                edit.remove(term)
            else:
                edit.rename(term, name or "r")
        except InvalidInput:
            assert edit.updates() == ()
            continue
        metadata = apply(metadata, edit.updates(), at_ms=2)
        assert broken_rule(metadata) is None
        names = [each.name for each in metadata.expressions]
        assert len(set(names)) == len(names)
        for each in metadata.expressions:
            told = (each.source_ids, each.transform, each.partition_field_id)
            assert meaning.setdefault(each.expr_id, told) == told
        assert len(set(meaning.values())) == len(meaning)


def test_a_sort_order_is_built_key_by_key() -> None:
    metadata = table()
    edit = SortEdit(metadata).asc("name").desc("bucket(4, id)", nulls="first").by("ts desc")
    after = apply(metadata, edit.updates(), at_ms=2)
    assert after.default_sort_order_id == 1
    assert after.sort_orders[1].fields == (
        SortField(transform="identity", source_id=2, direction="asc", null_order="nulls-first"),
        SortField(transform="bucket[4]", source_id=1, direction="desc", null_order="nulls-first"),
        SortField(transform="identity", source_id=3, direction="desc", null_order="nulls-last"),
    )
    same = SortEdit(after).by("name", "bucket(4, id) desc NULLS FIRST", "ts DESC")
    assert same.updates() == ()
    unsorted = apply(after, SortEdit(after).updates(), at_ms=3)
    assert unsorted.default_sort_order_id == 0
    assert apply(unsorted, edit.updates(), at_ms=4).default_sort_order_id == 1


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (lambda e: e.asc("nam"), "did you mean 'name'?"),
        (lambda e: e.asc("any"), "cannot sort by 'any'"),
        (lambda e: e.asc("id", nulls="middle"), "first or last"),
        (lambda e: e.asc("id").by("id desc"), "twice"),
    ],
)
def test_sort_keys_are_checked(one: Any, why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        one(SortEdit(table()))
    assert why in str(caught.value)


def test_new_expressions_are_the_only_ones_added() -> None:
    used = edited(lambda e: e.add("id"))
    updates = SpecEdit(used).add("name").updates()
    added = [each.expression for each in updates if isinstance(each, AddExpression)]
    assert added == [
        Expression(
            expr_id=used.last_column_id + 1,
            source_ids=(2,),
            transform="identity",
            name="name",
            partition_field_id=1001,
        )
    ]


@law(200)
@given(
    name=st.one_of(
        st.text("ab`,() 1", min_size=1, max_size=6).filter(lambda name: name.strip() == name),
        st.sampled_from(["x desc", "x nulls first"]),
    ),
    transform=st.sampled_from(["", "bucket(4, {})", "truncate(2, {})", "bucket(4, id, {})"]),
)
def test_a_layout_is_read_back_from_the_words_that_tell_it(name: str, transform: str) -> None:
    schema = pa.schema([("id", pa.int64()), (name, pa.string())])
    quoted = f"`{name.replace('`', '``')}`"
    said = transform.format(quoted) or quoted
    made = _made(schema, [said])
    again = _made(schema, partition_words(made), sort_words(made))
    assert partitioning(again) == partitioning(made)
    assert again.shape().specs == made.shape().specs
    assert again.sort_keys == made.sort_keys


def _made(
    schema: pa.Schema, by: Sequence[str], order: Sequence[str] | None = None
) -> TableMetadata:
    return table_metadata(
        schema, location="s3://b/t", uuid="u", at_ms=1, partition_by=by, order_by=order or by
    )


NAMES = [
    "a\nb",
    "a\u2028b",
    "a\tb",
    "a b",
    " a",
    "a`b",
    "`",
    "``",
    "a`,`b",
    "a,b",
    "f(x)",
    ")(\n,",
    "5",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("transform", ["identity", "bucket[4]", "truncate[3]"])
def test_what_a_transform_is_written_as_is_read_back(name: str, transform: str) -> None:
    fields = [(1, name), (2, "id")]
    schema = {
        "type": "struct",
        "schema-id": 0,
        "fields": [
            {"id": id, "name": each, "required": False, "type": "long"} for id, each in fields
        ],
    }
    read = read_term(term_text(transform, name), schema)
    assert (read.transform, read.source_ids) == (transform, (1,))
    if transform.startswith("bucket"):
        for columns, ids in (((name, "id"), (1, 2)), (("id", name), (2, 1))):
            assert read_term(term_text(transform, *columns), schema).source_ids == ids
