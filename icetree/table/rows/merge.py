"""MERGE: what becomes of each row of the table, and of each row of a source beside it.

Keys are read first; of rows that match only what the clauses look at, or leave as it is. The first
clause that applies to a pair wins. One pass writes new rows and gathers those that go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from typing_extensions import override

from icetree.errors import InvalidInput
from icetree.rows.matching.assign import AllColumns, Assignment
from icetree.rows.matching.keys import Numbers
from icetree.rows.matching.terms import Scope, Side, Term
from icetree.rows.schema import null_array
from icetree.spec.shape import Shape
from icetree.table.commit.counts import RowCounts
from icetree.table.rows.change import Gone, carry_out, require_fit, with_lineage
from icetree.table.rows.clauses import (
    DELETE,
    INSERT,
    MATCHED,
    NOT_MATCHED,
    NOT_MATCHED_BY_SOURCE,
    REPLACE,
    Clause,
    Clauses,
    only_deletes,
)
from icetree.table.rows.condition import table_side
from icetree.table.rows.matching import Matching, keys_of, slices
from icetree.table.rows.target import Target, positions_of

T = TypeVar("T")


class Merge(Clauses[Any, T]):
    """A MERGE of rows in one process."""

    def __init__(self, table: str, run: Callable[[Sequence[Clause[Any]]], T]) -> None:
        super().__init__(table)
        self._run = run

    @override
    def _carried_out(self, clauses: Sequence[Clause[Any]]) -> T:
        return self._run(clauses)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """A clause over columns that there are."""

    action: str
    where: Term | None
    setting: Assignment | AllColumns


class Merging:
    """A merge on its way: a source in memory, a table, and clauses bound to both."""

    def __init__(
        self,
        target: Callable[[BooleanExpression], Target],
        shape: Shape,
        source: pa.Table,
        on: Sequence[str],
        clauses: Sequence[Clause[Any]],
        *,
        table: str,
    ) -> None:
        self._source, self._table = source.combine_chunks(), table
        self._shape = shape
        self._sides = (table_side(shape), Side(name="source", schema=source.schema))
        self._matching = Matching(keys_of(on, shape, source.schema, table=table), source)
        looks_at_all = any(each.when == NOT_MATCHED_BY_SOURCE for each in clauses)
        self._target = target(AlwaysTrue() if looks_at_all else self._matching.filter(shape))
        self._matched, self._alone, self._others = (
            [self._bound(each) for each in clauses if each.when == when]
            for when in (MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE)
        )
        self._ends_rows = only_deletes(clauses)
        self._gone = Gone()
        self._inserted = self._updated = 0
        self._seen = np.zeros(source.num_rows, np.bool_)

    def carry_out(self) -> RowCounts:
        """Add to the transaction what becomes of rows; return how many."""
        self._require_fit()
        carry_out(self._target, self._gone, self._new())
        return RowCounts(
            inserted=self._inserted,
            updated=self._updated,
            deleted=self._gone.count - self._updated,
        )

    # --- clauses -----------------------------------------------------------------------------

    def _bound(self, clause: Clause[Any]) -> _Bound:
        own, source = self._sides
        scope = {
            MATCHED: Scope(sides=self._sides),
            NOT_MATCHED: Scope(sides=(source,), absent=(own,)),
            NOT_MATCHED_BY_SOURCE: Scope(sides=(own,), absent=(source,)),
        }[clause.when]
        values: Mapping[str, Any] = clause.set if clause.set is not None else {}
        schema = self._shape.schema
        return _Bound(
            action=clause.action,
            where=None if clause.where is None else scope.condition(clause.where),
            setting=AllColumns(self._names())
            if clause.set is None
            else Assignment(values, schema, scope, table=self._table),
        )

    def _names(self) -> list[str]:
        names = [field.name for field in self._shape.schema.fields]
        for name in names:
            if name not in self._source.column_names:
                raise InvalidInput(
                    f"table {self._table}: the source has no column {name!r}, so that all "
                    "columns cannot be set: say which are set to what"
                )
        return names

    @cached_property
    def _looked_at(self) -> list[str]:
        """The columns of the source that clauses look at."""
        found: set[str] = set()
        for each in (*self._matched, *self._alone, *self._others):
            terms = [*each.setting.terms, *([each.where] if each.where else [])]
            found |= {name for term in terms for side, name in term.needs if side == "source"}
            if isinstance(each.setting, AllColumns):
                found |= each.setting.whole
        return [name for name in self._source.column_names if name in found]

    def _needed(self, clauses: Sequence[_Bound]) -> set[str]:
        """Return the columns of the table that clauses look at, or leave as they are."""
        found: set[str] = set()
        for each in clauses:
            terms = [*each.setting.terms, *([each.where] if each.where else [])]
            found |= {name for term in terms for side, name in term.needs if side == "target"}
            if each.action == REPLACE:
                found |= {field.name for field in self._target.fields} - each.setting.whole
        return found

    def _require_fit(self) -> None:
        """Refuse values that do not fit, even if no row comes to have them."""
        own = {field.name: null_array(field.field_type, 0) for field in self._target.fields}
        none = np.zeros(0, np.int64)
        for clauses, old in ((self._matched, own), (self._alone, {}), (self._others, own)):
            for each in clauses:
                columns = self._columns(old, none)
                if each.where is not None:
                    each.where.holds(columns, 0)
                if each.action != DELETE:
                    made = old | each.setting.values(columns, old, 0)
                    require_fit(
                        self._target, with_lineage(self._target, made, pa.array([], pa.int64()))
                    )

    # --- rows --------------------------------------------------------------------------------

    def _new(self) -> Iterator[pa.RecordBatch]:
        """Yield new rows; who takes them all has also gathered those that go."""
        yield from self._of_table() if self._others else self._of_pairs()
        if self._alone:
            for numbers in slices(np.flatnonzero(~self._seen)):
                yield from self._judged(self._alone, None, {}, numbers, len(numbers))

    def _of_pairs(self) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of rows that match, which are read once it is known which."""
        found = {task: pairs.joined() for task, pairs in self._matching.pairs(self._target).items()}
        for _, sources in found.values():
            self._seen[sources] = True
        if not found or not self._matched:
            return
        picked = {task: np.unique(positions) for task, (positions, _) in found.items()}
        names = self._needed(self._matched)
        for task, batch in self._target.read(names, lineage=True, picked=picked):
            here = positions_of(batch)
            positions, sources = found[task]
            first, last = np.searchsorted(positions, [here[0], here[-1] + 1])
            rows = np.searchsorted(here, positions[first:last])
            yield from self._judged_rows(self._matched, task, batch, rows, sources[first:last])

    def _of_table(self) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of rows, all of which are looked at."""
        names = self._needed([*self._matched, *self._others]) | {*self._matching.names}
        for task, batch in self._target.read(names, lineage=True):
            rows, sources = self._matching.find(batch)
            self._seen[sources] = True
            alone = np.ones(batch.num_rows, np.bool_)
            alone[rows] = False
            yield from self._judged_rows(self._matched, task, batch, rows, sources)
            yield from self._judged_rows(self._others, task, batch, np.flatnonzero(alone), None)

    def _judged_rows(
        self,
        clauses: Sequence[_Bound],
        task: int,
        batch: pa.RecordBatch,
        rows: Numbers,
        sources: Numbers | None,
    ) -> Iterator[pa.RecordBatch]:
        if not clauses or not len(rows):
            return
        taken = batch.take(pa.array(rows))
        names = [field.name for field in self._target.fields]
        old = {name: taken.column(name) for name in names if name in taken.schema.names}
        row_ids = taken.column(self._target.lineage[0].name)
        place = (task, positions_of(taken), row_ids)
        yield from self._judged(clauses, place, old, sources, len(rows))

    def _judged(
        self,
        clauses: Sequence[_Bound],
        place: tuple[int, Numbers, pa.Array] | None,
        old: Mapping[str, pa.Array],
        sources: Numbers | None,
        size: int,
    ) -> Iterator[pa.RecordBatch]:
        """Yield new rows of pairs of a row of the table and one of the source, of which one may lack."""
        left: Numbers = np.arange(size)
        for clause in clauses:
            if not len(left):
                return
            here = {name: values.take(pa.array(left)) for name, values in old.items()}
            columns = self._columns(here, None if sources is None else sources[left])
            acts = np.ones(len(left), np.bool_)
            if clause.where is not None:
                acts = clause.where.holds(columns, len(left)).to_numpy(zero_copy_only=False)
            chosen, left_over = left[acts], left[~acts]
            if len(chosen):
                if clause.where is not None:
                    mask = pa.array(acts)
                    here = {name: values.filter(mask) for name, values in here.items()}
                    columns = {name: values.filter(mask) for name, values in columns.items()}
                yield from self._done(clause, place, here, columns, chosen)
            left = left_over

    def _done(
        self,
        clause: _Bound,
        place: tuple[int, Numbers, pa.Array] | None,
        old: Mapping[str, pa.Array],
        columns: Mapping[tuple[str, str], pa.Array],
        chosen: Numbers,
    ) -> Iterator[pa.RecordBatch]:
        row_ids = pa.nulls(len(chosen), pa.int64())
        if place is not None:
            task, positions, ids = place
            self._gone.add(task, positions[chosen], once=not self._ends_rows)
            row_ids = ids.take(pa.array(chosen))
        if clause.action == DELETE:
            return
        if clause.action == INSERT:
            self._inserted += len(chosen)
        else:
            self._updated += len(chosen)
        new = {**old, **clause.setting.values(columns, old, len(chosen))}
        yield with_lineage(self._target, new, row_ids)

    def _columns(
        self, old: Mapping[str, pa.Array], sources: Numbers | None
    ) -> dict[tuple[str, str], pa.Array]:
        """Return the columns that expressions may look at."""
        found = {("target", name): values for name, values in old.items()}
        if sources is not None:
            taken = self._source.select(self._looked_at).take(pa.array(sources)).combine_chunks()
            for name, values in zip(taken.column_names, taken.columns, strict=True):
                one = values.chunk(0) if values.num_chunks else pa.array([], values.type)
                found["source", name] = one
        return found
