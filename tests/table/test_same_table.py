"""A handle is of one table: another that takes its name is not what it goes on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from msgspec import structs

import icetree
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitConflict, NotFound
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.catalog.flaky import Before, FlakyCatalog
from tests.table.lake import SCHEMA, data_file, new_table


@pytest.fixture
def lake() -> Lake:
    opened = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    opened.create_namespace("db")
    return opened


def replaced(lake: Lake, *, location: str | None) -> tuple[Table, Table]:
    """Return a handle of a table, and of the one that has its name now."""
    old = new_table(lake, location=location)
    old.append_files([data_file("a")])
    lake.drop_table("db.t")
    new = lake.create_table("db.t", SCHEMA, location=location)
    new.append_files([data_file("b")])
    return old, new


@pytest.mark.parametrize("location", ["memory://w/db/t", None])
def test_no_door_of_a_handle_leads_to_another_table(lake: Lake, location: str | None) -> None:
    old, new = replaced(lake, location=location)
    before = old.state
    with pytest.raises(NotFound, match=r"db\.t is another table now .* load it again"):
        old.refresh()
    for change in (
        lambda: old.append_files([data_file("c")]),
        lambda: old.set_properties({"a": "b"}),
        lambda: old.delete_files(["data/a.parquet"]),
        lambda: old.create_tag("v1"),
        lambda: old.transaction().commit(),
    ):
        with pytest.raises(CommitConflict, match=r"db\.t is another table now .* load it again"):
            change()
    assert old.state is before
    assert new.refresh().metadata.last_sequence_number == 1
    assert "a" not in new.properties


def test_a_name_that_is_gone_is_a_conflict_as_one_that_is_taken() -> None:
    """Whether another takes the name of a dropped table at once or never, the commit lost."""
    catalog = FlakyCatalog(MemoryCatalog("m"))
    lake = Lake(catalog=catalog, store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    old = new_table(lake)
    other = lake.table("db.t")
    other.append_files([data_file("a")])
    seen = catalog.steps.count("load")
    catalog.faults = {("load", seen + 1): Before(lambda: catalog.inner.drop(old.state.name))}
    before = old.state
    with pytest.raises(CommitConflict, match=r"db\.t"):
        old.append_files([data_file("b")])
    with pytest.raises(CommitConflict, match=r"db\.t"):
        old.append_files([data_file("b")])
    with pytest.raises(CommitConflict, match=r"db\.t"):
        old.transaction().commit()
    assert old.state is before


def test_a_table_that_had_no_uuid_may_get_one(lake: Lake) -> None:
    table = new_table(lake)
    unnamed = structs.replace(table.metadata, table_uuid=None)
    table.state = replace(table.state, metadata=unnamed, metadata_location="elsewhere")
    assert table.refresh().metadata.table_uuid


def test_a_table_made_again_in_a_folder_is_another(tmp_path: Path) -> None:
    opened = icetree.connect(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "lake"))
    opened.create_namespace("db")
    old = opened.create_table("db.t", SCHEMA)
    opened.drop_table("db.t")
    opened.create_table("db.t", SCHEMA)
    with pytest.raises(NotFound, match="another table now"):
        old.refresh()
