"""Every rule that one manifest must keep by itself, as data.

A rule names the columns it looks at and returns a mask of the entries that break it, so the
same list serves a whole manifest and a few projected columns, on read, on write and in `check`.
It runs on every manifest read and written, so each rule first tries an answer that costs
nothing (null counts). Rules that span manifests are in `tree.check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CorruptTable
from icetree.spec.arrays import first_repeated, one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    ALLOWED,
    FILES,
    ROOT,
    Content,
    Entries,
    Status,
    is_live,
    only,
    set_of,
)
from icetree.spec.rules.stats import CHECKED, broken_stats

FORMATS: Final = ("parquet", "avro", "orc", "puffin")

_INT = pa.int32()
_ZERO = pa.scalar(0, pa.int64())
_ADDED = pa.scalar(Status.ADDED, _INT)
_PUFFIN = pa.scalar("puffin")
_STATUSES = pa.array(list(Status), _INT)
_DATA, _DATA_DV, _EQUALITY = Content.DATA, Content.POSITION_DELETES, Content.EQUALITY_DELETES
_DATA_LEAF, _DELETE_LEAF = Content.DATA_MANIFEST, Content.DELETE_MANIFEST
_MANIFEST_DV = Content.MANIFEST_DV


class _View:
    """Entries as plain arrays, with the masks that several rules share."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._columns: dict[str, pa.Array] = {}
        self._distinct: dict[str, frozenset[object]] = {}
        self._masks: dict[tuple[Content, ...], pa.BooleanArray] = {}
        self.names = frozenset(entries.schema.names)

    def __getitem__(self, column: str) -> pa.Array:
        found = self._columns.get(column)
        if found is None:
            found = self._columns[column] = one_chunk(self._entries[column])
        return found

    def content_in(self, contents: tuple[Content, ...]) -> pa.BooleanArray:
        if contents not in self._masks:
            mask = pc.is_in(self["content_type"], set_of(contents))
            self._masks[contents] = mask
        return self._masks[contents]

    def has_content(self, contents: tuple[Content, ...]) -> bool:
        return not self.distinct("content_type").isdisjoint(contents)

    def has_other_content(self, contents: tuple[Content, ...]) -> bool:
        return not self.distinct("content_type") <= set(contents)

    def distinct(self, column: str) -> frozenset[object]:
        """Return the values of a column that has few."""
        if column not in self._distinct:
            self._distinct[column] = frozenset(pc.unique(self[column]).to_pylist())
        return self._distinct[column]


#: Entries that break a rule; None where it was plain that none does.
_Broken: TypeAlias = "pa.BooleanArray | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A sentence that must hold, the columns it is about, and who breaks it."""

    says: str
    about: tuple[str, ...]
    broken: Callable[[_View], _Broken]


def _required(column: str) -> Rule:
    def broken(view: _View) -> _Broken:
        values = view[column]
        return pc.is_null(values) if values.null_count else None

    return Rule(says=f"{column} is required", about=(column,), broken=broken)


def _one_of(column: str, allowed: pa.Array, says: str) -> Rule:
    known = frozenset(allowed.to_pylist())

    def broken(view: _View) -> _Broken:
        if view.distinct(column) <= known:
            return None
        return pc.invert(pc.is_in(view[column], allowed))

    return Rule(says=says, about=(column,), broken=broken)


def _only_for(column: str, *contents: Content) -> Rule:
    def broken(view: _View) -> _Broken:
        values = view[column]
        if values.null_count == len(values) or not view.has_other_content(contents):
            return None
        return pc.and_not(pc.is_valid(values), view.content_in(contents))

    names = " and ".join(content.name for content in contents)
    says = f"{column} may be set only for content {names}"
    return Rule(says=says, about=("content_type", column), broken=broken)


def _needed_for(column: str, *contents: Content) -> Rule:
    def broken(view: _View) -> _Broken:
        values = view[column]
        if values.null_count == 0 or not view.has_content(contents):
            return None
        return pc.and_(pc.is_null(values), view.content_in(contents))

    names = " and ".join(content.name for content in contents)
    says = f"{column} must be set for content {names}"
    return Rule(says=says, about=("content_type", column), broken=broken)


def _not_negative(column: str) -> Rule:
    def broken(view: _View) -> _Broken:
        values = view[column]
        return pc.less(values, _ZERO) if values.null_count < len(values) else None

    return Rule(says=f"{column} must not be negative", about=(column,), broken=broken)


def _placeless(view: _View) -> _Broken:
    where = view["location"]
    if where.null_count == 0:
        return None
    inline = pc.and_(view.content_in((_MANIFEST_DV,)), pc.is_valid(view["dv_inline_content"]))
    return pc.and_not(pc.is_null(where), inline)


def _sizeless(view: _View) -> _Broken:
    sizes = view["file_size_in_bytes"]
    if sizes.null_count == 0:
        return None
    return pc.and_(pc.is_null(sizes), pc.is_valid(view["location"]))


