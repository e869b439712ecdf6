"""The laws of pruning, by brute force and beside PyIceberg."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg import expressions as ice
from pyiceberg.conversions import to_bytes
from pyiceberg.expressions import visitors
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from icetree.spec.entry.stats import FieldStats
from icetree.tree.prune.bind import bind
from icetree.tree.prune.prune import (
    columns_needed,
    conjunct_masks,
    may_match,
    must_match,
    residuals,
)
from tests.effort import law
from tests.tree import rows as r

KINDS = (
    ice.LessThan,
    ice.LessThanOrEqual,
    ice.GreaterThan,
    ice.GreaterThanOrEqual,
    ice.EqualTo,
    ice.NotEqualTo,
)
NAMES = st.lists(st.sampled_from(r.NAMES), min_size=1, max_size=2, unique=True)


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[list[r.Row]], list[dict[int, FieldStats]], Any]:
    names = draw(NAMES)
    many = draw(r.files(names))
    stats = [
        {id: r.blurred(known, draw(r.BLURS)) for id, known in r.stats_of(rows, names).items()}
        for rows in many
    ]
    return many, stats, draw(r.predicates(names))


def _judged(predicate: ice.BooleanExpression, rows: list[r.Row]) -> list[list[bool]]:
    plain = visitors.rewrite_not(predicate)
    return [
        [r.holds(plain, row, sql=sql, rounded=rounded) for row in rows]
        for sql, rounded in r.READINGS
    ]


@law(25)
@given(cases())
def test_pruning_never_loses_a_matching_file(case: Any) -> None:
    many, stats, predicate = case
    may = may_match(r.entries_of(many, stats), bind(predicate, r.SHAPE)).to_pylist()
    for rows, kept in zip(many, may, strict=True):
        assert kept or not any(any(found) for found in _judged(predicate, rows))


@law(25)
@given(cases())
def test_a_file_that_must_match_has_no_other_row(case: Any) -> None:
    many, stats, predicate = case
    must = must_match(r.entries_of(many, stats), bind(predicate, r.SHAPE)).to_pylist()
    for rows, claimed in zip(many, must, strict=True):
        assert not claimed or all(all(found) for found in _judged(predicate, rows))


@law(25)
@given(cases())
def test_a_residual_picks_the_same_rows_of_its_file_as_the_predicate(case: Any) -> None:
    many, stats, predicate = case
    codes, left = residuals(r.entries_of(many, stats), bind(predicate, r.SHAPE))
    assert len(codes) == len(many)
    assert set(codes.to_pylist()) == set(range(len(left)))
    for rows, code in zip(many, codes.to_pylist(), strict=True):
        assert _judged(left[code], rows) == _judged(predicate, rows)


@pytest.mark.law
@pytest.mark.parametrize("name", r.NAMES)
def test_comparisons_with_a_bound_itself_are_judged_right(name: str) -> None:
    """Chance seldom asks for just the value that a file's bound is, where a rule is off by one."""
    values = [value for value in r.COLUMNS[name][1] if value == value]
    many = [[{name: one}, {name: two}] for one in values for two in (one, values[0])]
    entries = r.entries_of(many, [r.stats_of(rows, [name]) for rows in many])
    for predicate in (kind(name, r.literal(name, value)) for kind in KINDS for value in values):
        bound = bind(predicate, r.SHAPE)
        may, must = (judge(entries, bound).to_pylist() for judge in (may_match, must_match))
        for rows, kept, claimed in zip(many, may, must, strict=True):
            found = _judged(predicate, rows)
            assert kept or not any(map(any, found))
            assert not claimed or all(map(all, found))


@law(20)
@given(cases())
def test_aggregated_stats_never_lose_a_leaf_with_a_matching_row(case: Any) -> None:
    many, stats, predicate = case
    ids = set().union(*stats)
    leaf = {id: r.merged([known.get(id, FieldStats()) for known in stats]) for id in ids}
    every = [row for rows in many for row in rows]
    table = r.entries_of([every], [leaf])
    bound = bind(predicate, r.SHAPE)
    found = _judged(predicate, every)
    assert may_match(table, bound)[0].as_py() or not any(map(any, found))
    assert not must_match(table, bound)[0].as_py() or all(map(all, found))


