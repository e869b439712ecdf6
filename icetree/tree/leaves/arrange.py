"""How leaves would be rewritten: which go, and which of their entries stand in which new leaf.

Only the columns that the order is by are read, and for deletes which data file each is for. What
this takes is a few numbers an entry, so memory follows the count of entries and not their stats.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import (
    POSITION,
    Content,
    Entries,
    concat,
    empty,
    has_format,
    is_content,
    is_data_dv,
)
from icetree.tree.leaf import entries_per_leaf
from icetree.tree.leaves.carry_over import Carried
from icetree.tree.leaves.cluster import Order, ranks
from icetree.tree.leaves.gains import SMALL, Flags, Rows, cut, pieces
from icetree.tree.live import live_in_leaf
from icetree.tree.policy import Policy
from icetree.tree.reading import Leaf, Reader, leaves_in

#: Does what `map` does, some calls side by side.
Run: TypeAlias = Callable[..., Iterable[Any]]

_OF_DELETES: Final = ("content_type", "file_format", "referenced_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A leaf as it was found: the entries at `removed` had gone from it."""

    leaf: Leaf
    removed: BitMap


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldCall:
    """What is asked of each leaf; also known by its parts, to whoever asks elsewhere."""

    reader: Reader
    columns: frozenset[str]

    def __call__(self, held: Held) -> Entries:
        """Return the entries that were left in the leaf."""
        return live_in_leaf(held.leaf, held.removed, self.reader, self.columns)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlace:
    """A leaf to be made; a delete manifest may be of a data manifest, new or old."""

    location: str
    content: Content
    referenced_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """Leaves that go and leaves that come; every live entry of the former is in one of the latter."""

    old: tuple[Held, ...]
    new: tuple[NewPlace, ...]
    #: Of each entry, in its new order: the old leaf by number, its position there, the new leaf.
    leaf: Rows
    position: Rows
    goes_to: Rows
    #: Delete manifests of Avro that stay, since they hold position delete files of v2.
    kept_avro: int

    def starts(self) -> Rows:
        """Return where each new leaf starts among the entries, and last where they end."""
        found: Rows = np.searchsorted(self.goes_to, np.arange(len(self.new) + 1))
        return found

    def parts(self, most: int) -> Iterator[Arrangement]:
        """Yield what can be made one after the other, or apart: some new leaves at a time, in order.

        As many as hold `most` entries, one at least, with the old leaves that these come from.
        """
        starts = self.starts()
        first = 0
        while first < len(self.new):
            upto = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
            upto = max(upto, first + 1)
            rows = slice(int(starts[first]), int(starts[upto]))
            numbers, leaf = np.unique(self.leaf[rows], return_inverse=True)
            yield Arrangement(
                old=tuple(self.old[number] for number in numbers.tolist()),
                new=self.new[first:upto],
                leaf=leaf.astype(np.int64),
                position=self.position[rows],
                goes_to=self.goes_to[rows] - first,
                kept_avro=0,
            )
            first = upto


@dataclass(frozen=True, slots=True)
class _Read:
    """Entries of leaves, one after the other, as far as it takes to put them in order."""

    held: list[Held]
    entries: Entries
    ends: Rows

    @property
    def leaf(self) -> Rows:
        """The number of each entry's leaf."""
        return np.repeat(np.arange(len(self.held)), np.diff(self.ends))

    @property
    def position(self) -> Rows:
        """The position of each entry in its leaf."""
        found: Rows = self.entries[POSITION].to_numpy()
        return found


@dataclass(frozen=True, slots=True)
class _Piece:
    """One kind of leaves: which go, and how their entries stand in new ones."""

    held: list[Held]
    leaf: Rows
    position: Rows
    goes_to: Rows
    new: list[NewPlace]


