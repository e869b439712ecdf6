"""Rewriting manifests at scale: leaves are read and made by tasks of Spark's, and committed as ever.

What the driver holds is what the order is by, a few numbers an entry, and the entries of new leaves.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import TaskContext

from icetree.errors import IcetreeError
from icetree.files.parallel import in_order
from icetree.spark.complaints import one_line
from icetree.spark.leaves import files_in, min_files, sent, spread, unspread
from icetree.spark.progress import telling
from icetree.spark.ship import shipped, unshipped
from icetree.spec.entry.entry import Entries
from icetree.table.maintain import manifests
from icetree.table.maintain.manifests import Adopt, Here, RewrittenManifests, Workers
from icetree.table.progress import Progress
from icetree.tree.leaves.arrange import Arrangement, Held, HeldCall, Run
from icetree.tree.leaves.rewritten import AT_ONCE
from icetree.tree.live import live_in_leaf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icetree.spark.maintain.maintain import LakeMaintenance

_READ: Final = "number int, entries binary"
_READ_SCHEMA: Final = pa.schema([("number", pa.int32()), ("entries", pa.binary())])
_MADE: Final = "number int, entries array<binary>, error binary"
_MADE_SCHEMA: Final = pa.schema(
    [("number", pa.int32()), ("entries", pa.list_(pa.binary())), ("error", pa.binary())]
)


def rewrite_manifests(
    lake: LakeMaintenance,
    name: str,
    *,
    by: str | Iterable[str] | None,
    branch: str,
    dry_run: bool,
    progress: Progress | None,
) -> RewrittenManifests:
    """Do as `table.maintenance.rewrite_manifests` does, on executors where files are many."""
    least = min_files(lake.spark)

    def workers(here: Here) -> Workers:
        return _Executors(spark=lake.spark, name=name, here=here, least=least)

    return manifests.rewrite_manifests(
        lake.table(name), by=by, branch=branch, dry_run=dry_run, progress=progress, workers=workers
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Executors:
    """Reads and makes leaves in Spark jobs, and few ones here."""

    spark: SparkSession
    name: str
    here: Here
    least: int

    @property
    def run(self) -> Run:
        """What asks leaves, many of them on executors."""
        return self._asked

    def _asked(self, call: Callable[[Any], Any], leaves: Iterable[Any]) -> Iterable[Any]:
        found = list(leaves)
        if not isinstance(call, HeldCall) or files_in(e.leaf for e in found) < self.least:
            return in_order(call, found)
        return self._read(call.columns, found)

    def _read(self, columns: frozenset[str], leaves: list[Held]) -> Iterator[Entries]:
        table = sent(self.here.files, self.here.metadata)

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            files, metadata = table.files()
            reader = files.reader(metadata.shape())
            for number, held in unspread(batches):
                entries = live_in_leaf(held.leaf, held.removed, reader, columns)
                row = {"number": number, "entries": shipped(entries)}
                yield pa.RecordBatch.from_pylist([row], schema=_READ_SCHEMA)

        with one_line(), telling(self.spark, f"order of leaves of {self.name}"):
            found = spread(self.spark, leaves).mapInArrow(work, _READ).toArrow()
        for each in found.sort_by("number")["entries"]:
            yield unshipped(each.as_py())

    def make(self, arrangement: Arrangement, adopt: Adopt) -> Iterator[Entries]:
        """Make and store new leaves, a task for as many as one process would make at once."""
        if len(arrangement.leaf) < self.least:
            yield from self.here.make(arrangement, adopt)
            return
        parts = list(arrangement.parts(AT_ONCE))
        table = sent(self.here.files, self.here.metadata)

        def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            files, metadata = table.files()
            here = Here(files=files, metadata=metadata)
            for number, part in unspread(batches):
                told: dict[str, Any] = {"number": number, "entries": None, "error": None}
                written: list[Entries] = []
                try:
                    made = here.make(_of_this_attempt(part), written.append)
                    told["entries"] = [shipped(each) for each in made]
                except IcetreeError as error:
                    files.delete(each["location"][0].as_py() for each in written)
                    told["error"] = pickle.dumps(error)
                yield pa.RecordBatch.from_pylist([told], schema=_MADE_SCHEMA)

        with one_line(), telling(self.spark, f"leaves of {self.name}"):
            jobs = spread(self.spark, parts, tasks=len(parts))
            rows = jobs.mapInArrow(work, _MADE).toArrow().sort_by("number").to_pylist()
        found = [[unshipped(each) for each in row["entries"] or ()] for row in rows]
        for entry in (entry for some in found for entry in some):
            adopt(entry)
        for row in rows:
            if row["error"] is not None:
                # Of our own errors, from our own executors.
                raise pickle.loads(row["error"])
        for some in found:
            yield from some


def _of_this_attempt(part: Arrangement) -> Arrangement:
    """Return what to make, under names of its own: another attempt at the same may have stored some."""
    context = TaskContext.get()
    assert context is not None
    end = f"-{context.taskAttemptId()}.parquet"
    new = (replace(e, location=e.location.removesuffix(".parquet") + end) for e in part.new)
    return replace(part, new=tuple(new))