@law(20)
@given(cases())
def test_conjuncts_alone_explain_what_is_pruned(case: Any) -> None:
    many, stats, predicate = case
    table, bound = r.entries_of(many, stats), bind(predicate, r.SHAPE)
    masks = conjunct_masks(table, bound)
    together = [
        all(mask[at].as_py() for _, mask in masks) and bool(rows) for at, rows in enumerate(many)
    ]
    assert may_match(table, bound).to_pylist() == together


@law(20)
@given(cases())
def test_only_the_columns_needed_are_looked_at(case: Any) -> None:
    many, stats, predicate = case
    table, bound = r.entries_of(many, stats), bind(predicate, r.SHAPE)
    needed = columns_needed(bound)
    narrow = table.select(
        [name for name in table.column_names if name in {"record_count", *needed}]
    )
    assert may_match(narrow, bound) == may_match(table, bound)
    assert must_match(narrow, bound) == must_match(table, bound)


@st.composite
def peer_cases(draw: st.DrawFn) -> tuple[list[r.Row], str, ice.BooleanExpression]:
    name = draw(st.sampled_from(r.PEER_NAMES))
    [rows, *_] = draw(r.files([name]))
    return rows, name, draw(r.atoms(name).filter(_is_in_range))


def _is_in_range(predicate: ice.BooleanExpression) -> bool:
    """Tell whether PyIceberg reads a set rightly: it takes what is too large for the largest."""
    limits = {"i": 2**31, "l": 2**63}
    if not isinstance(predicate, ice.SetPredicate) or predicate.term.name not in limits:
        return True
    limit = limits[predicate.term.name]
    return all(-limit <= literal.value < limit for literal in predicate.literals)


def _peer_file(rows: list[r.Row], name: str) -> DataFile:
    id = r.IDS[name]
    stats = r.full_stats(id, [row[name] for row in rows])
    type_ = r.COLUMNS[name][0]

    def bound(value: Any) -> dict[int, bytes]:
        return {} if value is None else {id: to_bytes(type_, value)}

    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path="f",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(rows),
        file_size_in_bytes=1,
        value_counts={id: stats.values},
        null_value_counts={id: stats.nulls},
        nan_value_counts={} if stats.nans is None else {id: stats.nans},
        lower_bounds=bound(stats.lower),
        upper_bounds=bound(stats.upper),
    )


_NEGATIVE = (ice.NotEqualTo, ice.NotIn, ice.NotStartsWith)


@law(25)
@given(peer_cases())
def test_full_stats_prune_as_much_as_pyiceberg_does(case: Any) -> None:
    rows, name, predicate = case
    stats = {r.IDS[name]: r.full_stats(r.IDS[name], [row[name] for row in rows])}
    ours = may_match(r.entries_of([rows], [stats]), bind(predicate, r.SHAPE))[0].as_py()
    theirs = visitors._InclusiveMetricsEvaluator(r.SHAPE.schema, predicate).eval(
        _peer_file(rows, name)
    )
    assert theirs or not ours
    # Beyond it we prune where one value is all there is, and where nulls and NaNs are all.
    mixed = {None if row[name] is None else row[name] != row[name] for row in rows} == {None, True}
    if not isinstance(predicate, _NEGATIVE) and not mixed:
        assert ours == theirs


@law(25)
@given(peer_cases())
def test_full_stats_prove_as_much_as_pyiceberg_does(case: Any) -> None:
    rows, name, predicate = case
    stats = {r.IDS[name]: r.full_stats(r.IDS[name], [row[name] for row in rows])}
    ours = must_match(r.entries_of([rows], [stats]), bind(predicate, r.SHAPE))[0].as_py()
    theirs = visitors._StrictMetricsEvaluator(r.SHAPE.schema, predicate).eval(
        _peer_file(rows, name)
    )
    # It takes nulls as proof of `!=`, and a literal beyond an int as proof even of nulls.
    has_nulls = any(row[name] is None for row in rows)
    lower = stats[r.IDS[name]].lower
    if not has_nulls and not (isinstance(lower, float) and stats[r.IDS[name]].nans):
        assert ours or not theirs
        if not isinstance(predicate, (ice.StartsWith, ice.NotStartsWith)):
            assert ours == theirs
