"""Binding: a caller's predicate becomes tests of stats columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias

from pyiceberg import expressions as ice
from pyiceberg.expressions import visitors
from pyiceberg.schema import Accessor
from pyiceberg.transforms import (
    BoundTransform,
    HourTransform,
    IdentityTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
)
from pyiceberg.types import (
    BinaryType,
    FixedType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
)

from icetree.codec.variant.coerce import can_be_asked_for
from icetree.codec.variant.paths import normalized
from icetree.errors import InvalidInput
from icetree.spec.schema.expressions import transform_of
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import VariantType, has_nans
from icetree.tree.prune import literals
from icetree.tree.prune.boxes import placed
from icetree.tree.prune.literals import Fit
from icetree.tree.prune.operators import BOUND, OPS, Literals, literals_of
from icetree.tree.prune.predicates import (
    UNARY,
    Atom,
    BoundExtracted,
    Conjunct,
    Every,
    Fixed,
    Intersects,
    Node,
    Op,
    Placed,
    Predicate,
    Some,
    Test,
    Unsure,
    Within,
    no_column,
    operands,
)
from icetree.tree.prune.several import tests_of_several

#: The tests that stand for a predicate on one field: (may, must), as `Atom` has them.
_Tests: TypeAlias = tuple[tuple[Test, ...], tuple[Test, ...]]
_Fits: TypeAlias = list[tuple[Any, Fit]]
_Project: TypeAlias = Callable[[str, Any], Any]

_HAS_PREFIXES: Final = (StringType, BinaryType, FixedType)

#: The sizes that numbers of a type may have had when their files were written.
_BITS: Final[dict[type[Any], tuple[int, ...]]] = {IntegerType: (32,), LongType: (32, 64)}

#: The hours of the last microseconds that there are; at 32 bits they come out on the other side.
_LAST_HOUR: Final = 2**63 // 3_600_000_000
_WRAPPED_HOURS: Final = ((Op.GE, {2**32 - _LAST_HOUR - 1}), (Op.LE, {_LAST_HOUR - 2**32}))


def bind(
    predicate: ice.BooleanExpression, shape: Shape, *, case_sensitive: bool = True
) -> Predicate:
    """Return the predicate as tests of stats; what does not fit the schema is `InvalidInput`.

    Predicates that are bound already are taken as they are.
    """
    if not isinstance(predicate, ice.BooleanExpression):
        raise InvalidInput(f"{predicate!r} is not a predicate")
    plain = visitors.rewrite_not(predicate)
    parts = [part for part in operands(plain, ice.And) if not isinstance(part, ice.AlwaysTrue)]
    conjuncts = [
        Conjunct(expression=part, node=_node(part, shape, case_sensitive)) for part in parts
    ]
    if any(each.buckets is not None for each in shape.expressions.values()):
        _rule_out_together(
            conjuncts, tests_of_several(_pinned(parts, shape, case_sensitive), shape)
        )
    return Predicate(
        conjuncts=tuple(conjuncts),
        columns=frozenset(name for part in conjuncts for name in _columns(part.node)),
    )


def _rule_out_together(conjuncts: list[Conjunct], tests: tuple[Test, ...]) -> None:
    """Let one of the parts rule out what all of them do together."""
    for at, each in enumerate(conjuncts):
        if isinstance(each.node, Atom):
            conjuncts[at] = replace(each, node=replace(each.node, may=each.node.may + tests))
            return


def _pinned(
    parts: Iterable[ice.BooleanExpression], shape: Shape, case_sensitive: bool
) -> dict[int, tuple[Any, ...]]:
    """Return the values that columns must have, where a part says so by itself."""
    found: dict[int, tuple[Any, ...]] = {}
    for part in parts:
        op = OPS.get(type(part))
        if op not in (Op.EQ, Op.IN, Op.IS_NULL):
            continue
        assert isinstance(part, ice.UnboundPredicate | ice.BoundPredicate)
        term = _term(part.term, shape, case_sensitive)
        if isinstance(term, BoundTransform):
            continue
        field = term.ref().field
        fits = [literals.fit(each, field.field_type, field.name) for each in literals_of(part)]
        if all(fit is Fit.EXACT for _, fit in fits):
            found[field.field_id] = (
                (None,) if op is Op.IS_NULL else tuple(value for value, _ in fits)
            )
    return found


def _columns(node: Node) -> Iterator[str]:
    match node:
        case Atom():
            for test in (*node.may, *node.must):
                yield from test.columns
        case Placed():
            yield from node.columns
        case Every() | Some():
            for part in node.parts:
                yield from _columns(part)


def _node(expression: ice.BooleanExpression, shape: Shape, case_sensitive: bool) -> Node:
    match expression:
        case ice.AlwaysTrue():
            return Fixed(value=True)
        case ice.AlwaysFalse():
            return Fixed(value=False)
        case ice.And():
            parts = operands(expression, ice.And)
            return Every(parts=tuple(_node(part, shape, case_sensitive) for part in parts))
        case ice.Or():
            parts = operands(expression, ice.Or)
            return Some(parts=tuple(_node(part, shape, case_sensitive) for part in parts))
        case Unsure():
            return Atom(may=(), must=())
        case Intersects():
            return placed(expression, shape.schema, case_sensitive=case_sensitive)
    op = OPS.get(type(expression))
    if op is None or not isinstance(expression, ice.UnboundPredicate | ice.BoundPredicate):
        raise InvalidInput(f"{expression!r} is not a predicate that stats can answer")
    return _atom(op, _term(expression.term, shape, case_sensitive), literals_of(expression), shape)


def _term(term: ice.Term, shape: Shape, case_sensitive: bool) -> ice.BoundTerm:
    if isinstance(term, ice.BoundTerm):
        return term
    assert isinstance(term, ice.UnboundTerm)
    try:
        bound = term.bind(shape.schema, case_sensitive)
    except ValueError:
        raise no_column(term, shape.schema) from None
    if isinstance(bound, BoundTransform):
        source = bound.ref().field
        if not bound.transform.can_transform(source.field_type):
            raise InvalidInput(
                f"column {source.name!r} is {source.field_type}: {bound.transform} does not take it"
            )
    return bound


#: What a literal that is not exact does to a comparison: (in `may`, in `must`); None drops it.
_REFIT: Final[dict[tuple[Fit, Op], tuple[Op | None, Op | None]]] = {
    (Fit.ROUNDED, Op.LT): (Op.LE, Op.LT),
    (Fit.ROUNDED, Op.LE): (Op.LE, Op.LT),
    (Fit.ROUNDED, Op.GT): (Op.GE, Op.GT),
    (Fit.ROUNDED, Op.GE): (Op.GE, Op.GT),
    (Fit.ROUNDED, Op.EQ): (Op.EQ, None),
    (Fit.ROUNDED, Op.NE): (None, Op.NE),
    (Fit.ABOVE, Op.LT): (Op.LE, Op.LE),
    (Fit.ABOVE, Op.LE): (Op.LE, Op.LE),
    (Fit.ABOVE, Op.GT): (Op.GT, None),
    (Fit.ABOVE, Op.GE): (Op.GT, None),
    (Fit.ABOVE, Op.EQ): (Op.GT, None),
    (Fit.ABOVE, Op.NE): (None, Op.LE),
    (Fit.BELOW, Op.LT): (Op.LT, None),
    (Fit.BELOW, Op.LE): (Op.LT, None),
    (Fit.BELOW, Op.GT): (Op.GE, Op.GE),
    (Fit.BELOW, Op.GE): (Op.GE, Op.GE),
    (Fit.BELOW, Op.EQ): (Op.LT, None),
    (Fit.BELOW, Op.NE): (None, Op.GE),
    (Fit.BETWEEN, Op.LT): (Op.LE, Op.LE),
    (Fit.BETWEEN, Op.LE): (Op.LE, Op.LE),
    (Fit.BETWEEN, Op.GT): (Op.GT, Op.GT),
    (Fit.BETWEEN, Op.GE): (Op.GT, Op.GT),
    (Fit.BETWEEN, Op.EQ): (None, None),
    (Fit.BETWEEN, Op.NE): (None, None),
}


def _atom(op: Op, term: ice.BoundTerm, given: Literals, shape: Shape) -> Node:
    source = term.ref().field
    if isinstance(term, BoundExtracted):
        return _extracted(op, term, given)
    if isinstance(term, BoundTransform) and not isinstance(term.transform, IdentityTransform):
        return _transformed(op, term, given, shape)
    type_ = source.field_type
    if op in (Op.IS_NAN, Op.NOT_NAN) and not has_nans(type_):
        return Fixed(value=op is Op.NOT_NAN)
    if op in (Op.STARTS, Op.NOT_STARTS) and not isinstance(type_, _HAS_PREFIXES):
        raise InvalidInput(f"{source.name!r} is {type_}: its values have no prefix to compare")
    fits = [literals.fit(literal, type_, source.name) for literal in given]
    may, must = _tests(op, source.field_id, type_, fits)
    wide, strict = _projected(op, source, fits, shape)
    return Atom(may=may + wide, must=must + strict)


def _transformed(op: Op, term: BoundTransform, given: Literals, shape: Shape) -> Atom:
    source = term.ref().field
    type_ = term.transform.result_type(source.field_type)
    name = f"{term.transform}({source.name})"
    fits = [literals.fit(literal, type_, name) for literal in given]
    tests = [
        _tests(op, expression.expr_id, type_, fits)
        for expression in shape.expressions_on(source.field_id)
        if _same(transform_of(expression), term.transform)
    ]
    # What wrapped around when the column was an int does not do so now.
    wrapped = _wrapped(term.transform, type_, (32,)) if isinstance(type_, LongType) else ()
    return Atom(
        may=_unless(wrapped, tuple(test for may, _ in tests for test in may), type_),
        must=_unless(wrapped, tuple(test for _, must in tests for test in must), type_),
    )


def _extracted(op: Op, term: BoundExtracted, given: Literals) -> Node:
    """Return what bounds of a variant's field tell; that every row has the field they never do."""
    require_extracted(term)
    field, type_ = term.ref().field, term.type
    fits = [literals.fit(literal, type_, f"variant_get({field.name})") for literal in given]
    if op in UNARY:
        return Atom(may=(), must=())
    may, _ = _tests(op, field.field_id, type_, fits)
    inside = Within(path=normalized(term.path), type=type_)
    return Atom(may=tuple(replace(test, within=inside) for test in may), must=())