def _both_or_neither_inline(view: _View) -> _Broken:
    if not view.has_content((_MANIFEST_DV,)):
        return None
    manifest_dvs = view.content_in((_MANIFEST_DV,))
    range_known = pc.and_(pc.is_valid(view["dv_offset"]), pc.is_valid(view["dv_size_in_bytes"]))
    in_puffin = pc.and_(pc.is_valid(view["location"]), range_known)
    return pc.and_(manifest_dvs, pc.equal(pc.is_valid(view["dv_inline_content"]), in_puffin))


def _dv_not_puffin(view: _View) -> _Broken:
    if not view.has_content((_DATA_DV, _MANIFEST_DV)):
        return None
    dvs = view.content_in((_DATA_DV, _MANIFEST_DV))
    return pc.and_(dvs, pc.not_equal(view["file_format"], _PUFFIN))


def _stale_added_positions(view: _View) -> _Broken:
    added = view["dv_added_positions"]
    if added.null_count == len(added):
        return None
    return pc.and_(pc.is_valid(added), pc.not_equal(view["status"], _ADDED))


def _two_ages(view: _View) -> _Broken:
    if not view.has_content((_DATA_LEAF, _DELETE_LEAF)):
        return None
    leaves = view.content_in((_DATA_LEAF, _DELETE_LEAF))
    return pc.and_(leaves, pc.not_equal(view["sequence_number"], view["file_sequence_number"]))


def _unordered_offsets(view: _View) -> _Broken:
    offsets = view["split_offsets"]
    if offsets.null_count == len(offsets):
        return None
    flat, parent = pc.list_flatten(offsets), pc.list_parent_indices(offsets)
    if len(flat) < 2:
        return None
    falls = pc.and_(
        pc.less_equal(flat.slice(1), flat.slice(0, len(flat) - 1)),
        pc.equal(parent.slice(1), parent.slice(0, len(parent) - 1)),
    )
    if falls.true_count == 0:
        return None
    ordinals = pa.array(range(len(offsets)), parent.type)
    return pc.is_in(ordinals, parent.slice(1).filter(falls))


def _nothing_compared(view: _View) -> _Broken:
    ids = view["equality_ids"]
    if ids.null_count == len(ids):
        return None
    return pc.equal(pc.list_value_length(ids), pa.scalar(0, _INT))


def _untracked(column: str) -> Rule:
    def broken(view: _View) -> _Broken:
        values = view[column]
        if values.null_count == 0:
            return None
        return pc.and_(pc.is_null(values), pc.not_equal(view["status"], _ADDED))

    says = f"{column} may be null only for an ADDED entry, which inherits it"
    return Rule(says=says, about=("status", column), broken=broken)


_MANIFEST_STATS = (
    "added_files_count",
    "existing_files_count",
    "deleted_files_count",
    "added_rows_count",
    "existing_rows_count",
    "deleted_rows_count",
    "min_sequence_number",
)

_REQUIRED: Final = tuple(
    _required(column)
    for column in ("content_type", "file_format", "status", "partition_spec_id", "record_count")
)
#: Rules for every manifest, whatever its kind.
RULES: Final[tuple[Rule, ...]] = (
    _one_of("status", _STATUSES, "status must be 0 EXISTING, 1 ADDED or 2 DELETED"),
    _one_of("file_format", pa.array(FORMATS), f"file_format must be one of {', '.join(FORMATS)}"),
    Rule(
        says="location may be null only for an inline manifest DV",
        about=("content_type", "location", "dv_inline_content"),
        broken=_placeless,
    ),
    Rule(
        says="file_size_in_bytes must be set whenever location is",
        about=("location", "file_size_in_bytes"),
        broken=_sizeless,
    ),
    *(
        _not_negative(column)
        for column in (
            "record_count",
            "file_size_in_bytes",
            "first_row_id",
            "dv_offset",
            "dv_size_in_bytes",
        )
    ),
    _only_for("sort_order_id", _DATA),
    _only_for("equality_ids", _EQUALITY),
    _needed_for("equality_ids", _EQUALITY),
    Rule(
        says="equality_ids must name a field to delete by",
        about=("equality_ids",),
        broken=_nothing_compared,
    ),
    _only_for("first_row_id", _DATA, _DATA_LEAF),
    _only_for("referenced_file", _DATA_DV, _MANIFEST_DV, _DELETE_LEAF),
    _needed_for("referenced_file", _DATA_DV, _MANIFEST_DV),
    *(_only_for(column, _DATA_LEAF, _DELETE_LEAF) for column in _MANIFEST_STATS),
    *(_needed_for(column, _DATA_LEAF, _DELETE_LEAF) for column in _MANIFEST_STATS[:3]),
    _only_for("dv_offset", _DATA_DV, _MANIFEST_DV),
    _only_for("dv_size_in_bytes", _DATA_DV, _MANIFEST_DV),
    _needed_for("dv_offset", _DATA_DV),
    _needed_for("dv_size_in_bytes", _DATA_DV),
    _only_for("dv_inline_content", _MANIFEST_DV),
    _only_for("dv_added_positions", _MANIFEST_DV),
    Rule(
        says="a manifest DV is either inline or a range of a Puffin file",
        about=("content_type", "dv_inline_content", "dv_offset", "dv_size_in_bytes", "location"),
        broken=_both_or_neither_inline,
    ),
    Rule(
        says="a deletion vector's file_format must be puffin",
        about=("content_type", "file_format"),
        broken=_dv_not_puffin,
    ),
    Rule(
        says="added_positions belongs to an ADDED manifest DV only",
        about=("status", "dv_added_positions"),
        broken=_stale_added_positions,
    ),
    Rule(
        says="a manifest's sequence_number must equal its file_sequence_number",
        about=("content_type", "sequence_number", "file_sequence_number"),
        broken=_two_ages,
    ),
    Rule(says="split_offsets must ascend", about=("split_offsets",), broken=_unordered_offsets),
)

