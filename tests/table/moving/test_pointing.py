"""Names of tables that are not upgraded yet, made to stand for a former state: other clients go on."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.types import StringType

from icetree.catalog.base import Outcome, TableName
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitConflict
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from tests.catalog.flaky import Before, FlakyCatalog
from tests.table.moving.old_tables import lake_on, old_table, rows, uri


@pytest.mark.parametrize("version", [1, 2])
def test_a_table_of_another_clients_goes_back_and_its_ids_do_not(
    tmp_path: Path, version: int
) -> None:
    table = old_table(tmp_path, version)
    former = table.metadata_location
    with table.update_schema() as schema:
        schema.add_column("secret", StringType())
    table.append(rows(100))
    last = table.metadata.last_column_id
    with lake_on(tmp_path) as lake:
        state = lake.register_table("db.old", former, overwrite=True).state
    assert state.metadata.format_version == version
    catalog = SqlCatalog("main", uri=uri(tmp_path), warehouse=f"file://{tmp_path}/lake")
    found = catalog.load_table("db.old")
    assert found.metadata_location == state.metadata_location
    assert found.scan().to_arrow().num_rows == 19
    if version > 1:
        assert found.metadata.last_sequence_number > table.metadata.last_sequence_number
    with found.update_schema() as schema:
        schema.add_column("nickname", StringType())
    assert found.schema().find_field("nickname").field_id == last + 1
    found.append(rows(200, 1).append_column("nickname", [["a"]]))
    assert found.scan().to_arrow().num_rows == 20
    catalog.engine.dispose()


@pytest.mark.parametrize("gone", [False, True], ids=["another came", "it went"])
def test_who_comes_second_leaves_no_metadata_behind(gone: bool) -> None:
    catalog = FlakyCatalog(MemoryCatalog("test"))
    lake = Lake(catalog=catalog, store=MemoryStore(), warehouse="memory://lake")
    lake.create_namespace("db")
    table = lake.create_table("db.t", [("id", "long")])
    table.append(pa.table({"id": [1]}))
    former = table.state.metadata_location
    table.append(pa.table({"id": [2]}))

    there: set[str] = set()
    unnamed: set[str] = set()

    def files() -> set[str]:
        return {each.location for each in lake.store.list(table.location)}

    before = files()

    def meanwhile() -> None:
        unnamed.update(files() - before)
        if gone:
            catalog.inner.drop(table.name)
        else:
            lake.table("db.t").append(pa.table({"id": [3]}))
        there.update(files())

    catalog.faults = {("swap", catalog.steps.count("swap") + 1): Before(meanwhile)}
    if gone:
        found = lake.register_table("db.t", former, overwrite=True)
        assert found.state.metadata_location == former
    else:
        with pytest.raises(CommitConflict, match="another commit came first"):
            lake.register_table("db.t", former, overwrite=True)
        assert lake.table("db.t").scan().count() == 3
    assert len(unnamed) == 1
    assert files() == there - unnamed


class _AskedAgain(MemoryCatalog):
    """One whose driver asks again where an answer was lost: then it is told of what it did itself."""

    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        super().swap(table, expected=expected, to=to)
        return super().swap(table, expected=expected, to=to)


def test_a_name_that_stands_for_what_was_asked_already_keeps_its_metadata() -> None:
    lake = Lake(catalog=MemoryCatalog("test"), store=MemoryStore(), warehouse="memory://lake")
    lake.create_namespace("db")
    table = lake.create_table("db.t", [("id", "long")])
    table.append(pa.table({"id": [1]}))
    former = table.state.metadata_location
    table.append(pa.table({"id": [2]}))
    catalog = _AskedAgain("test")
    catalog.create_namespace(("db",), {})
    catalog.create(table.name, table.state.metadata_location)
    asking = Lake(catalog=catalog, store=lake.store, warehouse="memory://lake")
    assert asking.register_table("db.t", former, overwrite=True).scan().count() == 1
    assert asking.table("db.t").scan().count() == 1