def arrange(
    carried: Carried,
    reader: Reader,
    policy: Policy,
    order: Order,
    *,
    name: Callable[[int], str],
    run: Run = map,
) -> Arrangement:
    """Return how the leaves of a root are better arranged; nothing goes where nothing gains.

    `name` gives the location of a new leaf by its number.
    """
    most = entries_per_leaf(carried.root, policy)
    held = [
        Held(leaf=leaf, removed=carried.manifest_dvs.get(leaf.location, BitMap()))
        for leaf in leaves_in(carried.root)
    ]
    data = [each for each in held if each.leaf.content_type == Content.DATA_MANIFEST]
    read = _read(data, reader, order, (), run)
    made = cut(
        ranks(read.entries, order),
        read.ends,
        np.array([_is_avro(each) or _is_worn(each, policy) for each in data], np.bool_),
        most,
    )
    counts = np.diff(made.starts)
    ours = _Piece(
        held=[each for each, goes in zip(data, made.goes, strict=True) if goes],
        leaf=(np.cumsum(made.goes) - 1)[read.leaf[made.order]],
        position=read.position[made.order],
        goes_to=np.repeat(np.arange(len(counts)), counts),
        new=[NewPlace(location=name(i), content=Content.DATA_MANIFEST) for i in range(len(counts))],
    )
    deletes = _Deletes(
        [each for each in held if each.leaf.content_type == Content.DELETE_MANIFEST],
        data,
        ours,
        reader,
        policy,
        order,
        run,
    )
    return _joined(ours, deletes.piece(most, lambda i: name(len(ours.new) + i)), deletes.kept_avro)


def heirs(old: int, leaf: Rows, goes_to: Rows) -> Rows:
    """Return, for each of so many old leaves, the new one that all of its entries go to, or -1."""
    first, last = np.full(old, np.iinfo(np.int64).max), np.full(old, -1)
    np.minimum.at(first, leaf, goes_to)
    np.maximum.at(last, leaf, goes_to)
    found: Rows = np.where(first == last, first, -1)
    return found


def _joined(data: _Piece, deletes: _Piece, kept_avro: int) -> Arrangement:
    return Arrangement(
        old=(*data.held, *deletes.held),
        new=(*data.new, *deletes.new),
        leaf=np.concatenate([data.leaf, deletes.leaf + len(data.held)]),
        position=np.concatenate([data.position, deletes.position]),
        goes_to=np.concatenate([data.goes_to, deletes.goes_to + len(data.new)]),
        kept_avro=kept_avro,
    )


def _read(held: list[Held], reader: Reader, order: Order, more: Iterable[str], run: Run) -> _Read:
    parts = list(run(HeldCall(reader=reader, columns=frozenset({*order, *more})), held))
    ends = np.cumsum([0, *(part.num_rows for part in parts)])
    none = pa.table({POSITION: pa.array([], pa.int64())})
    return _Read(held, concat(parts) if parts else none, ends)


def _is_avro(held: Held) -> bool:
    return held.leaf.file_format == "avro"


def _is_worn(held: Held, policy: Policy) -> bool:
    return len(held.removed) * 100 > policy.compact_removed_percent * held.leaf.record_count


@dataclass(frozen=True, slots=True)
class _Found:
    """Deletes, each with its leaf and the number of the data manifest that it is of, or -1."""

    leaf: Rows
    entries: Entries
    owner: Rows


#: Stands for several data manifests.
_SCATTERED: Final = ""


