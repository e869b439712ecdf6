"""The live data files of a snapshot, each with the deletes that it is read with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField

from icetree.errors import CorruptTable, NotFound
from icetree.rows.read.read import read_by_task
from icetree.spec.arrays import one_chunk
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.recent import Recent
from icetree.table.verify.roots import Roots
from icetree.table.verify.row_texts import row_texts
from icetree.tree.plan.plan import plan
from icetree.tree.plan.tasks import Plan
from icetree.tree.reading import Reader

Numbers: TypeAlias = npt.NDArray[np.int64]
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

    def key(self, number: int) -> bytes:
        """Return the key of a file."""
        key: bytes = self.keys[number].as_py()
        return key

    def not_in(self, other: Standing | None) -> Numbers:
        """Return the files that another snapshot does not have, or not with the same deletes."""
        if other is None:
            return np.arange(len(self.keys))
        new = pc.invert(pc.is_in(self.keys, value_set=other.keys))
        found: Numbers = pc.indices_nonzero(new).to_numpy().astype(np.int64)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Standings:
    """Finds what rows of snapshots are read from, and reads them."""

    roots: Roots
    metadata: TableMetadata
    reader: Reader
    #: Those of a snapshot and of the one before it.
    _recent: Recent[int, Standing] = field(default_factory=lambda: Recent(most=2))

    def of(self, snapshot: Snapshot) -> Standing | None:
        """Return what a snapshot's rows are read from; None where its tree cannot be told."""
        found = self._recent.get(snapshot.snapshot_id) or self._planned(snapshot)
        if found is not None:
            self._recent.put(snapshot.snapshot_id, found)
        return found

    def _planned(self, snapshot: Snapshot) -> Standing | None:
        shape = self.roots.shape
        # Files from Hive lack their partition columns, which the stats then tell.
        by_stats = any(each.is_identity for each in shape.expressions.values())
        try:
            found = plan(
                self.roots.of(snapshot),
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
            store=self.roots.files.store,
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
