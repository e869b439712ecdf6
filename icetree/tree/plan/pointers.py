"""Deletes by kind, and the columns of a task that point to those which apply to its file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.entry.entry import Content, Entries, concat, has_format, is_content, only
from icetree.spec.schema.shape import Shape
from icetree.tree.plan.deletes import DATA_DV, Pairs, data_dvs_of, equality_pairs, position_pairs
from icetree.tree.plan.tasks import DELETES


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """Deletes by kind: data DVs, equality deletes, position delete files of v2."""

    data_dvs: Entries
    equality: Entries
    positions: Entries

    def with_data_dvs(self, *more: Entries) -> Deletes:
        """Return these with further data DVs; of two on one file the first stands."""
        every = concat([*more, self.data_dvs])
        names = every["referenced_file"].combine_chunks()
        first = pc.index_in(names, value_set=names).to_numpy(zero_copy_only=False)
        kept = pa.array(first == np.arange(len(names)))
        return replace(self, data_dvs=every.filter(kept))

    def none(self) -> Deletes:
        """Return no deletes, with the same columns."""
        return Deletes(
            data_dvs=self.data_dvs.slice(0, 0),
            equality=self.equality.slice(0, 0),
            positions=self.positions.slice(0, 0),
        )


def by_kind(entries: Entries) -> Deletes:
    """Return the deletes among entries."""
    by_position = only(entries, is_content(entries, Content.POSITION_DELETES))
    data_dvs = has_format(by_position, "puffin")
    return Deletes(
        data_dvs=only(by_position, data_dvs),
        equality=only(entries, is_content(entries, Content.EQUALITY_DELETES)),
        positions=only(by_position, pc.invert(data_dvs)),
    )


@dataclass(slots=True)
class Shelf:
    """Delete files that tasks point to, numbered as they come."""

    #: Stats of them that are kept.
    stats_columns: frozenset[str] = frozenset()
    tables: list[pa.Table] = field(default_factory=list)
    count: int = 0

    def lists(self, pairs: Pairs, deletes: Entries, size: int) -> pa.ListArray:
        """Return each of `size` files' deletes by number; those of some file are put here."""
        if not deletes.num_rows:
            return pairs.lists(size)
        rows = np.unique(pairs.deletes)
        numbers = np.zeros(deletes.num_rows, np.int64)
        numbers[rows] = self.count + np.arange(len(rows))
        told = [name for name in deletes.column_names if name in self.stats_columns]
        kept = deletes.select([*DELETES.names, *told])
        self.tables.append(kept.take(pa.array(rows, pa.int64())))
        self.count += len(rows)
        return pairs.lists(size, numbers)

    def table(self) -> pa.Table:
        """Return the delete files in the order of their numbers."""
        return pa.concat_tables([DELETES.empty_table(), *self.tables], promote_options="default")


def pointers(
    files: Entries,
    deletes: Deletes,
    shape: Shape,
    shelf: Shelf,
    *,
    root_file: str,
    table_location: str | None,
) -> dict[str, pa.Array | pa.ChunkedArray]:
    """Return the columns of tasks, by name, that tell the deletes of each data file."""
    data_dvs = data_dvs_of(files, deletes.data_dvs, root_file=root_file)
    equality = equality_pairs(files, deletes.equality, shape)
    positions = position_pairs(
        files,
        deletes.positions,
        shape,
        has_data_dv=pc.is_valid(data_dvs["dv_location"]).to_numpy(),
        table_location=table_location,
    )
    return {
        **{name: data_dvs[name] for name in DATA_DV.names},
        "equality_deletes": shelf.lists(equality, deletes.equality, files.num_rows),
        "position_deletes": shelf.lists(positions, deletes.positions, files.num_rows),
    }