def require_extracted(term: BoundExtracted) -> None:
    """Refuse to look into what is no variant, and for what variants do not hold."""
    field = term.ref().field
    if not isinstance(field.field_type, VariantType):
        raise InvalidInput(f"{field.name!r} is {field.field_type}: variant_get takes a variant")
    if not can_be_asked_for(term.type):
        raise InvalidInput(f"variants hold no {term.type}: ask variant_get for a type that they do")


def _same(one: Transform[Any, Any], other: Transform[Any, Any]) -> bool:
    # All transforms that PyIceberg does not know are equal to it.
    return one == other and not isinstance(one, UnknownTransform)


def _tests(op: Op, field_id: int, type_: IcebergType, fits: _Fits) -> _Tests:
    def test(op: Op | None, values: Iterable[Any] = ()) -> tuple[Test, ...]:
        known = literals.array(values, type_)
        if op is None or known is None:
            return ()
        return (Test(field_id=field_id, op=op, values=known, floating=has_nans(type_)),)

    if op in UNARY:
        return test(op), test(op)
    if op in (Op.IN, Op.NOT_IN):
        exact = {value for value, fit in fits if fit is Fit.EXACT}
        near = exact | {value for value, fit in fits if fit is Fit.ROUNDED}
        wide, narrow = test(op, near), test(op, exact)
        return (wide, narrow) if op is Op.IN else (narrow, wide)
    [(value, fit)] = fits
    may, must = _REFIT.get((fit, op), (op, op))
    return test(may, [value]), test(must, [value])


