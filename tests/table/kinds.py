"""Kinds of commits that faults and kills are tried on, and what a table is before and after."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from icetree.spec.entry.entry import MANIFESTS, Content, Entry, is_content, is_data_dv
from icetree.spec.entry.stats import FieldStats
from icetree.spec.location import absolute
from icetree.table.table import Table
from icetree.tree.check.check import check
from icetree.tree.live import live_files


def data_file(name: str, low: int = 0, high: int = 9) -> Entry:
    rows = high - low + 1
    return Entry(
        location=f"data/{name}.parquet",
        record_count=rows,
        file_size_in_bytes=100 * rows,
        stats={1: FieldStats(lower=low, upper=high, tight=True, values=rows, nulls=0)},
    )


def vector(name: str, of: str) -> Entry:
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=f"data/{name}.puffin",
        file_format="puffin",
        referenced_file=f"data/{of}.parquet",
        record_count=1,
        file_size_in_bytes=500,
        dv_offset=4,
        dv_size_in_bytes=40,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A commit, what the table is before it, and what another writer commits meanwhile."""

    properties: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[Table], object]
    commit: Callable[[Table], object]
    meanwhile: Callable[[Table], object] | None = None


def _append(*names: str) -> Callable[[Table], object]:
    return lambda table: table.append_files([data_file(name) for name in names])


def _vectors(table: Table) -> None:
    table.append_files([data_file(name) for name in "abcd"])
    table.row_delta([vector("v1", "a"), vector("v2", "b")])


def _row_delta(table: Table) -> None:
    new = [vector("v3", "c"), vector("v4", "a"), data_file("e")]
    table.row_delta(new, isolation="snapshot")


def _long_history(table: Table) -> None:
    for number in range(10):
        table.append_files([data_file(f"h{number}")])


def _worn_leaves(table: Table) -> None:
    table.append_files([data_file(name) for name in _MANY])
    table.append_files([data_file(f"y{name}") for name in _MANY])
    table.row_delta([vector("v1", "x0"), vector("v2", "yx0"), vector("v3", "yx1")])
    table.delete_files(["data/x1.parquet", "data/yx5.parquet"])


def _metadata_only(table: Table) -> None:
    with table.transaction() as tx:
        tx.set_properties({"owner": "ada"})
        with tx.edit_schema() as schema:
            schema.add("note", "string")


_SMALL = {
    "write.root.max-data-entries": "3",
    "write.root.max-delete-entries": "2",
    "write.commit.compact-min-leaves": "2",
}
_MANY = tuple(f"x{number}" for number in range(8))

KINDS: Mapping[str, Kind] = {
    "append": Kind(before=_append("a"), commit=_append("b")),
    "first append": Kind(before=lambda _: None, commit=_append("b")),
    "append to leaves": Kind(properties=_SMALL, before=_append("a"), commit=_append(*_MANY)),
    "row delta with a flush": Kind(properties=_SMALL, before=_vectors, commit=_row_delta),
    "delete from a leaf": Kind(
        properties={**_SMALL, "write.manifest-dv.inline-max-bytes": "0"},
        before=_append(*_MANY),
        commit=lambda table: table.delete_files(["data/x1.parquet", "data/x5.parquet"]),
    ),
    "page out": Kind(
        properties={"write.metadata.inline-snapshots": "1"},
        before=_long_history,
        commit=_append("b"),
    ),
    "rewrite manifests": Kind(
        properties={**_SMALL, "write.commit.compact-max-entries": "0"},
        before=_worn_leaves,
        commit=lambda table: table.maintenance.rewrite_manifests(),
    ),
    "metadata only": Kind(before=_append("a"), commit=_metadata_only),
    "retried append": Kind(before=_append("a"), commit=_append("b"), meanwhile=_append("c")),
    "retried append to leaves": Kind(
        properties=_SMALL, before=_append("a"), commit=_append(*_MANY), meanwhile=_append("c")
    ),
    "retried row delta": Kind(
        properties=_SMALL, before=_vectors, commit=_row_delta, meanwhile=_append("f", "g")
    ),
}


def view(table: Table) -> dict[str, object]:
    """Return all that a reader can tell apart, having checked the tree of the newest snapshots."""
    metadata, shape = table.metadata, table.metadata.shape()
    labels: list[str] = []
    for snapshot in islice(table.history(), 3):
        root, reader = table.files.root(snapshot, shape), table.files.reader(shape)
        found = check(
            root,
            reader,
            shape,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            next_row_id=metadata.next_row_id,
        )
        assert found == []
        if snapshot.snapshot_id == metadata.current_snapshot_id:
            files = live_files(root, reader)
            rows = files.select(["location", "referenced_file"]).to_pylist()
            labels = sorted(
                f"dv {row['location']} of {row['referenced_file']}" if is_dv else row["location"]
                for row, is_dv in zip(rows, is_data_dv(files).to_pylist(), strict=True)
            )
    return {
        "files": labels,
        "sequence numbers": [each.sequence_number for each in table.history()],
        "next row id": metadata.next_row_id,
        "columns": [column.name for column in table.schema.fields],
        "properties": dict(metadata.properties),
        "refs": sorted(metadata.refs),
    }


def reached(table: Table) -> set[str]:
    """Return where every metadata file is that the head reaches; leaves of the newest snapshots."""
    shape = table.metadata.shape()
    stored = {page.location for page in table.metadata.snapshot_pages}
    for number, snapshot in enumerate(table.history()):
        assert snapshot.root_manifest is not None
        stored.add(snapshot.root_manifest)
        if number < 5:
            root = table.files.root(snapshot, shape)
            below = root.filter(is_content(root, *MANIFESTS, Content.MANIFEST_DV))
            stored |= set(below["location"].drop_null().to_pylist())
    return {absolute(each, table.location) for each in stored} | {table.state.metadata_location}