_TRACKING = ("snapshot_id", "sequence_number", "file_sequence_number")


def _rules_of(kind: str) -> tuple[Rule, ...]:
    allowed = pa.array(sorted(ALLOWED[kind]), _INT)
    placement = _one_of("content_type", allowed, f"content that may not stand in a {kind} manifest")
    if kind == ROOT:
        return (*_REQUIRED, placement, *RULES, *(_required(column) for column in _TRACKING))
    # A null snapshot id is inherited by any entry of a leaf, a null age only by an ADDED one.
    return (*_REQUIRED, placement, *RULES, *(_untracked(column) for column in _TRACKING[1:]))


RULES_OF: Final[dict[str, tuple[Rule, ...]]] = {kind: _rules_of(kind) for kind in ALLOWED}

#: Rules for files that are still to be added, which nothing tracks yet.
_NEW: Final = (
    *_REQUIRED,
    _one_of("status", _STATUSES[:2], "status must be 1 ADDED, for a file that is to be added"),
    _one_of(
        "content_type",
        pa.array(sorted(FILES), _INT),
        "content_type must be 0 DATA, 1 POSITION_DELETES or 2 EQUALITY_DELETES",
    ),
    *RULES,
    _not_negative("sequence_number"),
)


def broken_rules(entries: Entries, kind: str) -> Iterator[str]:
    """Yield a sentence for each rule that some entry breaks, naming the first one that does."""
    return _broken(entries, RULES_OF[kind])


def broken_by_new(entries: Entries) -> Iterator[str]:
    """Do `broken_rules` for files that are still to be added."""
    return _broken(entries, _NEW)


def _broken(entries: Entries, rules: tuple[Rule, ...]) -> Iterator[str]:
    view = _View(entries)
    for rule in rules:
        if view.names.issuperset(rule.about):
            mask = rule.broken(view)
            if mask is not None and mask.true_count:
                yield _report(entries, mask, rule.says)
    for field_id in stats.fields_in(entries):
        for mask, says in broken_stats(_stats(view, field_id)):
            if mask.true_count:
                yield _report(entries, mask, f"{says} of field {field_id}")


def _stats(view: _View, field_id: int) -> dict[str, pa.Array]:
    named = {stat: stats.column(field_id, stat) for stat in CHECKED}
    return {stat: view[name] for stat, name in named.items() if name in view.names}


def broken_uniqueness(entries: Entries) -> Iterator[str]:
    """Yield a sentence for each name that stands live more than once."""
    named = entries.select(["content_type", "location", "referenced_file"])
    view = _View(only(named, is_live(entries)))
    for says, column, contents in (
        ("is live more than once", "location", (_DATA, _EQUALITY, _DATA_LEAF, _DELETE_LEAF)),
        ("has more than one data DV", "referenced_file", (_DATA_DV,)),
        ("has more than one manifest DV", "referenced_file", (_MANIFEST_DV,)),
    ):
        if not view.has_content(contents):
            continue
        names = view[column].filter(view.content_in(contents))
        if (name := first_repeated(names)) is not None:
            yield f"{name} {says}"


def require(entries: Entries, kind: str, *, file: str) -> None:
    """Raise `CorruptTable` for the first rule that the manifest's entries break."""
    for sentence in broken_rules(entries, kind):
        raise CorruptTable(file, sentence)


def require_unique(entries: Entries, *, file: str) -> None:
    """Raise `CorruptTable` where a file is live twice or has two deletion vectors."""
    for sentence in broken_uniqueness(entries):
        raise CorruptTable(file, sentence)


def _report(entries: Entries, mask: pa.BooleanArray, says: str) -> str:
    at = pc.index(mask, pa.scalar(True)).as_py()
    named = entries["location"][at].as_py() if "location" in entries.schema.names else None
    return f"{says} (entry {at}{f', {named}' if named else ''})"
