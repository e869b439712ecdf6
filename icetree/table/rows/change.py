"""What becomes of rows: those that go are marked, or left out of new files that take the old's place."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from icetree.codec import bitmap
from icetree.errors import InvalidInput
from icetree.rows.read.deletes import Flags, Rows
from icetree.rows.write.deletes import write_data_vectors
from icetree.rows.write.fit import fitted, without_untyped
from icetree.rows.write.write import write_files
from icetree.spec.entry.entry import Entries, concat, to_table
from icetree.table.commit.removing import emptied, removal_of_tasks
from icetree.table.rows.clauses import TWICE
from icetree.table.rows.target import Target, positions_of


class Gone(Mapping[int, Rows]):
    """Positions of rows that go, by the number of their file in the plan."""

    def __init__(self) -> None:
        self.marks: dict[int, BitMap64] = {}

    def add(self, task: int, rows: Rows, *, once: bool = False) -> None:
        """Add rows of a file; with `once`, InvalidInput where one is there already."""
        if not len(rows):
            return
        new = BitMap64(array("Q", rows.astype(np.uint64).tobytes()))
        have = self.marks.setdefault(task, BitMap64())
        if once and (len(new) < len(rows) or have & new):
            raise InvalidInput(TWICE)
        have |= new

    @property
    def count(self) -> int:
        """How many rows go."""
        return sum(map(len, self.marks.values()))

    def __getitem__(self, task: int) -> Rows:
        found: Rows = bitmap.to_array(self.marks[task]).to_numpy()
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self.marks)

    def __len__(self) -> int:
        return len(self.marks)


def carry_out(
    target: Target,
    gone: Gone,
    new: Iterable[pa.RecordBatch] = (),
    *,
    whole: Sequence[int] = (),
) -> None:
    """Add to the transaction that rows go and new ones come, which have lineage.

    What goes need not be known before all new rows are taken. Files in `whole` go without a look.
    """
    if target.merges_on_read:
        mark(target, gone, written(target, new), whole)
    else:
        _rewrite(target, gone, new, whole)


def mark(target: Target, gone: Gone, files: Entries, whole: Sequence[int]) -> None:
    """Add to the transaction new files, and data DVs of the rows that go."""
    transaction, plan = target.transaction, target.plan
    whole_too, marked = emptied(plan.tasks, gone.marks)
    locations = plan.tasks["location"]
    marks = transaction.adopt(
        write_data_vectors(
            {locations[task].as_py(): gone.marks[task] for task in marked},
            tasks=plan.tasks,
            metadata=target.metadata,
            store=transaction.table_files.store,
            deletes=plan.deletes,
        )
    )
    transaction.row_delta(
        concat([files, marks]),
        remove=_removal(target, [*whole, *whole_too]),
        where=target.filter,
        tasks=plan.tasks.take(pa.array(marked, pa.int64())),
    )


def _rewrite(
    target: Target, gone: Gone, new: Iterable[pa.RecordBatch], whole: Sequence[int]
) -> None:
    files = written(target, chain(new, _kept(target, gone)))
    removed = _removal(target, [*whole, *sorted(gone)])
    target.transaction.overwrite_files(removed, files, where=target.filter)


def _removal(target: Target, tasks: Sequence[int]) -> pa.Table:
    return removal_of_tasks(target.plan.tasks.take(pa.array(tasks, pa.int64())))


def _kept(target: Target, gone: Gone) -> Iterator[pa.RecordBatch]:
    """Yield the rows that stay of files from which some go, with all of their lineage."""
    if not gone:
        return
    tasks = sorted(gone)
    for task, batch in target.read(lineage=True, tasks=tasks, every_row=True):
        stays = ~_among(positions_of(batch), gone[task])
        if stays.any():
            rows = batch.select(range(batch.num_columns - 1))
            yield rows if stays.all() else rows.filter(pa.array(stays))


def _among(positions: Rows, marked: Rows) -> Flags:
    at = np.minimum(np.searchsorted(marked, positions), len(marked) - 1)
    found: Flags = marked[at] == positions
    return found


def written(target: Target, rows: Iterable[pa.RecordBatch]) -> Entries:
    """Write rows, which have lineage, as files of the table."""
    coming = iter(rows)
    held = [*islice(coming, 1)]
    if not held:
        return to_table([], target.shape)
    return target.transaction.adopt(
        write_files(
            _let_go(held, coming),
            table=target.transaction.table_name,
            metadata=target.metadata,
            store=target.transaction.table_files.store,
            keep_lineage=True,
        )
    )


def _let_go(
    held: list[pa.RecordBatch], coming: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield what is held, which is kept no longer, then the rest."""
    while held:
        yield held.pop()
    yield from coming


def require_fit(target: Target, rows: pa.RecordBatch) -> None:
    """Refuse rows that do not fit the table, by their columns and types."""
    name = target.transaction.table_name
    stored = without_untyped(rows.slice(0, 0), target.shape.schema.fields, table=name)
    for _ in fitted(stored, (*target.fields, *target.lineage), table=name):
        pass


def with_lineage(
    target: Target, columns: Mapping[str, pa.Array], row_ids: pa.Array
) -> pa.RecordBatch:
    """Return rows as they are written: they are of this commit's age."""
    row_id, age = target.lineage
    made = {**columns, row_id.name: row_ids, age.name: pa.nulls(len(row_ids), pa.int64())}
    return pa.RecordBatch.from_arrays(list(made.values()), names=list(made))