def _projected(op: Op, source: NestedField, fits: _Fits, shape: Shape) -> _Tests:
    """Return what a predicate on a column implies for the expressions over it."""
    over = shape.expressions_on(source.field_id)
    bound = _bound(op, source, fits) if over else None
    may: tuple[Test, ...] = ()
    must: tuple[Test, ...] = ()
    for expression in over if bound else ():
        transform, type_ = transform_of(expression), shape.types.get(expression.expr_id)
        if type_ is not None and transform.can_transform(source.field_type):
            wide, _ = _project(transform.project, bound, expression.expr_id, type_)
            _, strict = _project(transform.strict_project, bound, expression.expr_id, type_)
            wrapped = _wrapped(transform, type_, _BITS.get(type(type_), ()))
            may += _unless(wrapped, wide, type_)
            must += _unless(wrapped, strict, type_)
    return may, must


def _wrapped(
    transform: Transform[Any, Any], type_: IcebergType, sizes: Iterable[int]
) -> tuple[tuple[Op, set[int]], ...]:
    """Return which values stand out of order, as comparisons with them: what may have wrapped around.

    Below the least multiple of the width a truncation of a number overflows, at some size, in the
    format's arithmetic, so that the least numbers of a type share a partition at its upper end. Hours
    overflow some 245,000 years from 1970. PyIceberg's projections know nothing of it.
    """
    if isinstance(transform, HourTransform):
        return _WRAPPED_HOURS
    if not isinstance(transform, TruncateTransform) or type(type_) not in _BITS:
        return ()
    limits = [2 ** (bits - 1) for bits in sizes]
    floors = [-limit - -limit % transform.width for limit in limits]
    values = {
        (floor + limit) % (2 * limit) - limit
        for floor, limit in zip(floors, limits, strict=True)
        if floor < -limit
    }
    return ((Op.IN, values),) if values else ()


