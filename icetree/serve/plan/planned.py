"""A plan made for a client, and the pages of it as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema

from icetree.errors import InvalidInput, NotFound
from icetree.filters.from_json import filter_from_json
from icetree.filters.to_json import EVERY_ROW, filter_to_json, names_in
from icetree.serve.plan.asked import Asked
from icetree.serve.plan.content_files import Telling, data_files, delete_files, vector_files
from icetree.serve.plan.json_columns import joined, list_of, listed, numbers, object_column
from icetree.serve.plan.metrics import metric_stats
from icetree.serve.plan.tuples import codes_of, require_told, tuple_stats, untold
from icetree.serve.showing.stock import Stock
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import Entries
from icetree.spec.entry.stats import parse_column
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.pages import find_snapshot
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.shape import Shape
from icetree.store.stopping import Stop
from icetree.table.changes.changes import ChangeRange
from icetree.table.export.stand_ins import StandIns
from icetree.table.export.vectors import with_plain_vectors
from icetree.table.scan.planning import planner, side_by_side
from icetree.table.table import Table
from icetree.tree.plan.plan import LeafRead, Run
from icetree.tree.plan.tasks import DELETES, TASK, Metrics, Plan
from icetree.tree.prune.bind import bind
from icetree.tree.prune.predicates import Unsure
from icetree.tree.prune.prune import may_match, residuals
from icetree.tree.reading import Leaf


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan with what it takes to tell it."""

    plan: Plan
    #: As the table is now: clients read by it.
    shape: Shape
    table_location: str
    stats_fields: tuple[int, ...]
    #: What is left to check on rows, as JSON, by the number that a task has in `residual`.
    residuals: list[str]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        tasks, deletes = self.plan.tasks, self.plan.deletes
        size: int = tasks.nbytes + deletes.nbytes + sum(map(len, self.residuals))
        return size

    @property
    def count(self) -> int:
        """How many tasks there are."""
        count: int = self.plan.tasks.num_rows
        return count

    def part(self, part: range, client: Stock, table: Table) -> dict[str, msgspec.Raw]:
        """Return some of the tasks, and the deletes they refer to, as members of an answer."""
        plan = replace(self.plan, tasks=self.plan.tasks.slice(part.start, len(part)))
        if client.reads_plain_vectors_alone:
            plan = with_plain_vectors(plan, table.files, table.metadata)
        elif not client.reads_vectors and not is_encrypted(table.metadata):
            stand_ins = StandIns(files=table.files, table_location=self.table_location)
            plan = replace(plan, tasks=stand_ins.told_in(plan.tasks))
        tasks = plan.tasks.combine_chunks()
        if not tasks.num_rows:
            return {"file-scan-tasks": msgspec.Raw(b"[]")}
        if client.reads_nulls:
            require_told(tasks, self.shape)
        telling = Telling(
            shape=self.shape, table_location=self.table_location, nulls=client.reads_nulls
        )
        vectors = pc.is_valid(one_chunk(tasks["dv_location"]))
        with_vector = tasks.filter(vectors)
        listed, references = _referred(tasks, vectors, with_vector.num_rows)
        found = object_column(
            tasks.num_rows,
            {
                "data-file": data_files(tasks, telling, self.stats_fields),
                "delete-file-references": references,
                "residual-filter": pa.array(self.residuals).take(one_chunk(tasks["residual"])),
            },
        )
        members = {"file-scan-tasks": msgspec.Raw(list_of(found))}
        deletes = self.plan.deletes.take(listed)
        told = [
            *([vector_files(with_vector, telling)] if with_vector.num_rows else []),
            *([delete_files(deletes, telling)] if deletes.num_rows else []),
        ]
        if told:
            members["delete-files"] = msgspec.Raw(list_of(pa.concat_arrays(told)))
        return members


def _referred(
    tasks: pa.Table, vectors: pa.BooleanArray, first: int
) -> tuple[pa.Int64Array, pa.StringArray]:
    """Return the delete files that tasks point to, and each task's deletes by their new numbers.

    Deletion vectors have the first numbers, in the order of the tasks.
    """
    lists = [one_chunk(tasks[name]) for name in ("equality_deletes", "position_deletes")]
    used = pa.concat_arrays([each.flatten() for each in lists]).unique().sort()
    mask = vectors.to_numpy(zero_copy_only=False)
    ranks = pa.array(np.cumsum(mask) - 1, mask=~mask)
    parts = [numbers(ranks)]
    for each in lists:
        items = pc.add(pc.index_in(each.flatten(), used), first).cast(pa.string())
        counts = pc.fill_null(pc.list_value_length(each), 0).to_numpy()
        ends = pa.array(np.r_[0, np.cumsum(counts)].astype(np.int32))
        texts = pc.binary_join(pa.ListArray.from_arrays(ends, items), ",")
        parts.append(pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts))
    whole = listed(parts)
    none = pc.equal(whole, "")
    return used.cast(pa.int64()), pc.if_else(
        none, pa.scalar(None, pa.string()), joined("[", whole, "]")
    )


