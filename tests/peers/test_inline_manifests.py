"""v1 snapshots that list their manifests in table metadata instead of in a file."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CorruptTable, InvalidInput
from icetree.store.local import LocalStore
from icetree.store.places import local_path
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.reading import leaves_in
from tests.peers.plans import planned
from tests.peers.pyiceberg_tables import append, plain_v1


@pytest.fixture
def listed(tmp_path: Path) -> Iterator[str]:
    """The metadata file of a v1 table with manifest lists, of two partition specs."""
    catalog = SqlCatalog(
        "main", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake"
    )
    catalog.create_namespace("db")
    plain_v1(catalog, "db.t")
    table = catalog.load_table("db.t")
    with table.update_spec() as spec:
        spec.add_field("country", IdentityTransform(), "country")
    append(table, 100)
    yield table.metadata_location
    catalog.engine.dispose()


def inlined(metadata_location: str) -> str:
    """Write the metadata anew with inline lists, and return where."""
    path = Path(local_path(metadata_location))
    metadata = json.loads(path.read_text())
    for snapshot in metadata["snapshots"]:
        content = Path(local_path(snapshot.pop("manifest-list"))).read_bytes()
        rows = fastavro.reader(io.BytesIO(content))
        snapshot["manifests"] = [row["manifest_path"] for row in rows]  # type: ignore[index, call-overload]
    inline = path.with_name("00099-inline.metadata.json")
    inline.write_text(json.dumps(metadata))
    return f"file://{inline}"


def opened(metadata_location: str) -> Table:
    lake = Lake(catalog=MemoryCatalog("peers"), store=LocalStore())
    lake.create_namespace("db")
    return lake.register_table("db.t", metadata_location)


def told(found: pa.Table) -> list[str]:
    """What each row says; columns are in no certain order, and NaN is NaN."""
    return [repr(_known(row)) for row in found.to_pylist()]


def _known(value: object) -> object:
    if isinstance(value, dict):
        return sorted((key, _known(each)) for key, each in value.items() if each is not None)
    # A map comes as a list of pairs.
    return sorted(value, key=repr) if isinstance(value, list) else value


def rows(table: Table, where: str | None = None) -> list[str]:
    return sorted(map(repr, table.scan(where).to_arrow().to_pylist()))


@pytest.mark.parametrize(
    "where", [None, "id < 40", "country = 'DE'", "id > 100 and country = 'FR'"]
)
def test_plans_and_rows_are_those_of_the_same_table_with_lists(
    listed: str, where: str | None
) -> None:
    table, same = opened(inlined(listed)), opened(listed)
    found = [table.scan(where).plan().tasks, same.scan(where).plan().tasks]
    assert found[0].num_rows > 0
    assert told(found[0]) == told(found[1])
    assert rows(table, where) == rows(same, where)


def test_inspection_tells_the_same(listed: str) -> None:
    table, same = opened(inlined(listed)), opened(listed)
    for name in ("files", "entries", "partitions", "all_files", "all_entries", "history", "refs"):
        assert told(getattr(table.inspect, name)()) == told(getattr(same.inspect, name)()), name
    known = ["path", "length", "partition_spec_id", "entries", "added_rows_count"]
    for name in ("manifests", "all_manifests"):
        mine, theirs = getattr(table.inspect, name)(), getattr(same.inspect, name)()
        assert mine.select(known) == theirs.select(known)
    nodes = table.inspect.tree().to_pylist()
    assert [node["record_count"] for node in nodes[1:]] == [
        node["record_count"] for node in same.inspect.tree().to_pylist()[1:]
    ]
    assert nodes[0]["length"] == 0


def test_what_a_filter_skips_is_explained(listed: str) -> None:
    table, same = opened(inlined(listed)), opened(listed)
    mine, theirs = table.explain("id < 3"), same.explain("id < 3")
    files = [each.groups for each in (mine, theirs)]
    assert files[0] == files[1]


def test_changes_are_found_in_old_snapshots(listed: str) -> None:
    table, same = opened(inlined(listed)), opened(listed)
    assert table.changes().files() == same.changes().files()
    first = [*table.history()][-1].snapshot_id
    assert planned(table, at=first) == planned(same, at=first)


def test_the_table_can_be_upgraded_and_written_to(listed: str) -> None:
    table = opened(inlined(listed))
    assert table.verify(deep=True).findings == ()
    before, everything = rows(table), planned(table)
    table.upgrade()
    assert rows(table) == before
    table.append(table.scan("id < 3").to_arrow())
    assert len(rows(table)) == len(before) + 3
    table.delete_files([min(everything)])
    assert min(everything) not in planned(table)
    assert table.verify(deep=True).findings == ()


def test_a_manifest_of_a_spec_that_the_table_lacks_is_refused(listed: str) -> None:
    location = inlined(listed)
    path = Path(local_path(location))
    metadata = json.loads(path.read_text())
    metadata["partition-specs"] = [
        each for each in metadata["partition-specs"] if each["spec-id"] == 0
    ]
    metadata["default-spec-id"] = 0
    path.write_text(json.dumps(metadata))
    with pytest.raises(CorruptTable, match="partition-spec-id is '1'"):
        opened(location).scan().plan()


def test_an_upgraded_table_with_an_inline_list_cannot_be_moved_by_copying(
    listed: str, tmp_path: Path
) -> None:
    table = opened(inlined(listed))
    table.upgrade()
    copy = tmp_path / "copy"
    shutil.copytree(local_path(table.location), copy)
    name = table.state.metadata_location.rpartition("/")[2]
    with pytest.raises(InvalidInput, match=r"\.avro is named in full by a snapshot from before"):
        opened(f"file://{copy}/metadata/{name}")


def test_a_small_avro_leaf_is_decoded_once_for_what_columns_mean(listed: str) -> None:
    table = opened(listed)
    shape = table.metadata.shape()
    [leaf, *_] = leaves_in(table.files.root(table.snapshot(), shape))
    whole = table.files.reader(shape).leaf(leaf)
    assert table.files.reader(table.metadata.shape()).leaf(leaf) is whole
    narrow = table.files.reader(shape).leaf(leaf, columns=("location", "1:lower"))
    assert narrow.column_names == ["location", "1:lower", "position"]
    table.upgrade()
    with table.edit_schema() as schema:
        schema.add("more", "string")
    assert table.files.reader(table.metadata.shape()).leaf(leaf) is not whole
