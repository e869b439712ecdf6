"""Stock Iceberg Java on Spark writes v4 tables through the server, which icetree writes too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icetree
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.jars import fetched
from tests.serve.processes import running

REPOSITORY = Path(__file__).parents[2]
VERBS = ("delete", "update", "merge")
#: How each verb writes: in the usual run both ways at once.
MODES: dict[str, tuple[str, ...]] = {
    "both": ("merge-on-read", "copy-on-write", "merge-on-read"),
    **({"merge": ("merge-on-read",) * 3, "copy": ("copy-on-write",) * 3} if EFFORT > 1 else {}),
}
Row = dict[str, Any]
_MERGE = (
    "MERGE INTO {} t USING "
    "(SELECT id, CAST(1 AS INT) n, CAST(id % 3 AS STRING) c FROM range(80, 100)) s "
    "ON t.id = s.id WHEN MATCHED AND s.id % 2 = 0 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET n = -1 WHEN NOT MATCHED THEN INSERT *"
)


def row(id: int) -> Row:
    return {"id": id, "n": id % 7, "c": str(id % 3)}


def told(spark: Path, uri: str, statements: list[str]) -> list[list[list[Any]]]:
    """Run statements in a Spark of its own, and return the rows that each answers."""
    asked, answers = spark / "asked.json", spark / "answers.json"
    asked.write_text(json.dumps(statements))
    command = [sys.executable, "-m", "tests.serve.spark_client", str(fetched("iceberg-java")), uri]
    done = subprocess.run(
        [*command, str(asked), str(answers)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    found: list[list[list[Any]]] = json.loads(answers.read_text())
    return found


def statements(name: str) -> list[str]:
    """Return what is done to a table that has rows 0 to 59."""
    return [
        f"INSERT INTO {name} SELECT id, CAST(id % 7 AS INT), CAST(id % 3 AS STRING) FROM range(60, 90)",
        f"DELETE FROM {name} WHERE id % 10 = 3",
        f"UPDATE {name} SET n = n + 100 WHERE id < 20",
        _MERGE.format(name),
        f"DELETE FROM {name} WHERE c = '1' AND id > 50",
        f"ALTER TABLE {name} ADD COLUMN note string",
        f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id)",
        f"INSERT INTO {name} VALUES (1000, 1, 'z', 'hello')",
        f"ALTER TABLE {name} CREATE BRANCH aside",
        f"INSERT INTO {name}.branch_aside VALUES (1001, 1, 'z', 'aside')",
        f"SELECT id, n, c, note FROM {name} ORDER BY id",
        f"SELECT count(*) FROM {name}.branch_aside",
        f"SELECT count(*) FROM {name} VERSION AS OF 'start'",
    ]


def expected() -> dict[int, Row]:
    """Return the rows that a table has after the statements, worked out without any of it."""
    rows = {id: row(id) for id in range(90) if id != 5 and id % 10 != 3}
    for id in [each for each in rows if each < 20]:
        rows[id]["n"] += 100
    for id in range(80, 100):
        if id in rows and id % 2 == 0:
            del rows[id]
        elif id in rows:
            rows[id]["n"] = -1
        else:
            rows[id] = {"id": id, "n": 1, "c": str(id % 3)}
    kept = {id: each for id, each in rows.items() if not (each["c"] == "1" and id > 50)}
    return {**kept, 1000: {"id": 1000, "n": 1, "c": "z", "note": "hello"}}


#: What is done with views, beside one of ours that is there.
VIEWS = [
    "SELECT * FROM db.ours ORDER BY number",
    "CREATE VIEW db.theirs (n COMMENT 'which') AS SELECT id FROM db.made WHERE id > 0",
    "SELECT sum(n) FROM db.theirs",
    "CREATE OR REPLACE VIEW db.theirs AS SELECT id + 10 AS n FROM db.made",
    "ALTER VIEW db.theirs SET TBLPROPERTIES ('a' = '1')",
    "ALTER VIEW db.theirs RENAME TO db.last",
    "SELECT max(n) FROM db.last",
    "SHOW VIEWS IN db",
    "CREATE VIEW db.gone AS SELECT 1 AS one",
    "DROP VIEW db.gone",
]


@pytest.mark.law
def test_every_statement_does_what_it_says_in_both_modes(tmp_path: Path) -> None:
    names = {mode: f"db.{mode}" for mode in MODES}
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        for mode, name in names.items():
            how = zip(VERBS, MODES[mode], strict=True)
            properties = {f"write.{verb}.mode": each for verb, each in how}
            properties |= {"write.root.max-data-entries": "4"}
            columns = "id long, n int, c string"
            table = lake.create_table(name, columns, partition_by=["c"], properties=properties)
            for start in range(0, 60, 20):
                rows = [row(id) for id in range(start, start + 20)]
                table.append(pa.Table.from_pylist(rows, schema=table.schema.as_arrow()))
            table.delete("id = 5")
            table.create_tag("start")
        made = "db.made"
        asked = [each for name in names.values() for each in statements(name)]
        asked += [
            f"CREATE TABLE {made} (id bigint) USING iceberg",
            f"INSERT INTO {made} SELECT * FROM range(5)",
            f"CREATE OR REPLACE TABLE {made} USING iceberg AS SELECT * FROM range(3)",
            f"SELECT id FROM {made} ORDER BY id",
            *VIEWS,
        ]
        lake.create_view("db.ours", "SELECT id FROM made", "number long", namespace="db")
        with running(tmp_path) as server:
            answers = dict(zip(asked, told(tmp_path, server.uri, asked), strict=True))
        wanted = [[e["id"], e["n"], e["c"], e.get("note")] for _, e in sorted(expected().items())]
        for name in names.values():
            *_, everything, aside, then = statements(name)
            assert answers[everything] == wanted
            assert answers[aside] == [[len(wanted) + 1]]
            assert answers[then] == [[59]]
            ours = lake.table(name)
            assert _rows(ours) == wanted
            assert ours.metadata.format_version == 4
            ours.delete("id = 1000")
            assert ours.verify(deep=True).findings == ()
        assert answers[f"SELECT id FROM {made} ORDER BY id"] == [[0], [1], [2]]
        assert answers[VIEWS[0]] == [[0], [1], [2]]
        assert (answers[VIEWS[2]], answers[VIEWS[6]]) == ([[3]], [[12]])
        assert [each[1] for each in answers[VIEWS[7]]] == ["last", "ours"]
        assert lake.views("db") == ["db.last", "db.ours"]
        theirs = lake.view("db.last")
        assert theirs.text == "SELECT id + 10 AS n FROM db.made"
        assert len(theirs.metadata.versions) == 2
        assert theirs.properties["a"] == "1"
        assert lake.table(made).metadata.format_version == 4
        # What keeps clients off files and manifests is shown to them, and is no property of the table.
        shown = {"gc.enabled", "commit.manifest-merge.enabled"}
        for each in (made, *names.values()):
            assert not shown & lake.table(each).properties.keys()


def _rows(table: Table) -> list[list[Any]]:
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    return [[each["id"], each["n"], each["c"], each["note"]] for each in found]
