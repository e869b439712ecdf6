"""Iceberg Java's own JDBC catalog on SQLite, in both versions of its layout: icetree opens what it keeps.

Tables that Java made there become v4 in place, and v3 again, and Java goes on with them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

import icetree
from icetree.errors import NotFound, Unsupported
from icetree.table.lake import Lake
from tests.jars import fetched
from tests.java import IcebergJava
from tests.peers.java_rows import JavaRows
from tests.peers.readers import said

_SCHEMA: dict[str, Any] = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": False, "type": "int"},
        {"id": 2, "name": "country", "required": False, "type": "string"},
        {"id": 3, "name": "price", "required": False, "type": "double"},
    ],
}
_BY_COUNTRY: dict[str, Any] = {
    "spec-id": 0,
    "fields": [{"name": "country", "transform": "identity", "source-id": 2, "field-id": 1000}],
}
#: The tables by name: a version each, and one in a namespace within another.
_TABLES = {"db.one": 1, "db.two": 2, "db.inner.three": 3}
#: Tells the rows of each snapshot of a table; None stands for the current one.
Tell = Callable[[Sequence[int | None]], dict[int | None, list[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A version of the catalog's tables in SQL, and how Java is told where to put files."""

    version: str
    warehouse: Callable[[Path], str]

    @property
    def has_views(self) -> bool:
        """Tell whether the catalog can tell views from tables."""
        return self.version == "V1"


LAYOUTS = [
    Layout(version="V0", warehouse=lambda folder: str(folder / "lake")),
    Layout(version="V1", warehouse=lambda folder: f"file:{folder}/lake"),
]


class JavaCatalog:
    """A JDBC catalog as Iceberg Java runs it."""

    def __init__(self, java: IcebergJava, folder: Path, layout: Layout) -> None:
        fetched("sqlite-jdbc")
        self.java, self._iceberg = java, java.jvm.org.apache.iceberg
        self._rows, self._numbers = JavaRows(java), count()
        self.catalog = self._iceberg.jdbc.JdbcCatalog()
        self.catalog.setConf(java.jvm.org.apache.hadoop.conf.Configuration())
        told = {
            "uri": f"jdbc:sqlite:{folder}/catalog.db",
            "warehouse": layout.warehouse(folder),
            "jdbc.schema-version": layout.version,
        }
        self.catalog.initialize("java", told)

    def name(self, text: str) -> Any:
        """Return a name as Java has it."""
        return self._iceberg.catalog.TableIdentifier.parse(text)

    def load(self, name: str) -> Any:
        """Return a table."""
        return self.catalog.loadTable(self.name(name))

    def create(self, name: str, version: int) -> None:
        """Make a table by country, with rows in three snapshots; v1 knows no deletes."""
        schema = self._iceberg.SchemaParser.fromJson(json.dumps(_SCHEMA))
        spec = self._iceberg.PartitionSpecParser.fromJson(schema, json.dumps(_BY_COUNTRY))
        self.catalog.createTable(self.name(name), schema, spec, {"format-version": str(version)})
        table = self.load(name)
        for start in (0, 10):
            append = table.newAppend()
            for country in ("DE", "FR"):
                append.appendFile(self.file(table, country, range(start, start + 4)))
            append.commit()
        if version == 2:
            table.newRowDelta().addDeletes(self._delete(table, "FR", [2, 11])).commit()
        else:
            table.newFastAppend().appendFile(self.file(table, None, [20])).commit()

    def file(self, table: Any, country: str | None, ids: Sequence[int]) -> Any:
        """Write a data file of a country."""
        place, where = self._place(table, country)
        encrypted = self._iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(place)
        factory = self._iceberg.data.GenericAppenderFactory(table.schema(), table.spec())
        writer = factory.newDataWriter(encrypted, self._iceberg.FileFormat.PARQUET, where)
        for id in ids:
            writer.write(self._record(table.schema(), id=id, country=country, price=id / 4))
        writer.close()
        return writer.toDataFile()

    def _delete(self, table: Any, country: str, ids: Sequence[int]) -> Any:
        """Write a file that deletes rows of a country by their ids."""
        place, where = self._place(table, country)
        encrypted = self._iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(place)
        schema = table.schema().select(self.java.strings("id"))
        factory = self._iceberg.data.GenericAppenderFactory(
            table.schema(), table.spec(), self.java.numbers(1), schema, None
        )
        writer = factory.newEqDeleteWriter(encrypted, self._iceberg.FileFormat.PARQUET, where)
        for id in ids:
            writer.write(self._record(schema, id=id))
        writer.close()
        return writer.toDeleteFile()

    def _place(self, table: Any, country: str | None) -> tuple[Any, Any]:
        at = f"{table.location()}/data/{next(self._numbers)}.parquet"
        where = self._record(table.spec().partitionType(), country=country)
        return table.io().newOutputFile(at), where

    def _record(self, struct: Any, **values: Any) -> Any:
        record = self._iceberg.data.GenericRecord.create(struct)
        for name, value in values.items():
            record.setField(name, value)
        return record

    def rows(self, name: str) -> dict[int | None, list[str]]:
        """Return the rows of each snapshot of a table."""
        table = self.load(name)
        every: list[int | None] = [each.snapshotId() for each in table.snapshots()]
        told = self._rows(table, [(None, at) for at in (None, *every)])
        return {at: sorted(each or []) for at, each in zip((None, *every), told, strict=True)}

    def create_view(self, name: str, query: str) -> None:
        """Make a view."""
        schema = self._iceberg.SchemaParser.fromJson(json.dumps(_SCHEMA))
        making = self.catalog.buildView(self.name(name)).withSchema(schema)
        making.withDefaultNamespace(self.name(name).namespace()).withQuery("spark", query).create()

    def tables(self, namespace: str) -> list[str]:
        """Return the names of tables."""
        inner = self.name(f"{namespace}.any").namespace()
        return sorted(each.toString() for each in self.catalog.listTables(inner))

    def views(self, namespace: str) -> list[str]:
        """Return the names of views."""
        inner = self.name(f"{namespace}.any").namespace()
        return sorted(each.toString() for each in self.catalog.listViews(inner))


