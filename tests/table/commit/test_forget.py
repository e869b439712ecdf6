"""Commits delete former metadata where a table asks for it: all that is needed stays."""

from __future__ import annotations

from dataclasses import replace as with_

import pyarrow as pa
import pytest
from msgspec.structs import replace

from icetree.errors import NotFound
from icetree.files.table_files import read_metadata
from icetree.spec.location import absolute
from icetree.spec.metadata.snapshot import MetadataLogEntry
from icetree.table.commit.forget import forgotten
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.table.together import aside, land
from tests.rows.lake import new_lake
from tests.store.flaky import Fault, FlakyStore, How

ON = "write.metadata.delete-after-commit.enabled"
COMMITS = 25


def lived(lake: Lake, **properties: str) -> Table:
    """A table of many commits, the history of which is in pages."""
    few = {"write.metadata.inline-snapshots": "2", "write.metadata.previous-versions-max": "8"}
    table = lake.create_table("db.t", [("id", "long")], properties={**few, **properties})
    for number in range(COMMITS):
        table.append(pa.table({"id": [number]}))
    return table


def stored(table: Table, ending: str) -> set[str]:
    places = (each.location for each in table.files.store.list(f"{table.location}/metadata/"))
    return {each for each in places if each.endswith(ending)}


def full(table: Table, names: list[str]) -> set[str]:
    return {absolute(each, table.location) for each in names}


def test_what_the_log_names_stays_with_its_pages_and_nothing_else() -> None:
    table = lived(new_lake(), **{ON: "true"})
    log = full(table, [each.metadata_file for each in table.metadata.metadata_log])
    assert 4 <= len(log) <= 8
    assert stored(table, ".metadata.json") == log | {table.state.metadata_location}
    metadata = [read_metadata(table.files.store, at) for at in log] + [table.metadata]
    pages = [page.location for each in metadata for page in each.snapshot_pages]
    assert pages
    assert stored(table, ".page.json.gz") == full(table, pages)
    history = [each.snapshot_id for each in table.history()]
    assert len(history) == COMMITS
    assert table.scan(at=history[-3]).count() == 3
    assert table.verify(deep=True).is_clean


@pytest.mark.parametrize("properties", [{}, {ON: "false"}, {ON: "true", "gc.enabled": "false"}])
def test_nothing_goes_unless_it_is_asked_for_and_files_are_the_tables_own(
    properties: dict[str, str],
) -> None:
    table = lived(new_lake(), **properties)
    assert len(stored(table, ".metadata.json")) == COMMITS + 1


@pytest.mark.parametrize("how", [How.BEFORE, How.AFTER])
def test_a_commit_lands_though_what_may_go_cannot_be_looked_at_or_deleted(how: How) -> None:
    plain = new_lake()
    faults: list[Fault] = []
    store = FlakyStore(plain.store, faults)
    lake = Lake(catalog=plain.catalog, store=store, warehouse="memory://lake")
    table = lived(lake, **{ON: "true"})
    for operation in ("delete", "read"):
        before = len(store.steps)
        faults += [Fault(at=at, how=how, operation=operation) for at in range(500)]
        for number in range(5):
            table.append(pa.table({"id": [number]}))
        faults.clear()
        assert operation in {each.operation for each in store.steps[before:]}
    assert table.refresh().scan().count() == COMMITS + 10
    assert table.verify().is_clean


def test_who_reads_what_was_deleted_meanwhile_reads_what_took_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = new_lake()
    table = lived(lake, **{ON: "true"})
    other = lake.table("db.t")
    table.append(pa.table({"id": [0]}))
    at, load = table.state.metadata_location, lake.catalog.load
    for number in range(9):
        table.append(pa.table({"id": [number]}))
    assert at not in stored(table, ".metadata.json")
    for read in (lambda: lake.table("db.t"), other.refresh):
        # The catalog's answer is on its way while others commit.
        answers = iter([at])
        monkeypatch.setattr(
            lake.catalog, "load", lambda name, a=answers: next(a, None) or load(name)
        )
        assert read().scan().count() == COMMITS + 10


def test_metadata_that_the_catalog_names_and_that_is_not_there_is_told() -> None:
    lake = new_lake()
    table = lived(lake)
    table.files.store.delete([table.state.metadata_location])
    with pytest.raises(NotFound, match=table.state.metadata_location):
        lake.table("db.t")


@pytest.mark.parametrize("name", ["gc.enabled", "export.on-commit"])
def test_what_cannot_be_done_after_a_commit_has_landed_leaves_it_landed(name: str) -> None:
    table = lived(new_lake(), **{ON: "true"})
    # As another writer may have set it, who checks nothing.
    table.metadata.properties[name] = "maybe"
    for number in range(9):
        table.append(pa.table({"id": [number]}))
        assert read_metadata(table.files.store, table.state.metadata_location)
    assert table.refresh().scan().count() == COMMITS + 9


def test_commits_made_aside_delete_nothing_before_they_land() -> None:
    lake = new_lake()
    table = lived(lake, **{ON: "true"})
    before = stored(table, ".metadata.json")
    side = aside(table)
    for number in range(20):
        side.table.append(pa.table({"id": [number]}))
    assert before <= stored(table, ".metadata.json")
    assert lake.table("db.t").scan().count() == COMMITS
    land(lake.catalog, [side])
    assert lake.table("db.t").scan().count() == COMMITS + 20
    log = full(table, [each.metadata_file for each in table.refresh().metadata.metadata_log])
    assert log <= stored(table, ".metadata.json")
    assert not before <= stored(table, ".metadata.json")
    assert table.verify().is_clean


def test_files_that_a_log_names_elsewhere_are_not_touched() -> None:
    table = lived(new_lake(), **{ON: "true"})
    metadata = table.metadata
    log = (
        MetadataLogEntry(timestamp_ms=1, metadata_file="memory://lake/db/other/m.metadata.json"),
    )
    before = with_(table.state, metadata=replace(metadata, metadata_log=log))
    assert forgotten(before, table.state, table.files) == []
    own = f"{table.location}/metadata/old.metadata.json"
    log = (MetadataLogEntry(timestamp_ms=1, metadata_file=own),)
    before = with_(table.state, metadata=replace(metadata, metadata_log=log))
    assert forgotten(before, table.state, table.files) == ["metadata/old.metadata.json"]
