"""A program: maintenance by one system, told line by line what to do.

Arguments: the system, its folder, its jars with commas between. A line on the input is a JSON list, a
verb and its arguments; the answer is a line too: what it took, the peak of memory and what was found.
"""

from __future__ import annotations

import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from benchmarks.spark_systems import IcebergJava
from benchmarks.spark_worker import busy_ms, session, spent_ms
from icetree.spec.entry.entry import Entry
from icetree.spec.entry.stats import FieldStats
from icetree.table.table import Table

#: Rows that are small enough for a file to cost more than what is in it.
SCHEMA: Final = pa.schema(
    [("id", pa.int64()), ("x", pa.int64()), ("y", pa.int64()), ("s", pa.string())]
)
#: So many files come with a commit, where there are to be many.
_LOT: Final = 10_000
_DDL: Final = "id BIGINT, x BIGINT, y BIGINT, s STRING"


class Side(ABC):
    """One of the two; every verb does the same work on both."""

    @abstractmethod
    def __init__(self, folder: Path, jars: str) -> None: ...

    @abstractmethod
    def history(self, name: str, snapshots: int) -> int:
        """Make a table of so many snapshots, each of which replaces the only file."""

    @abstractmethod
    def expire(self, name: str) -> int:
        """Expire all snapshots but the newest, with their data files; return how many are left.

        Ours keeps one file more: what the newest removed is needed to tell what it changed.
        """

    @abstractmethod
    def crowd(self, name: str, files: int) -> int:
        """Make a table of one file, with so many old files in its folder that nothing names."""

    @abstractmethod
    def orphans(self, name: str) -> int:
        """Look for orphans; return how many there are."""

    @abstractmethod
    def many_manifests(self, name: str, manifests: int, files: int) -> int:
        """Make a table of so many manifests with so many files each, all mixed."""

    @abstractmethod
    def rewrite_manifests(self, name: str) -> int:
        """Rewrite the manifests; return how many there are then."""

    @abstractmethod
    def small_files(self, name: str, source: str) -> int:
        """Make a table of the files of a folder, as they are."""

    @abstractmethod
    def binpack(self, name: str) -> int:
        """Compact the files; return how many there were."""

    @abstractmethod
    def zorder(self, name: str) -> int:
        """Rewrite all files in z-order of x and y; return how many there were."""

    @abstractmethod
    def rows(self, name: str) -> list[int]:
        """Return figures that are the same where the rows are."""

    @abstractmethod
    def peak_mb(self) -> float:
        """Return the peak of resident memory of the process that does the work."""


