"""A process that streams files into a table and is killed at a given step of a given commit.

Started as `python -m tests.spark.stream_dying <folder> <step> <number>` in a process group of its own,
all of which is killed: Spark's Java too, so that nothing is left to tidy up.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from icetree.catalog.base import Catalog
from icetree.spark.lake import SparkLake
from icetree.spark.session import local_session
from icetree.spark.stream.write import write_stream
from icetree.table.lake import Lake, open_lake
from tests.spark.settings import QUICK

#: Before a batch is written, once its files are and its commit is not, once that is as well.
STEPS = ("load", "before swap", "after swap")


def die() -> None:
    """Kill all of this process group."""
    os.killpg(os.getpgrp(), signal.SIGKILL)


@dataclass(frozen=True, kw_only=True)
class End:
    """What ends a stream: the nth time that a commit comes to a step."""

    step: str
    number: int
    by: Callable[[], object] = die


class DyingCatalog:
    """A catalog under which a stream comes to its end."""

    def __init__(self, catalog: Catalog, end: End) -> None:
        self._catalog, self._end, self._left = catalog, end, end.number

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def load(self, name: Any) -> str:
        self._reach("load")
        return self._catalog.load(name)

    def swap(self, name: Any, *, expected: str, to: str) -> Any:
        self._reach("before swap")
        outcome = self._catalog.swap(name, expected=expected, to=to)
        self._reach("after swap")
        return outcome

    def _reach(self, step: str) -> None:
        if step == self._end.step:
            self._left -= 1
            if self._left == 0:
                self._end.by()


def stream(spark: SparkSession, folder: Path, end: End | None = None) -> None:
    """Stream all files that wait in a folder into its table, or come to an end before."""
    at = open_lake(f"sqlite:///{folder}/lake/catalog.db", {"warehouse": f"{folder}/lake/warehouse"})
    catalog: Any = at.catalog if end is None else DyingCatalog(at.catalog, end)
    lake = SparkLake(spark, Lake(catalog=catalog, store=at.store, warehouse=at.warehouse))
    reader = spark.readStream.schema("id long, v string").option("maxFilesPerTrigger", 1)
    query = write_stream(
        lake,
        "db.t",
        reader.json(str(folder / "in")),
        checkpoint=folder / "checkpoint",
        trigger="available-now",
    )
    query.awaitTermination()


if __name__ == "__main__":
    session = local_session("icetree dying", shuffle_partitions=1, extra_conf=QUICK)
    stream(session, Path(sys.argv[1]), End(step=sys.argv[2], number=int(sys.argv[3])))
