"""Faults to plant in icetree, a line each, and the laws whose quick form has to find them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icetree.codec import bitmap, inherit
from icetree.codec.manifest import write as manifest
from icetree.rows.read import deletes as row_deletes
from icetree.rows.write import order
from icetree.table.moving import pointing
from icetree.tree import live
from icetree.tree.diff import diff
from icetree.tree.plan import deletes, plan
from icetree.tree.prune import bounds
from icetree.tree.prune.predicates import Op
from tests.campaigns.planted import drop_a_dv_in_a_flush, number_rows_wrongly

#: Names the fault that a child process plants in itself.
PLANTED_IN_CHILD: Final = "ICETREE_PLANTED"

Patch = Callable[[pytest.MonkeyPatch], None]


def rule_out_what_equals_a_bound(patch: pytest.MonkeyPatch) -> None:
    none_beside = bounds._none_beside

    def hasty(lower: Any, upper: Any, value: Any, op: Op) -> Any:
        return none_beside(lower, upper, value, Op.LT if op is Op.LE else op)

    patch.setattr(bounds, "_none_beside", hasty)


def lose_manifest_dvs(patch: pytest.MonkeyPatch) -> None:
    for room in (live, plan):
        patch.setattr(room, "read_manifest_dvs", lambda *_, **__: {})


def inherit_row_ids_too_late(patch: pytest.MonkeyPatch) -> None:
    numbered = inherit._numbered
    patch.setattr(inherit, "_numbered", lambda *args: numbered(*args[:-1], args[-1] + 1))


def put_nulls_at_the_other_end(patch: pytest.MonkeyPatch) -> None:
    """Sort by keys that say the other order of nulls than the table's does."""
    sort_indices = order.sort_indices

    def turned(rows: Any, keys: Any, shape: Any) -> Any:
        return sort_indices(rows, tuple(_turned(key) for key in keys), shape)

    patch.setattr(order, "sort_indices", turned)


def _turned(key: Any) -> Any:
    return replace(key, nulls_first=not key.nulls_first)


def forget_what_went_from_leaves(patch: pytest.MonkeyPatch) -> None:
    leaf_diff = diff._leaf_diff

    def forgetful(*args: Any, **how: Any) -> Any:
        came, went = leaf_diff(*args, **how)
        return came, went.slice(1)

    patch.setattr(diff, "_leaf_diff", forgetful)


def write_nulls_as_zeros(patch: pytest.MonkeyPatch) -> None:
    assemble = manifest._assemble

    def without_nulls(part: Any, columns: Any) -> Any:
        found = assemble(part, columns)
        return pc.fill_null(found, 0) if found.type == pa.int64() else found

    patch.setattr(manifest, "_assemble", without_nulls)


def take_bounds_that_touch_for_apart(patch: pytest.MonkeyPatch) -> None:
    """Match equality deletes as if a bound were no value of its file."""

    def is_below(upper: Any, uppers: Any, lower: Any, lowers: Any) -> Any:
        if upper is None or lower is None:
            return pa.array([False] * len(uppers)).to_numpy(zero_copy_only=False)
        below = pc.less_equal(upper.take(pa.array(uppers)), lower.take(pa.array(lowers)))
        return pc.fill_null(below, False).to_numpy(zero_copy_only=False)

    patch.setattr(deletes, "_is_below", is_below)


def prune_deletes_without_nulls(patch: pytest.MonkeyPatch) -> None:
    """Match equality deletes by values alone, as if no key were null."""
    can_share = deletes._can_share

    def by_values(one: Any, ones: Any, other: Any, others: Any) -> Any:
        return can_share(one, ones, other, others) & one.may_have_values[ones]

    patch.setattr(deletes, "_can_share", by_values)


def keep_rows_with_null_keys(patch: pytest.MonkeyPatch) -> None:
    gone = row_deletes.Matcher.gone

    def spared(self: Any, value_of: Any) -> Any:
        there = [pc.is_valid(value_of(key)).to_numpy(zero_copy_only=False) for key in self.keys]
        found = gone(self, value_of)
        for each in there:
            found = found & each
        return found

    patch.setattr(row_deletes.Matcher, "gone", spared)


def lose_the_last_position(patch: pytest.MonkeyPatch) -> None:
    encode = bitmap.encode

    def short(positions: Any) -> bytes:
        return encode(positions[: max(1, len(positions) - 1)])

    patch.setattr(bitmap, "encode", short)


def keep_the_first_deleted_row(patch: pytest.MonkeyPatch) -> None:
    read_vector = row_deletes.read_vector
    patch.setattr(row_deletes, "read_vector", lambda *args: read_vector(*args)[1:])


def forget_what_was_given_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(pointing, "_above", lambda metadata, _: metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A fault, and where the laws are each of which has to break."""

    patch: Patch
    laws: tuple[str, ...]


_TREES, _ROWS = "tests/foreign/test_trees.py", "tests/table/rows/test_row_laws.py"

PLANTED: Final[Mapping[str, Planted]] = {
    "a file whose least value is asked for is ruled out": Planted(
        patch=rule_out_what_equals_a_bound, laws=("tests/tree/test_prune_laws.py", _TREES)
    ),
    "manifest DVs are lost in reading": Planted(patch=lose_manifest_dvs, laws=(_TREES, _ROWS)),
    "manifest DVs are lost in a plan": Planted(
        patch=lose_manifest_dvs, laws=("tests/tree/test_plan_laws.py",)
    ),
    "inherited row ids start one too late": Planted(
        patch=inherit_row_ids_too_late, laws=(_TREES, _ROWS)
    ),
    "new row ids start one too late": Planted(patch=number_rows_wrongly, laws=(_ROWS, _TREES)),
    "a DV is dropped in a flush": Planted(
        patch=drop_a_dv_in_a_flush, laws=("tests/laws/test_tree_laws.py", _TREES, _ROWS)
    ),
    "nulls are sorted to the other end": Planted(
        patch=put_nulls_at_the_other_end, laws=("tests/rows/test_order.py",)
    ),
    "the feed forgets a file that went": Planted(
        patch=forget_what_went_from_leaves, laws=(_TREES, _ROWS)
    ),
    "manifests have zeros for nulls": Planted(
        patch=write_nulls_as_zeros, laws=("tests/laws/test_codec_laws.py", _TREES, _ROWS)
    ),
    "equality deletes overlook bounds that touch": Planted(
        patch=take_bounds_that_touch_for_apart, laws=("tests/tree/test_delete_matching.py", _TREES)
    ),
    "equality deletes overlook nulls in bounds": Planted(
        patch=prune_deletes_without_nulls, laws=("tests/tree/test_delete_matching.py", _TREES)
    ),
    "equality deletes spare null keys": Planted(
        patch=keep_rows_with_null_keys, laws=("tests/rows/test_deletes.py", _TREES)
    ),
    "a bitmap loses its last position": Planted(
        patch=lose_the_last_position, laws=("tests/codec/test_bitmap.py", _TREES, _ROWS)
    ),
    "the first deleted row of a file stays": Planted(
        patch=keep_the_first_deleted_row, laws=("tests/rows/test_law.py", _TREES, _ROWS)
    ),
    "a name that goes back gives ids out again": Planted(
        patch=forget_what_was_given_out, laws="tests/serve/test_register.py"
    ),
}


def pytest_configure() -> None:
    """Plant the fault that the environment names, for as long as the process lives."""
    PLANTED[os.environ[PLANTED_IN_CHILD]].patch(pytest.MonkeyPatch())
