"""One pruning rule for root, leaf and row group alike: what stats say of a predicate.

`may_match` is false only where no row can match, `must_match` true only where every row does.
What stats do not tell (a missing column, a null, a NaN bound) is unknown: it prunes nothing and
proves nothing. A bound that is not tight is safe for both, since values lie within the bounds.

Beside Iceberg's own metrics evaluators this one prunes a little more: by `!=` and `not in` where
all values are one, by counts where nulls and NaNs together leave no value, by the stats of
expressions; and it proves less: a count that is missing proves nothing, and a null is no proof
of `!=`, because in SQL it satisfies no comparison.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression

from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import Entries
from icetree.spec.entry.stats import column
from icetree.spec.fields import GEO_AXES
from icetree.spec.geo import Numbers, meet
from icetree.tree.prune.bind import bind
from icetree.tree.prune.bounds import no_value_between
from icetree.tree.prune.field_bounds import field_bounds
from icetree.tree.prune.known import Known, all_of, any_of
from icetree.tree.prune.predicates import (
    Atom,
    Every,
    Fixed,
    Node,
    Op,
    Placed,
    Predicate,
    Some,
    Test,
)

__all__ = [
    "Predicate",
    "bind",
    "columns_needed",
    "conjunct_masks",
    "may_match",
    "must_match",
    "residuals",
]

#: Residuals tell at most this many conjuncts apart, one bit each; later ones always stay.
_MAX_CONJUNCTS: Final = 62

_NEGATION: Final[dict[Op, Op]] = {
    Op.LT: Op.GE,
    Op.GE: Op.LT,
    Op.LE: Op.GT,
    Op.GT: Op.LE,
    Op.EQ: Op.NE,
    Op.NE: Op.EQ,
    Op.IN: Op.NOT_IN,
    Op.NOT_IN: Op.IN,
    Op.STARTS: Op.NOT_STARTS,
    Op.NOT_STARTS: Op.STARTS,
}
#: Tests that a null or a NaN satisfies.
_NEGATIVE: Final = frozenset({Op.NE, Op.NOT_IN, Op.NOT_STARTS})


def may_match(entries: Entries, predicate: Predicate) -> pa.BooleanArray:
    """Return, for each entry, false only where no row below it can match; never null."""
    stats = _Stats(entries)
    parts = [_never(part.node, stats) for part in predicate.conjuncts]
    if parts:
        parts.append(stats.empty())
    return stats.mask(any_of(parts), invert=True)


def must_match(entries: Entries, predicate: Predicate) -> pa.BooleanArray:
    """Return, for each entry, true only where every row below it matches; never null."""
    stats = _Stats(entries)
    if not predicate.conjuncts:
        return stats.all(True)
    every = all_of([_always(part.node, stats) for part in predicate.conjuncts])
    return stats.mask(any_of([every, stats.empty()]))


def conjunct_masks(
    entries: Entries, predicate: Predicate
) -> list[tuple[BooleanExpression, pa.BooleanArray]]:
    """Return `may_match` of each conjunct alone: which of them prunes what."""
    stats = _Stats(entries)
    return [
        (part.expression, stats.mask(_never(part.node, stats), invert=True))
        for part in predicate.conjuncts
    ]


def columns_needed(predicate: Predicate) -> frozenset[str]:
    """Return the stats columns that judging the predicate looks at."""
    return predicate.columns


def residuals(
    entries: Entries, predicate: Predicate
) -> tuple[pa.Int32Array, list[BooleanExpression]]:
    """Return what is left to check on the rows of each entry, as codes into a list.

    A conjunct that every row of an entry satisfies drops out of its residual.
    """
    stats = _Stats(entries)
    bits = np.zeros(entries.num_rows, np.int64)
    told_apart = predicate.conjuncts[:_MAX_CONJUNCTS]
    for at, part in enumerate(told_apart):
        holds = any_of([_always(part.node, stats), stats.empty()])
        if holds is not None:
            bits |= stats.mask(holds).to_numpy(zero_copy_only=False).astype(np.int64) << at
    distinct, codes = np.unique(bits, return_inverse=True)
    kept = [
        [
            part.expression
            for at, part in enumerate(predicate.conjuncts)
            if at >= len(told_apart) or not known >> at & 1
        ]
        for known in distinct.tolist()
    ]
    return pa.array(codes.astype(np.int32)), [_conjunction(parts) for parts in kept]


def _conjunction(parts: list[BooleanExpression]) -> BooleanExpression:
    match parts:
        case []:
            return AlwaysTrue()
        case [one]:
            return one
    both: BooleanExpression = And(*parts)
    return both


class _Stats:
    """The stats columns of entries as plain arrays, each looked up once."""

    def __init__(self, entries: pa.Table) -> None:
        self._entries = entries
        self._names = frozenset(entries.schema.names)
        self._found: dict[str, pa.Array | None] = {}
        self.size: int = entries.num_rows

    def __call__(self, test: Test, stat: str) -> pa.Array | None:
        found = self.column(column(test.field_id, stat))
        if test.within is not None:
            # How many rows have the field at all, or a null in it, is not told.
            is_bound = found is not None and stat in ("lower", "upper")
            return field_bounds(found, test.within) if is_bound else None
        if found is None or stat not in ("lower", "upper") or found.type == test.values.type:
            return found
        try:
            return found.cast(test.values.type)
        except pa.ArrowException:
            return None

    def column(self, name: str) -> pa.Array | None:
        """Return a column, None where it tells nothing: it is missing, or all null."""
        if name not in self._found:
            self._found[name] = self._column(name)
        return self._found[name]

    def _column(self, name: str) -> pa.Array | None:
        if name not in self._names:
            return None
        chunked = self._entries[name]
        if chunked.null_count == len(chunked):
            return None
        return one_chunk(chunked)

    def empty(self) -> Known:
        """Tell which entries have no row (or, a manifest, no entry)."""
        rows = self.column("record_count")
        return None if rows is None else pc.equal(rows, 0)

    def all(self, value: bool) -> pa.BooleanArray:
        return pa.repeat(pa.scalar(value), self.size)

    def mask(self, known: Known, *, invert: bool = False) -> pa.BooleanArray:
        if known is None:
            return self.all(invert)
        if known.null_count:
            known = pc.fill_null(known, False)
        return pc.invert(known) if invert else known


def _never(node: Node, stats: _Stats) -> Known:
    """Tell where no row satisfies the node."""
    match node:
        case Atom():
            return any_of(_told(test, _no_row(test, stats), stats) for test in node.may)
        case Placed():
            return _elsewhere(node, stats)
        case Every():
            return any_of(_never(part, stats) for part in node.parts)
        case Some():
            return all_of(_never(part, stats) for part in node.parts)
        case Fixed():
            return None if node.value else stats.all(True)


def _always(node: Node, stats: _Stats) -> Known:
    """Tell where every row satisfies the node."""
    match node:
        case Atom():
            return any_of(_told(test, _every_row(test, stats), stats) for test in node.must)
        case Placed():
            return None
        case Every():
            return all_of(_always(part, stats) for part in node.parts)
        case Some():
            return any_of(_always(part, stats) for part in node.parts)
        case Fixed():
            return stats.all(True) if node.value else None


def _elsewhere(node: Placed, stats: _Stats) -> Known:
    """Tell where no geometry is in the box, be it that there is none."""
    count, values = (stats.column(column(node.field_id, stat)) for stat in ("nulls", "values"))
    nowhere = None if count is None or values is None else _same_count(count, values)
    lower, upper = (stats.column(column(node.field_id, stat)) for stat in ("lower", "upper"))
    if node.negated or lower is None or upper is None:
        return nowhere
    low, high = _corners(lower, -np.inf), _corners(upper, np.inf)
    # A box that is not told, or only in part, may be anywhere.
    told = ~(np.isnan(low) | np.isnan(high))[:, :2].any(axis=1)
    apart = told & ~meet(low, high, node.box, earth=node.earth)
    return any_of([nowhere, pa.array(apart)])


def _corners(bounds: pa.StructArray, beyond: float) -> Numbers:
    """Return each corner; where x and y are not told NaN, where z and m are not, beyond all."""
    axes = (
        pc.fill_null(pc.struct_field(bounds, axis), np.nan if axis in ("x", "y") else beyond)
        for axis in GEO_AXES
    )
    return np.stack([axis.to_numpy(zero_copy_only=False) for axis in axes], axis=1)


def _told(test: Test, known: Known, stats: _Stats) -> Known:
    """Return what is known by a test, as far as it tells anything."""
    return all_of([known, *(_no_row(each, stats) for each in test.unless)])


def _no_row(test: Test, stats: _Stats) -> Known:
    match test.op:
        case Op.IS_NULL:
            return _none_are(test, stats, "nulls")
        case Op.NOT_NULL:
            return _all_are(test, stats, "nulls")
        case Op.IS_NAN:
            return any_of([_none_are(test, stats, "nans"), _all_are(test, stats, "nulls")])
        case Op.NOT_NAN:
            return _all_are(test, stats, "nans")
    if test.op in _NEGATIVE:
        return all_of([_no_value(test, test.op, stats), *_only_values(test, stats)])
    return any_of([_no_value(test, test.op, stats), _valueless(test, stats)])


def _every_row(test: Test, stats: _Stats) -> Known:
    match test.op:
        case Op.IS_NULL:
            return _all_are(test, stats, "nulls")
        case Op.NOT_NULL:
            return _none_are(test, stats, "nulls")
        case Op.IS_NAN:
            return _all_are(test, stats, "nans")
        case Op.NOT_NAN:
            return any_of([_none_are(test, stats, "nans"), _all_are(test, stats, "nulls")])
    unbroken = _no_value(test, _NEGATION[test.op], stats)
    if test.op in _NEGATIVE:
        nulls = _none_are(test, stats, "nulls")
        return all_of([any_of([unbroken, _valueless(test, stats)]), nulls])
    return all_of([unbroken, *_only_values(test, stats)])


def _none_are(test: Test, stats: _Stats, kind: str) -> Known:
    count = stats(test, kind)
    return None if count is None else pc.equal(count, 0)


def _all_are(test: Test, stats: _Stats, kind: str) -> Known:
    count, values = stats(test, kind), stats(test, "values")
    return None if count is None or values is None else _same_count(count, values)


def _same_count(count: pa.Array, values: pa.Array) -> pa.BooleanArray:
    # Where the column has no value at all, "all of them" would claim what is not known.
    return pc.and_kleene(pc.equal(count, values), pc.greater(values, 0))


def _only_values(test: Test, stats: _Stats) -> list[Known]:
    """Return what must hold for a field to have neither nulls nor NaNs."""
    nulls = _none_are(test, stats, "nulls")
    return [nulls, _none_are(test, stats, "nans")] if test.floating else [nulls]


def _valueless(test: Test, stats: _Stats) -> Known:
    """Tell where the field has nulls and NaNs only."""
    nulls = _all_are(test, stats, "nulls")
    if not test.floating:
        return nulls
    both: Known = None
    counts = [stats(test, stat) for stat in ("nulls", "nans", "values")]
    if all(count is not None for count in counts):
        both = _same_count(pc.add(counts[0], counts[1]), counts[2])
    return any_of([nulls, _all_are(test, stats, "nans"), both])


def _no_value(test: Test, op: Op, stats: _Stats) -> Known:
    """Tell where no value, nulls and NaNs aside, is `op` the test's literals."""
    if op is Op.IN and len(test.values) == 0:
        return stats.all(True)
    return no_value_between(stats(test, "lower"), stats(test, "upper"), op, test.values)
