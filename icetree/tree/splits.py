"""Tasks as splits: large files cut into ranges, ranges packed to shares of work of about one size.

A range weighs what it takes to read it: its bytes and those of its file's deletes, and never less
than it costs to open that many files. Ranges keep the order of the plan but for a window of a few
splits: in it a light range goes beside a heavy one where it fits, and what then is left of the
light ones goes together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import InvalidInput
from icetree.spec.properties.values import whole_number

TARGET_BYTES: Final = "read.split.target-size"
OPEN_COST_BYTES: Final = "read.split.open-file-cost"
LOOKBACK: Final = "read.split.planning-lookback"

#: One row a range of a file; those of a split follow each other.
SPLIT: Final = pa.schema(
    [
        #: Counted from 0.
        pa.field("split", pa.int32()),
        #: A row number of `Plan.tasks`.
        pa.field("task", pa.int32()),
        #: The first byte of the file.
        pa.field("start", pa.int64()),
        pa.field("length", pa.int64()),
        #: What the range adds to its split, in bytes.
        pa.field("weight", pa.int64()),
    ]
)

_Longs: TypeAlias = npt.NDArray[np.int64]
#: The largest split is made smaller in so many halving steps, while their number stays the same.
_EVEN_STEPS: Final = 5
#: More bytes than any table has; sums of it stay within 64 bits.
_ENDLESS: Final = 2**60


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSizes:
    """How large splits are; each is a table property, by Iceberg's name."""

    #: A split weighs no more, unless a single range does that cannot be cut.
    target_bytes: int = 128 * 1024 * 1024
    #: What opening a file costs, as bytes that could be read meanwhile.
    open_cost_bytes: int = 4 * 1024 * 1024
    #: A range moves by as many splits at most from its place in the plan.
    lookback: int = 10

    def __post_init__(self) -> None:
        for name, least in (("target_bytes", 1), ("open_cost_bytes", 0), ("lookback", 1)):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InvalidInput(
                    f"{name}={value!r}: allowed are whole numbers of {least} or more"
                )


DEFAULT_SIZES: Final = SplitSizes()


def sizes_of(properties: Mapping[str, str]) -> SplitSizes:
    """Read the sizes from table properties; a value that is no size is refused."""
    usual = DEFAULT_SIZES
    return SplitSizes(
        target_bytes=whole_number(properties, TARGET_BYTES, default=usual.target_bytes, least=1),
        open_cost_bytes=whole_number(properties, OPEN_COST_BYTES, default=usual.open_cost_bytes),
        lookback=whole_number(properties, LOOKBACK, default=usual.lookback, least=1),
    )


def splits(tasks: pa.Table, deletes: pa.Table, sizes: SplitSizes) -> pa.Table:
    """Return every byte of every task's file once, in ranges grouped into splits (`SPLIT`).

    A file is cut where its `split_offsets` say, and without them at any byte: whoever reads a
    range reads the row groups or blocks that begin in it. A file without bytes is a range too.
    """
    target = min(sizes.target_bytes, _ENDLESS)
    task, start, length = _ranges(tasks, target)
    bytes_of_deletes, files = _deletes_of(tasks, deletes)
    opening = (1 + files[task]) * min(sizes.open_cost_bytes, target)
    weight = np.maximum(length + bytes_of_deletes[task], opening)
    split = _packed(weight, target, min(target * sizes.lookback, _ENDLESS))
    order = np.lexsort((start, task, split))
    columns = (split, task, start, length, weight)
    return pa.table(
        [
            pa.array(column[order]).cast(field.type)
            for column, field in zip(columns, SPLIT, strict=True)
        ],
        schema=SPLIT,
    )


