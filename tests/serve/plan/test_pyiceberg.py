"""Stock PyIceberg reads tables through plans of the server, without knowing that they are v4."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression, In
from pyiceberg.expressions.visitors import bind, rewrite_not
from pyiceberg.io.pyarrow import expression_to_pyarrow

from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.peers.filters import random_filters, to_json, to_pyiceberg
from tests.peers.values import pools
from tests.serve.plan.rich import rich_table

FILTERS = 15 * EFFORT


@pytest.fixture(scope="module")
def table(served_lake: Lake) -> Table:
    return rich_table(served_lake, "db.t", equality=False)


@pytest.fixture(scope="module")
def catalog(uri: str) -> RestCatalog:
    return RestCatalog("served", uri=uri)


def rows(data: pa.Table) -> list[str]:
    return sorted(map(repr, data.to_pylist()))


def expected(table: Table, where: BooleanExpression) -> pa.Table:
    """Return our rows, tested as PyIceberg tests rows."""
    everything = table.scan().to_arrow()
    if isinstance(where, AlwaysTrue):
        return everything
    schema = table.schema
    return everything.filter(
        expression_to_pyarrow(bind(schema, where, case_sensitive=True), schema)
    )


def test_plans_come_from_the_server(catalog: RestCatalog) -> None:
    assert catalog.supports_server_side_planning()


def test_every_row_is_read_and_none_that_is_deleted(catalog: RestCatalog, table: Table) -> None:
    theirs = catalog.load_table("db.t").scan()
    assert rows(theirs.to_arrow()) == rows(table.scan().to_arrow())
    assert theirs.count() == table.scan().count()


def test_filters_find_the_rows_that_they_find_in_ours(catalog: RestCatalog, table: Table) -> None:
    theirs = catalog.load_table("db.t")
    seen = 0
    # Not those that PyIceberg's own reader gets wrong: by a column that a file lacks, `not` finds all
    # or nothing, and Arrow takes NaN for a file's one other value.
    known = pools("db.v3_evolved").items()
    columns = {name: pool for name, pool in known if name not in ("extra", "cost")}
    for filter in random_filters(SEED, FILTERS, columns):
        where: Any = rewrite_not(to_pyiceberg(filter))
        wanted = rows(expected(table, where))
        found = theirs.scan(row_filter=where)
        assert rows(found.to_arrow()) == wanted, to_json(filter)
        assert found.count() == len(wanted), to_json(filter)
        seen += 0 < len(wanted) < table.scan().count()
    assert seen > FILTERS / 3


def test_former_snapshots_are_read_as_they_were(catalog: RestCatalog, table: Table) -> None:
    theirs = catalog.load_table("db.t")
    for snapshot in table.history():
        id = snapshot.snapshot_id
        ours = table.scan(at=id)
        assert rows(theirs.scan(snapshot_id=id).to_arrow()) == rows(ours.to_arrow())
        some = theirs.scan(row_filter="id < 70", snapshot_id=id).to_arrow()
        assert rows(some) == rows(table.scan("id < 70", at=id).to_arrow())


def test_few_columns_and_names_in_any_case_are_read(catalog: RestCatalog, table: Table) -> None:
    scan = catalog.load_table("db.t").scan(
        row_filter="PLACE.City = 'town-003'", selected_fields=("ID",), case_sensitive=False
    )
    wanted = table.scan("place.city = 'town-003'", columns=["id"]).to_arrow()
    assert rows(scan.to_arrow()) == rows(wanted)
    assert wanted.num_rows


def test_a_column_is_filtered_by_that_old_files_lack(catalog: RestCatalog, table: Table) -> None:
    theirs = catalog.load_table("db.t")
    for where in ("extra = 'e3'", "extra is null", "extra >= 'e3'", "extra is not null"):
        found = theirs.scan(row_filter=where).to_arrow()
        assert rows(found) == rows(table.scan(where).to_arrow())
        assert found.num_rows


def test_equality_deletes_are_applied(catalog: RestCatalog, served_lake: Lake) -> None:
    table = rich_table(served_lake, "db.equal", equality=True)
    ours = table.scan("id < 200")
    assert any(ours.plan().tasks["equality_deletes"].to_pylist())
    for _ in range(2):
        theirs = catalog.load_table("db.equal").scan(row_filter="id < 200")
        assert rows(theirs.to_arrow()) == rows(ours.to_arrow())
    whole = catalog.load_table("db.equal").scan()
    assert whole.count() == table.scan().count()


def test_deletes_are_applied_where_a_table_was_copied_to(
    catalog: RestCatalog, served_lake: Lake, folder: Path
) -> None:
    table = served_lake.create_table("db.here", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": range(10)}))
    table.delete("id in (3, 4)")
    there = folder / "lake" / "db" / "there"
    shutil.copytree(table.location, there)
    last = Path(table.state.metadata_location).name
    served_lake.register_table("db.there", f"{there}/metadata/{last}")
    assert catalog.load_table("db.there").scan().to_arrow()["id"].to_pylist() == [
        0,
        1,
        2,
        5,
        6,
        7,
        8,
        9,
    ]


def test_a_plan_of_many_pages_is_read_whole(uri_of_small_pages: str, table: Table) -> None:
    paged = RestCatalog("paged", uri=uri_of_small_pages).load_table("db.t")
    assert rows(paged.scan().to_arrow()) == rows(table.scan().to_arrow())
    long = In("id", range(-1_500, 200))
    assert rows(paged.scan(row_filter=long).to_arrow()) == rows(table.scan(long).to_arrow())
