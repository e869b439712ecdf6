"""A new default sort order, as updates of a table's metadata."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from icetree.errors import InvalidInput
from icetree.spec.edit.terms import read_term
from icetree.spec.metadata.layout import SortField, SortOrder
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import AddSortOrder, SetDefaultSortOrder, Update
from icetree.spec.spelled import spelled
from icetree.spec.texts import storable

_KEY: Final = re.compile(
    r"(?P<term>.*?)(?:\s+(?P<direction>asc|desc))?(?:\s+nulls\s+(?P<nulls>first|last))?",
    re.IGNORECASE | re.DOTALL,
)
Nulls = Literal["first", "last"]


@spelled
class SortEdit:
    """A sort order key by key, in place of the one that is; without keys, unsorted."""

    def __init__(self, metadata: TableMetadata) -> None:
        self._metadata = metadata
        self._schema = metadata.schema_json()
        self._keys: list[SortField] = []

    def __repr__(self) -> str:
        return f"SortEdit(keys={len(self._keys)})"

    def asc(self, by: str, *, nulls: Nulls | None = None) -> SortEdit:
        """Sort by a column or a transform next, least first; nulls first unless told."""
        return self._add(sort_key(by, self._schema, direction="asc", nulls=nulls))

    def desc(self, by: str, *, nulls: Nulls | None = None) -> SortEdit:
        """Sort by a column or a transform next, greatest first; nulls last unless told."""
        return self._add(sort_key(by, self._schema, direction="desc", nulls=nulls))

    def by(self, *order_by: str) -> SortEdit:
        """Sort by keys in words next: "ts desc", "bucket(4, id) asc nulls last"."""
        for key in read_keys(order_by, self._schema):
            self._add(key)
        return self

    def updates(self) -> tuple[Update, ...]:
        """Return what makes the order the default one; nothing if it is so."""
        keys = tuple(self._keys)
        for order in self._metadata.sort_orders:
            is_default = order.order_id == self._metadata.default_sort_order_id
            if is_default and order.fields == keys:
                return ()
        return (AddSortOrder(sort_order=SortOrder(order_id=0, fields=keys)), SetDefaultSortOrder())

    def _add(self, key: SortField) -> SortEdit:
        _require_new(key, self._keys)
        self._keys.append(key)
        return self


def read_keys(keys: Iterable[str], schema: Mapping[str, Any]) -> tuple[SortField, ...]:
    """Read the keys of a sort order: "ts desc", "bucket(4, id) asc nulls last"."""
    found: list[SortField] = []
    for text in keys:
        words = _KEY.fullmatch(storable(text, what="what to sort by").strip())
        assert words is not None
        direction: Any = (words["direction"] or "asc").lower()
        nulls: Any = words["nulls"].lower() if words["nulls"] else None
        key = sort_key(words["term"], schema, direction=direction, nulls=nulls)
        _require_new(key, found)
        found.append(key)
    return tuple(found)


def sort_key(
    term: str, schema: Mapping[str, Any], *, direction: Literal["asc", "desc"], nulls: Nulls | None
) -> SortField:
    """Return one key of a sort order."""
    if nulls not in {None, "first", "last"}:
        raise InvalidInput(f"nulls come first or last, not {nulls!r}")
    meant = read_term(term, schema, done="sort")
    one = meant.source_ids if len(meant.source_ids) == 1 else None
    return SortField(
        transform=meant.transform,
        source_id=None if one is None else one[0],
        source_ids=meant.source_ids if one is None else None,
        direction=direction,
        null_order=f"nulls-{nulls or ('first' if direction == 'asc' else 'last')}",
    )


def _require_new(key: SortField, others: Iterable[SortField]) -> None:
    if any((each.sources, each.transform) == (key.sources, key.transform) for each in others):
        raise InvalidInput(f"the sort order has {key.transform} of column {key.sources} twice")
