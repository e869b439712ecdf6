"""Predicates on rows: what a filter, or what planning left of it, says of each row of a batch.

As in SQL a null satisfies nothing but `is null`; as in IEEE 754 a NaN satisfies no comparison
but `!=`. Literals are compared as values of the column's type, as Iceberg does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg import expressions as ice
from pyiceberg.expressions import visitors
from pyiceberg.schema import Schema
from pyiceberg.transforms import BoundTransform, IdentityTransform
from pyiceberg.types import IcebergType

from icetree.codec.wkb import boxes
from icetree.errors import InvalidInput, Unsupported
from icetree.rows.schema import plain
from icetree.rows.transform import transformed
from icetree.rows.variant import extracted
from icetree.spec.arrays import one_chunk
from icetree.spec.geo import Box, meet
from icetree.spec.schema.types import bounds_type, edges_of, has_nans
from icetree.tree.prune import literals
from icetree.tree.prune.bind import require_extracted
from icetree.tree.prune.boxes import placed
from icetree.tree.prune.literals import Fit
from icetree.tree.prune.predicates import BoundExtracted, Intersects, no_column, operands

#: Gives the values of a field, by its id.
Values = Callable[[int], pa.Array]
#: Judges each row: true, false, or null for unknown.
_Judge = Callable[[Values, int], pa.Array]

_COMPARE: Final[dict[type[Any], Callable[[Any, Any], Any]]] = {
    ice.LessThan: pc.less,
    ice.LessThanOrEqual: pc.less_equal,
    ice.GreaterThan: pc.greater,
    ice.GreaterThanOrEqual: pc.greater_equal,
    ice.EqualTo: pc.equal,
    ice.NotEqualTo: pc.not_equal,
}
#: What holds for every value when the literal is above, or below, all of them.
_BEYOND: Final[dict[type[Any], Fit | None]] = {
    ice.LessThan: Fit.ABOVE,
    ice.LessThanOrEqual: Fit.ABOVE,
    ice.GreaterThan: Fit.BELOW,
    ice.GreaterThanOrEqual: Fit.BELOW,
    ice.EqualTo: None,
}
#: How values compare with a literal that lies between two of them, by the lesser.
_BETWEEN: Final[dict[type[Any], type[Any]]] = {
    ice.LessThan: ice.LessThanOrEqual,
    ice.GreaterThanOrEqual: ice.GreaterThan,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """A predicate, bound to columns."""

    #: The fields it looks at.
    field_ids: frozenset[int]
    judge: _Judge

    def mask(self, values: Values, size: int) -> pa.BooleanArray:
        """Return true for each of `size` rows that satisfies it, else false; never null."""
        found = self.judge(values, size)
        if isinstance(found, pa.ChunkedArray):
            found = found.combine_chunks()
        return pc.fill_null(found, False) if found.null_count else found


def row_filter(
    predicate: ice.BooleanExpression, schema: Schema, *, case_sensitive: bool = True
) -> RowFilter:
    """Return the predicate as a test of rows; what does not fit the schema is `InvalidInput`."""
    plainly = visitors.rewrite_not(predicate)
    seen: set[int] = set()
    judge = _judge(plainly, schema, case_sensitive, seen)
    return RowFilter(field_ids=frozenset(seen), judge=judge)


def _judge(
    predicate: ice.BooleanExpression, schema: Schema, case_sensitive: bool, seen: set[int]
) -> _Judge:
    match predicate:
        case ice.AlwaysTrue():
            return lambda _, size: pa.repeat(pa.scalar(True), size)
        case ice.AlwaysFalse():
            return lambda _, size: pa.repeat(pa.scalar(False), size)
        case ice.And() | ice.Or():
            kind = type(predicate)
            join = pc.and_kleene if isinstance(predicate, ice.And) else pc.or_kleene
            parts = [
                _judge(part, schema, case_sensitive, seen) for part in operands(predicate, kind)
            ]
            return lambda values, size: _joined(join, [part(values, size) for part in parts])
        case Intersects():
            return _intersects(predicate, schema, case_sensitive, seen)
    if not isinstance(predicate, ice.UnboundPredicate | ice.BoundPredicate):
        raise InvalidInput(f"{predicate!r} is not a predicate that rows can be tested for")
    return _leaf(predicate, schema, case_sensitive, seen)


def _intersects(
    predicate: Intersects, schema: Schema, case_sensitive: bool, seen: set[int]
) -> _Judge:
    wanted = placed(predicate, schema, case_sensitive=case_sensitive)
    seen.add(wanted.field_id)
    edges = edges_of(schema.find_type(wanted.field_id))

    def judge(values: Values, _: int) -> pa.Array:
        found = in_box(one_chunk(plain(values(wanted.field_id))), wanted.box, edges)
        return pc.invert(found) if wanted.negated else found

    return judge


def in_box(values: pa.Array, box: Box, edges: str | None) -> pa.Array:
    """Tell which geometries have a place in a box; null of what is none.

    `edges` tells how a geography goes between two places; None is for a plane.
    """
    found = boxes(values, edges=edges)
    inside = meet(found.least, found.most, box, earth=found.earth)
    return pa.array(inside, mask=~found.sound)


def _joined(join: Callable[[Any, Any], Any], found: Sequence[pa.Array]) -> pa.Array:
    first, *rest = found
    for each in rest:
        first = join(first, each)
    return first


def _leaf(predicate: Any, schema: Schema, case_sensitive: bool, seen: set[int]) -> _Judge:
    term = predicate.term
    if isinstance(term, ice.UnboundTerm):
        try:
            term = term.bind(schema, case_sensitive)
        except ValueError:
            raise no_column(term, schema) from None
    source = term.ref().field
    seen.add(source.field_id)
    type_, name, read = source.field_type, source.name, _reader(source.field_id)
    if isinstance(term, BoundExtracted):
        require_extracted(term)
        type_, name = term.type, f"variant_get({name})"
        read = _extracting(source.field_id, term)
    if isinstance(term, BoundTransform) and not isinstance(term.transform, IdentityTransform):
        transform = term.transform
        if not transform.can_transform(type_):
            raise InvalidInput(f"column {name!r} is {type_}: {transform} does not take it")
        read = _transforming(source.field_id, transform, type_)
        type_, name = transform.result_type(type_), f"{transform}({name})"
    return _test(_kind(predicate), predicate, read, type_, name)


def _kind(predicate: Any) -> type[Any]:
    """Return the unbound class of a predicate, bound or not."""
    kind: type[Any] = type(predicate)
    if isinstance(predicate, ice.BoundPredicate):
        kind = predicate.as_unbound
    return kind


def _extracting(field_id: int, term: BoundExtracted) -> Callable[[Values], pa.Array]:
    return lambda values: extracted(one_chunk(values(field_id)), term.path, term.type)


def _reader(field_id: int) -> Callable[[Values], pa.Array]:
    return lambda values: plain(values(field_id))


def _transforming(
    field_id: int, transform: Any, source: IcebergType
) -> Callable[[Values], pa.Array]:
    return lambda values: transformed(values(field_id), transform, source)


def _test(
    kind: type[Any],
    predicate: Any,
    read: Callable[[Values], pa.Array],
    type_: IcebergType,
    name: str,
) -> _Judge:
    floating = has_nans(type_)
    if kind is ice.IsNull:
        return lambda values, _: pc.is_null(read(values))
    if kind is ice.NotNull:
        return lambda values, _: pc.is_valid(read(values))
    if kind is ice.IsNaN:
        if not floating:
            return lambda _, size: pa.repeat(pa.scalar(False), size)
        return lambda values, _: pc.fill_null(pc.is_nan(read(values)), False)
    if kind is ice.NotNaN:
        if not floating:
            return lambda _, size: pa.repeat(pa.scalar(True), size)
        return lambda values, _: pc.fill_null(pc.invert(pc.is_nan(read(values))), True)
    if bounds_type(type_) is None or pa.types.is_struct(bounds_type(type_)):
        raise Unsupported(f"{name!r} is {type_}: rows cannot be compared by it here")
    if kind in (ice.In, ice.NotIn):
        return _among(predicate, read, type_, name, negate=kind is ice.NotIn)
    if kind in (ice.StartsWith, ice.NotStartsWith):
        return _prefixed(predicate, read, type_, name, negate=kind is ice.NotStartsWith)
    return _compared(kind, predicate, read, type_, name)


def _compared(
    kind: type[Any],
    predicate: Any,
    read: Callable[[Values], pa.Array],
    type_: IcebergType,
    name: str,
) -> _Judge:
    value, fit = literals.fit(predicate.literal, type_, name)
    is_between = fit is Fit.BETWEEN
    if fit in (Fit.ABOVE, Fit.BELOW) or (is_between and kind in (ice.EqualTo, ice.NotEqualTo)):
        holds = kind is ice.NotEqualTo or _BEYOND.get(kind) is fit
        constant = pa.scalar(holds)
        # Null for a null: it satisfies no comparison, whatever the literal.
        return lambda values, _: pc.if_else(
            pc.is_valid(read(values)), constant, pa.scalar(None, pa.bool_())
        )
    compare = _COMPARE[_BETWEEN.get(kind, kind) if is_between else kind]
    one = _one(value, type_, name)
    return lambda values, _: compare(read(values), one)


def _one(value: Any, type_: IcebergType, name: str) -> pa.Scalar:
    found = literals.array([value], type_)
    if found is None:
        raise InvalidInput(f"{name!r} is {type_}: it cannot be compared with {value!r}")
    return found[0]


def _among(
    predicate: Any,
    read: Callable[[Values], pa.Array],
    type_: IcebergType,
    name: str,
    *,
    negate: bool,
) -> _Judge:
    fits = [literals.fit(literal, type_, name) for literal in predicate.literals]
    found = {value for value, fit in fits if fit in (Fit.EXACT, Fit.ROUNDED)}
    listed = literals.array(found, type_)
    if listed is None:
        raise InvalidInput(f"{name!r} is {type_}: it cannot be compared with {sorted(found)!r}")

    def judge(values: Values, size: int) -> pa.Array:
        array = read(values)
        if pa.types.is_floating(array.type):
            # A set tells the two zeros apart, a comparison does not.
            no = pa.repeat(pa.scalar(False), size)
            inside = _joined(pc.or_kleene, [no, *(pc.equal(array, each) for each in listed)])
        else:
            inside = pc.is_in(array, value_set=listed)
        return pc.and_(pc.is_valid(array), pc.invert(inside) if negate else inside)

    return judge


def _prefixed(
    predicate: Any,
    read: Callable[[Values], pa.Array],
    type_: IcebergType,
    name: str,
    *,
    negate: bool,
) -> _Judge:
    prefix, _ = literals.fit(predicate.literal, type_, name)
    if not isinstance(prefix, str | bytes):
        raise InvalidInput(f"{name!r} is {type_}: its values have no prefix to compare")

    def judge(values: Values, _: int) -> pa.Array:
        array = read(values)
        if pa.types.is_fixed_size_binary(array.type):
            array = array.cast(pa.binary())
        starts = pc.starts_with(array, pattern=prefix)
        return pc.invert(starts) if negate else starts

    return judge
