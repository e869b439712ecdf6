"""Table metadata as a value: shapes, snapshots and refs."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from icetree.errors import InvalidInput, NotFound
from icetree.spec.entry.metrics import FULL
from icetree.spec.metadata.layout import (
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    expressions_for,
)
from icetree.spec.metadata.metadata import TableMetadata, new_table, with_previous, with_snapshot
from icetree.spec.metadata.snapshot import LogEntry, Ref, Snapshot
from icetree.spec.rules.metadata import broken_rule
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import SortKey


def schema(*names: str, id: int = 0, start: int = 1, **more: Any) -> dict[str, Any]:
    fields = [
        {"id": start + at, "name": name, "required": False, "type": "string"}
        for at, name in enumerate(names)
    ]
    return {"type": "struct", "schema-id": id, "fields": fields, **more}


def field(id: int, transform: str, *sources: int, name: str | None = None) -> PartitionField:
    return PartitionField(
        source_id=sources[0] if len(sources) == 1 else None,
        source_ids=sources if len(sources) > 1 else None,
        field_id=id,
        name=name or f"p{id}",
        transform=transform,
    )


def spec(id: int, *fields: PartitionField) -> PartitionSpec:
    return PartitionSpec(spec_id=id, fields=fields)


def table(**changes: Any) -> TableMetadata:
    made = new_table(
        table_uuid="u", location="s3://b/t", schema=schema("a", "b", "c"), at_ms=1, spec=spec(0)
    )
    return replace(made, **changes)


def snapshot(number: int, **changes: Any) -> Snapshot:
    made = Snapshot(
        snapshot_id=100 + number,
        sequence_number=number,
        timestamp_ms=number,
        root_manifest=f"r{number}",
        first_row_id=(number - 1) * 10,
        added_rows=10,
    )
    return replace(made, **changes)


def test_a_new_table_is_sound_and_empty() -> None:
    made = new_table(
        table_uuid="u",
        location="s3://b/t",
        schema=schema("a", "b"),
        at_ms=1,
        spec=spec(0, field(1000, "bucket[4]", 1), field(1001, "identity", 2)),
        sort_order=SortOrder(
            order_id=1,
            fields=(
                SortField(
                    transform="identity", source_id=2, direction="desc", null_order="nulls-last"
                ),
            ),
        ),
        properties={"x": "y"},
    )
    assert broken_rule(made) is None
    assert made.current_snapshot() is None
    assert made.last_column_id == 4
    assert made.last_partition_id == 1001
    shape = made.shape()
    assert shape.specs == {0: (3, 4)}
    assert shape.sort_order == (SortKey(source_id=2, descending=True, nulls_first=False),)
    # Columns, then the derived expression; the identity's stats are its column's, never cut.
    assert shape.tracked == (1, 2, 3)
    assert made.metrics()[2] == FULL


def test_expressions_of_an_upgrade_follow_the_last_column_id_and_are_shared() -> None:
    day = field(1000, "day", 1, name="old")
    expressions, specs, last = expressions_for(
        [
            spec(2, field(1001, "bucket[4]", 2), replace(day, name="new")),
            spec(1, day),
            spec(0),
            spec(3, field(1002, "bucket[4]", 1, 2), field(1000, "void", 1)),
        ],
        7,
    )
    assert expressions == (
        Expression(
            expr_id=8, source_ids=(1,), transform="day", name="new", partition_field_id=1000
        ),
        Expression(
            expr_id=9, source_ids=(2,), transform="bucket[4]", name="p1001", partition_field_id=1001
        ),
        Expression(
            expr_id=10,
            source_ids=(1, 2),
            transform="bucket[4]",
            name="p1002",
            partition_field_id=1002,
        ),
        Expression(
            expr_id=11, source_ids=(1,), transform="void", name="p1000", partition_field_id=1000
        ),
    )
    assert {each.spec_id: each.expr_ids for each in specs} == {
        0: (),
        1: (8,),
        2: (9, 8),
        3: (10, 11),
    }
    assert last == 11


def test_expressions_stay_apart_where_v1_writers_numbered_each_spec_on_its_own() -> None:
    expressions, specs, _ = expressions_for(
        [
            spec(0, field(1000, "day", 1)),
            spec(1, field(1000, "bucket[4]", 2), field(1001, "day", 1)),
        ],
        2,
    )
    assert [each.partition_field_id for each in expressions] == [1000, 1000, 1001]
    assert [each.expr_ids for each in specs] == [(3,), (4, 5)]


def test_what_is_not_known_of_a_partition_field_moves_into_its_expression() -> None:
    odd = replace(field(1000, "day", 1), extra={"x": 1})
    expressions, specs, _ = expressions_for([replace(spec(0, odd), extra={"y": 2})], 1)
    assert expressions[0].extra == {"expr": {"x": 1}}
    assert specs[0].extra == {"y": 2}


def test_the_shape_of_an_old_table_is_that_of_its_upgrade() -> None:
    specs = (spec(0), spec(1, field(1000, "truncate[2]", 1), field(1001, "identity", 2)))
    old = table(format_version=2, partition_specs=specs, default_spec_id=1)
    assert broken_rule(old) is None
    expressions, rewritten, last = expressions_for(specs, old.last_column_id)
    new = replace(
        old,
        format_version=4,
        expressions=expressions,
        partition_specs=rewritten,
        last_column_id=last,
    )
    assert broken_rule(new) is None
    assert old.shape() == new.shape()
    assert old.shape().specs == {0: (), 1: (4, 5)}
    assert old.shape().default_spec_id == 1


def test_the_shape_remembers_columns_of_other_schemas() -> None:
    newer = schema("renamed", id=1)
    newest = schema("d", id=2, start=4)
    made = table(
        schemas=(schema("a", "b", "c"), newer, newest), current_schema_id=2, last_column_id=4
    )
    shape = made.shape()
    assert {id: column.name for id, column in shape.former.items()} == {
        1: "renamed",
        2: "b",
        3: "c",
    }
    assert [each.name for each in made.shape(schema_id=0).schema.fields] == ["a", "b", "c"]
    with pytest.raises(NotFound, match="no schema 7"):
        made.shape(schema_id=7)


def test_a_shape_means_another_thing_once_entries_would_be_read_otherwise() -> None:
    """The id of the schema does not tell: these all have the same."""
    specs = (spec(0), spec(1, field(1000, "truncate[4]", 1)))
    old = table(format_version=2, partition_specs=specs, default_spec_id=1)
    assert old.shape().meaning == replace(old, last_updated_ms=9).shape().meaning
    grown = replace(old, last_column_id=old.last_column_id + 1)  # expressions follow it
    wider = replace(old, schemas=(*old.schemas, schema("d", id=1, start=9)))
    fewer = replace(old, partition_specs=specs[:1], default_spec_id=0)
    told = [each.shape(0).meaning for each in (old, grown, wider, fewer)]
    assert len(set(told)) == 4


def test_identifier_sort_and_partition_columns_have_stats_beyond_the_default() -> None:
    properties = {"write.metadata.metrics.max-inferred-column-defaults": "0"}
    names = schema("a", "b", "c", "d", **{"identifier-field-ids": [1]})
    names["fields"][0]["required"] = True
    made = new_table(
        table_uuid="u",
        location="s3://b/t",
        schema=names,
        at_ms=1,
        spec=spec(0, field(1000, "bucket[2]", 3), field(1001, "void", 4)),
        sort_order=SortOrder(
            order_id=1,
            fields=(
                SortField(
                    transform="identity", source_id=2, direction="asc", null_order="nulls-first"
                ),
                SortField(
                    transform="z", source_ids=(3, 4), direction="asc", null_order="nulls-first"
                ),
            ),
        ),
        properties=properties,
    )
    assert made.shape().tracked == (1, 2, 3, 4, 5)
    assert made.shape().sort_order == (SortKey(source_id=2),)


def test_a_snapshot_moves_main_the_log_and_the_counters() -> None:
    after = with_snapshot(table(), snapshot(1), at_ms=50)
    assert broken_rule(after) is None
    assert after.current_snapshot() == snapshot(1)
    assert after.ref("main") == Ref(snapshot_id=101, type="branch")
    assert after.snapshot_log == (LogEntry(timestamp_ms=50, snapshot_id=101),)
    assert (after.last_sequence_number, after.next_row_id, after.last_updated_ms) == (1, 10, 50)


def test_a_snapshot_on_a_branch_leaves_main_alone_and_keeps_the_branchs_settings() -> None:
    main = with_snapshot(table(), snapshot(1), at_ms=1)
    kept = Ref(snapshot_id=101, type="branch", min_snapshots_to_keep=3, extra={"x": 1})
    both = with_snapshot(
        replace(main, refs={**main.refs, "dev": kept}), snapshot(2), ref="dev", at_ms=2
    )
    assert both.ref("dev") == replace(kept, snapshot_id=102)
    assert both.current_snapshot_id == 101
    assert both.snapshot_log == main.snapshot_log
    staged = with_snapshot(main, snapshot(2), ref=None, at_ms=2)
    assert staged.refs == main.refs
    assert staged.snapshot(102) == snapshot(2)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (snapshot(1, snapshot_id=103), "sequence number 1 is not above the table's last, 1"),
        (snapshot(2, snapshot_id=101), "a snapshot with this id"),
        (snapshot(2, first_row_id=9), "first-row-id 9 is not the table's next-row-id 10"),
        (snapshot(2, first_row_id=None), "first-row-id None"),
        (snapshot(2, added_rows=None), "added-rows None is not a count"),
        (snapshot(2, added_rows=-1), "added-rows -1 is not a count"),
        (snapshot(2, root_manifest=None, manifest_list="l"), "needs a root manifest"),
        (snapshot(2, schema_id=4), "there is no schema 4"),
    ],
)
def test_a_snapshot_that_cannot_follow_is_refused(bad: Snapshot, reason: str) -> None:
    head = with_snapshot(table(), snapshot(1), at_ms=1)
    with pytest.raises(InvalidInput, match=reason):
        with_snapshot(head, bad, at_ms=2)


def test_a_tag_never_moves_by_a_commit() -> None:
    head = with_snapshot(table(), snapshot(1), at_ms=1)
    tagged = replace(head, refs={**head.refs, "v1": Ref(snapshot_id=101, type="tag")})
    with pytest.raises(InvalidInput, match="'v1' is a tag"):
        with_snapshot(tagged, snapshot(2), ref="v1", at_ms=2)


def test_what_is_not_there_is_not_found_by_name() -> None:
    with pytest.raises(NotFound, match="no snapshot 5"):
        table().snapshot(5)
    with pytest.raises(NotFound, match="no branch or tag 'dev'"):
        table().ref("dev")


def test_the_metadata_log_is_bounded() -> None:
    made = table(properties={"write.metadata.previous-versions-max": "2"})
    for at in range(4):
        made = with_previous(made, f"v{at}", made)
    assert [each.metadata_file for each in made.metadata_log] == ["v2", "v3"]
    bad = table(properties={"write.metadata.previous-versions-max": "0"})
    with pytest.raises(InvalidInput, match=r"previous-versions-max='0'.* 1 or more"):
        with_previous(bad, "v", bad)


@pytest.mark.parametrize(
    "change",
    [
        {"format_version": 3},
        {"schemas": (schema("a", "b", "d"),)},
        {"schemas": (schema("a", "b", "c"), schema("a", "x", id=1))},
        {"partition_specs": (spec(0), spec(1)), "default_spec_id": 1},
        {
            "sort_orders": (
                SortOrder(order_id=0, fields=()),
                SortOrder(
                    order_id=1,
                    fields=(
                        SortField(
                            source_id=1,
                            transform="identity",
                            direction="asc",
                            null_order="nulls-first",
                        ),
                    ),
                ),
            ),
            "default_sort_order_id": 1,
        },
        {"properties": {"write.metadata.metrics.column.b": "none"}},
    ],
)
def test_a_shape_follows_whatever_it_depends_on(change: dict[str, Any]) -> None:
    before, after = table(), table(**change)
    assert before.shape() == before._new_shape(0)
    assert after.shape() == after._new_shape(0)


def test_a_commit_that_changes_no_layout_keeps_the_shape() -> None:
    before = table()
    after = with_snapshot(before, snapshot(1, first_row_id=0, added_rows=1), at_ms=2)
    assert after.shape() is before.shape()
    assert replace(before, properties={"p": "1"}).shape() is not before.shape()