class Icetree(Side):
    """Ours, in one process."""

    def __init__(self, folder: Path, jars: str) -> None:  # noqa: ARG002  # the others need jars
        folder.mkdir(exist_ok=True)
        self.lake = icetree.connect(f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        self.lake.create_namespace("db", exist_ok=True)

    def history(self, name: str, snapshots: int) -> int:
        table = self._made(name)
        files = [_plain_file(table.location, number) for number in range(snapshots)]
        table.append_files([_entry(files[0])])
        for before, after in pairwise(files):
            table.overwrite_files([before], [_entry(after)])
        return sum(1 for _ in table.history())

    def expire(self, name: str) -> int:
        table = self._table(name)
        done = table.maintenance.expire_snapshots(older_than=_later(), retain_last=1)
        assert done.deleted_data_files_count == len(done.snapshot_ids) - 1
        return sum(1 for _ in table.history())

    def wide_history(self, name: str, snapshots: int, files: int) -> int:
        """Make a table of so many files, and so many snapshots that add one each."""
        table = self._made(name)
        for start in range(0, files, _LOT):
            lot = range(start, min(start + _LOT, files))
            table.append_files([_entry(f"data/{each}.parquet", each) for each in lot])
        for number in range(snapshots):
            table.append_files([_entry(f"data/more-{number}.parquet", number)])
        return sum(1 for _ in table.history())

    def expire_wide(self, name: str) -> int:
        """Expire all snapshots of such a table but the newest, which needs every file."""
        table = self._table(name)
        done = table.maintenance.expire_snapshots(older_than=_later(), retain_last=1)
        assert done.deleted_data_files_count == 0
        return sum(1 for _ in table.history())

    def crowd(self, name: str, files: int) -> int:
        table = self._made(name)
        table.append_files([_entry(_plain_file(table.location, 0))])
        return _crowd(Path(table.location) / "data", files)

    def orphans(self, name: str) -> int:
        found = self._table(name).maintenance.remove_orphan_files(dry_run=True)
        return len(found.orphan_file_location)

    def many_manifests(self, name: str, manifests: int, files: int) -> int:
        # As many leaves as the other has manifests.
        properties = {
            "write.root.max-data-entries": "1",
            "write.flush.affinity-max-leaves": "0",
            "write.commit.compact-max-entries": "0",
        }
        table = self._made(name, properties=properties)
        for number in range(manifests):
            some = range(number, manifests * files, manifests)
            table.append_files([_entry(f"data/{each}.parquet", each) for each in some])
        table.set_properties({"write.root.max-data-entries": "1000"})
        return manifests * files

    def rewrite_manifests(self, name: str) -> int:
        self._table(name).maintenance.rewrite_manifests(by="id")
        return int(self._table(name).inspect.manifests().num_rows)

    def small_files(self, name: str, source: str) -> int:
        self._made(name).add_files([f"{source}/"])
        return int(self._table(name).scan().plan().tasks.num_rows)

    def binpack(self, name: str) -> int:
        done = self._table(name).maintenance.rewrite_data_files(strategy="binpack")
        return done.rewritten_data_files_count

    def zorder(self, name: str) -> int:
        done = self._table(name).maintenance.rewrite_data_files(
            order_by="zorder(x, y)", options={"rewrite-all": True}
        )
        return done.rewritten_data_files_count

    def rows(self, name: str) -> list[int]:
        found = self._table(name).scan(columns=["id", "x", "y"]).to_arrow()
        return [found.num_rows, *(pc.sum(column).as_py() for column in found.columns)]

    def peak_mb(self) -> float:
        return _peak_mb(os.getpid())

    def _made(self, name: str, **how: Any) -> Table:
        return self.lake.create_table(f"db.{name}", SCHEMA, **how)

    def _table(self, name: str) -> Table:
        return self.lake.table(f"db.{name}")


class Java(Side):
    """Iceberg Java's procedures on Spark."""

    def __init__(self, folder: Path, jars: str) -> None:
        own = {key: text.format(folder=folder) for key, text in IcebergJava.settings.items()}
        self.folder = folder
        self.spark = session("maintenance", memory="3g", jars=jars, **own)
        self.spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
        self._jvm: Any = self.spark._jvm  # noqa: SLF001  # Spark's only door

    def history(self, name: str, snapshots: int) -> int:
        table, location = self._made(name)
        files = [self._file(table, _plain_file(location, at)) for at in range(snapshots)]
        table.newFastAppend().appendFile(files[0]).commit()
        for before, after in pairwise(files):
            table.newOverwrite().deleteFile(before).addFile(after).commit()
        return self._one(f"SELECT count(*) FROM lake.db.{name}.snapshots")

    def expire(self, name: str) -> int:
        when = _later().strftime("%Y-%m-%d %H:%M:%S")
        self._call(
            f"expire_snapshots(table => 'db.{name}', older_than => TIMESTAMP '{when}', "
            "retain_last => 1)",
            "deleted_data_files_count",
        )
        return self._one(f"SELECT count(*) FROM lake.db.{name}.snapshots")

    def crowd(self, name: str, files: int) -> int:
        table, location = self._made(name)
        table.newFastAppend().appendFile(self._file(table, _plain_file(location, 0))).commit()
        return _crowd(Path(location) / "data", files)

    def orphans(self, name: str) -> int:
        call = f"CALL lake.system.remove_orphan_files(table => 'db.{name}', dry_run => true)"
        return len(self.spark.sql(call).collect())

    def many_manifests(self, name: str, manifests: int, files: int) -> int:
        table, location = self._made(name)
        table.updateProperties().set("commit.manifest-merge.enabled", "false").commit()
        for number in range(manifests):
            append = table.newFastAppend()
            for each in range(number, manifests * files, manifests):
                append.appendFile(self._file(table, f"{location}/data/{each}.parquet"))
            append.commit()
        return manifests * files

    def rewrite_manifests(self, name: str) -> int:
        self.spark.sql(f"CALL lake.system.rewrite_manifests('db.{name}')").collect()
        return self._one(f"SELECT count(*) FROM lake.db.{name}.manifests")

    def small_files(self, name: str, source: str) -> int:
        self._made(name)
        source = f"'`parquet`.`{source}`'"
        self.spark.sql(
            f"CALL lake.system.add_files(table => 'db.{name}', source_table => {source})"
        )
        return self._one(f"SELECT count(*) FROM lake.db.{name}.files")

    def binpack(self, name: str) -> int:
        return self._call(f"rewrite_data_files(table => 'db.{name}')", "rewritten_data_files_count")

    def zorder(self, name: str) -> int:
        return self._call(
            f"rewrite_data_files(table => 'db.{name}', strategy => 'sort', "
            "sort_order => 'zorder(x, y)', options => map('rewrite-all', 'true'))",
            "rewritten_data_files_count",
        )

    def rows(self, name: str) -> list[int]:
        sums = f"SELECT count(*), sum(id), sum(x), sum(y) FROM lake.db.{name}"
        return list(self.spark.sql(sums).collect()[0])

    def peak_mb(self) -> float:
        return _peak_mb(int(self._jvm.java.lang.ProcessHandle.current().pid()))

    def _made(self, name: str) -> tuple[Any, str]:
        self.spark.sql(
            f"CREATE TABLE lake.db.{name} ({_DDL}) USING iceberg "
            "TBLPROPERTIES ('format-version' = '3')"
        )
        session = self.spark._jsparkSession  # noqa: SLF001  # Spark's only door
        loader = self._jvm.org.apache.iceberg.spark.Spark3Util
        table = loader.loadIcebergTable(session, f"lake.db.{name}")
        return table, f"{self.folder}/db/{name}"

    def _file(self, table: Any, location: str) -> Any:
        builder = self._jvm.org.apache.iceberg.DataFiles.builder(table.spec())
        return (
            builder.withPath(location).withFormat("parquet").withRecordCount(10)
            .withFileSizeInBytes(1_000).build()
        )  # fmt: skip

    def _one(self, query: str) -> int:
        return int(self.spark.sql(query).collect()[0][0])

    def _call(self, procedure: str, column: str) -> int:
        return int(self.spark.sql(f"CALL lake.system.{procedure}").collect()[0][column])


class PyIceberg:
    """PyIceberg, in one process: it has one of the verbs, which leaves files where they are."""

    def __init__(self, folder: Path, jars: str) -> None:  # noqa: ARG002  # the others need jars
        folder.mkdir(exist_ok=True)
        where = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": f"file://{folder}"}
        self.catalog = SqlCatalog("default", **where)
        self.catalog.create_namespace_if_not_exists("db")

    def history(self, name: str, snapshots: int) -> int:
        """Make a table of so many snapshots, each of which adds a row."""
        table = self.catalog.create_table(f"db.{name}", SCHEMA)
        row = pa.Table.from_pylist([{"id": 1, "x": 1, "y": 1, "s": "row"}], SCHEMA)
        for _ in range(snapshots):
            table.append(row)
        return len(table.metadata.snapshots)

    def expire(self, name: str) -> int:
        """Expire all snapshots but the newest; return how many are left."""
        table = self.catalog.load_table(f"db.{name}")
        table.maintenance.expire_snapshots().older_than(_later()).commit()
        return len(self.catalog.load_table(f"db.{name}").metadata.snapshots)

    def peak_mb(self) -> float:
        """Return the peak of resident memory."""
        return _peak_mb(os.getpid())


SIDES: Final[Mapping[str, type[Side]]] = {"icetree": Icetree, "Iceberg Java": Java}
#: Those who have a part of the verbs.
IN_PART: Final[Mapping[str, type[PyIceberg]]] = {"PyIceberg": PyIceberg}


def _later() -> datetime:
    return datetime.now(timezone.utc) + timedelta(hours=1)


def _plain_file(location: str, number: int) -> str:
    """Write a file that nobody looks into; return its name."""
    file = Path(location) / "data" / f"{number:06d}.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * 1_000)
    return str(file)


def _entry(location: str, number: int = 0) -> Entry:
    bounds = FieldStats(lower=number, upper=number + 9, tight=True, values=10, nulls=0)
    return Entry(location=location, record_count=10, file_size_in_bytes=1_000, stats={1: bounds})


def _crowd(folder: Path, files: int) -> int:
    """Leave files behind, as jobs that were killed would, ten days ago."""
    folder.mkdir(parents=True, exist_ok=True)
    then = time.time() - 10 * 86_400
    for number in range(files):
        file = folder / f"lost-{number:06d}.parquet"
        file.touch()
        os.utime(file, (then, then))
    return files


def write_small_files(folder: Path, files: int, rows: int) -> None:
    """Write the files of a table that took a commit for each: what x and y are is mixed."""
    folder.mkdir()
    for number in range(files):
        ids = range(number * rows, (number + 1) * rows)
        columns = [
            [*ids],
            [each * 7_919 % 100_003 for each in ids],
            [each * 104_729 % 100_019 for each in ids],
            [f"row {each}" for each in ids],
        ]
        pq.write_table(pa.table(columns, schema=SCHEMA), folder / f"{number:05d}.parquet")


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    [line] = [line for line in status if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def main(name: str, folder: str, jars: str) -> None:
    """Answer until the input ends."""
    # Java and its loggers write where they like: answers have a channel to themselves.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    kind = SIDES[name] if name in SIDES else IN_PART[name]
    side: Side | PyIceberg = kind(Path(folder), jars)
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        wall, cpu = time.perf_counter(), busy_ms()
        found = getattr(side, verb)(*arguments)
        took = {"wall_ms": (time.perf_counter() - wall) * 1000, "cpu_ms": spent_ms(cpu)}
        answers.write(json.dumps({**took, "peak_mb": side.peak_mb(), "found": found}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
