"""Finding the entries that a change removes, in the root and in leaves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.errors import CommitConflict, InvalidInput
from icetree.spec.arrays import one_chunk, without
from icetree.spec.entry.entry import (
    DELETE_FILES,
    FILES,
    POSITION,
    Content,
    Entries,
    is_content,
    keys_of,
    only,
)
from icetree.tree.changes import Changes
from icetree.tree.live import is_live_in
from icetree.tree.reading import Leaf, Reader

FACTS = (
    "content_type",
    "location",
    "file_format",
    "record_count",
    "file_size_in_bytes",
    "dv_size_in_bytes",
)
_NAMES = ("content_type", "status", "location", "referenced_file", "file_format")
_TYPED = {content: pa.scalar(content, pa.int32()) for content in FILES}
_FALSE = pa.scalar(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """Where the removed entries are, and what the summary needs to know of them."""

    #: One flag a root entry.
    in_root: pa.BooleanArray
    #: Leaf location -> positions removed there by this change.
    in_leaves: Mapping[str, BitMap]
    #: `FACTS` of every removed entry.
    facts: pa.Table = field(repr=False)


def locate(
    root: Entries,
    leaves: list[Leaf],
    manifest_dvs: Mapping[str, BitMap],
    changes: Changes,
    reader: Reader,
) -> Located:
    """Find every entry that the change removes from the live entries of a root.

    These are the files it names, the DVs of the data files it names, and the DVs that its own
    DVs replace. A named file that is not live any more is a `CommitConflict`.
    """
    wanted = _Wanted(changes)
    if wanted.nothing:
        nowhere = pa.repeat(pa.scalar(False), root.num_rows)
        return Located(in_root=nowhere, in_leaves={}, facts=root.select(FACTS).slice(0, 0))
    keys = keys_of(root)
    in_root = wanted.mask(root["content_type"], keys)
    wanted.found(root["content_type"].filter(in_root), keys.filter(in_root))
    in_leaves: dict[str, BitMap] = {}
    facts = [only(root.select(FACTS), in_root)]
    facts += _from_hints(wanted, leaves, manifest_dvs, in_leaves)
    for leaf in _to_search(leaves, wanted):
        facts.append(_search(leaf, wanted, manifest_dvs, in_leaves, reader))
    wanted.require_all_found()
    return Located(
        in_root=in_root,
        in_leaves=in_leaves,
        facts=pa.concat_tables(facts, promote_options="default"),
    )


class _Wanted:
    """The keys still to be found, by content; what must exist and what merely may."""

    def __init__(self, changes: Changes) -> None:
        removed, added = changes.removed, changes.added
        self.hints = removed.filter(pc.is_valid(removed["leaf"]))
        self._must = {content: _of(removed, content, "key") for content in FILES}
        distinct = sum(pc.count_distinct(names).as_py() for names in self._must.values())
        if distinct < removed.num_rows:
            raise InvalidInput("a file is named twice, or is no data or delete file, in a removal")
        replaced = _of(added, Content.POSITION_DELETES, "referenced_file")
        self._may = pa.concat_arrays([self._must[Content.DATA], replaced])

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to look for."""
        return not any(len(self.keys(content)) for content in FILES)

    def keys(self, content: Content) -> pa.Array:
        """Return the keys of this content to look for."""
        must = self._must[content]
        return pa.concat_arrays([must, self._may]) if content is _DATA_DVS else must

    def mask(self, content_type: pa.ChunkedArray, keys: pa.ChunkedArray) -> pa.BooleanArray:
        """Tell which entries are wanted."""
        mask = pa.repeat(pa.scalar(False), len(keys))
        for content in FILES:
            if len(names := self.keys(content)):
                hit = pc.and_(pc.equal(content_type, _TYPED[content]), pc.is_in(keys, names))
                mask = pc.or_(mask, pc.fill_null(hit, _FALSE))
        return one_chunk(mask)

    def found(self, content_type: pa.ChunkedArray, keys: pa.ChunkedArray) -> None:
        """Cross off what was found."""
        for content in FILES:
            if not len(self.keys(content)):
                continue
            hit = keys.filter(pc.equal(content_type, _TYPED[content]))
            self._must[content] = without(self._must[content], hit)
            if content is _DATA_DVS:
                self._may = without(self._may, hit)

    def require_all_found(self) -> None:
        """Refuse a change that removes what is not there."""
        for content, names in self._must.items():
            if len(names):
                kind = content.name.lower().replace("_", " ")
                more = f" and {len(names) - 1} more" if len(names) > 1 else ""
                raise CommitConflict(
                    f"{names[0]}{more}: {kind} to be removed, but not live in the table any "
                    "more; read the table again and decide anew"
                )


