"""Tables that peers wrote, upgraded to v4 and written to: their Avro manifests stay as they are."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import fastavro
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from icetree.rows.write.deletes import write_data_vectors
from icetree.spec.location import stored_form
from icetree.store.places import local_path
from icetree.table.scan.planning import planner
from icetree.table.table import Table
from icetree.tree.check.check import check
from icetree.tree.reading import leaves_in
from tests.peers.conftest import JavaTable
from tests.peers.plans import Planned, planned, require_all_matches
from tests.peers.pyiceberg_tables import plain_v1
from tests.peers.rows import RowsOf
from tests.peers.values import JAVA_TABLES
from tests.rows.lake import rows

_COUNTS = (504, 505, 506, 512, 513, 514)


def _require_sound(table: Table) -> None:
    snapshot, shape = table.snapshot(), table.metadata.shape()
    assert snapshot is not None
    root = table.files.root(snapshot, shape)
    facts = {"snapshot_id": snapshot.snapshot_id, "sequence_number": snapshot.sequence_number}
    assert check(root, table.files.reader(shape), shape, **facts) == []


def _delete_row(table: Table, location: str) -> None:
    """Delete the first row of a file that is still there."""
    here = table.scan(columns=["_file", "_pos"]).to_arrow().to_pylist()
    position: int = min(row["_pos"] for row in here if row["_file"] == location)
    stored = stored_form(location, table.location)
    plan = planner(table.files, table.metadata, table.snapshot(), stats_columns=True).whole()
    table.row_delta(
        write_data_vectors(
            {stored: [position]},
            tasks=plan.tasks,
            deletes=plan.deletes,
            metadata=table.metadata,
            store=table.files.store,
        )
    )


def _ids(table: Table) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.law
@pytest.mark.parametrize("name", JAVA_TABLES)
def test_an_upgraded_table_takes_every_kind_of_commit(
    java_tables: Mapping[str, JavaTable], name: str
) -> None:
    theirs = java_tables[name]
    table = theirs.opened()
    ids = _ids(table)
    table.upgrade()
    assert planned(table) == theirs.everything
    table.append(table.scan().to_arrow().slice(0, 3))
    appended = planned(table)
    assert appended.items() > theirs.everything.items()
    assert len(_ids(table)) == len(ids) + 3
    _require_sound(table)

    gone, *others = sorted(theirs.everything)
    table.delete_files([gone])
    left = {location: deletes for location, deletes in appended.items() if location != gone}
    assert planned(table) == left
    _require_sound(table)

    for location in _one_of_each_kind(theirs.everything, others):
        before, count = planned(table), len(_ids(table))
        _delete_row(table, location)
        after = planned(table)
        assert len(_ids(table)) == count - 1
        assert after.keys() == before.keys()
        assert [each for each in after if after[each] != before[each]] == [location]
        assert any(offset is not None for _, offset, _ in after[location])
        _require_sound(table)

    everything, rows = planned(table), RowsOf(table)
    for filter, _ in theirs.plans[:8]:
        require_all_matches(filter, planned(table, filter), everything, rows)
    old = theirs.opened().snapshot()
    assert old is not None
    assert planned(table, at=old.snapshot_id) == theirs.everything
    # Looks at every snapshot, not at the last alone.
    assert table.verify(deep=True).findings == ()


def _one_of_each_kind(planned: Planned, locations: list[str]) -> list[str]:
    """Return a file without deletes and, where there is one, a file with each kind of them."""
    found = {}
    for location in locations:
        kinds = frozenset((one[1] is not None, "-equality" in one[0]) for one in planned[location])
        found.setdefault(kinds, location)
    assert frozenset() in found
    return list(found.values())


_LINEAGE = ["id", "_row_id", "_last_updated_sequence_number"]


def _lineage(table: Table) -> list[str]:
    return rows(table.scan(columns=_LINEAGE).to_arrow())


def _avro_leaves(table: Table) -> int:
    root = table.files.root(table.snapshot(), table.metadata.shape())
    return len([leaf for leaf in leaves_in(root) if leaf.file_format == "avro"])


def _require_columnar(table: Table, *, commit_first: bool) -> None:
    """Turn a table's leaves into columnar ones: files, deletes and lineage stay."""
    table.upgrade()
    if commit_first:
        table.append(table.scan().to_arrow().slice(0, 1))
    before, lineage = planned(table), _lineage(table) if commit_first else []
    done = table.maintenance.rewrite_manifests()
    assert done.rewritten_manifests_count > 0
    assert _avro_leaves(table) == done.kept_avro_manifests_count
    assert planned(table) == before
    assert lineage in ([], _lineage(table))
    _require_sound(table)
    assert table.verify(deep=True).findings == ()
    assert table.maintenance.rewrite_manifests(dry_run=True).rewritten_manifests_count == 0


@pytest.mark.law
@pytest.mark.parametrize("name", JAVA_TABLES)
def test_leaves_of_an_upgraded_table_of_java_become_columnar(
    java_tables: Mapping[str, JavaTable], name: str
) -> None:
    _require_columnar(java_tables[name].opened(), commit_first=True)


@pytest.mark.parametrize("commit_first", [False, True])
def test_leaves_of_an_upgraded_table_become_columnar(tmp_path: Path, commit_first: bool) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("main", uri=uri, warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("db")
    plain_v1(catalog, "db.t")
    catalog.engine.dispose()
    with icetree.connect(uri, properties={"name": "main"}) as lake:
        _require_columnar(lake.table("db.t"), commit_first=commit_first)
        assert _avro_leaves(lake.table("db.t")) == 0


def test_manifests_that_their_list_does_not_count_are_counted_by_the_first_root(
    tmp_path: Path,
) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("main", uri=uri, warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("db")
    plain_v1(catalog, "db.t")
    catalog.engine.dispose()
    with icetree.connect(uri, properties={"name": "main"}) as lake:
        table = lake.table("db.t")
        before, ids = planned(table), _ids(table)
        _forget_counts(table)
    with icetree.connect(uri, properties={"name": "main"}) as lake:
        table = lake.table("db.t")
        assert planned(table) == before
        table.upgrade()
        table.delete_files([min(before)])
        assert planned(table).keys() == before.keys() - {min(before)}
        _require_sound(table)
        assert table.verify(deep=True).findings == ()
        assert len(_ids(table)) < len(ids)
        snapshot = table.snapshot()
        assert snapshot is not None
        leaves = table.files.root(snapshot, table.metadata.shape())
        assert leaves["record_count"].null_count == 0


def _forget_counts(table: Table) -> None:
    """Write the manifest list anew as v1 allows it: without any count."""
    snapshot = table.snapshot()
    assert snapshot is not None
    path = Path(local_path(snapshot.manifest_list or ""))
    reader = fastavro.reader(io.BytesIO(path.read_bytes()))
    rows = list(reader)
    schema = dict(reader.writer_schema)
    counts = {each["name"] for each in schema["fields"] if each["field-id"] in _COUNTS}
    assert len(counts) == len(_COUNTS)
    for row in rows:
        row.update(dict.fromkeys(counts))
    with path.open("wb") as file:
        fastavro.writer(file, schema, rows, metadata={"format-version": "1"})
