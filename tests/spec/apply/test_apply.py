"""Updates of table metadata: what each does, and what each is refused for."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from icetree.errors import InvalidInput
from icetree.spec.apply.apply import apply
from icetree.spec.metadata.layout import (
    UNSORTED,
    ExprField,
    PartitionField,
    PartitionSpec,
    SortField,
    SortOrder,
    expressions_for,
)
from icetree.spec.metadata.metadata import (
    EncryptionKey,
    PartitionStatisticsFile,
    StatisticsFile,
    TableMetadata,
    new_table,
)
from icetree.spec.metadata.snapshot import LogEntry, Ref, Snapshot, SnapshotPage
from icetree.spec.metadata.update import (
    AddEncryptionKey,
    AddExpression,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUUID,
    RemoveEncryptionKey,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
)
from icetree.spec.schema.expressions import Expression


def schema(*columns: tuple[int, str]) -> dict[str, Any]:
    fields = [{"id": id, "name": name, "required": False, "type": "long"} for id, name in columns]
    return {"type": "struct", "fields": fields}


AB = schema((1, "a"), (2, "b"))
BUCKET = PartitionField(source_id=1, field_id=1000, name="a_bucket", transform="bucket[4]")
BY_BUCKET = PartitionSpec(spec_id=0, fields=(BUCKET,))
DAY = Expression(expr_id=9, source_ids=(2,), transform="day", name="b_day", partition_field_id=1005)
BY_A = SortField(transform="identity", source_id=1, direction="asc", null_order="nulls-first")


def table(version: int = 4) -> TableMetadata:
    """Columns 1 and 2; in v4 expression 3, a bucket of column 1."""
    made = new_table(table_uuid="u", location="s3://b/t", schema=AB, at_ms=1, spec=BY_BUCKET)
    if version == 4:
        return made
    return replace(
        made,
        format_version=version,
        expressions=(),
        partition_specs=(BY_BUCKET,),
        last_column_id=2,
        next_row_id=0 if version == 3 else None,
    )


def snapshot(number: int, **changes: Any) -> Snapshot:
    made = Snapshot(
        snapshot_id=number,
        sequence_number=number,
        timestamp_ms=number,
        root_manifest=f"r{number}",
        first_row_id=0,
        added_rows=0,
    )
    return replace(made, **changes)


def main(id: int) -> SetSnapshotRef:
    return SetSnapshotRef(ref_name="main", ref=Ref(snapshot_id=id, type="branch"))


def tag(id: int) -> SetSnapshotRef:
    return SetSnapshotRef(ref_name="v", ref=Ref(snapshot_id=id, type="tag"))


def done(*updates: Update, on: TableMetadata | None = None, at_ms: int = 7) -> TableMetadata:
    return apply(table() if on is None else on, updates, at_ms=at_ms)


def refused(*updates: Update, on: TableMetadata | None = None) -> str:
    with pytest.raises(InvalidInput) as caught:
        done(*updates, on=on)
    return str(caught.value)


def test_no_updates_only_move_the_clock() -> None:
    assert done() == replace(table(), last_updated_ms=7)


def test_a_schema_is_added_numbered_and_made_current() -> None:
    after = done(AddSchema(schema={**schema((1, "a"), (4, "c")), "x": 1}), SetCurrentSchema())
    assert after.current_schema_id == 1
    assert after.schemas[1] == {**schema((1, "a"), (4, "c")), "x": 1, "schema-id": 1}
    assert after.last_column_id == 4


def test_a_schema_that_is_there_is_reused() -> None:
    after = done(AddSchema(schema={**AB, "schema-id": 8}), SetCurrentSchema())
    assert after == replace(table(), last_updated_ms=7)


def test_new_columns_never_take_an_id_given_before() -> None:
    assert "ids [3] of new columns" in refused(AddSchema(schema=schema((1, "a"), (3, "c"))))
    assert "two columns have id 5" in refused(AddSchema(schema=schema((5, "a"), (5, "b"))))
    assert "no list of fields" in refused(AddSchema(schema={}))
    assert "there is no schema 3" in refused(SetCurrentSchema(schema_id=3))
    assert "no schema was added" in refused(SetCurrentSchema())


def test_an_expression_and_a_spec_of_it_are_added() -> None:
    spec = PartitionSpec(spec_id=55, fields=(ExprField(expr_id=9), ExprField(expr_id=3)))
    after = done(AddExpression(expression=DAY), AddPartitionSpec(spec=spec), SetDefaultSpec())
    assert after.expressions[-1] == DAY
    assert (after.last_column_id, after.last_partition_id) == (9, 1005)
    assert after.default_spec_id == 1
    assert after.shape().specs == {0: (3,), 1: (9, 3)}


def test_a_bad_expression_is_refused() -> None:
    def bad(**changes: Any) -> AddExpression:
        values = {"expr_id": 9, "source_ids": (2,), "transform": "day", "name": "n", **changes}
        return AddExpression(expression=Expression(**values))

    assert "expr-id 3 is not above last-column-id 3" in refused(bad(expr_id=3))
    assert "no column with id 8" in refused(bad(source_ids=(2, 8)))
    assert "there is an expression 'a_bucket'" in refused(bad(name="a_bucket"))
    assert "expressions need v4" in refused(bad(), on=table(3))


def test_a_spec_that_is_there_is_reused() -> None:
    for version, fields in ((4, (ExprField(expr_id=3),)), (2, (BUCKET,))):
        spec = PartitionSpec(spec_id=9, fields=fields)
        after = done(AddPartitionSpec(spec=spec), SetDefaultSpec(), on=table(version))
        assert after == replace(table(version), last_updated_ms=7)


def test_a_bad_spec_is_refused() -> None:
    def add(*fields: Any) -> AddPartitionSpec:
        return AddPartitionSpec(spec=PartitionSpec(spec_id=0, fields=fields))

    assert "names expr-id 4" in refused(add(ExprField(expr_id=4)))
    assert "same expr-id" in refused(add(ExprField(expr_id=3), ExprField(expr_id=3)))
    assert "in place of an expr-id" in refused(add(replace(BUCKET, name="x")))
    old = table(2)
    assert "no column with id 7" in refused(add(replace(BUCKET, source_id=7)), on=old)
    assert "same field-id" in refused(add(BUCKET, replace(BUCKET, name="x")), on=old)
    assert "same name" in refused(add(BUCKET, replace(BUCKET, field_id=1001)), on=old)
    assert "there is no partition spec 4" in refused(SetDefaultSpec(spec_id=4))


def test_a_field_of_an_old_spec_moves_the_last_partition_id() -> None:
    spec = PartitionSpec(spec_id=0, fields=(replace(BUCKET, field_id=1007, name="x"),))
    after = done(AddPartitionSpec(spec=spec), on=table(2))
    assert after.last_partition_id == 1007
    assert after.default_spec_id == 0


def test_sort_orders_are_added_reused_and_chosen() -> None:
    order = SortOrder(order_id=0, fields=(BY_A,))
    after = done(AddSortOrder(sort_order=order), SetDefaultSortOrder())
    assert after.sort_orders == (UNSORTED, replace(order, order_id=1))
    assert after.default_sort_order_id == 1
    again = done(AddSortOrder(sort_order=order), SetDefaultSortOrder(), on=after)
    assert again == after
    assert done(SetDefaultSortOrder(sort_order_id=0), on=after).default_sort_order_id == 0


def test_a_bad_sort_order_is_refused() -> None:
    bad = SortOrder(order_id=1, fields=(replace(BY_A, source_id=5),))
    assert "no column with id 5" in refused(AddSortOrder(sort_order=bad))
    assert "there is no sort order 2" in refused(SetDefaultSortOrder(sort_order_id=2))
    odd = SortOrder(order_id=1, fields=(replace(BY_A, direction="up"),))
    assert "'up' is none of" in refused(AddSortOrder(sort_order=odd))


def test_properties_and_location_are_set() -> None:
    after = done(
        SetProperties(updates={"a": "1", "b": "2"}),
        RemoveProperties(removals=("a", "missing")),
        SetLocation(location="s3://b/moved"),
    )
    assert after.properties == {"b": "2"}
    assert after.location == "s3://b/moved"
    assert "location is empty" in refused(SetLocation(location=""))


def test_the_uuid_never_changes() -> None:
    unnamed = replace(table(1), table_uuid=None)
    assert done(AssignUUID(uuid="n"), on=unnamed).table_uuid == "n"
    assert done(AssignUUID(uuid="u")).table_uuid == "u"
    assert "cannot become n" in refused(AssignUUID(uuid="n"))


@pytest.mark.parametrize("version", [1, 2, 3])
def test_an_upgrade_to_v4_makes_expressions_of_transforms(version: int) -> None:
    old = table(version)
    after = done(UpgradeFormatVersion(format_version=4), on=old)
    expressions, specs, last = expressions_for(old.partition_specs, old.last_column_id)
    assert (after.expressions, after.partition_specs, after.last_column_id) == (
        expressions,
        specs,
        last,
    )
    assert after == replace(table(4), last_updated_ms=7)
    assert after.shape() == old.shape()


def test_an_upgrade_goes_up_only() -> None:
    assert "not v3" in refused(UpgradeFormatVersion(format_version=3))
    assert "not v5" in refused(UpgradeFormatVersion(format_version=5))
    assert done(UpgradeFormatVersion(format_version=3), on=table(2)).next_row_id == 0
    unnamed = replace(table(1), table_uuid=None)
    assert "table-uuid is missing" in refused(UpgradeFormatVersion(format_version=2), on=unnamed)


def test_snapshots_are_added_pointed_to_and_forgotten() -> None:
    after = done(AddSnapshot(snapshot=snapshot(1)), main(1), tag(1))
    after = done(AddSnapshot(snapshot=snapshot(2)), main(2), on=after, at_ms=8)
    assert after.current_snapshot() == snapshot(2)
    assert after.snapshot_log == (
        LogEntry(timestamp_ms=7, snapshot_id=1),
        LogEntry(timestamp_ms=8, snapshot_id=2),
    )
    after = done(RemoveSnapshotRef(ref_name="v"), RemoveSnapshots(snapshot_ids=(1,)), on=after)
    assert after.snapshots == (snapshot(2),)
    assert after.snapshot_log == (LogEntry(timestamp_ms=8, snapshot_id=2),)
    assert done(RemoveSnapshotRef(ref_name="main"), on=after).current_snapshot() is None


def test_bad_refs_and_removals_are_refused() -> None:
    head = done(AddSnapshot(snapshot=snapshot(1)), main(1), tag(1))
    assert "'main' cannot point there" in refused(main(5), on=head)
    assert "'v' is a tag and cannot become a branch" in refused(
        SetSnapshotRef(ref_name="v", ref=Ref(snapshot_id=1, type="branch")), on=head
    )
    assert "needs a name" in refused(replace_name(tag(1), ""), on=head)
    assert "'main' is a tag" in refused(replace_name(tag(1), "main"), on=replace(head, refs={}))
    assert "no branch or tag 'x'" in refused(RemoveSnapshotRef(ref_name="x"), on=head)
    assert "'main' points to it" in refused(RemoveSnapshots(snapshot_ids=(1,)), on=head)
    assert "there is no snapshot 4" in refused(RemoveSnapshots(snapshot_ids=(4,)), on=head)
    assert "is not above" in refused(AddSnapshot(snapshot=snapshot(1, snapshot_id=5)), on=head)
    page = SnapshotPage(
        location="p",
        size_in_bytes=1,
        count=1,
        first_sequence_number=0,
        last_sequence_number=0,
        first_timestamp_ms=0,
        last_timestamp_ms=0,
    )
    paged = replace(head, snapshot_pages=(page,))
    key = AddEncryptionKey(encryption_key=EncryptionKey(key_id="k", encrypted_key_metadata="x"))
    assert "may need" in refused(key, RemoveEncryptionKey(key_id="k"), on=paged)
    assert "history in pages" in refused(RemoveSnapshots(snapshot_ids=(1,)), on=paged)


def replace_name(update: SetSnapshotRef, name: str) -> SetSnapshotRef:
    return SetSnapshotRef(ref_name=name, ref=update.ref)


STATISTICS = StatisticsFile(
    snapshot_id=1,
    statistics_path="a",
    file_size_in_bytes=1,
    file_footer_size_in_bytes=1,
    blob_metadata=(),
)


def test_statistics_are_kept_one_a_snapshot() -> None:
    one = STATISTICS
    other = PartitionStatisticsFile(snapshot_id=1, statistics_path="p", file_size_in_bytes=1)
    newer, newer_other = replace(one, statistics_path="b"), replace(other, statistics_path="q")
    after = done(
        SetStatistics(statistics=one),
        SetStatistics(statistics=newer),
        SetPartitionStatistics(partition_statistics=other),
        SetPartitionStatistics(partition_statistics=newer_other),
    )
    assert after.statistics == (newer,)
    assert after.partition_statistics == (newer_other,)
    gone = done(RemoveStatistics(snapshot_id=1), RemovePartitionStatistics(snapshot_id=1), on=after)
    assert gone == replace(table(), last_updated_ms=7)


def test_encryption_keys_go_only_when_nothing_needs_them() -> None:
    root = EncryptionKey(key_id="root", encrypted_key_metadata="x")
    leaf = EncryptionKey(key_id="leaf", encrypted_key_metadata="y", encrypted_by_id="root")
    after = done(AddEncryptionKey(encryption_key=root), AddEncryptionKey(encryption_key=leaf))
    assert "there is an encryption key 'leaf'" in refused(
        AddEncryptionKey(encryption_key=leaf), on=after
    )
    assert "need v3" in refused(AddEncryptionKey(encryption_key=leaf), on=table(2))
    assert "'leaf' is wrapped by 'root'" in refused(RemoveEncryptionKey(key_id="root"), on=after)
    assert "no encryption key 'x'" in refused(RemoveEncryptionKey(key_id="x"), on=after)
    used = done(AddSnapshot(snapshot=snapshot(1, key_id="leaf")), on=after)
    assert "snapshot 1 needs" in refused(RemoveEncryptionKey(key_id="leaf"), on=used)
    told = done(SetStatistics(statistics=replace(STATISTICS, key_metadata="leaf")), on=after)
    assert "statistics of snapshot 1 need" in refused(RemoveEncryptionKey(key_id="leaf"), on=told)
    gone = done(RemoveEncryptionKey(key_id="leaf"), RemoveEncryptionKey(key_id="root"), on=after)
    assert gone.encryption_keys == ()


def test_the_key_of_statistics_goes_with_them() -> None:
    keys = [EncryptionKey(key_id=id, encrypted_key_metadata="x") for id in ("one", "two", "other")]
    added = [AddEncryptionKey(encryption_key=each) for each in keys]
    one, two = (replace(STATISTICS, key_metadata=id) for id in ("one", "two"))
    for last, left in (
        ([SetStatistics(statistics=two)], ["two", "other"]),
        ([RemoveStatistics(snapshot_id=1)], ["two", "other"]),
        ([SetStatistics(statistics=replace(one, statistics_path="b"))], ["one", "two", "other"]),
        ([RemoveStatistics(snapshot_id=2)], ["one", "two", "other"]),
    ):
        after = done(*added, SetStatistics(statistics=one), *last)
        assert [each.key_id for each in after.encryption_keys] == left
    shared = done(*added, AddSnapshot(snapshot=snapshot(1, key_id="one")))
    shared = done(SetStatistics(statistics=one), SetStatistics(statistics=two), on=shared)
    assert len(shared.encryption_keys) == 3
