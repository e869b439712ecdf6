"""Stock Iceberg Java on Spark writes v4 tables through the server, while icetree writes to the same."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typing_extensions import Self

import icetree
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.serve.processes import running
from tests.serve.stock_spark import told

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
#: And once more with files written anew, where merging in the usual run adds to them.
_MERGE_ANEW = (
    "MERGE INTO {} t USING "
    "(SELECT id, CAST(2 AS INT) n, CAST(id % 3 AS STRING) c FROM range(40, 45)) s "
    "ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = -2 WHEN NOT MATCHED THEN INSERT *"
)
#: Rows that icetree writes meanwhile have these ids and more, which no statement asks for.
_OURS = 10_000
#: How many rows icetree appends to each table meanwhile; a delete for every other is a commit, too.
_MEANWHILE = 12
#: How often Spark tries a commit again.
_TRIES = "20"


def row(id: int) -> Row:
    return {"id": id, "n": id % 7, "c": str(id % 3)}


def statements(name: str) -> list[str]:
    """Return what is done to a table that has rows 0 to 59."""
    return [
        f"INSERT INTO {name} SELECT id, CAST(id % 7 AS INT), CAST(id % 3 AS STRING) FROM range(60, 90)",
        f"DELETE FROM {name} WHERE id % 10 = 3",
        f"UPDATE {name} SET n = n + 100 WHERE id < 20",
        _MERGE.format(name),
        f"ALTER TABLE {name} SET TBLPROPERTIES ('write.merge.mode' = 'copy-on-write')",
        _MERGE_ANEW.format(name),
        f"DELETE FROM {name} WHERE c = '1' AND id > 50",
        f"ALTER TABLE {name} ADD COLUMN note string",
        f"ALTER TABLE {name} ADD PARTITION FIELD bucket(4, id)",
        f"INSERT INTO {name} VALUES (1000, 1, 'z', 'hello')",
        f"ALTER TABLE {name} CREATE BRANCH aside",
        f"INSERT INTO {name}.branch_aside VALUES (1001, 1, 'z', 'aside')",
        f"SELECT id, n, c, note FROM {name} WHERE id < {_OURS} ORDER BY id",
        f"SELECT count(*) FROM {name}.branch_aside WHERE id < {_OURS}",
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
    for id in range(40, 45):
        rows[id] = {**row(id), "n": -2 if id in rows else 2}
    kept = {id: each for id, each in rows.items() if not (each["c"] == "1" and id > 50)}
    return {**kept, 1000: {"id": 1000, "n": 1, "c": "z", "note": "hello"}}


#: What is done to a table of Spark's own: its columns change, and it is read as it was.
EVOLVED = [
    "CREATE TABLE db.evolved (id int, a string, b string, d decimal(9, 2)) USING iceberg",
    "INSERT INTO db.evolved VALUES (1, 'x', 'gone', 1.25)",
    "ALTER TABLE db.evolved CREATE TAG first",
    "ALTER TABLE db.evolved RENAME COLUMN a TO label",
    "ALTER TABLE db.evolved DROP COLUMN b",
    "ALTER TABLE db.evolved ALTER COLUMN id TYPE bigint",
    "ALTER TABLE db.evolved ALTER COLUMN d TYPE decimal(18, 2)",
    "INSERT INTO db.evolved VALUES (5000000000, 'y', 10000000.50)",
    "SELECT * FROM db.evolved ORDER BY id",
    "SELECT * FROM db.evolved VERSION AS OF 'first'",
]
#: What Spark does to a table from which icetree deletes meanwhile: nothing that deletes can be in the way of.
BUSY = [
    f"INSERT INTO db.busy SELECT id, 1, 'x' FROM range({start}, {start + 5})"
    for start in (0, 5, 10)
]


def _of_the_past(table: Table) -> dict[str, Any]:
    """Return questions about a table of four appends that Spark answers by manifests, and the answers."""
    ids = [each.snapshot_id for each in sorted(table.history(), key=lambda e: e.sequence_number)]
    between = f"'start-snapshot-id' = '{ids[0]}', 'end-snapshot-id' = '{ids[2]}'"
    return {
        f"SELECT id FROM {table.name} WITH ({between}) ORDER BY id": [[1], [2]],
        f"SELECT count(*) FROM {table.name}.all_data_files": [[1 + 2 + 3 + 4]],
        f"SELECT count(DISTINCT file_path) FROM {table.name}.all_files": [[4]],
        f"SELECT count(DISTINCT reference_snapshot_id) FROM {table.name}.all_manifests": [[4]],
        f"SELECT DISTINCT partition_summaries[0].contains_nan FROM {table.name}.all_manifests": [
            [False]
        ],
    }


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


class Meanwhile:
    """Appends a row to each of some tables, over and over, and deletes some again from the last, in a thread."""

    def __init__(self, lake: Lake, names: Sequence[str]) -> None:
        self._lake, self._names = lake, names
        self._enough, self._thread = threading.Event(), threading.Thread(target=self._write)
        self._failure: Exception | None = None
        #: The ids that are there, by table.
        self.ids: dict[str, set[int]] = {name: set() for name in names}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join(timeout=120)
        if self._failure is not None:
            raise self._failure

    def _write(self) -> None:
        try:
            # Ten apart, and fewer than Spark tries again: it never runs out of tries.
            for id in range(_OURS, _OURS + 10 * _MEANWHILE, 10):
                for name in self._names:
                    self._write_one(name, id)
                if self._enough.wait(1.0):
                    return
        except Exception as error:
            self._failure = error

    def _write_one(self, name: str, id: int) -> None:
        table = self._lake.table(name)
        table.append(pa.table({"id": [id], "n": pa.array([0], pa.int32()), "c": ["ours"]}))
        self.ids[name].add(id)
        if name == self._names[-1] and id % 20 == 10:
            table.delete(f"id = {id}")
            self.ids[name].remove(id)


@pytest.mark.law
def test_every_statement_does_what_it_says_in_both_modes(tmp_path: Path) -> None:
    names = {mode: f"db.{mode}" for mode in MODES}
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        for mode, name in names.items():
            how = zip(VERBS, MODES[mode], strict=True)
            properties = {f"write.{verb}.mode": each for verb, each in how}
            # What icetree appends meanwhile is no conflict, but a reason to try again.
            properties |= {f"write.{verb}.isolation-level": "snapshot" for verb in VERBS}
            properties |= {"write.root.max-data-entries": "4", "commit.retry.num-retries": _TRIES}
            columns = "id long, n int, c string"
            table = lake.create_table(name, columns, partition_by=["c"], properties=properties)
            for start in range(0, 60, 20):
                rows = [row(id) for id in range(start, start + 20)]
                table.append(pa.Table.from_pylist(rows, schema=table.schema.as_arrow()))
            table.delete("id = 5")
            table.create_tag("start")
        busy = {"commit.retry.num-retries": _TRIES}
        lake.create_table("db.busy", "id long, n int, c string", properties=busy)
        made, past = (
            "db.made",
            lake.create_table("db.past", "id long", partition_by=["bucket(2, id)"]),
        )
        for id in range(4):
            past.append(pa.table({"id": [id]}))
        of_the_past = _of_the_past(past)
        asked = [each for name in names.values() for each in statements(name)]
        asked += [*BUSY, *EVOLVED, *of_the_past]
        then = [each for name in names.values() for each in _as_it_was(lake.table(name), name)]
        asked += then
        asked += [
            f"CREATE TABLE {made} (id bigint) USING iceberg",
            f"INSERT INTO {made} SELECT * FROM range(5)",
            f"CREATE OR REPLACE TABLE {made} USING iceberg AS SELECT * FROM range(3)",
            f"SELECT id FROM {made} ORDER BY id",
            *VIEWS,
        ]
        lake.create_view("db.ours", "SELECT id FROM made", "number long", namespace="db")
        everywhere = [*names.values(), "db.busy"]
        with running(tmp_path) as server, Meanwhile(lake, everywhere) as meanwhile:
            answers = dict(zip(asked, told(tmp_path, server.uri, asked), strict=True))
            log = server.log.read_text()
        assert all(f"/tables/{name.removeprefix('db.')}/plan" in log for name in names.values())
        assert [answers[each] for each in then] == [[[59]]] * len(then)
        wanted = [[e["id"], e["n"], e["c"], e.get("note")] for _, e in sorted(expected().items())]
        for name in names.values():
            *_, everything, aside, start = statements(name)
            assert answers[everything] == wanted
            assert answers[aside] == [[len(wanted) + 1]]
            assert answers[start] == [[59]]
            ours = lake.table(name)
            assert _rows(ours, f"id < {_OURS}") == wanted
            assert _ids(ours, f"id >= {_OURS}") == meanwhile.ids[name]
            assert ours.metadata.format_version == 4
            ours.delete("id = 1000")
            assert ours.verify(deep=True).findings == ()
        assert {each: answers[each] for each in of_the_past} == of_the_past
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
        assert answers[EVOLVED[-2]] == [[1, "x", "1.25"], [5_000_000_000, "y", "10000000.50"]]
        assert answers[EVOLVED[-1]] == [[1, "x", "gone", "1.25"]]
        assert _ids(lake.table("db.busy")) == {*range(15), *meanwhile.ids["db.busy"]}
        for name in (made, "db.evolved", "db.busy"):
            assert lake.table(name).verify(deep=True).findings == ()
        # What keeps clients off files and manifests is shown to them, and is no property of the table.
        shown = {"gc.enabled", "commit.manifest-merge.enabled"}
        for each in (made, *names.values()):
            assert not shown & lake.table(each).properties.keys()


def _as_it_was(table: Table, name: str) -> list[str]:
    """Return statements that count the rows of the snapshot that is current now, when others have come."""
    now = table.snapshot()
    assert now is not None
    at = datetime.fromtimestamp(now.timestamp_ms / 1000, tz=timezone.utc)
    return [
        f"SELECT count(*) FROM {name} VERSION AS OF {now.snapshot_id}",
        f"SELECT count(*) FROM {name} TIMESTAMP AS OF '{at:%Y-%m-%d %H:%M:%S.%f}'",
    ]


def _ids(table: Table, where: str | None = None) -> set[int]:
    return {*table.scan(where, columns=["id"]).to_arrow()["id"].to_pylist()}


def _rows(table: Table, where: str) -> list[list[Any]]:
    found = table.scan(where).to_arrow().sort_by("id").to_pylist()
    return [[each["id"], each["n"], each["c"], each["note"]] for each in found]
