"""What the driver does on a cluster: it is a process of its own, and keeps its session between tasks.

A process can have one Spark session, and that of the tests has another.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.spark import SparkLake, connect
from icetree.spark.java import java_home
from icetree.spark.leaves import SETTING
from icetree.spark.read.internals import internals
from icetree.spark.read.plan import plan
from icetree.spark.write import unweighed
from tests.spark.cluster.standalone import QUICK_JAVA
from tests.spark.test_row_laws import SparkPlayer

T = TypeVar("T")
_LOOPBACK = "127.0.0.1"
_PATIENCE_S = 120.0
#: More than the share of a row.
LARGE_SIZE = 40_000
#: As many files in leaves as a few commits give.
_LEAFY = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "4"}


class Driver:
    """A process that does one task after the other."""

    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))

    def start(self, task: Callable[..., T], *given: object) -> Future[T]:
        """Begin a task."""
        return self._pool.submit(_done, task, *given)

    def do(self, task: Callable[..., T], *given: object) -> T:
        """Return what a task returns."""
        return self.start(task, *given).result(300)

    def stop(self) -> None:
        """End the session and the process."""
        self.do(_stop)
        self._pool.shutdown()


def _done(task: Callable[..., T], *given: object) -> T:
    """Do a task; what Spark raises cannot leave the process, but its text can."""
    try:
        return task(*given)
    except Exception:
        raise RuntimeError(traceback.format_exc()) from None


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where everything is."""

    master: str
    catalog: str
    bucket: str
    properties: dict[str, str]
    jars: tuple[str, ...]
    folder: Path
    #: The Python of executors.
    python: Path
    #: Where Spark is.
    home: Path

    @property
    def warehouse(self) -> str:
        """Where tables are."""
        return f"s3://{self.bucket}/lake"