def _ranges(tasks: pa.Table, target: int) -> tuple[_Longs, _Longs, _Longs]:
    """Return task, start and length of ranges no longer than the target, where files allow it."""
    size = _longs(tasks["file_size_in_bytes"])
    number, at = _offsets(tasks, size)
    # Files without offsets that can be trusted are cut by length.
    blind = np.setdiff1d(np.arange(len(size)), number)
    pieces = np.maximum(-(-size[blind] // target), 1)
    blind_task = np.repeat(blind, pieces)
    nth = np.arange(len(blind_task)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    task = np.concatenate([number, blind_task])
    start = np.concatenate([at, nth * target])
    order = np.lexsort((start, task))
    task, start = task[order], start[order]
    length = _lengths(task, start, size)
    # Row groups of a file that fit together are one range: the file is opened once for them.
    kept = first_of_each(length, target, of=task)
    task, start = task[kept], start[kept]
    return task, start, _lengths(task, start, size)


def _lengths(task: _Longs, start: _Longs, size: _Longs) -> _Longs:
    """Return how far it is from each start to the next one in the file, or to the file's end."""
    last = np.append(task[1:] != task[:-1], True)[: len(task)]
    return np.asarray(np.where(last, size[task], np.append(start[1:], 0)[: len(task)]) - start)


def _offsets(tasks: pa.Table, size: _Longs) -> tuple[_Longs, _Longs]:
    """Return (task, where a range may start), 0 first, of files whose split offsets make sense."""
    lists = tasks["split_offsets"].combine_chunks()
    task = _longs(pc.list_parent_indices(lists))
    at = _longs(pc.list_flatten(lists))
    follows = np.append(False, task[1:] == task[:-1])[: len(task)]
    before = np.append(-1, at[:-1])[: len(at)]
    wrong = (at < 0) | (at >= size[task]) | (follows & (at <= before))
    sound = ~np.isin(task, task[wrong])
    # What comes before the first row group is a few bytes of header, read along with it.
    return task[sound], np.where(follows, at, 0)[sound]


def _deletes_of(tasks: pa.Table, deletes: pa.Table) -> tuple[_Longs, _Longs]:
    """Return for each task how many bytes of deletes it needs, and in how many files."""
    count = tasks.num_rows
    held = _longs(pc.fill_null(tasks["dv_size_in_bytes"], 0))
    files = _longs(pc.is_valid(tasks["dv_location"]).cast(pa.int64()))
    size = _longs(deletes["file_size_in_bytes"])
    for name in ("equality_deletes", "position_deletes"):
        lists = tasks[name].combine_chunks()
        task = _longs(pc.list_parent_indices(lists))
        which = _longs(pc.list_flatten(lists))
        held = held + np.bincount(task, size[which], count).astype(np.int64)
        files = files + np.bincount(task, minlength=count)
    return held, files


def _packed(weight: _Longs, target: int, window: int) -> _Longs:
    """Return the split of each range."""
    group = (np.cumsum(weight) - weight) // window
    heavy = 2 * weight > target
    unit = _partners(weight, group, heavy, target)
    alone = np.arange(len(weight)) == unit
    together = weight.copy()
    # No two go with the same one.
    together[unit[~alone]] += weight[~alone]
    heads = np.flatnonzero(alone)
    # A light one between two heavy ones would be a split by itself.
    order = heads[np.lexsort((~heavy[heads], group[heads]))]
    split = np.zeros(len(weight), np.int64)
    split[order] = np.cumsum(_evened(together[order], target)) - 1
    return np.asarray(split[unit])


def _partners(weight: _Longs, group: _Longs, heavy: npt.NDArray[np.bool_], target: int) -> _Longs:
    """Return for each light range the heavy one of its group that it fits beside, or itself.

    The lightest takes the narrowest room that will do, the next the narrowest left, and so on:
    in this order as many find a place as can.
    """
    light = np.flatnonzero(~heavy)
    light = light[np.lexsort((weight[light], group[light]))]
    with_room = np.flatnonzero(heavy & (weight < target))
    # A place of its own for each light one comes after all others of the group.
    owner = np.concatenate([with_room, np.full(len(light), -1)])
    room = np.concatenate([target - weight[with_room], np.full(len(light), target)])
    place = np.concatenate([group[with_room], group[light]]) * (target + 1) + room
    by_room = np.argsort(place, kind="stable")
    fits = np.searchsorted(place[by_room], group[light] * (target + 1) + weight[light])
    nth = np.arange(len(light))
    taken = owner[by_room[nth + np.maximum.accumulate(fits - nth)]]
    unit = np.arange(len(weight))
    unit[light] = np.where(taken < 0, light, taken)
    return unit


def _evened(weight: _Longs, target: int) -> npt.NDArray[np.bool_]:
    """Tell which ranges begin a split: as few splits as the order allows, evenly filled."""
    best = first_of_each(weight, target)
    count = int(best.sum())
    if count < 2:
        return best
    low, high = max(-(-int(weight.sum()) // count), min(int(weight.max()), target)), target
    for _ in range(_EVEN_STEPS):
        if low >= high:
            break
        middle = (low + high) // 2
        tried = first_of_each(weight, middle)
        if tried.sum() > count:
            low = middle + 1
        else:
            best, high = tried, middle
    return best


def first_of_each(weight: _Longs, most: int, *, of: _Longs | None = None) -> npt.NDArray[np.bool_]:
    """Cut a row of weights into runs of at most `most`, each as long as can be; tell the firsts.

    One that weighs more is a run by itself. With `of`, a run stays within equal values of it.
    """
    count = len(weight)
    upto = np.cumsum(weight)
    after = np.searchsorted(upto, upto - weight + most, side="right")
    after = np.maximum(after, np.arange(1, count + 1))
    begins = np.zeros(count + 1, np.bool_)
    begins[:1] = True
    if of is not None:
        changes = np.flatnonzero(of[1:] != of[:-1]) + 1
        begins[changes] = True
        ends = np.append(changes, count)
        after = np.minimum(after, ends[np.searchsorted(ends, np.arange(count), side="right")])
    # The firsts are what one reaches from a first in any number of jumps: twice as far each time.
    jump = np.append(after, count)
    reached = np.flatnonzero(begins)
    while True:
        found = jump[reached]
        found = found[~begins[found]]
        if not len(found):
            return begins[:count]
        begins[found] = True
        reached = np.flatnonzero(begins)
        jump = jump[jump]


def _longs(values: pa.Array | pa.ChunkedArray) -> _Longs:
    return np.asarray(values.to_numpy(), dtype=np.int64)
