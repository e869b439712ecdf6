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
from icetree.spec.schema.shape import Shape
from icetree.spec.texts import did_you_mean
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
    every_match_acts,
    only_deletes,
)
from icetree.table.rows.condition import table_side
from icetree.table.rows.matching import Matching, cuts, keys_of, sizes_of
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
        self._source, self._table = source, table
        self._shape = shape
        self._sides = (table_side(shape), Side(name="source", schema=source.schema))
        keys = keys_of(on, shape, source.schema, table=table)
        self._ends_rows = only_deletes(clauses)
        self._matching = Matching(keys, source, once=every_match_acts(clauses))
        looks_at_all = any(each.when == NOT_MATCHED_BY_SOURCE for each in clauses)
        self._target = target(AlwaysTrue() if looks_at_all else self._matching.filter(shape))
        self._matched, self._alone, self._others = (
            [self._bound(each) for each in clauses if each.when == when]
            for when in (MATCHED, NOT_MATCHED, NOT_MATCHED_BY_SOURCE)
        )
        self._gone = Gone()
        self._inserted = self._updated = 0

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
                    f"{did_you_mean(name, self._source.column_names)}"
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

    @cached_property
    def _sizes(self) -> Numbers:
        """About how many bytes each row of the source has that clauses look at."""
        return sizes_of(self._source.select(self._looked_at))

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
        yield from self._of_table() if self._others else self._of_matches()
        if self._alone:
            numbers = self._matching.unmatched()
            for cut in cuts(self._sizes[numbers]):
                part = numbers[cut]
                yield from self._judged(self._alone, None, {}, part, len(part))

    def _of_matches(self) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of rows that match, which are read once it is known which."""
        names = self._needed(self._matched)
        for found in self._matching.matches(self._target):
            if not self._matched:
                continue
            picked = {task: positions for task, (positions, _) in found.items()}
            for task, batch in self._target.read(names, lineage=True, picked=picked):
                positions, keys = found[task]
                keys = keys[np.searchsorted(positions, positions_of(batch))]
                yield from self._judged_matches(task, batch, np.arange(len(keys)), keys)

    def _of_table(self) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of rows, all of which are looked at."""
        names = self._needed([*self._matched, *self._others]) | {*self._matching.names}
        for task, batch in self._target.read(names, lineage=True):
            rows, keys = self._matching.find(batch)
            alone = np.ones(batch.num_rows, np.bool_)
            alone[rows] = False
            if self._matched:
                yield from self._judged_matches(task, batch, rows, keys)
            yield from self._judged_rows(self._others, task, batch.filter(pa.array(alone)), None)

    def _judged_matches(
        self, task: int, batch: pa.RecordBatch, rows: Numbers, keys: Numbers
    ) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of some rows of a batch, which have these keys."""
        if self._ends_rows:
            yield from self._judged_rows(self._matched, task, batch.take(pa.array(rows)), None)
            return
        size = batch.nbytes // batch.num_rows
        for at, sources in self._matching.pairs(keys):
            for cut in cuts(self._sizes[sources] + size):
                taken = batch.take(pa.array(rows[at[cut]]))
                yield from self._judged_rows(self._matched, task, taken, sources[cut])

    def _judged_rows(
        self,
        clauses: Sequence[_Bound],
        task: int,
        rows: pa.RecordBatch,
        sources: Numbers | None,
    ) -> Iterator[pa.RecordBatch]:
        if not clauses or not rows.num_rows:
            return
        names = [field.name for field in self._target.fields]
        old = {name: rows.column(name) for name in names if name in rows.schema.names}
        row_ids = rows.column(self._target.lineage[0].name)
        place = (task, positions_of(rows), row_ids)
        yield from self._judged(clauses, place, old, sources, rows.num_rows)

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
