"""Metadata of tables with a past: schemas, specs, orders, snapshots, refs, and clocks that differ."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace as with_values
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from icetree.errors import InvalidInput
from icetree.spec.apply.apply import apply
from icetree.spec.edit.create import table_metadata
from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.edit.sort import SortEdit
from icetree.spec.metadata.metadata import (
    PartitionStatisticsFile,
    StatisticsFile,
    TableMetadata,
    with_ref,
    with_snapshot,
)
from icetree.spec.metadata.snapshot import MAIN, Ref, Snapshot
from icetree.spec.rules.metadata import broken_rule
from icetree.spec.schema.tree import walk
from tests.spec.edit.test_schema_laws import steps

COLUMNS = (
    "a int, b struct<a: int, c: date>, ts timestamptz, ns timestamp_ns, s string, u uuid, "
    "d decimal(9, 2), g geometry, l list<struct<x: float>>, m map<string, long>, nothing unknown"
)
TERMS = ["a", "s", "ts", "b.c"]
TRANSFORMS = ["{}", "bucket(4, {})", "truncate(3, {})", "days({})", "hours({})", "void({})"]
UUID = "fb072c92-a02b-11e9-ae9c-1bb7bc9eca94"


@st.composite
def drawn_metadata(draw: st.DrawFn) -> TableMetadata:
    """Draw a sound v4 table's metadata."""
    made = table_metadata(COLUMNS, location="s3://b/t", uuid=UUID, at_ms=1000)
    for id in range(1, draw(st.integers(1, 7))):
        for edit in draw(st.lists(st.sampled_from([_schema, _spec, _order]), max_size=3)):
            made = edit(draw, made)
        made = _commit(draw, made, id)
    made = draw(st.sampled_from([lambda m: m, _with_statistics, _unnumbered]))(made)
    assert broken_rule(made) is None
    return made


def _schema(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    edit, step = SchemaEdit(metadata), draw(steps())
    names = [place.name for place in walk(edit.schema)]
    with suppress(InvalidInput):
        step(edit, draw(st.sampled_from(names)))
    return apply(metadata, edit.updates(), at_ms=metadata.last_updated_ms)


def _spec(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    edit = SpecEdit(metadata)
    term = draw(st.sampled_from(TRANSFORMS)).format(draw(st.sampled_from(TERMS)))
    with suppress(InvalidInput):
        if edit.fields and draw(st.booleans()):
            edit.remove(draw(st.sampled_from(edit.fields)).name)
        else:
            # The name of a column, in a spec that is not the table's any more, is anybody's.
            edit.add(term, draw(st.sampled_from([None, "a", "e", "later"])))
    return apply(metadata, edit.updates(), at_ms=metadata.last_updated_ms)


def _order(draw: st.DrawFn, metadata: TableMetadata) -> TableMetadata:
    edit = SortEdit(metadata)
    with suppress(InvalidInput):
        edit.by(f"{draw(st.sampled_from(TERMS))} desc")
        edit.by(f"bucket(8, {draw(st.sampled_from(TERMS))})")
    return apply(metadata, edit.updates(), at_ms=metadata.last_updated_ms)


def _commit(draw: st.DrawFn, metadata: TableMetadata, id: int) -> TableMetadata:
    """Add a snapshot, with an odd summary at times, by a clock that may be minutes off."""
    at_ms = max(metadata.last_updated_ms + draw(st.integers(-400_000, 400_000)), 0)
    rows = draw(st.integers(0, 9))
    summary = draw(st.sampled_from([None, {}, {"operation": "append"}, {"operation": "other"}]))
    snapshot = Snapshot(
        snapshot_id=id,
        parent_snapshot_id=metadata.current_snapshot_id,
        sequence_number=metadata.last_sequence_number + 1,
        timestamp_ms=at_ms,
        root_manifest=f"metadata/root-{id}.parquet",
        summary=summary,
        schema_id=metadata.current_schema_id,
        first_row_id=metadata.next_row_id,
        added_rows=rows,
        extra={"of-tomorrow": True},
    )
    branch = draw(st.sampled_from([MAIN, MAIN, "audit", None]))
    if branch == MAIN and draw(st.booleans()):
        # From before an upgrade; v1 has it in the metadata itself.
        former: dict[str, Any] = draw(
            st.sampled_from([{"manifest_list": "s3://b/t/m.avro"}, {"manifests": ("s3://b/m",)}])
        )
        made = with_snapshot(metadata, snapshot, ref=branch, at_ms=at_ms)
        old = replace(snapshot, root_manifest=None, first_row_id=None, added_rows=None, **former)
        return replace(made, snapshots=(*metadata.snapshots, old))
    made = with_snapshot(metadata, snapshot, ref=branch, at_ms=at_ms)
    if draw(st.booleans()):
        ref = Ref(
            snapshot_id=id,
            type="tag",
            min_snapshots_to_keep=draw(st.sampled_from([None, 3])),
            max_ref_age_ms=draw(st.sampled_from([None, 0, 5])),
        )
        made = with_ref(made, f"tag-{id}", ref, at_ms=at_ms)
    return made


def _with_statistics(metadata: TableMetadata) -> TableMetadata:
    known = "apache-datasketches-theta-v1"
    blobs = [
        {"type": type, "snapshot-id": 1, "sequence-number": 1, "fields": [1]}
        for type in (known, "of-tomorrow")
    ]
    return replace(
        metadata,
        statistics=(
            StatisticsFile(
                snapshot_id=1,
                statistics_path="metadata/1.stats",
                file_size_in_bytes=4,
                file_footer_size_in_bytes=3,
                blob_metadata=tuple(blobs),
            ),
        ),
        partition_statistics=(
            PartitionStatisticsFile(
                snapshot_id=1, statistics_path="metadata/1.parquet", file_size_in_bytes=4
            ),
        ),
    )


def _unnumbered(metadata: TableMetadata) -> TableMetadata:
    """Return a table of a writer that gives partition fields no ids."""
    expressions = tuple(with_values(each, partition_field_id=None) for each in metadata.expressions)
    return replace(metadata, expressions=expressions, extra={"of-tomorrow": [1]})
