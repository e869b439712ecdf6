"""Tables that a peer wrote, upgraded and compacted: rows that never had ids get some, and stay."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from icetree.errors import Unsupported
from icetree.table.maintain.compact import groups as compacting
from icetree.table.table import Table
from tests.peers.pyiceberg_tables import plain_v1
from tests.rows.lake import rows

ALL = {"rewrite-all": True}


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = SqlCatalog("main", uri=uri, warehouse=f"file://{tmp_path}/lake")
    catalog.create_namespace("db")
    plain_v1(catalog, "db.t")
    catalog.engine.dispose()
    with icetree.connect(uri, properties={"name": "main"}) as lake:
        yield lake.table("db.t")


def test_an_upgraded_table_is_compacted_and_an_older_one_is_not(table: Table) -> None:
    before = rows(table.scan().to_arrow())
    with pytest.raises(Unsupported, match="upgrade it"):
        table.maintenance.rewrite_data_files(options=ALL)
    assert rows(table.scan().to_arrow()) == before
    table.upgrade()
    done = table.maintenance.rewrite_data_files(order_by="zorder(id, price)", options=ALL)
    assert done.rewritten_data_files_count > done.added_data_files_count > 0
    assert rows(table.scan().to_arrow()) == before
    ids = table.scan(columns=["_row_id"]).to_arrow()["_row_id"]
    assert ids.null_count == 0
    assert len(ids.unique()) == len(before)
    assert table.verify(deep=True).findings == ()


def test_rows_that_had_no_ids_when_they_were_read_are_compacted_anew_after_a_delete(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upgrade()
    inner, deleted = compacting.write_packed, []

    def late(*args: object, **how: object) -> object:
        made = inner(*args, **how)  # type: ignore[arg-type]
        if not deleted:
            deleted.append(table.delete("id = 7"))
        return made

    monkeypatch.setattr(compacting, "write_packed", late)
    left = sorted(set(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) - {7})
    one = {**ALL, "max-concurrent-file-group-rewrites": 1}
    assert table.maintenance.rewrite_data_files(options=one).failed_data_files_count == 0
    assert sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == left
    assert table.verify(deep=True).findings == ()


def test_rows_that_others_number_meanwhile_keep_these_numbers(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.upgrade()
    inner, numbers = compacting.write_packed, dict[int, int]()

    def late(*args: object, **how: object) -> object:
        made = inner(*args, **how)  # type: ignore[arg-type]
        if not numbers:
            table.append(table.scan("id = 7").to_arrow())
            numbers.update(_numbers(table))
        return made

    monkeypatch.setattr(compacting, "write_packed", late)
    one = {**ALL, "max-concurrent-file-group-rewrites": 1}
    assert table.maintenance.rewrite_data_files(options=one).added_data_files_count > 0
    assert _numbers(table.refresh()) == numbers


def _numbers(table: Table) -> dict[int, int]:
    found = table.scan(columns=["_row_id", "id"]).to_arrow()
    return dict(zip(*(column.to_pylist() for column in found.columns), strict=True))