class _Deletes:
    """Delete manifests: those of data manifests that go find new ones, and all may find one."""

    def __init__(
        self,
        held: list[Held],
        data: list[Held],
        ours: _Piece,
        reader: Reader,
        policy: Policy,
        order: Order,
        run: Run,
    ) -> None:
        self._data, self._ours, self._reader, self._policy = data, ours, reader, policy
        self._order, self._run = order, run
        every = _read(held, reader, order, _OF_DELETES, run)
        parts = [
            every.entries.slice(start, end - start)
            for start, end in zip(every.ends[:-1], every.ends[1:], strict=True)
        ]
        stay = [_is_avro(each) and _has_files(part) for each, part in zip(held, parts, strict=True)]
        #: Delete manifests that cannot become columnar.
        self.kept_avro = sum(stay)
        self._held = [each for each, stays in zip(held, stay, strict=True) if not stays]
        self._parts = [part for part, stays in zip(parts, stay, strict=True) if not stays]

    def piece(self, most: int, name: Callable[[int], str]) -> _Piece:
        """Return which delete manifests go, and how their entries stand in new ones."""
        sizes = np.array([part.num_rows for part in self._parts], np.int64)
        small = sizes < SMALL * most
        must = self._must(small)
        goes, found = self._chosen(must)
        if goes.any():
            # What is written anew takes small ones along, or there would soon be two again.
            goes, found = self._chosen(must | small)
        if not goes.any():
            none = np.zeros(0, np.int64)
            return _Piece([], none, none, none, [])
        chosen = np.flatnonzero(goes[found.leaf])
        rank = ranks(found.entries.take(pa.array(chosen)), self._order)
        order = np.lexsort((rank, found.owner[chosen]))
        return self._in_new_leaves(goes, found, chosen[order], most, name)

    def _chosen(self, must: Flags) -> tuple[Flags, _Found]:
        """Return which delete manifests go: with those that must, ones that find a data manifest."""
        free = np.array([each.leaf.referenced_file is None for each in self._held], np.bool_)
        asked = np.flatnonzero(must | free)
        parts = [self._parts[at] for at in asked]
        entries = concat(parts) if parts else empty()
        leaf = np.repeat(asked, [part.num_rows for part in parts])
        owner = self._owners(entries)
        least = max(1, self._policy.affinity_min_entries)
        few = np.bincount(owner[owner >= 0], minlength=1) < least
        owner = np.where((owner >= 0) & few[owner], -1, owner)
        goes = must.copy()
        goes[np.unique(leaf[owner >= 0])] = True
        return goes, _Found(leaf, entries, owner)

    def _in_new_leaves(
        self, goes: Flags, found: _Found, order: Rows, most: int, name: Callable[[int], str]
    ) -> _Piece:
        new: list[NewPlace] = []
        goes_to: list[Rows] = []
        owners, counts = np.unique(found.owner[order], return_counts=True)
        for owner, count in zip(owners.tolist(), counts.tolist(), strict=True):
            starts = pieces(count, most)
            goes_to.append(len(new) + np.repeat(np.arange(len(starts) - 1), np.diff(starts)))
            new += [
                NewPlace(
                    location=name(len(new) + i),
                    content=Content.DELETE_MANIFEST,
                    referenced_file=self._name_of(owner),
                )
                for i in range(len(starts) - 1)
            ]
        return _Piece(
            held=[each for each, gone in zip(self._held, goes, strict=True) if gone],
            leaf=(np.cumsum(goes) - 1)[found.leaf[order]],
            position=found.entries[POSITION].to_numpy()[order],
            goes_to=np.concatenate(goes_to),
            new=new,
        )

    def _must(self, small: Flags) -> Flags:
        """Tell which delete manifests are rewritten whoever else is."""
        same = heirs(len(self._ours.held), self._ours.leaf, self._ours.goes_to)
        heir = {
            each.leaf.location: self._ours.new[at].location if at >= 0 else _SCATTERED
            for each, at in zip(self._ours.held, same.tolist(), strict=True)
        }
        owners = [heir.get(o or "", o) for o in (each.leaf.referenced_file for each in self._held)]
        alike = Counter(owner for owner, is_small in zip(owners, small, strict=True) if is_small)
        return np.array(
            [
                _is_avro(each)
                or _is_worn(each, self._policy)
                or owner == _SCATTERED
                or (is_small and alike[owner] > 1)
                for each, owner, is_small in zip(self._held, owners, small, strict=True)
            ],
            np.bool_,
        )

    def _owners(self, entries: Entries) -> Rows:
        """Return, for each delete, the data manifest that will have its data file, or -1.

        New ones have their numbers, and old ones that stay have those that follow.
        """
        targets = pc.if_else(is_data_dv(entries), entries["referenced_file"], None)
        targets = one_chunk(targets)
        found: Rows = np.full(entries.num_rows, -1, np.int64)
        if targets.null_count == len(targets):
            return found
        going = {each.leaf.location: number for number, each in enumerate(self._ours.held)}
        read = HeldCall(reader=self._reader, columns=frozenset({"location"}))
        for number, (held, part) in enumerate(
            zip(self._data, self._run(read, self._data), strict=True)
        ):
            positions = part[POSITION].to_numpy()
            at = pc.index_in(targets, value_set=one_chunk(part["location"]))
            hit = at.is_valid().to_numpy(zero_copy_only=False)
            if not hit.any():
                continue
            old = going.get(held.leaf.location)
            if old is None:
                found[hit] = len(self._ours.new) + number
            else:
                mine = self._ours.leaf == old
                where = np.full(held.leaf.record_count, -1, np.int64)
                where[self._ours.position[mine]] = self._ours.goes_to[mine]
                found[hit] = where[positions[at.filter(at.is_valid()).to_numpy()]]
        return found

    def _name_of(self, owner: int) -> str | None:
        if owner < 0:
            return None
        if owner < len(self._ours.new):
            return self._ours.new[owner].location
        return self._data[owner - len(self._ours.new)].leaf.location


def _has_files(deletes: Entries) -> bool:
    """Tell whether there are position delete files of v2 among deletes."""
    positions = is_content(deletes, Content.POSITION_DELETES)
    return bool(pc.any(pc.and_not(positions, has_format(deletes, "puffin"))).as_py())
