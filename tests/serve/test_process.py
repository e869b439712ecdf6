"""A server of its own, as stock clients meet it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NamespaceNotEmptyError, NoSuchNamespaceError

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
