"""What a driver does while a worker is lost: tasks that wait to be told to go on, or are held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta, timezone

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from icetree.spark.leaves import SETTING
from icetree.spark.write import unweighed
from tests.spark.cluster.driver import the_folder, the_lake
from tests.spark.cluster.tasks import rows_between

#: More than the share of a row.
LARGE_SIZE = 40_000


def append(name: str, start: int, stop: int) -> None:
    """Append rows, half of which wait until they are told to go on."""
    the_lake().append(name, _waiting(rows_between(start, stop, of="new")))


def merge(name: str, start: int, stop: int) -> None:
    """Merge rows, half of which wait."""
    merging = the_lake().merge(name, _waiting(rows_between(start, stop, of="new")), ["id"])
    merging.when_matched_update_all().when_not_matched_insert_all().run()


def stream(name: str, start: int, stop: int) -> None:
    """Stream all rows of a table into another, half of which wait."""
    begin_to_stream(name, start, stop)
    go_on(name)


def begin_to_stream(name: str, start: int, stop: int) -> None:
    """Make the table of rows to be streamed."""
    lake = the_lake()
    lake.create_table(f"{name}_source", lake.table(name).schema)
    lake.append(f"{name}_source", rows_between(start, stop, of="new"))


def go_on(name: str) -> None:
    """Stream the rows that were not, half of which wait; end early where a file `stop` is."""
    lake, folder = the_lake(), the_folder()
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
        the_lake().append(name, rows_between(start, stop, of="new"))


def merge_unweighed(name: str, start: int, stop: int) -> None:
    """Merge such rows."""
    with _unweighed():
        merging = the_lake().merge(name, rows_between(start, stop, of="new"), ["id"])
        merging.when_matched_update_all().when_not_matched_insert_all().run()


def append_large(name: str, start: int, stop: int) -> None:
    """Append rows of which the last are large: what tasks wrote of the others is done again."""
    lake = the_lake()
    size = f"IF(id < {stop - 5}, 0, {LARGE_SIZE})"
    rows = rows_between(start, stop).withColumn("v", f.expr(f"concat('new', repeat(' ', {size}))"))
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
        the_lake().remove_orphan_files(name, older_than=soon, force=True).orphan_file_location
        for _ in range(2)
    )
    assert not left, left
    return len(found)


def leave_something_to_do(name: str, rows: int) -> None:
    """Delete, append and merge, so that there are small files, deletes and leaves of several."""
    lake = the_lake()
    lake.sql(f"DELETE FROM {name} WHERE id % 10 = 0")
    for start in range(rows, rows + 40, 10):
        lake.append(name, rows_between(start, start + 10))


def compact(name: str) -> int:
    """Rewrite all data files; return how many."""
    return (
        the_lake()
        .rewrite_data_files(name, options={"rewrite-all": "true"})
        .rewritten_data_files_count
    )


def rewrite_manifests(name: str) -> int:
    """Rewrite leaves on executors; return how many."""
    with _on_executors():
        return the_lake().rewrite_manifests(name, by=["p"]).rewritten_manifests_count


def find_orphans(name: str) -> int:
    """Look for orphans on executors; return how many files there are that something needs."""
    lake = the_lake()
    with _on_executors():
        soon = datetime.now(timezone.utc) + timedelta(hours=1)
        found = lake.remove_orphan_files(name, older_than=soon, force=True, dry_run=True)
    assert not found.orphan_file_location, found
    return lake.table(name).scan().plan().tasks.num_rows


@contextmanager
def _on_executors() -> Iterator[None]:
    """Have executors work on leaves, however few files there are."""
    conf = the_lake().spark.conf
    conf.set(SETTING, "0")
    try:
        yield
    finally:
        conf.unset(SETTING)


def _waiting(rows: DataFrame) -> DataFrame:
    """Return the same rows; those from 125 on wait for a file `go`."""
    folder = str(the_folder())

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
