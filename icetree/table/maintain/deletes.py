"""Rewriting deletes: few files in the place of many, DVs in the place of what readers must search.

Whatever is deleted stays deleted, and nothing else is. The data DVs of many Puffin files go into few;
position delete files of v2 and, where asked for, equality deletes become data DVs; and what deletes
nothing any more goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyroaring import BitMap64

from icetree.errors import CommitConflict
from icetree.filters.filter import Filter, parse_filter
from icetree.rows.read.deletes import VECTOR_COLUMNS, Deletes, Rows
from icetree.rows.write.deletes import as_vector, store_vectors
from icetree.spec.arrays import is_among, one_chunk
from icetree.spec.entry.entry import (
    Content,
    Entries,
    concat,
    empty,
    is_content,
    is_data_dv,
    is_data_file,
    only,
)
from icetree.spec.location import absolute
from icetree.spec.properties.names import DELETE_FILE_SIZE
from icetree.spec.properties.values import whole_number
from icetree.spec.short import short
from icetree.table.commit.counts import RowCounts
from icetree.table.commit.removing import removal_of, removal_of_tasks
from icetree.table.maintain.newest import on_newest
from icetree.table.progress import Progress
from icetree.table.rows.target import Target, positions_of
from icetree.tree.changes import Changes, Intent
from icetree.tree.live import live_files
from icetree.tree.plan.tasks import Plan

if TYPE_CHECKING:
    from icetree.table.table import Table
    from icetree.table.transaction import Transaction

Flags = npt.NDArray[np.bool_]

_TARGET_BYTES: Final = 64 * 1024 * 1024
#: A file of DVs with less than this share of the target is small.
_SMALL: Final = 0.75
#: So many small files of DVs are worth being merged.
_MANY: Final = 5
_FACTS: Final = ["location", "record_count", *VECTOR_COLUMNS, "position_deletes"]
_NEEDED: Final = frozenset(
    {
        "content_type",
        "location",
        "file_format",
        "record_count",
        "file_size_in_bytes",
        "dv_size_in_bytes",
        "referenced_file",
    }
)
#: How often deletes are looked at anew when others changed those that were chosen.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenDeletes:
    """What was done, or with `dry_run` would be; counts are named as Iceberg's procedure names them.

    A Puffin file counts once, however many DVs of it are rewritten; bytes are those of the DVs.
    """

    rewritten_delete_files_count: int
    added_delete_files_count: int
    rewritten_bytes_count: int
    added_bytes_count: int
    dry_run: bool

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        verb = "would rewrite" if self.dry_run else "rewrote"
        into = (
            ""
            if self.dry_run
            else (f" as {self.added_delete_files_count:,} ({self.added_bytes_count:,} bytes)")
        )
        return (
            f"{verb} {self.rewritten_delete_files_count:,} delete files "
            f"({self.rewritten_bytes_count:,} bytes){into}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What is rewritten of a table's deletes."""

    target: Target
    #: The data files, by number in the plan, that get a new DV.
    tasks: Rows
    #: Which of them have equality deletes that become part of it.
    searched: Flags
    #: Delete files and DVs that go, with where they are tracked; DVs that are replaced are not here.
    gone: Entries
    #: The DVs that are replaced.
    replaced: Entries


def rewrite_position_delete_files(
    table: Table,
    *,
    where: Filter | None,
    rewrite_equality_deletes: bool,
    branch: str,
    dry_run: bool,
    progress: Progress | None,
) -> RewrittenDeletes:
    """Rewrite the deletes of a branch that gain from it, as one snapshot that changes no row."""
    tell = progress or (lambda *_: None)
    condition = AlwaysTrue() if where is None else parse_filter(where)
    equality = rewrite_equality_deletes
    return on_newest(
        table,
        lambda: _rewritten(table, condition, branch, equality=equality, dry_run=dry_run, tell=tell),
    )


def _rewritten(
    table: Table,
    condition: BooleanExpression,
    branch: str,
    *,
    equality: bool,
    dry_run: bool,
    tell: Progress,
) -> RewrittenDeletes:
    for attempt in range(_TRIES):
        table.refresh()
        with table.transaction(branch=branch) as transaction:
            transaction.require_version()
            choice = _chosen(transaction, condition, equality=equality)
            if dry_run or not (len(choice.tasks) or choice.gone.num_rows):
                return _told(choice, choice.replaced.slice(0, 0), dry_run=dry_run)
            made = _made(choice, tell)
            transaction.apply(
                Changes(
                    intent=Intent.REWRITE,
                    added=made,
                    removed=removal_of(choice.gone),
                    seen=removal_of_tasks(_taken(choice)),
                )
            )
            transaction.count(RowCounts())
            try:
                transaction.commit()
            except CommitConflict:
                if attempt == _TRIES - 1:
                    raise
                continue
        return _told(choice, made)
    raise AssertionError("every try ends in an answer or an error")


