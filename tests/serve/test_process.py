"""A server of its own, as stock clients meet it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import IntegerType, LongType, NestedField, TimestampType

import icetree
from tests.serve.processes import Running, running


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    folder = tmp_path_factory.mktemp("served")
    with icetree.connect(f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    with running(folder) as server:
        yield server, folder


@pytest.fixture
def catalog(served: tuple[Running, Path]) -> RestCatalog:
    catalog = load_catalog("rest", type="rest", uri=served[0].uri)
    assert isinstance(catalog, RestCatalog)
    return catalog


def test_stock_pyiceberg_works_with_namespaces(catalog: RestCatalog) -> None:
    catalog.create_namespace(("a", "b"), {"owner": "me"})
    assert catalog.list_namespaces(("a",)) == [("a", "b")]
    assert catalog.namespace_exists(("a", "b"))
    done = catalog.update_namespace_properties(("a", "b"), {"x"}, {"y": "1"})
    assert (done.missing, done.updated) == (["x"], ["y"])
    assert catalog.load_namespace_properties(("a", "b")) == {"owner": "me", "y": "1"}
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("db")
    catalog.drop_namespace(("a", "b"))
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties(("a", "b"))
    assert catalog.list_tables("db") == [("db", "t")]
    assert catalog.table_exists("db.t")
    assert not catalog.table_exists("db.u")


def test_stock_pyiceberg_makes_evolves_renames_and_drops_a_table(catalog: RestCatalog) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "ts", TimestampType(), required=False),
        identifier_field_ids=[1],
    )
    spec = PartitionSpec(PartitionField(2, 1000, DayTransform(), "ts_day"))
    order = SortOrder(SortField(1))
    table = catalog.create_table(
        "db.made", schema, partition_spec=spec, sort_order=order, properties={"format-version": "2"}
    )
    # PyIceberg reads v3 but writes none.
    assert (table.format_version, table.schema(), table.spec()) == (2, schema, spec)
    assert table.sort_order().fields == order.fields
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table("db.made", schema)
    with table.update_schema() as update:
        update.add_column("n", IntegerType()).rename_column("ts", "at")
    with table.update_spec() as change:
        change.add_field("n", BucketTransform(4), "n_bucket").remove_field("ts_day")
    with table.transaction() as transaction:
        transaction.set_properties({"a": "1", "b": "2"})
        transaction.remove_properties("a")
    with table.update_schema() as update:
        update.update_column("n", LongType())
    again = catalog.load_table("db.made")
    assert again.schema().column_names == ["id", "at", "n"]
    assert again.spec().fields[0].name == "n_bucket"
    assert again.properties["b"] == "2"
    assert again.metadata == table.metadata
    other = catalog.load_table("db.made")
    with table.update_schema() as update:
        update.add_column("mine", IntegerType())
    with pytest.raises(CommitFailedException), other.update_schema() as update:
        update.add_column("yours", IntegerType())
    catalog.rename_table("db.made", "db.moved")
    assert catalog.list_tables("db") == [("db", "moved"), ("db", "t")]
    catalog.purge_table("db.moved")
    with pytest.raises(NoSuchTableError):
        catalog.load_table("db.moved")


def test_stock_pyiceberg_makes_a_table_by_a_transaction(catalog: RestCatalog) -> None:
    schema = Schema(NestedField(1, "id", LongType(), required=False))
    with catalog.create_table_transaction("db.staged", schema) as transaction:
        assert not catalog.table_exists("db.staged")
        with transaction.update_schema() as update:
            update.add_column("n", IntegerType())
        transaction.set_properties({"a": "1"})
    table = catalog.load_table("db.staged")
    assert table.schema().column_names == ["id", "n"]
    assert table.properties["a"] == "1"
    catalog.drop_table("db.staged")


def test_stock_pyiceberg_reads_lists_in_pages(served: tuple[Running, Path]) -> None:
    paging = load_catalog("rest", **{"type": "rest", "uri": served[0].uri, "rest-page-size": "1"})
    for name in "xyz":
        paging.create_namespace((name,))
    assert {("x",), ("y",), ("z",), ("db",)} <= {*paging.list_namespaces()}
    for name in "xyz":
        paging.drop_namespace((name,))


def test_a_server_that_is_killed_loses_nothing_that_it_answered(tmp_path: Path) -> None:
    """Clients commit all the time while it is killed, twice; another goes on where it was."""
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    answered: set[str] = set()
    for life in range(2):
        with running(tmp_path, "--quiet") as server:
            done = [Thread(target=_commits, args=(server, f"{life}-{n}", answered)) for n in "ab"]
            for each in done:
                each.start()
            while len(answered) < 10 * (life + 1) and any(each.is_alive() for each in done):
                time.sleep(0.01)
            server.process.kill()
            for each in done:
                each.join(20)
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        table = lake.table("db.t")
        assert len(answered) >= 20
        assert answered <= table.properties.keys()
        assert table.verify(deep=True).findings == ()


JSON = {"content-type": "application/json"}


def _commits(server: Running, writer: str, answered: set[str]) -> None:
    connection = HTTPConnection(server.uri.removeprefix("http://"), timeout=10)
    with suppress(OSError, HTTPException):
        for number in range(1_000):
            name = f"writer-{writer}-{number}"
            update = {"action": "set-properties", "updates": {name: "done"}}
            body = json.dumps({"requirements": [], "updates": [update]})
            connection.request("POST", "/v1/namespaces/db/tables/t", body, JSON)
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                answered.add(name)
    connection.close()
