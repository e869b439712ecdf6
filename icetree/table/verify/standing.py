"""The live data files of a snapshot, each with the deletes that it is read with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from icetree.errors import CorruptTable, NotFound
from icetree.files.table_files import TableFiles
from icetree.rows.read.read import read_by_task
from icetree.spec.arrays import one_chunk
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.verify.row_texts import row_texts
from icetree.tree.plan.plan import plan
from icetree.tree.plan.tasks import Plan
from icetree.tree.reading import Reader

#: What decides, beside the deletes, which rows a data file has and who they are.
_FILE: Final = ("location", "first_row_id", "sequence_number", "partition_spec_id", "key_metadata")
_DATA_DV: Final = ("dv_location", "dv_offset", "dv_size_in_bytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What a snapshot's rows are read from: a row number for each live data file."""

    plan: Plan
    #: Of each file: equal where file and deletes are the same, and so the rows.
    keys: pa.Array

    def column(self, name: str) -> pa.Array:
        """Return what each file tells by a name of `tree.plan.tasks.TASK`."""
        return one_chunk(self.plan.tasks[name])

    def not_in(self, other: Standing) -> list[int]:
        """Return the files that another snapshot does not have, or not with the same deletes."""
        new = pc.invert(pc.is_in(self.keys, value_set=other.keys))
        found: list[int] = pc.indices_nonzero(new).to_pylist()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """Finds what rows of snapshots are read from, and reads them."""

    files: TableFiles
    metadata: TableMetadata
    reader: Reader

    def of(self, snapshot: Snapshot) -> Standing | None:
        """Return what a snapshot's rows are read from; None where its tree cannot be told."""
        shape = self.metadata.shape()
        # Files from Hive lack their partition columns, which the stats then tell.
        by_stats = any(each.is_identity for each in shape.expressions.values())
        try:
            found = plan(
                self.files.root(snapshot, shape),
                self.reader,
                shape,
                root_file=snapshot.root_file,
                stats_columns=by_stats,
                table_location=self.metadata.location,
            )
        except (CorruptTable, NotFound):
            return None  # told of where the tree was looked at
        tasks = found.tasks
        lists = (one_chunk(tasks[name]) for name in ("equality_deletes", "position_deletes"))
        named = [_named(each, found.deletes) for each in lists]
        columns = [tasks[name] for name in (*_FILE, *_DATA_DV)]
        return Standing(plan=found, keys=row_texts([*columns, *named]))

    def rows(
        self, standing: Standing, numbers: list[int], *fields: NestedField, schema: Schema
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the live rows of some files, a few row groups at a time, after each file's number."""
        some = standing.plan.tasks.take(pa.array(numbers, pa.int64()))
        batches = read_by_task(
            replace(standing.plan, tasks=some),
            store=self.files.store,
            metadata=self.metadata,
            columns=Schema(*fields),
            schema=schema,
        )
        with closing(batches):
            for at, batch in batches:
                yield numbers[at], batch


def _named(lists: pa.Array, deletes: pa.Table) -> pa.Array:
    """Return lists of row numbers of deletes as lists of the deletes' names."""
    names = one_chunk(deletes["location"])
    if len(names) == 0:
        return pa.nulls(len(lists), pa.list_(pa.string()))
    ends = lists.offsets.to_numpy()
    within = lists.values.slice(int(ends[0]), int(ends[-1] - ends[0]))
    starts = pa.array((ends - ends[0]).astype(np.int32))
    return pa.ListArray.from_arrays(starts, names.take(within))