def _chosen(transaction: Transaction, condition: BooleanExpression, *, equality: bool) -> _Choice:
    # A filter chooses files: of those all deletes count, also of rows that do not match.
    target = Target(transaction=transaction, verb="delete")
    files = transaction.table_files
    root = files.root(transaction.snapshot, target.shape)
    live = live_files(root, files.reader(target.shape), columns=_NEEDED)
    some = target if isinstance(condition, AlwaysTrue) else replace(target, filter=condition)
    plan = target.plan
    asked = is_among(plan.tasks["location"], some.plan.tasks["location"])
    deletes = only(live, is_content(live, Content.POSITION_DELETES, Content.EQUALITY_DELETES))
    data_dvs = only(deletes, is_data_dv(deletes))
    others = only(deletes, pc.invert(is_data_dv(deletes)))
    searched = _is_any(plan.tasks["equality_deletes"]) & equality
    merged = is_among(plan.tasks["dv_location"], _scattered(data_dvs, target.metadata.properties))
    gains = searched | _is_any(plan.tasks["position_deletes"]) | _flags(merged)
    tasks = np.flatnonzero(gains & _flags(asked))
    names = one_chunk(plan.tasks["location"]).take(pa.array(tasks))
    replaced = is_among(data_dvs["referenced_file"], names)
    data = only(live, is_data_file(live))["location"]
    dangling = only(data_dvs, pc.invert(is_among(data_dvs["referenced_file"], data)))
    needed = _still_needed(plan, names, equality=equality)
    unneeded = only(others, pc.invert(is_among(others["location"], needed)))
    return _Choice(
        target=target,
        tasks=tasks,
        searched=searched[tasks],
        gone=concat([dangling, unneeded]),
        replaced=only(data_dvs, replaced),
    )


def _still_needed(whole: Plan, rewritten: pa.Array, *, equality: bool) -> pa.Array:
    """Return the delete files that some data file needs which does not get all of it as a DV."""
    taken = _flags(is_among(whole.tasks["location"], rewritten))
    wanted = [pa.array([], pa.int32())]
    for column, converted in (("position_deletes", True), ("equality_deletes", equality)):
        left = whole.tasks[column].filter(pa.array(~taken)) if converted else whole.tasks[column]
        wanted.append(one_chunk(pc.list_flatten(left)))
    return one_chunk(whole.deletes["location"]).take(pa.concat_arrays(wanted).unique())


def _is_any(lists: pa.ChunkedArray) -> Flags:
    return _flags(pc.greater(pc.fill_null(pc.list_value_length(lists), 0), 0))


def _flags(found: pa.ChunkedArray) -> Flags:
    flags: Flags = found.to_numpy(zero_copy_only=False)
    return flags


def _scattered(data_dvs: Entries, properties: Mapping[str, str]) -> pa.Array:
    """Return the Puffin files to be merged: small ones, by what of them is still used."""
    target = _target_bytes(properties)
    used = data_dvs.group_by("location").aggregate([("dv_size_in_bytes", "sum")])
    small = used.filter(pc.less(used["dv_size_in_bytes_sum"], _SMALL * target))
    return one_chunk(small["location"]) if small.num_rows >= _MANY else pa.array([], pa.string())


def _target_bytes(properties: Mapping[str, str]) -> int:
    return whole_number(properties, DELETE_FILE_SIZE, default=_TARGET_BYTES, least=1)


def _taken(choice: _Choice) -> pa.Table:
    return choice.target.plan.tasks.take(pa.array(choice.tasks))


def _made(choice: _Choice, tell: Progress) -> Entries:
    """Write the new DVs, a Puffin file as soon as there is enough for one."""
    target = choice.target
    most = _target_bytes(target.metadata.properties)
    written: list[Entries] = [empty()]
    vectors: dict[int, BitMap64] = {}
    for done, (number, vector) in enumerate(_vectors(choice), 1):
        if vector:
            vectors[number] = vector
        # Two bytes a row are what a bitmap takes at most.
        if 2 * sum(map(len, vectors.values())) >= most:
            written.append(_stored(target, vectors))
            vectors = {}
        tell("data files", done, len(choice.tasks))
    if vectors:
        written.append(_stored(target, vectors))
    return concat(written)


def _stored(target: Target, vectors: Mapping[int, BitMap64]) -> Entries:
    store = target.transaction.table_files.store
    made = store_vectors(vectors, target.plan.tasks, target.metadata, store)
    return target.transaction.adopt(made)


def _vectors(choice: _Choice) -> Iterator[tuple[int, BitMap64]]:
    """Yield all rows that are deleted of each data file, by its number in the plan."""
    target, plan = choice.target, choice.target.plan
    known = Deletes(
        files=plan.deletes.to_pylist(),
        store=target.transaction.table_files.store,
        metadata=target.metadata,
        schema=target.shape.schema,
        mapping=None,
    )
    searched = choice.tasks[choice.searched]
    for number in choice.tasks[~choice.searched].tolist():
        fact = plan.tasks.slice(number, 1).select(_FACTS).to_pylist()[0]
        location = absolute(fact["location"], target.metadata.location)
        yield number, as_vector(pa.array(known.removed_rows(fact, location)))
    read = groupby(
        target.read(frozenset(), tasks=searched.tolist(), every_row=True), key=itemgetter(0)
    )
    live = next(read, None)
    for number in searched.tolist():
        gone = np.ones(plan.tasks["record_count"][number].as_py(), np.bool_)
        # Of a file whose rows are all deleted none is read.
        if live is not None and live[0] == number:
            for _, batch in live[1]:
                gone[positions_of(batch)] = False
            live = next(read, None)
        yield number, as_vector(pa.array(np.flatnonzero(gone)))


def _told(choice: _Choice, made: Entries, *, dry_run: bool = False) -> RewrittenDeletes:
    old = concat([choice.gone, choice.replaced])
    return RewrittenDeletes(
        rewritten_delete_files_count=_count(old),
        added_delete_files_count=_count(made),
        rewritten_bytes_count=_size_bytes(old),
        added_bytes_count=_size_bytes(made),
        dry_run=dry_run,
    )


def _count(deletes: Entries) -> int:
    found: int = pc.count_distinct(deletes["location"]).as_py()
    return found


def _size_bytes(deletes: Entries) -> int:
    sizes = pc.coalesce(deletes["dv_size_in_bytes"], deletes["file_size_in_bytes"])
    return pc.sum(sizes).as_py() or 0
