"""Finding rows by their ids: which ids rows have where they stand, and where rows with ids stand."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Final

import numpy as np
from pyiceberg.schema import Schema

from icetree.rows.read.deletes import Rows
from icetree.rows.read.read import read_by_task
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.metadata_columns import METADATA_COLUMNS
from icetree.store.base import Store
from icetree.tree.plan.tasks import Plan

_COLUMNS: Final = Schema(
    *(METADATA_COLUMNS[name] for name in ("_row_id", "_last_updated_sequence_number", "_pos"))
)


def ids_of(
    plan: Plan, picked: Mapping[int, Rows], *, metadata: TableMetadata, store: Store
) -> Rows | None:
    """Return the ids of the live rows at positions in files of a plan, ascending.

    None where a row has no id, or not one of its own.
    """
    found = []
    batches = read_by_task(
        plan.unfiltered(), store=store, metadata=metadata, columns=_COLUMNS, picked=picked
    )
    with closing(batches):
        for _, batch in batches:
            if batch.column(0).null_count:
                return None
            found.append(batch.column(0).to_numpy())
    ids: Rows = np.sort(np.concatenate([np.zeros(0, np.int64), *found]))
    return None if (ids[1:] == ids[:-1]).any() else ids


def places_of(
    ids: Rows,
    plan: Plan,
    *,
    metadata: TableMetadata,
    store: Store,
    upto: int | None = None,
) -> dict[int, Rows] | None:
    """Return where live rows with these ids, which ascend, stand: positions by number of the file.

    None where not each is found once. With `upto`, rows that were last changed by a later commit
    are others.
    """
    if not len(ids):
        return {}
    found: dict[int, list[Rows]] = {}
    seen = np.zeros(len(ids), np.int64)
    batches = read_by_task(plan.unfiltered(), store=store, metadata=metadata, columns=_COLUMNS)
    with closing(batches):
        for number, batch in batches:
            row_ids = batch.column(0).fill_null(-1).to_numpy()
            at = np.minimum(np.searchsorted(ids, row_ids), len(ids) - 1)
            hit = ids[at] == row_ids
            if upto is not None:
                hit &= batch.column(1).fill_null(np.iinfo(np.int64).max).to_numpy() <= upto
            np.add.at(seen, at[hit], 1)
            if hit.any():
                found.setdefault(number, []).append(batch.column(2).to_numpy()[hit])
    if (seen != 1).any():
        return None
    return {number: np.concatenate(parts) for number, parts in found.items()}