def make_plan(table: Table, asked: Asked, stop: Stop | None = None) -> Planned:
    """Return the plan that is asked for; Unavailable, if it is to end before it is made."""
    metadata = table.metadata
    schema = metadata.schema(asked.schema_id)
    now = metadata.shape()
    filter = asked.filter_document
    where: BooleanExpression = (
        AlwaysTrue()
        if filter is None
        else filter_from_json(filter, schema, case_sensitive=asked.case_sensitive)
    )
    if asked.is_unsure:
        where = Unsure()
    wanted = tuple_stats(now) | metric_stats(asked.stats_fields)
    snapshot = _snapshot(table, asked.snapshot_id)
    if asked.since_id is None:
        found = planner(
            table.files,
            metadata,
            snapshot,
            where,
            schema_id=asked.schema_id,
            case_sensitive=asked.case_sensitive,
            stats_columns=wanted,
            run=_until(stop or Stop()),
        ).whole()
    else:
        found = _appended(table, asked, where, wanted)
    if asked.min_rows is not None:
        found = _enough(found, asked.min_rows)
    tasks, left = _told_residuals(found, where, schema, asked, now)
    return Planned(
        plan=Plan(
            tasks=tasks, deletes=found.deletes, residuals=found.residuals, metrics=found.metrics
        ),
        shape=now,
        table_location=metadata.location,
        stats_fields=asked.stats_fields,
        residuals=left,
    )


def _until(stop: Stop) -> Run:
    """Return what reads leaves side by side, and may end between any two: not all read a file."""

    def run(call: Callable[[Leaf], LeafRead], leaves: Iterable[Leaf]) -> Iterator[LeafRead]:
        for read in side_by_side(call, leaves):
            stop.check()
            yield read

    return run


def _snapshot(table: Table, id: int | None) -> Snapshot | None:
    return None if id is None else find_snapshot(table.metadata, id, table.files.page)


def _appended(table: Table, asked: Asked, where: BooleanExpression, wanted: frozenset[str]) -> Plan:
    """Return the files that appends of a range added, as they were added."""
    shape = table.metadata.shape(asked.schema_id)
    bound = bind(where, shape, case_sensitive=asked.case_sensitive)
    try:
        files = ChangeRange(table, since=asked.since_id, upto=asked.snapshot_id).appended()
    except NotFound as error:
        raise InvalidInput(str(error)) from None
    files = files.filter(may_match(files, bound))
    codes, left = residuals(files, bound)
    told = [name for name in files.column_names if parse_column(name) and name in wanted]
    made = {name: _column(files, name) for name in TASK.names} | {"residual": codes}
    tasks = pa.table({**made, **{name: files[name] for name in told}})
    metrics = Metrics(data_files=files.num_rows)
    return Plan(tasks=tasks, deletes=DELETES.empty_table(), residuals=left, metrics=metrics)


def _column(files: Entries, name: str) -> pa.Array | pa.ChunkedArray:
    # Deletes that came since do not count, and where a file is tracked is of no matter here.
    own = name in files.column_names and not name.startswith("dv_")
    return files[name] if own else pa.nulls(files.num_rows, TASK.field(name).type)


def _enough(found: Plan, rows: int) -> Plan:
    """Return the first tasks that are sure to have so many rows, all where none are so many."""
    tasks = found.tasks
    sure = found.match_whole().to_numpy()
    for name in ("equality_deletes", "position_deletes"):
        sure &= (pc.fill_null(pc.list_value_length(tasks[name]), 0).to_numpy()) == 0
    counts = pc.subtract(tasks["record_count"], pc.fill_null(tasks["dv_cardinality"], 0)).to_numpy()
    total = np.cumsum(np.where(sure, counts, 0))
    kept = int(np.searchsorted(total, rows)) + 1 if rows else 0
    return Plan(
        tasks=tasks.slice(0, kept),
        deletes=found.deletes,
        residuals=found.residuals,
        metrics=found.metrics,
    )


def _told_residuals(
    found: Plan, where: BooleanExpression, schema: Schema, asked: Asked, now: Shape
) -> tuple[pa.Table, list[str]]:
    """Return the tasks, and the residuals that they name, in words that clients can use.

    A client finds columns of a residual by today's names: where those of the filter mean others
    now, it is to check rows by the filter that it has.
    """
    sensitive = asked.case_sensitive
    known = all(_is_same(name, schema, now.schema, sensitive) for name in names_in(where))
    documents: list[Any] = [
        filter_to_json(each, schema, case_sensitive=sensitive)
        if known or isinstance(each, AlwaysTrue)
        else EVERY_ROW
        for each in found.residuals
    ]
    tasks = found.tasks
    if not isinstance(where, AlwaysTrue):
        odd = dict(untold(tasks, now))
        codes = codes_of(list(odd.values()), tasks.num_rows)
        if codes.any():
            tasks, documents = _widened(tasks, documents, list(odd), codes)
    return tasks, [msgspec.json.encode(each).decode() for each in documents]


def _is_same(name: str, then: Schema, now: Schema, sensitive: bool) -> bool:
    try:
        here, there = (each.find_field(name, case_sensitive=sensitive) for each in (then, now))
    except ValueError:
        return False
    return here.field_id == there.field_id


def _widened(
    tasks: pa.Table,
    documents: list[Any],
    names: list[str],
    codes: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> tuple[pa.Table, list[Any]]:
    """Have null, which stands for what JSON cannot tell, satisfy the residuals of such files."""
    both = np.stack([tasks["residual"].to_numpy(), codes])
    distinct, numbered = np.unique(both, axis=1, return_inverse=True)
    made = []
    for residual, code in distinct.T.tolist():
        document = documents[residual]
        for at, name in enumerate(names):
            if code >> at & 1 and document is not True:
                document = {
                    "type": "or",
                    "left": document,
                    "right": {"type": "is-null", "term": name},
                }
        made.append(document)
    at = tasks.schema.get_field_index("residual")
    column = pa.array(numbered.reshape(-1).astype(np.int32))
    return tasks.set_column(at, "residual", column), made