def _unless(
    wrapped: tuple[tuple[Op, set[int]], ...], tests: tuple[Test, ...], type_: IcebergType
) -> tuple[Test, ...]:
    """Return tests that tell nothing of what may have wrapped around."""
    listed = [(op, literals.array(each, type_)) for op, each in wrapped]
    return tuple(
        test
        if test.op in UNARY
        else replace(
            test,
            unless=tuple(
                replace(test, op=op, values=each) for op, each in listed if each is not None
            ),
        )
        for test in tests
    )


def _bound(op: Op, source: NestedField, fits: _Fits) -> ice.BoundPredicate | None:
    """Return PyIceberg's bound predicate, which its transforms project; None where none can."""
    if op is Op.IN:
        # What is out of range equals nothing; what is rounded has no transform.
        fits = [(value, fit) for value, fit in fits if fit in (Fit.EXACT, Fit.ROUNDED)]
    if any(fit is not Fit.EXACT for _, fit in fits):
        return None
    # Not the caller's field: a required one would make `is null` a constant.
    field = NestedField(source.field_id, source.name, source.field_type, required=False)
    term = ice.BoundReference(field, Accessor(position=0))
    exact = [literals.literal_of(value, source.field_type) for value, _ in fits]
    kind: Any = BOUND[op]
    if op in UNARY:
        made = kind(term)
    else:
        made = kind(term, set(exact)) if op in (Op.IN, Op.NOT_IN) else kind(term, *exact)
    return made if isinstance(made, ice.BoundPredicate) else None


def _project(
    project: _Project, bound: ice.BoundPredicate | None, field_id: int, type_: IcebergType
) -> _Tests:
    try:
        found = project("expression", bound)
        op = OPS.get(type(found))
        if op is None:
            return (), ()
        fits = [literals.fit(literal, type_, "expression") for literal in literals_of(found)]
    except (TypeError, ValueError, ArithmeticError, InvalidInput):
        return (), ()  # a value that the transform cannot take tells nothing
    return _tests(op, field_id, type_, fits)