_DATA_DVS = Content.POSITION_DELETES


def _of(table: pa.Table, content: Content, column: str) -> pa.Array:
    return table[column].filter(is_content(table, content)).combine_chunks()


def _from_hints(
    wanted: _Wanted,
    leaves: list[Leaf],
    manifest_dvs: Mapping[str, BitMap],
    in_leaves: dict[str, BitMap],
) -> Iterable[pa.Table]:
    """Take hints that still hold: the leaf is there, and leaves never change."""
    hints = wanted.hints
    # Without the counts the entry must be read anyway, which finds it better than a hint does.
    usable = pc.and_(pc.is_valid(hints["position"]), pc.is_valid(hints["record_count"]))
    present = pc.is_in(hints["leaf"], pa.array([leaf.location for leaf in leaves], pa.string()))
    hints = hints.filter(pc.and_(usable, present))
    for name in pc.unique(hints["leaf"]).to_pylist():
        here = hints.filter(pc.equal(hints["leaf"], name))
        here = here.filter(wanted.mask(here["content_type"], here["key"]))
        gone = manifest_dvs.get(name)
        if gone:
            still = pc.invert(pc.is_in(here["position"], bitmap.to_array(gone)))
            here = here.filter(still)
        if here.num_rows == 0:
            continue
        in_leaves[name] = bitmap.of(here["position"])
        wanted.found(here["content_type"], here["key"])
        # A data DV's entry is told from a position delete file's by its format alone.
        deletes = is_content(here, Content.POSITION_DELETES)
        yield pa.table(
            {
                "content_type": here["content_type"],
                "location": here["key"],
                "file_format": pc.if_else(deletes, "puffin", "parquet"),
                "record_count": here["record_count"],
                "file_size_in_bytes": here["file_size_in_bytes"],
                "dv_size_in_bytes": pa.nulls(here.num_rows, pa.int64()),
            }
        )


def _to_search(leaves: list[Leaf], wanted: _Wanted) -> Iterable[Leaf]:
    """Yield the leaves that may hold what is still wanted, asked anew after each."""
    for leaf in leaves:
        held = (Content.DATA,) if leaf.content_type == Content.DATA_MANIFEST else DELETE_FILES
        if any(len(wanted.keys(content)) for content in held):
            yield leaf


def _search(
    leaf: Leaf,
    wanted: _Wanted,
    manifest_dvs: Mapping[str, BitMap],
    in_leaves: dict[str, BitMap],
    reader: Reader,
) -> pa.Table:
    entries = reader.leaf(leaf, columns={*_NAMES, *FACTS, POSITION})
    keys = keys_of(entries)
    removed = manifest_dvs.get(leaf.location)
    hit = pc.and_(wanted.mask(entries["content_type"], keys), is_live_in(leaf, entries, removed))
    rows = only(entries, hit)
    if rows.num_rows:
        wanted.found(rows["content_type"], keys.filter(hit))
        in_leaves[leaf.location] = in_leaves.get(leaf.location, BitMap()) | bitmap.of(
            rows[POSITION]
        )
    return rows.select(FACTS)
