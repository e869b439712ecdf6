"""Compaction at scale: each group of files is rewritten by a task of Spark's, and committed as ever.

A task reads, sorts and writes with our own code, as one process would: rows never pass through Java. What
the driver holds is the plan, and the entries of new files.
"""

from __future__ import annotations

import pickle
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from icetree.codec import metadata as metadata_codec
from icetree.filters.filter import Filter
from icetree.spark.complaints import one_line
from icetree.spark.progress import telling
from icetree.spark.ship import shipped, shipped_metadata, unshipped
from icetree.table.maintain.compact import compact
from icetree.table.maintain.compact.compact import Rewritten
from icetree.table.maintain.compact.groups import Came, Rewriting
from icetree.table.maintain.compact.options import BINPACK, MAX_GROUP_SIZE, options_of
from icetree.table.progress import Progress
from icetree.tree.plan.tasks import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icetree.spark.maintain.maintain import LakeMaintenance

#: A task that packs files makes so many new ones at most, so that there are tasks for all.
_FILES_A_TASK: Final = 4

_SENT: Final = "number int, tasks binary"
_CAME: Final = "number int, files binary, error binary"
_CAME_SCHEMA: Final = pa.schema(
    [("number", pa.int32()), ("files", pa.binary()), ("error", pa.binary())]
)


def rewrite_data_files(
    lake: LakeMaintenance,
    name: str,
    *,
    where: Filter | None,
    strategy: str | None,
    order_by: str | Sequence[str] | None,
    options: Mapping[str, Any] | None,
    branch: str,
    dry_run: bool,
    progress: Progress | None,
) -> Rewritten:
    """Do as `table.maintenance.rewrite_data_files` does, the work on Spark's executors."""
    table = lake.table(name)
    target = options_of(options, table.metadata).rules.target_bytes
    given = dict(options or {})
    if order_by is None and (strategy or BINPACK) == BINPACK:
        given.setdefault(MAX_GROUP_SIZE, _FILES_A_TASK * target)
    return compact.rewrite_data_files(
        table,
        where=where,
        strategy=strategy,
        order_by=order_by,
        options=given,
        branch=branch,
        dry_run=dry_run,
        progress=progress,
        run=lambda rewriting, groups: _run(lake.spark, rewriting, groups),
    )


def _run(
    spark: SparkSession, rewriting: Rewriting, groups: list[Plan]
) -> Generator[Came, None, None]:
    """Carry out groups, a task each."""
    name, store = rewriting.name, rewriting.store
    options, arrangement = rewriting.options, rewriting.arrangement
    metadata, whole = shipped_metadata(rewriting.metadata), groups[0]
    # Groups are parts of one plan: what they have in common goes along once.
    deletes, residuals, metrics = shipped(whole.deletes), whole.residuals, whole.metrics

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        here = Rewriting(
            name=name,
            metadata=metadata_codec.decode(metadata, file="table metadata"),
            store=store,
            options=options,
            arrangement=arrangement,
        )
        for row in (row for batch in batches for row in batch.to_pylist()):
            plan = Plan(
                tasks=unshipped(row["tasks"]),
                deletes=unshipped(deletes),
                residuals=residuals,
                metrics=metrics,
            )
            made = here.attempt(plan)
            told = {"number": row["number"], "files": None, "error": None}
            if isinstance(made, Exception):
                told["error"] = pickle.dumps(made)
            else:
                told["files"] = shipped(made)
            yield pa.RecordBatch.from_pylist([told], schema=_CAME_SCHEMA)

    sent = [(number, shipped(each.tasks)) for number, each in enumerate(groups)]
    jobs = spark.createDataFrame(sent, _SENT).repartitionByRange(len(sent), "number")
    with one_line(), telling(spark, f"compaction of {name}"):
        found = jobs.mapInArrow(work, _CAME).toArrow()
    for row in found.sort_by("number").to_pylist():
        failed = row["error"]
        # Of our own errors, from our own executors.
        yield unshipped(row["files"]) if failed is None else pickle.loads(failed)
