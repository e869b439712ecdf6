"""The files of a scan, planned when Spark asks for them: by what it pushed down, through the tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyspark.sql import SparkSession

from icetree.errors import Unsupported
from icetree.filters.text import predicate_text
from icetree.rows.read.equality_files import require_fields_of
from icetree.spark.pushdown.expression import filter_of
from icetree.spark.read.facts import Facts
from icetree.spark.read.internals import SETTING, UNKNOWN_BYTES, Asked
from icetree.spark.read.plan import LEAVES, Executors
from icetree.spark.read.question import question
from icetree.table.scan.scan import Scan
from icetree.tree.plan.tasks import Plan
from icetree.visible import log_of

log = log_of(__name__)

#: Bytes of answers that are kept: the same question on the same snapshot is planned once.
_KEEP_BYTES: Final = 128 * 1024 * 1024


def known_files(tasks: pa.Table, deletes: pa.Table, facts: Facts) -> Asked:
    """Return what tells of files that are planned already."""
    size = pc.sum(tasks["file_size_in_bytes"]).as_py() or 0
    answer = cache(partial(facts.answer, tasks, deletes))
    return Asked(files=lambda _: answer(), size=lambda: size)


def planned_files(spark: SparkSession, scan: Scan, facts: Facts, names: Mapping[str, str]) -> Asked:
    """Return what plans a scan when it is asked; `names` are the table's of the columns read."""

    #: Plans that told a size: Spark asks for it before it asks for the files.
    waiting: dict[str, Plan] = {}

    def files(conditions: list[Any]) -> pa.Buffer:
        told = [filter_of(each, scan.schema, names) for each in conditions]
        where = question(scan.where, told)
        known = waiting.pop(repr(where), None)
        return _once(
            scan, ("answers", where, facts), lambda: answer(plan(where) if known is None else known)
        )

    def answer(found: Plan) -> pa.Buffer:
        # Spark reads a column that a file lacks as null, and would take rows with nulls away.
        require_fields_of(found.deletes, scan.files, scan.metadata)
        return facts.answer(_tasks(found), found.deletes)

    def plan(where: BooleanExpression) -> Plan:
        run = Executors(spark=spark, scan=scan, leaves_here=LEAVES)
        found = scan.planner(run=run, where=where).whole()
        text = predicate_text(where)
        files, leaves = found.tasks.num_rows, found.metrics.data_leaves_read
        log.info("%r: %d files, %d leaves read, where %s", scan, files, leaves, text)
        return found

    def size() -> int:
        if isinstance(scan.where, AlwaysTrue):
            return _told_size(scan)

        where = question(scan.where)

        def left() -> int:
            found = waiting[repr(where)] = plan(where)
            return pc.sum(found.tasks["file_size_in_bytes"]).as_py() or 0

        return int(_once(scan, ("sizes", where), left, weigh=lambda _: 1))

    return Asked(files=files, size=size, question=_question(scan, facts))


def _question(scan: Scan, facts: Facts) -> str:
    """Return all that an answer depends on, beside the conditions that Spark pushes down."""
    return repr((*_place(scan), scan.case_sensitive, scan.where, facts))


def _tasks(plan: Plan) -> pa.Table:
    """Return the files of a plan, all of which Spark's reader must know how to read."""
    tasks = plan.tasks
    others = tasks.filter(pc.not_equal(tasks["file_format"], "parquet"))
    if others.num_rows:
        # The summary of the snapshot said otherwise.
        raise Unsupported(
            f"{others['location'][0]} is no Parquet, although the table's snapshot says that all its "
            f"files are: set {SETTING} to false to read it"
        )
    return tasks


def _told_size(scan: Scan) -> int:
    if scan.snapshot is None:
        return 0
    told = (scan.snapshot.summary or {}).get("total-files-size")
    return int(told) if told is not None and told.isdecimal() else UNKNOWN_BYTES


def _once(scan: Scan, asked: tuple[Any, ...], make: Callable[[], Any], *, weigh: Any = None) -> Any:
    """Return what was worked out for the same snapshot before, or work it out."""
    if scan.snapshot is None:
        return make()
    kind, *rest = asked
    told = tuple(repr(each) for each in rest)
    most = _KEEP_BYTES if weigh is None else 1_000
    key = (f"spark {kind}", *_place(scan), told)
    return scan.files.cache.derive(key, make, most=most, weigh=weigh or (lambda made: made.size))


def _place(scan: Scan) -> tuple[Any, ...]:
    """Return where a scan looks, and as what."""
    meaning = scan.metadata.shape(scan.schema.schema_id).meaning
    snapshot = scan.snapshot
    if snapshot is None:
        return (scan.files.location, None, None, meaning)
    return (scan.files.location, snapshot.root_file, snapshot.snapshot_id, meaning)