def settings(place: Place) -> dict[str, str]:
    """Return what a session of a cluster is set to."""
    reached = place.properties
    return {
        "spark.master": place.master,
        "spark.jars": ",".join(place.jars),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": QUICK_JAVA,
        "spark.executor.extraJavaOptions": QUICK_JAVA,
        "spark.executor.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "FATAL",
        "spark.sql.shuffle.partitions": "2",
        # What was on a worker that is lost is asked for once more, and not for long.
        "spark.shuffle.io.maxRetries": "1",
        "spark.shuffle.io.retryWait": "100ms",
        "spark.locality.wait": "0",
        "spark.hadoop.fs.s3a.endpoint": reached["s3.endpoint"],
        "spark.hadoop.fs.s3a.endpoint.region": reached["s3.region"],
        "spark.hadoop.fs.s3a.access.key": reached["s3.access-key-id"],
        "spark.hadoop.fs.s3a.secret.key": reached["s3.secret-access-key"],
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def environment(place: Place) -> dict[str, str]:
    """Return what the processes of a session find around them."""
    return {
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": _LOOPBACK,
        "SPARK_HOME": str(place.home),
        "PYSPARK_PYTHON": str(place.python),
    }


_OPEN: dict[str, Any] = {}


def begin(place: Place) -> None:
    """Open the lake, on a session that the cluster works for."""
    os.environ.update(environment(place))
    # Executors would look there, too.
    os.environ.pop("PYTHONPATH", None)
    spark = SparkSession.builder.config(map=settings(place)).getOrCreate()  # type: ignore[arg-type]
    lake = connect(
        place.catalog, warehouse=place.warehouse, properties=place.properties, spark=spark
    )
    lake.create_namespace("db")
    _OPEN.update(lake=lake, folder=place.folder)


def _lake() -> SparkLake:
    found: SparkLake = _OPEN["lake"]
    return found


def _stop() -> None:
    lake = _OPEN.pop("lake", None)
    if lake is not None:
        lake.close()
        lake.spark.stop()


def wait_for_executors(many: int) -> None:
    """Wait until so many executors are there."""
    tracker = _lake().spark.sparkContext._jsc.sc().statusTracker()  # type: ignore[attr-defined]
    give_up = time.monotonic() + _PATIENCE_S
    # One of those that are told is the driver itself.
    while len(tracker.getExecutorInfos()) - 1 != many:
        assert time.monotonic() < give_up, "the executors did not come"
        time.sleep(0.05)


# --- tasks -------------------------------------------------------------------------------------


def places(names: tuple[str, ...]) -> set[str | None]:
    """Return where executors have packages of these names, each told by the folder that it is in."""

    def find(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from importlib.util import find_spec
        from pathlib import Path

        import pyarrow as pa

        for _ in batches:
            found = [find_spec(name) for name in names]
            # A folder without code of its own is a package, too.
            inside = [each and each.submodule_search_locations for each in found]
            at = [each and str(Path(next(iter(each))).parent) for each in inside]
            yield pa.RecordBatch.from_pydict({"at": pa.array(at, pa.string())})

    return {row["at"] for row in _lake().spark.range(4).mapInArrow(find, "at string").collect()}


def create(name: str, rows: int) -> None:
    """Make a table of rows in four partitions, files of which are in leaves."""
    lake = _lake()
    columns = [("id", "long"), ("p", "long"), ("v", "string")]
    lake.create_table(name, columns, partition_by=["p"], properties=_LEAFY)
    lake.append(name, _rows(0, rows))


def _rows(start: int, stop: int, *, of: str = "first") -> DataFrame:
    """Return rows in four pieces, of which two workers do two at a time."""
    some = _lake().spark.range(start, stop, 1, 4)
    return some.selectExpr("id", "id % 4 AS p", f"'{of}' AS v")


def values(name: str) -> dict[int, str]:
    """Return the rows of a table; every id once."""
    found = _lake().read(name).toArrow()
    ids = found["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, found["v"].to_pylist(), strict=True))


def is_sound(name: str) -> bool:
    """Tell whether a table keeps all rules."""
    return bool(_lake().table(name).verify(deep=True).is_clean)


def statements(name: str) -> list[tuple[Any, ...]]:
    """Delete and merge, and return what is left, as a condition on the DataFrame finds it."""
    lake = _lake()
    assert internals(lake.spark) is not None, "files are planned when Spark asks"
    lake.sql(f"DELETE FROM {name} WHERE id % 10 = 0")
    lake.sql(f"""
        MERGE INTO {name} AS t
        USING (SELECT id + 90 AS id, 0 AS p, 'merged' AS v FROM range(20)) AS s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v
        WHEN NOT MATCHED THEN INSERT *
    """)
    found = lake.read(name).where("id >= 88 AND id < 93")
    return sorted((row.id, row.v) for row in found.collect())


def changed(name: str) -> dict[str, int]:
    """Return how many rows were changed in which way."""
    counted = _lake().changes(name).groupBy("_change_type").count().collect()
    return {row["_change_type"]: row["count"] for row in counted}


def plans(name: str, where: str) -> bool:
    """Tell whether executors plan a scan as the driver does, leaf by leaf."""
    lake = _lake()
    here = lake.table(name).scan(where).plan()
    there = plan(lake.spark, lake.table(name).scan(where), leaves_here=0)
    assert here.metrics.data_leaves_read > 1
    return bool(there.tasks.equals(here.tasks) and there.metrics == here.metrics)


def maintain(name: str) -> tuple[int, int]:
    """Do what keeps a table small, and return how many data files it had and has.

    Every row stays, under its id and as old as it was.
    """
    lake = _lake()
    before, files = lineage(name), lake.table(name).scan().plan().tasks.num_rows
    lake.sql(
        f"CALL system.rewrite_data_files(table => '{name}', options => map('rewrite-all', 'true'))"
    )
    lake.sql(f"CALL system.rewrite_position_delete_files('{name}')")
    lake.sql(f"CALL system.rewrite_manifests('{name}')")
    lake.sql(
        f"CALL system.expire_snapshots(table => '{name}', retain_last => 1, older_than => now())"
    )
    lake.sql(f"CALL system.remove_orphan_files('{name}')")
    assert lineage(name) == before
    return files, lake.table(name).scan().plan().tasks.num_rows


def lineage(name: str) -> list[tuple[Any, ...]]:
    """Return the rows of a table with their ids and ages."""
    columns = ["id", "v", "_row_id", "_last_updated_sequence_number"]
    return sorted(map(tuple, _lake().read(name, columns=columns).collect()))


def play(seed: int, operations: int) -> None:
    """Do anything to a table and to a list of rows: they are the same."""
    player = SparkPlayer(_lake(), f"db.t{seed}", random.Random(seed), seed)
    while player.operations < operations:
        player.step()
    player.compare()
    player.compare_filtered()
    player.compare_changes()
    assert is_sound(f"db.t{seed}")


# --- tasks in which a worker is lost -----------------------------------------------------------


def append(name: str, start: int, stop: int) -> None:
    """Append rows, half of which wait until they are told to go on."""
    _lake().append(name, _waiting(_rows(start, stop, of="new")))


def merge(name: str, start: int, stop: int) -> None:
    """Merge rows, half of which wait."""
    merging = _lake().merge(name, _waiting(_rows(start, stop, of="new")), ["id"])
    merging.when_matched_update_all().when_not_matched_insert_all().run()


def stream(name: str, start: int, stop: int) -> None:
    """Stream all rows of a table into another, half of which wait."""
    begin_to_stream(name, start, stop)
    go_on(name)


def begin_to_stream(name: str, start: int, stop: int) -> None:
    """Make the table of rows to be streamed."""
    lake = _lake()
    lake.create_table(f"{name}_source", lake.table(name).schema)
    lake.append(f"{name}_source", _rows(start, stop, of="new"))


def go_on(name: str) -> None:
    """Stream the rows that were not, half of which wait; end early where a file `stop` is."""
    lake, folder = _lake(), _OPEN["folder"]
    query = lake.write_stream(
        name,
        _waiting(lake.read_stream(f"{name}_source")),
        checkpoint=folder / f"checkpoint-{name}",
        trigger="available-now",
    )
    while not query.awaitTermination(0.1):
        if (folder / "stop").exists():
            query.stop()


def append_unweighed(name: str, start: int, stop: int) -> None:
    """Append rows that go to Python in batches that nobody weighs."""
    with _unweighed():
        _lake().append(name, _rows(start, stop, of="new"))


def merge_unweighed(name: str, start: int, stop: int) -> None:
    """Merge such rows."""
    with _unweighed():
        merging = _lake().merge(name, _rows(start, stop, of="new"), ["id"])
        merging.when_matched_update_all().when_not_matched_insert_all().run()


def append_large(name: str, start: int, stop: int) -> None:
    """Append rows of which the last are large: what tasks wrote of the others is done again."""
    lake = _lake()
    size = f"IF(id < {stop - 5}, 0, {LARGE_SIZE})"
    rows = _rows(start, stop).withColumn("v", f.expr(f"concat('new', repeat(' ', {size}))"))
    with _unweighed():
        # As they come: large rows are in one of four tasks, and the others write.
        lake.write(name, rows).option("use-table-distribution-and-ordering", "false").append()
    assert lake.table(name).metadata.table_uuid in unweighed._LARGEST


@contextmanager
def _unweighed() -> Iterator[None]:
    """Require that something is done within of which batches are not weighed."""
    was, seen = unweighed.not_weighed, list[int]()

    def noting(spark: SparkSession, rows: int) -> AbstractContextManager[None]:
        seen.append(rows)
        return was(spark, rows)

    unweighed.not_weighed = noting
    try:
        yield
    finally:
        unweighed.not_weighed = was
    assert seen == [2_000]


def remove_orphans(name: str) -> int:
    """Remove what nothing needs; return how many files that were. None of them is left."""
    soon = datetime.now(timezone.utc) + timedelta(hours=1)
    found, left = (
        _lake().remove_orphan_files(name, older_than=soon, force=True).orphan_file_location
        for _ in range(2)
    )
    assert not left, left
    return len(found)


def leave_something_to_do(name: str, rows: int) -> None:
    """Delete, append and merge, so that there are small files, deletes and leaves of several."""
    lake = _lake()
    lake.sql(f"DELETE FROM {name} WHERE id % 10 = 0")
    for start in range(rows, rows + 40, 10):
        lake.append(name, _rows(start, start + 10))


def compact(name: str) -> int:
    """Rewrite all data files; return how many."""
    return (
        _lake().rewrite_data_files(name, options={"rewrite-all": "true"}).rewritten_data_files_count
    )


def rewrite_manifests(name: str) -> int:
    """Rewrite leaves on executors; return how many."""
    with _on_executors():
        return _lake().rewrite_manifests(name, by=["p"]).rewritten_manifests_count


def find_orphans(name: str) -> int:
    """Look for orphans on executors; return how many files there are that something needs."""
    lake = _lake()
    with _on_executors():
        soon = datetime.now(timezone.utc) + timedelta(hours=1)
        found = lake.remove_orphan_files(name, older_than=soon, force=True, dry_run=True)
    assert not found.orphan_file_location, found
    return lake.table(name).scan().plan().tasks.num_rows


@contextmanager
def _on_executors() -> Iterator[None]:
    """Have executors work on leaves, however few files there are."""
    conf = _lake().spark.conf
    conf.set(SETTING, "0")
    try:
        yield
    finally:
        conf.unset(SETTING)


def _waiting(rows: DataFrame) -> DataFrame:
    """Return the same rows; those from 125 on wait for a file `go`."""
    folder = str(_OPEN["folder"])

    # Executors know nothing of this file, so what they run is within the function.
    def wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import time
        from pathlib import Path

        at, give_up = Path(folder), time.monotonic() + 60
        for batch in batches:
            yield batch
            late = batch.num_rows and max(batch.column("id").to_pylist()) >= 125
            while late and not (at / "go").exists() and time.monotonic() < give_up:
                # Where an executor works tells whose it is.
                (at / "waiting").write_text(str(Path.cwd()))
                time.sleep(0.05)

    return rows.mapInArrow(wait, rows.schema)
