"""What a lower and an upper bound tell of the values between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from icetree.tree.prune.known import Known, all_of, any_of
from icetree.tree.prune.predicates import Op

#: Beyond this many literals, `in` is judged by the least and the greatest alone.
_MAX_LITERALS: Final = 200

_Compare: TypeAlias = Callable[[pa.Array, pa.Scalar], pa.BooleanArray]


def no_value_between(
    lower: pa.Array | None, upper: pa.Array | None, op: Op, literals: pa.Array
) -> Known:
    """Tell where no value between the bounds is `op` the literals; `in` has some.

    Only comparisons that hold count, so a NaN bound, for which none holds, tells nothing.
    """
    match op:
        case Op.IN:
            return _none_in(lower, upper, literals)
        case Op.NOT_IN:
            return _none_outside(lower, upper, literals)
        case Op.STARTS | Op.NOT_STARTS:
            return _none_with_prefix(lower, upper, literals[0], op)
    return _none_beside(lower, upper, literals[0], op)


def _compare(compare: _Compare, bound: pa.Array | None, value: pa.Scalar) -> Known:
    return None if bound is None else compare(bound, value)


def _none_beside(lower: pa.Array | None, upper: pa.Array | None, value: pa.Scalar, op: Op) -> Known:
    match op:
        case Op.LT:
            return _compare(pc.greater_equal, lower, value)
        case Op.LE:
            return _compare(pc.greater, lower, value)
        case Op.GT:
            return _compare(pc.less_equal, upper, value)
        case Op.GE:
            return _compare(pc.less, upper, value)
        case Op.EQ:
            return any_of([_compare(pc.greater, lower, value), _compare(pc.less, upper, value)])
        case Op.NE:
            return all_of([_compare(pc.equal, lower, value), _compare(pc.equal, upper, value)])
    raise AssertionError(op)


def _none_with_prefix(
    lower: pa.Array | None, upper: pa.Array | None, prefix: pa.Scalar, op: Op
) -> Known:
    if op is Op.NOT_STARTS:
        return all_of([_compare(_starts, lower, prefix), _compare(_starts, upper, prefix)])
    past: Known = None
    if lower is not None:
        past = pc.and_kleene(pc.greater(lower, prefix), pc.invert(_starts(lower, prefix)))
    return any_of([past, _compare(pc.less, upper, prefix)])


def _starts(bound: pa.Array, prefix: pa.Scalar) -> pa.BooleanArray:
    if pa.types.is_fixed_size_binary(bound.type):
        bound = bound.cast(pa.binary())
    return pc.starts_with(bound, pattern=prefix.as_py())


def _none_in(lower: pa.Array | None, upper: pa.Array | None, literals: pa.Array) -> Known:
    """Tell where the bounds lie in one of the gaps that the literals leave, which ascend."""
    first, last = literals[0], literals[len(literals) - 1]
    known = any_of([_compare(pc.less, upper, first), _compare(pc.greater, lower, last)])
    if lower is None or upper is None or len(literals) > _MAX_LITERALS:
        return known
    gaps = (
        pc.and_kleene(pc.greater(lower, literals[at]), pc.less(upper, literals[at + 1]))
        for at in range(len(literals) - 1)
    )
    return any_of([known, *gaps])


def _none_outside(lower: pa.Array | None, upper: pa.Array | None, literals: pa.Array) -> Known:
    if lower is None or upper is None or len(literals) == 0:
        return None
    if pa.types.is_floating(literals.type):
        # A set tells the two zeros apart, a comparison does not.
        listed = any_of(pc.equal(lower, value) for value in literals)
    else:
        listed = pc.is_in(lower, value_set=literals)
    return all_of([pc.equal(lower, upper), listed])
