"""The clauses of a MERGE: what becomes of which rows, said in the same words in every door."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from typing_extensions import Self

from icetree.errors import InvalidInput
from icetree.spec.spelled import spelled

#: What a condition or a new value is given as.
V = TypeVar("V")
#: What comes of carrying it out.
T = TypeVar("T")

MATCHED: Final = "matched"
NOT_MATCHED: Final = "not matched"
NOT_MATCHED_BY_SOURCE: Final = "not matched by source"
DELETE, INSERT, REPLACE = "delete", "insert", "replace"

#: The sentence for a source that says two things of one row.
TWICE: Final = (
    "a row of the table matches more than one row of the source, so what becomes of it is "
    "not known: make the source's rows unique in the columns it is joined by"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause(Generic[V]):
    """When something happens, and what."""

    when: str
    action: str
    where: V | None = None
    #: New values by column; None for those of the source's columns of the same name.
    set: Mapping[str, V] | None = field(default_factory=dict)


#: Replace what matches, insert the rest.
UPSERT: Final[tuple[Clause[Any], ...]] = (
    Clause(when=MATCHED, action=REPLACE, set=None),
    Clause(when=NOT_MATCHED, action=INSERT, set=None),
)


def only_deletes(clauses: Sequence[Clause[Any]]) -> bool:
    """Tell whether a match means the end of a row, so that a second one changes nothing."""
    matched = [each for each in clauses if each.when == MATCHED]
    return [(each.action, each.where) for each in matched] == [(DELETE, None)]


def every_match_acts(clauses: Sequence[Clause[Any]]) -> bool:
    """Tell whether whatever matches changes its row, so that two for one row are a mistake."""
    acts = any(each.when == MATCHED and each.where is None for each in clauses)
    return acts and not only_deletes(clauses)


@spelled
class Clauses(ABC, Generic[V, T]):
    """A MERGE in the making; `run` carries it out."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._clauses: list[Clause[V]] = []

    def __repr__(self) -> str:
        return f"Merge({self._table!r}, {len(self._clauses)} clauses)"

    def when_matched_update(self, set: Mapping[str, V], where: V | None = None) -> Self:
        """Set columns of rows that have a match."""
        return self._add(Clause(when=MATCHED, action=REPLACE, where=where, set=set))

    def when_matched_update_all(self, where: V | None = None) -> Self:
        """Set every column to the source's of the same name."""
        return self._add(Clause(when=MATCHED, action=REPLACE, where=where, set=None))

    def when_matched_delete(self, where: V | None = None) -> Self:
        """Delete rows that have a match."""
        return self._add(Clause(when=MATCHED, action=DELETE, where=where))

    def when_not_matched_insert(self, set: Mapping[str, V], where: V | None = None) -> Self:
        """Insert rows of the source that match nothing."""
        return self._add(Clause(when=NOT_MATCHED, action=INSERT, where=where, set=set))

    def when_not_matched_insert_all(self, where: V | None = None) -> Self:
        """Insert rows of the source that match nothing, by column names."""
        return self._add(Clause(when=NOT_MATCHED, action=INSERT, where=where, set=None))

    def when_not_matched_by_source_update(
        self, set: Mapping[str, V], where: V | None = None
    ) -> Self:
        """Set columns of rows that the source has no match for."""
        return self._add(Clause(when=NOT_MATCHED_BY_SOURCE, action=REPLACE, where=where, set=set))

    def when_not_matched_by_source_delete(self, where: V | None = None) -> Self:
        """Delete rows that the source has no match for."""
        return self._add(Clause(when=NOT_MATCHED_BY_SOURCE, action=DELETE, where=where))

    def run(self) -> T:
        """Carry it out."""
        if not self._clauses:
            raise InvalidInput(
                f"table {self._table}: say what to do, with a when_... clause of the merge"
            )
        return self._carried_out(tuple(self._clauses))

    @abstractmethod
    def _carried_out(self, clauses: Sequence[Clause[V]]) -> T:
        """Do what the clauses say."""

    def _add(self, clause: Clause[V]) -> Self:
        before = [each for each in self._clauses if each.when == clause.when]
        if before and before[-1].where is None:
            raise InvalidInput(
                f"table {self._table}: no clause of a merge for {clause.when} rows can follow one "
                "without a condition, which takes them all"
            )
        self._clauses.append(clause)
        return self
