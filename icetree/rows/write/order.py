"""Orders that rows are written in, and sorting more rows than memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icetree.rows.write.partition import sort_indices, source_values
from icetree.rows.write.spill import Spill
from icetree.rows.write.zorder import ZOrder
from icetree.spec.schema.shape import Shape, SortKey

_Numbers = npt.NDArray[np.int64]

#: Rows are sorted at once up to so many bytes; more are first parted on disk.
_HELD_BYTES: Final = 512 * 1024 * 1024
#: As many rows tell how others are distributed.
_SAMPLED_ROWS: Final = 200_000


class Order(Protocol):
    """An order of rows."""

    @property
    def fields(self) -> frozenset[int]:
        """The columns that it is by, or fields of them."""

    def fitted(self, sample: pa.Table, /) -> Order:
        """Return the order as it is for rows like those of a sample."""

    def indices(self, rows: pa.Table) -> _Numbers:
        """Return where each row comes from when they are in order; equal ones stay as they were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """Rows sorted by keys, one after the other."""

    keys: tuple[SortKey, ...]
    shape: Shape

    @property
    def fields(self) -> frozenset[int]:
        """The columns that it is by, or fields of them."""
        return frozenset(id for key in self.keys for id in key.source_ids)

    def fitted(self, _: pa.Table) -> Order:
        """Return itself: what is less is less, whatever other rows there are."""
        return self

    def indices(self, rows: pa.Table) -> _Numbers:
        """Return where each row comes from when they are in order; equal ones stay as they were."""
        found: _Numbers = sort_indices(rows, self.keys, self.shape).to_numpy().astype(np.int64)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOrdered:
    """Rows in z-order by several columns, which count alike."""

    field_ids: tuple[int, ...]
    shape: Shape
    zorder: ZOrder | None = None

    @property
    def fields(self) -> frozenset[int]:
        """The columns that it is by, or fields of them."""
        return frozenset(self.field_ids)

    def fitted(self, sample: pa.Table) -> Order:
        """Return the order as it is for rows like those of a sample."""
        zorder = ZOrder.fitted(self._columns(sample))
        return ZOrdered(field_ids=self.field_ids, shape=self.shape, zorder=zorder)

    def indices(self, rows: pa.Table) -> _Numbers:
        """Return where each row comes from when they are in order; equal ones stay as they were."""
        columns = self._columns(rows)
        zorder = self.zorder or ZOrder.fitted(columns)
        return np.argsort(zorder.numbers(columns), kind="stable")

    def _columns(self, rows: pa.Table) -> list[pa.Array]:
        return [source_values(rows, id, self.shape.schema) for id in self.field_ids]


def in_order(
    read: Callable[[frozenset[int] | None], Iterator[pa.RecordBatch]],
    order: Order,
    *,
    key_bytes: int | None = None,
    held_bytes: int = _HELD_BYTES,
) -> Iterator[pa.Table]:
    """Yield rows in order, a part at a time.

    `read` gives the rows: the columns that hold some fields, or all. It is asked twice where there
    are more bytes than are held in memory: rows are parted on disk then, and sorted part by part.
    On disk they are encrypted, with keys of `key_bytes`, where the table that they are of is.
    """
    held: list[pa.RecordBatch] = []
    size = 0
    batches = read(None)
    for batch in batches:
        held.append(batch)
        size += batch.nbytes
        if size > held_bytes:
            break
    else:
        if held:
            yield _sorted(pa.Table.from_batches(held), order)
        return
    rows = sum(batch.num_rows for batch in held)
    sample, total = _sample(read(order.fields))
    order = order.fitted(sample)
    count = 1 + int(2 * size * (total / rows) // held_bytes)
    at = np.linspace(0, sample.num_rows, count + 1).astype(np.int64)[1:-1]
    splits = sample.take(pa.array(order.indices(sample)[at]))
    with ExitStack() as stack:
        parts = _Parts(held[0].schema, count, stack, key_bytes)
        while held:
            parts.add(held.pop(0), splits, order)
        for batch in batches:
            parts.add(batch, splits, order)
        yield from (_sorted(part, order) for part in parts.tables())


def _sorted(rows: pa.Table, order: Order) -> pa.Table:
    return rows.take(pa.array(order.indices(rows)))


def _sample(batches: Iterator[pa.RecordBatch]) -> tuple[pa.Table, int]:
    """Return some of the rows, evenly, and how many there are in all."""
    kept: list[pa.RecordBatch] = []
    every, total = 1, 0
    for batch in batches:
        first = -total % every
        kept.append(batch.take(pa.array(np.arange(first, batch.num_rows, every))))
        total += batch.num_rows
        if sum(each.num_rows for each in kept) > _SAMPLED_ROWS:
            whole = pa.Table.from_batches(kept)
            thin = whole.take(pa.array(np.arange(0, whole.num_rows, 2)))
            kept, every = thin.combine_chunks().to_batches(), 2 * every
    return pa.Table.from_batches(kept), total


class _Parts:
    """Rows in files that go with their process, each file all of a range of the order."""

    def __init__(
        self, schema: pa.Schema, count: int, stack: ExitStack, key_bytes: int | None
    ) -> None:
        self._spills = [Spill(schema, key_bytes) for _ in range(count)]
        for spill in self._spills:
            stack.callback(spill.close)

    def add(self, batch: pa.RecordBatch, splits: pa.Table, order: Order) -> None:
        """Put rows where they belong."""
        rows = pa.Table.from_batches([batch])
        part = _part_of(rows, splits, order)
        by_part = np.argsort(part, kind="stable")
        ends = np.searchsorted(part[by_part], np.arange(len(self._spills) + 1))
        together = rows.take(pa.array(by_part))
        for number, spill in enumerate(self._spills):
            if ends[number] < ends[number + 1]:
                some = together.slice(int(ends[number]), int(ends[number + 1] - ends[number]))
                spill.write(some)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows of each file."""
        for spill in self._spills:
            found = spill.read()
            spill.close()
            if found.num_rows:
                yield found


def _part_of(rows: pa.Table, splits: pa.Table, order: Order) -> _Numbers:
    """Return for each row how many of the splits, which ascend, come before or are equal to it."""
    both = pa.concat_tables([splits, rows.select(splits.column_names)])
    indices = order.indices(both)
    before = np.empty(both.num_rows, np.int64)
    before[indices] = np.cumsum(indices < splits.num_rows)
    return before[splits.num_rows :]
