"""Stock Iceberg Java on Spark that is shown v2 deletes by position what icetree deletes by vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import icetree
from tests.serve.processes import running
from tests.serve.stock_spark import told

VERBS = ("delete", "update", "merge")
MERGED = {f"write.{verb}.mode": "merge-on-read" for verb in VERBS}
TWO = {"type": "rest", "header.X-Icetree-Format-Version": "2", "cache-enabled": "false"}
#: One has scans planned by the server, one reads manifests by itself.
CATALOGS = {"planned": {}, "apart": {"scan-planning-mode": "client"}}
_MERGE = (
    "MERGE INTO apart.db.t t USING (SELECT id FROM range(55, 65)) s ON t.id = s.id "
    "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET n = -1 "
    "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 7)"
)
_ALL = "options => map('rewrite-all', 'true')"
READ = [f"SELECT id, n FROM {name}.db.t ORDER BY id" for name in CATALOGS]
STATEMENTS = [
    *READ,
    # Files with a vector, and files without.
    "DELETE FROM planned.db.t WHERE id % 10 = 4",
    "DELETE FROM apart.db.t WHERE id % 10 = 6",
    *READ,
    "UPDATE apart.db.t SET n = n + 100 WHERE id < 12",
    "UPDATE planned.db.t SET n = n + 100 WHERE id BETWEEN 12 AND 20",
    _MERGE,
    f"CALL apart.system.rewrite_position_delete_files(table => 'db.t', {_ALL})",
    *READ,
    f"CALL apart.system.rewrite_data_files(table => 'db.t', where => 'id < 25', {_ALL})",
    "DELETE FROM apart.db.t WHERE id IN (2, 22, 41)",
    "DELETE FROM planned.db.t WHERE id IN (3, 27, 42)",
    *READ,
]


def settings(uri: str) -> dict[str, str]:
    found = {}
    for name, more in CATALOGS.items():
        at = f"spark.sql.catalog.{name}"
        found[at] = "org.apache.iceberg.spark.SparkCatalog"
        found |= {f"{at}.{key}": value for key, value in {**TWO, "uri": uri, **more}.items()}
    return found


def expected() -> list[list[list[int]]]:
    """Return the rows at each time that they are asked for."""
    rows = {id: id % 7 for id in range(60) if id not in (5, 14, 15, 33)}
    told = [dict(rows)]
    rows = {id: n for id, n in rows.items() if id % 10 not in (4, 6)}
    told.append(dict(rows))
    rows = {id: n + 100 if id <= 20 else n for id, n in rows.items()}
    for id in range(55, 65):
        if id in rows and id % 2 == 0:
            del rows[id]
        else:
            rows[id] = -1 if id in rows else 7
    told.append(dict(rows))
    told.append({id: n for id, n in rows.items() if id not in (2, 22, 41, 3, 27, 42)})
    return [[[id, n] for id, n in sorted(each.items())] for each in told]


def test_spark_that_is_shown_v2_deletes_beside_vectors_and_none_is_lost(tmp_path: Path) -> None:
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        few = {"write.root.max-data-entries": "2", "write.root.max-delete-entries": "1"}
        table = lake.create_table("db.t", "id long, n int", properties={**MERGED, **few})
        for start in range(0, 60, 10):
            rows: list[dict[str, Any]] = [{"id": i, "n": i % 7} for i in range(start, start + 10)]
            table.append(pa.Table.from_pylist(rows, schema=table.schema.as_arrow()))
        table.delete("id in (5, 14, 15, 33)")
        with running(tmp_path) as server:
            found = told(tmp_path, server.uri, STATEMENTS, settings=settings(server.uri))
        answers = [each for asked, each in zip(STATEMENTS, found, strict=True) if asked in READ]
        wanted = expected()
        for at, rows_then in enumerate(wanted):
            assert answers[2 * at : 2 * at + 2] == [rows_then] * 2
        mine = table.refresh().scan().to_arrow().sort_by("id").to_pylist()
        assert [[each["id"], each["n"]] for each in mine] == wanted[-1]
        formats = table.inspect.delete_files()["file_format"].to_pylist()
        assert {each.lower() for each in formats} <= {"puffin"}
        assert table.verify(deep=True).findings == ()
