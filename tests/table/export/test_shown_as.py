"""A v4 table shown as v3 or v2: clients take it, and what it says of the table stays the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from msgspec.structs import replace
from pyiceberg.table.metadata import TableMetadata as TheirMetadata
from pyiceberg.table.metadata import TableMetadataUtil

from icetree.codec import metadata as codec
from icetree.errors import InvalidInput, Unsupported
from icetree.spec.edit.create import table_metadata
from icetree.spec.metadata.layout import ExprField, PartitionSpec, SortField, SortOrder
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import snapshot_as_of
from icetree.spec.metadata.snapshot import LogEntry, Snapshot
from icetree.spec.rules.metadata import broken_rule
from icetree.spec.schema.expressions import Expression
from icetree.table.export.places import export_folder, manifest_list_at
from icetree.table.export.shown import shown
from tests.codec.metadata_documents import V2, read, v3, v4
from tests.effort import law
from tests.java import IcebergJava
from tests.table.export.drawn_metadata import UUID, drawn_metadata

Json = dict[str, Any]
#: What only v4 has, anywhere in the document.
OF_V4 = ("root-manifest", "expressions", "expr-id", "snapshot-pages", "of-tomorrow")


def document(metadata: TableMetadata) -> str:
    return codec.encode(metadata, compress=False).decode()


def taken_by_pyiceberg(metadata: TableMetadata) -> TheirMetadata:
    return TableMetadataUtil.parse_raw(document(metadata))


def simple(columns: str = "id long", **more: Any) -> TableMetadata:
    return table_metadata(columns, location="s3://b/t", uuid=UUID, at_ms=1, **more)


@law(60)
@given(drawn_metadata())
def test_whatever_the_table_it_is_sound_v3_that_pyiceberg_takes(metadata: TableMetadata) -> None:
    found = shown(metadata)
    assert broken_rule(found) is None
    text = document(found)
    assert not [word for word in OF_V4 if f'"{word}"' in text]
    theirs = taken_by_pyiceberg(found)
    assert theirs.format_version == 3
    assert str(theirs.table_uuid) == metadata.table_uuid
    assert theirs.schema() == metadata.schema()
    assert [each.schema_id for each in theirs.schemas] == [s["schema-id"] for s in metadata.schemas]
    assert {name: ref.snapshot_id for name, ref in theirs.refs.items()} == {
        name: ref.snapshot_id for name, ref in metadata.refs.items()
    }
    assert [s.snapshot_id for s in theirs.snapshots] == [s.snapshot_id for s in metadata.snapshots]
    assert all(each.manifest_list.startswith("s3://b/t/") for each in theirs.snapshots)


@law(60)
@given(drawn_metadata())
def test_partitioning_and_sorting_are_what_they_are_in_v4(metadata: TableMetadata) -> None:
    theirs = taken_by_pyiceberg(shown(metadata))
    ours, specs = metadata.shape().expressions, metadata.shape().specs
    for spec in theirs.partition_specs:
        said = [(field.source_id, str(field.transform)) for field in spec.fields]
        assert said == [(ours[id].source_id, ours[id].transform) for id in specs[spec.spec_id]]
        assert len({field.name for field in spec.fields}) == len(spec.fields)
    # One id means one expression, in every spec.
    ids = {
        (f.field_id, f.source_id, str(f.transform))
        for s in theirs.partition_specs
        for f in s.fields
    }
    assert len({id for id, *_ in ids}) == len(ids)
    assert theirs.last_partition_id is not None
    assert all(id <= theirs.last_partition_id for id, *_ in ids)
    [order] = [o for o in theirs.sort_orders if o.order_id == theirs.default_sort_order_id]
    assert [field.source_id for field in order.fields] == [k.source_id for k in metadata.sort_keys]


@law(60)
@given(drawn_metadata())
def test_what_was_current_when_is_told_as_before(metadata: TableMetadata) -> None:
    found = shown(metadata)
    times = [entry.timestamp_ms for entry in found.snapshot_log]
    assert times == sorted(set(times))
    for entry in metadata.snapshot_log:
        then = _current_at(found, entry.timestamp_ms)
        assert then == snapshot_as_of(metadata, entry.timestamp_ms, _no_pages).snapshot_id


def _current_at(metadata: TableMetadata, at_ms: int) -> int:
    return [e.snapshot_id for e in metadata.snapshot_log if e.timestamp_ms <= at_ms][-1]


def _no_pages(_: Any) -> Any:
    raise AssertionError("there are no pages")


def test_iceberg_java_takes_it_whatever_the_table(java: IcebergJava) -> None:
    @law(60)
    @given(drawn_metadata())
    def holds(metadata: TableMetadata) -> None:
        theirs = java.parse(document(shown(metadata)))
        assert theirs.formatVersion() == 3
        assert theirs.defaultSpecId() == metadata.default_spec_id
        now = theirs.currentSnapshot()
        assert (now and now.snapshotId()) == metadata.current_snapshot_id
        # A client's own commit starts from what it was shown, and checks it once more.
        builder = java.jvm.org.apache.iceberg.TableMetadata.buildFrom(theirs)
        builder.setProperties({"a": "b"}).build()

    holds()


def test_what_is_known_of_the_example_is_all_there() -> None:
    given = v4()
    given["partition-specs"][1]["fields"].pop()
    given["snapshots"][1]["sequence-number"] = 2
    found = json.loads(document(shown(read(given))))
    wanted = {**v3(), "last-column-id": 104, "metadata-log": []}
    # No client knows this kind of statistics.
    del wanted["statistics"]
    wanted["partition-specs"][1]["fields"].pop()
    wanted["snapshots"][1]["manifest-list"] = (
        f"s3://b/t/{manifest_list_at(export_folder('s3://b/t', 3), read(given).snapshots[1])}"
    )
    assert found == wanted


def test_snapshots_of_the_pages_are_shown_on_request() -> None:
    metadata = read({**v4(), "partition-specs": [{"spec-id": 1, "fields": []}]})
    old = Snapshot(snapshot_id=7, sequence_number=1, timestamp_ms=5, root_manifest="metadata/r")
    found = shown(metadata, more=[old])
    assert (
        found.snapshots[0].manifest_list
        == f"s3://b/t/{manifest_list_at(export_folder('s3://b/t', 3), old)}"
    )
    assert shown(metadata, more=metadata.snapshots).snapshots == shown(metadata).snapshots


def test_the_log_starts_after_the_last_snapshot_that_is_not_shown() -> None:
    metadata = read({**v4(), "partition-specs": [{"spec-id": 1, "fields": []}]})
    first, last = metadata.snapshot_log
    gone = LogEntry(timestamp_ms=first.timestamp_ms + 1, snapshot_id=99)
    found = shown(replace(metadata, snapshot_log=(first, gone, last)))
    assert found.snapshot_log == (last,)


def test_a_table_in_an_older_version_is_shown_as_it_is() -> None:
    for made in (read(V2), read(v3())):
        assert shown(made) is made
    assert shown(read(V2), format_version=2).format_version == 2


def test_v2_is_shown_where_it_can_say_it_all() -> None:
    metadata = read(
        {**v4(), "partition-specs": [{"spec-id": 1, "fields": []}], "encryption-keys": []}
    )
    found = shown(metadata, format_version=2)
    theirs = taken_by_pyiceberg(found)
    assert theirs.format_version == 2
    assert not [
        word for word in ("next-row-id", "first-row-id", "added-rows") if word in document(found)
    ]
    assert theirs.snapshots[1].manifest_list == (
        f"s3://b/t/{manifest_list_at(export_folder('s3://b/t', 2), metadata.snapshots[1])}"
    )


def _of_two_columns(metadata: TableMetadata) -> TableMetadata:
    both = Expression(expr_id=9, source_ids=(1, 2), transform="bucket[4]", name="both")
    spec = PartitionSpec(spec_id=1, fields=(ExprField(expr_id=9),))
    return replace(metadata, expressions=(both,), partition_specs=(spec,), default_spec_id=1)


@pytest.mark.parametrize(
    ("metadata", "version", "reason"),
    [
        (_of_two_columns(simple("id long, n long")), 3, "'both' is of several columns"),
        (simple("id timestamp_ns"), 2, "'id' is of type timestamp_ns"),
        (simple("s struct<t: list<geometry>>"), 2, "'s.t.element' is of type geometry"),
    ],
)
def test_what_a_version_cannot_say_is_refused_with_the_reason(
    metadata: TableMetadata, version: int, reason: str
) -> None:
    with pytest.raises(Unsupported, match=reason):
        shown(metadata, format_version=version)


def test_default_values_are_new_in_v3() -> None:
    schema = simple().schema_json()
    schema = {**schema, "fields": [{**schema["fields"][0], "initial-default": 3}]}
    metadata = replace(simple(), schemas=(schema,))
    assert shown(metadata).schemas == (schema,)
    with pytest.raises(Unsupported, match="'id' has a default value"):
        shown(metadata, format_version=2)


def test_an_order_over_several_columns_is_shown_up_to_there() -> None:
    one = SortField(transform="identity", source_id=1, direction="asc", null_order="nulls-first")
    two = SortField(
        transform="zorder", source_ids=(1, 2), direction="asc", null_order="nulls-first"
    )
    orders = (SortOrder(order_id=1, fields=(one, two)), SortOrder(order_id=2, fields=(two, one)))
    metadata = replace(simple("a int, b int"), sort_orders=orders, default_sort_order_id=2)
    found = shown(metadata)
    assert [(order.order_id, order.fields) for order in found.sort_orders] == [(0, ()), (1, (one,))]
    assert found.default_sort_order_id == 0


@pytest.mark.parametrize("version", [1, 4, "3"])
def test_only_versions_that_can_be_shown_are(version: Any) -> None:
    with pytest.raises(InvalidInput, match="give 3 or 2"):
        shown(simple(), format_version=version)
