"""Maintenance beside writers in processes of their own: no row is lost, and the table stays sound."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa

import icetree
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitConflict
from icetree.surroundings import Machine, within
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.table.changing import ARROW, LEAFY, some
from tests.table.writers import run_all

COMMITS = 5 * EFFORT
#: Rows of each writer, and its commits beside all the verbs.
ROWS, EACH = 20, 4 * EFFORT
#: A commit under way is younger than this; what is planted is older.
GUARD_S = 600
DAYS_MS = 3 * 86_400_000


class Ahead(Machine):
    """Surroundings in which the guard of three days is one of minutes, by the clock alone."""

    def now_ms(self) -> int:
        return super().now_ms() + DAYS_MS - GUARD_S * 1_000


def plant(table_folder: Path, number: int) -> Path:
    """Put a file below the table that nothing names, and that is older than the guard."""
    found = table_folder / "data" / f"stray-{number}.parquet"
    found.parent.mkdir(exist_ok=True)
    found.write_bytes(b"nobody's")
    then = time.time() - 2 * GUARD_S
    os.utime(found, (then, then))
    return found


def test_orphans_and_old_snapshots_go_beside_two_writers_and_no_row_does(tmp_path: Path) -> None:
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        small = {"write.root.max-data-entries": "3", "write.metadata.inline-snapshots": "3"}
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]), properties=small)
        place = Path(table.location)
        writers = [
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.table.maintain.appending",
                    str(tmp_path),
                    first,
                    str(COMMITS),
                ],
                cwd=Path(__file__).parents[3],
                stdout=subprocess.PIPE,
                text=True,
            )
            for first in ("0", "1000000")
        ]
        removed: set[str] = set()
        planted: set[str] = set()
        for number in count():
            planted.add(str(plant(place, number)))
            with within(Ahead()):
                removed |= {*table.maintenance.remove_orphan_files().orphan_file_location}
            if number % 3 == 2:
                table.maintenance.expire_snapshots(older_than="2100-01-01", retain_last=4)
            if all(each.poll() is not None for each in writers):
                break
        left = [json.loads(each.communicate()[0]) for each in writers]
        assert [each.returncode for each in writers] == [0, 0]
        assert removed == planted
        found = table.refresh().scan().to_arrow()["id"].to_pylist()
        assert sorted(found) == sorted(id for ids in left for id in ids)
        assert len(found) == 2 * COMMITS
        assert table.verify(deep=True).findings == ()


def write(uri: str, warehouse: str, writer: int, journal: str) -> None:
    """Append, delete and merge rows that are one's own, and write down what they are then."""
    draw, mine, conflicts = random.Random(writer), dict[int, str](), 0
    with icetree.connect(uri, warehouse=warehouse) as lake:
        table = lake.table("db.t")
        first = writer * ROWS
        table.append(some(*((id, "a") for id in range(first, first + ROWS // 2))))
        mine.update(dict.fromkeys(range(first, first + ROWS // 2), "a"))
        for number in range(EACH):
            ids = draw.sample(range(first, first + ROWS), 4)
            word = f"{writer}-{number}"
            try:
                table.refresh()
                if number % 2:
                    among = f"id in ({', '.join(map(str, ids))})"
                    table.delete(among, isolation="snapshot")
                else:
                    source = some(*((id, word) for id in ids))
                    merge = table.merge(source, on=["id"], isolation="snapshot")
                    merge.when_matched_update({"v": "source.v"}).when_not_matched_insert(
                        {"id": "source.id", "v": "source.v"}
                    ).run()
            except CommitConflict:
                conflicts += 1
                continue
            for id in ids:
                mine.pop(id, None)
                if not number % 2:
                    mine[id] = word
    Path(journal).write_text(json.dumps({"rows": mine, "conflicts": conflicts}))


#: Every verb that may go on while others write, given a lake, a table and a folder for backups.
VERBS: Final[tuple[Callable[[Lake, Table, str], object], ...]] = (
    lambda _, table, __: table.maintenance.rewrite_position_delete_files(),
    lambda _, table, __: table.maintenance.rewrite_manifests(by="id"),
    lambda lake, table, place: lake.backup_table(str(table.name), place),
    lambda _, table, __: table.maintenance.optimize(),
    lambda _, table, __: table.maintenance.compute_table_stats(),
    lambda _, table, __: table.maintenance.compute_partition_stats(),
    lambda lake, table, place: lake.backup_table(str(table.name), place),
    lambda _, table, __: table.maintenance.expire_snapshots(
        older_than="2100-01-01", retain_last=30, clean_expired_metadata=True
    ),
)


def _patiently(verb: Callable[[], object]) -> object:
    """Run a verb, again where others were in its way at each of its looks."""
    for _ in range(20):
        with suppress(CommitConflict):
            return verb()
    raise AssertionError("others were always faster")


def maintain(uri: str, warehouse: str, number: int, journal: str) -> None:
    """Run all verbs, each as often as the writers commit by half."""
    backups = []
    with icetree.connect(uri, warehouse=warehouse) as lake:
        for at in range(len(VERBS) * max(1, EACH // 4)):
            done = _patiently(
                partial(
                    VERBS[at % len(VERBS)], lake, lake.table("db.t"), f"{journal}-{number}-{at}"
                )
            )
            if isinstance(done, str):
                backups.append(done)
    Path(journal).write_text(json.dumps({"backups": backups}))


def _work(kind: str, uri: str, warehouse: str, number: int, journal: str) -> None:
    (maintain if kind == "maintain" else write)(uri, warehouse, number, journal)


def test_all_verbs_go_on_beside_two_writers_and_no_row_is_lost(tmp_path: Path) -> None:
    uri, warehouse = f"sqlite:///{tmp_path}/c.db", str(tmp_path / "lake")
    with icetree.connect(uri, warehouse=warehouse) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ARROW, partition_by="bucket(2, id)", properties=LEAFY)
        table.append(some((-1, "nobody's")))
        journals = [str(tmp_path / f"{number}.json") for number in range(3)]
        kinds = ("write", "write", "maintain")
        run_all(
            _work,
            [
                (kind, uri, warehouse, number, journal)
                for number, (kind, journal) in enumerate(zip(kinds, journals, strict=True))
            ],
        )
        *writers, verbs = [json.loads(Path(each).read_text()) for each in journals]
        expected = {int(id): v for each in writers for id, v in each["rows"].items()}
        found = table.refresh().scan().to_arrow().to_pylist()
        assert {row["id"]: row["v"] for row in found} == {**expected, -1: "nobody's"}
        assert len(found) == len(expected) + 1, "no row is there twice"
        assert table.verify(deep=True).findings == ()
        # Each backup is the table as it was at one moment: a snapshot that it still has, or had.
        other = Lake(catalog=MemoryCatalog("b"), store=lake.store, warehouse=warehouse)
        other.create_namespace("db")
        for number, at in enumerate(verbs["backups"]):
            copied = other.register_table(f"db.b{number}", at)
            assert copied.verify(deep=True).findings == ()
            now = copied.current_snapshot
            assert now is not None
            if now.snapshot_id in {each.snapshot_id for each in table.history()}:
                then = table.scan(at=now.snapshot_id).to_arrow().sort_by("id")
                assert copied.scan().to_arrow().sort_by("id") == then
