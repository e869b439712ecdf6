"""Two processes that delete, update and merge while a third compacts: each row ends as it should."""

from __future__ import annotations

import json
import random
from pathlib import Path

import icetree
from icetree.errors import CommitConflict
from tests.effort import EFFORT
from tests.table.changing import ARROW, some
from tests.table.writers import run_all

ROWS, EACH = 40, 8 * EFFORT


def write(uri: str, warehouse: str, writer: int, journal: str) -> None:
    """Change rows that are one's own, and write down what they are then."""
    draw = random.Random(writer)
    mine = dict.fromkeys(range(writer * ROWS, (writer + 1) * ROWS), "a")
    conflicts = []
    with icetree.connect(uri, warehouse=warehouse) as lake:
        table = lake.table("db.t")
        for number in range(EACH):
            ids = draw.sample(sorted(mine), min(len(mine), 3))
            word = f"{writer}-{number}"
            among = f"id in ({', '.join(map(str, ids))})"
            verb = draw.choice(["delete", "update", "merge"])
            # Other writers' rows are none of this one's business: only they may not be lost.
            try:
                table.refresh()
                if verb == "delete":
                    table.delete(among, isolation="snapshot")
                elif verb == "update":
                    table.update({"v": f"'{word}'"}, where=among, isolation="snapshot")
                else:
                    table.upsert(some(*((id, word) for id in ids)), on=["id"], isolation="snapshot")
            except CommitConflict as error:
                conflicts.append(str(error))
                continue
            for id in ids:
                if verb == "delete":
                    mine.pop(id)
                else:
                    mine[id] = word
    Path(journal).write_text(json.dumps({"rows": mine, "conflicts": conflicts}))


def compact(uri: str, warehouse: str, _: int, journal: str) -> None:
    """Compact everything, again and again."""
    draw, done = random.Random(7), 0
    with icetree.connect(uri, warehouse=warehouse) as lake:
        table = lake.table("db.t")
        for _ in range(EACH):
            order = draw.choice([None, "id desc", "zorder(id, v)"])
            options = {"rewrite-all": True, "target-file-size-bytes": draw.choice([1_000, 10**9])}
            made = table.maintenance.rewrite_data_files(order_by=order, options=options)
            done += len(made.snapshot_ids)
    Path(journal).write_text(json.dumps({"compactions": done}))


def _work(kind: str, uri: str, warehouse: str, number: int, journal: str) -> None:
    (compact if kind == "compact" else write)(uri, warehouse, number, journal)


def test_writers_and_a_compaction_do_not_stop_each_other(tmp_path: Path) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/catalog.db", str(tmp_path / "lake")
    with icetree.connect(uri, warehouse=warehouse) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ARROW)
        # Files of one writer's rows each, so that two writers never mark the same file by themselves.
        for writer in (0, 1):
            for start in range(writer * ROWS, (writer + 1) * ROWS, 10):
                table.append(some(*((id, "a") for id in range(start, start + 10))))
        before = {r["id"]: r["_row_id"] for r in _rows(table)}
        kinds = ("write", "write", "compact")
        run_all(
            _work,
            [
                (kind, uri, warehouse, number, str(tmp_path / f"{number}.json"))
                for number, kind in enumerate(kinds)
            ],
        )
        told = [json.loads((tmp_path / f"{number}.json").read_text()) for number in range(3)]
        assert told[2]["compactions"] == EACH, "no compaction was given up"
        expected = {int(id): v for each in told[:2] for id, v in each["rows"].items()}
        table.refresh()
        found = {r["id"]: r["v"] for r in _rows(table)}
        assert found == expected
        assert len(found) == table.scan().count(), "no row is there twice"
        assert all(before[r["id"]] == r["_row_id"] for r in _rows(table))
        # Who marks a file that another marked meanwhile conflicts as ever; a compaction never does.
        for conflict in (sentence for each in told[:2] for sentence in each["conflicts"]):
            assert "removed" not in conflict, conflict
        assert table.verify(deep=True, snapshots="current").is_clean


def _rows(table: icetree.Table) -> list[dict[str, object]]:
    columns = ["id", "v", "_row_id"]
    found: list[dict[str, object]] = table.scan(columns=columns).to_arrow().to_pylist()
    return found