@pytest.fixture(params=LAYOUTS, ids=lambda layout: layout.version)
def layout(request: pytest.FixtureRequest) -> Layout:
    found: Layout = request.param
    return found


@pytest.fixture
def theirs(java: IcebergJava, tmp_path: Path, layout: Layout) -> Iterator[JavaCatalog]:
    opened = JavaCatalog(java, tmp_path, layout)
    for namespace in ("db", "db.inner"):
        opened.catalog.createNamespace(opened.name(f"{namespace}.t").namespace(), {"owner": "ann"})
    for name, version in _TABLES.items():
        opened.create(name, version)
    yield opened
    opened.catalog.close()


@pytest.fixture
def ours(theirs: JavaCatalog, tmp_path: Path) -> Iterator[Lake]:
    # Java has made its tables of SQL and rows in them before icetree looks.
    assert theirs.tables("db") == ["db.one", "db.two"]
    with icetree.connect(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=str(tmp_path / "ours"),
        properties={"name": "java", "init_catalog_tables": "false"},
    ) as lake:
        yield lake


def _rows(lake: Lake, name: str, every: Sequence[int | None]) -> dict[int | None, list[str]]:
    table = lake.table(name)
    return {at: sorted(map(said, table.scan(at=at).to_arrow().to_pylist())) for at in every}


def test_tables_of_javas_catalog_become_v4_in_place_and_v3_again(
    theirs: JavaCatalog, ours: Lake
) -> None:
    assert ours.namespaces() == ["db"]
    assert ours.namespaces("db") == ["db.inner"]
    assert ours.namespace_properties("db.inner") == {"owner": "ann"}
    assert ours.tables("db") == ["db.one", "db.two"]
    for name, version in _TABLES.items():
        before = theirs.rows(name)
        assert len(before) == 4
        assert len(before[None]) == (14 if version == 2 else 17)
        assert ours.table(name).metadata.format_version == version
        assert _rows(ours, name, [*before]) == before
        told = ours.upgrade_table(name)
        assert (told.format_version, told.reason) == (version, None)
        assert ours.table(name).metadata.format_version == 4
        assert _rows(ours, name, [*before]) == before
        table = ours.table(name)
        table.delete("id = 1")
        assert table.verify(deep=True).findings == ()
        ours.downgrade_table(name)
        after = theirs.rows(name)
        assert after[None] == [row for row in before[None] if json.loads(row)["id"] != 1]
        peer = theirs.load(name)
        peer.newAppend().appendFile(theirs.file(peer, "DE", [30])).commit()
        now = theirs.rows(name)
        assert len(now[None]) == len(after[None]) + 1
        assert _rows(ours, name, [None]) == {None: now[None]}


def test_views_of_javas_catalog_are_where_its_layout_has_them(
    theirs: JavaCatalog, ours: Lake, layout: Layout
) -> None:
    query = "SELECT * FROM one WHERE id < 3"
    if not layout.has_views:
        with pytest.raises(Py4JJavaError, match="view"):
            theirs.create_view("db.few", query)
        with pytest.raises(Unsupported, match=r"jdbc\.schema-version=v1"):
            ours.create_view("db.more", {"spark": query}, "id int", namespace="db")
        return
    theirs.create_view("db.few", query)
    assert ours.views("db") == ["db.few"]
    assert ours.tables("db") == ["db.one", "db.two"]
    found = ours.view("db.few")
    assert [field.name for field in found.schema.fields] == ["id", "country", "price"]
    assert found.texts == {"spark": query}
    with pytest.raises(NotFound, match="view"):
        ours.table("db.few")
    ours.create_view("db.more", {"spark": query}, "id int", namespace="db")
    assert theirs.tables("db") == ["db.one", "db.two"]
    assert theirs.views("db") == ["db.few", "db.more"]
    seen = theirs.catalog.loadView(theirs.name("db.more"))
    assert seen.sqlFor("spark").sql() == query
