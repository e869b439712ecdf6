"""The laws of planning: every file with a matching row, only live ones, and none that could be ruled out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.expressions import visitors

from icetree.spec.entry import entry
from icetree.spec.entry.entry import Status
from icetree.tree.prune.bind import bind
from icetree.tree.prune.prune import may_match
from tests.effort import law
from tests.tree import rows as r
from tests.tree.planning import SHAPE, Tree, data_dv, deletes_of, equality, gone, locations, one

NAMES = ["i", "s"]


@st.composite
def forests(draw: st.DrawFn) -> tuple[Tree, dict[str, list[r.Row]], Any]:
    """Draw a tree with real rows below it, its live files, and a predicate."""
    many = [rows for _ in range(3) for rows in draw(r.files(NAMES))]
    tree, live = Tree(), {}
    places = [draw(st.sampled_from(["root", "L0", "L1", "L2"])) for _ in many]
    for place in sorted(set(places)):
        held, off = [], []
        for at, rows in enumerate(many):
            if places[at] != place:
                continue
            fate = draw(st.sampled_from(["live", "live", "DELETED", "masked"]))
            status = Status.DELETED if fate == "DELETED" else Status.EXISTING
            stats = {
                id: r.blurred(known, draw(r.BLURS)) for id, known in r.stats_of(rows, NAMES).items()
            }
            if fate == "masked" and place != "root":
                off.append(len(held))
            elif fate != "DELETED":
                live[f"f{at}"] = rows
            held.append(one(f"f{at}", status=status, record_count=len(rows), stats=stats))
        if place == "root":
            tree.add(*held)
        else:
            tree.leaf(place, *held)
            if off:
                tree.add(gone(place, off))
    return tree, live, draw(r.predicates(NAMES))


@law(15)
@given(forests())
def test_a_plan_holds_every_file_with_a_matching_row_and_only_live_ones(forest: Any) -> None:
    tree, live, predicate = forest
    found = locations(tree.plan(predicate))
    assert len(found) == len(set(found))
    assert set(found) <= set(live)
    plain = visitors.rewrite_not(predicate)
    for name, rows in live.items():
        hits = (
            r.holds(plain, row, sql=sql, rounded=rounded)
            for row in rows
            for sql, rounded in r.READINGS
        )
        assert name in found or not any(hits)


@law(12)
@given(forests())
def test_a_plan_prunes_as_much_as_judging_every_entry(forest: Any) -> None:
    tree, live, predicate = forest
    held = entry.concat([entry.empty(), *tree.roots, *tree.shelf.leaves.values()])
    files = held.filter(pc.is_in(held["location"], pa.array(list(live), pa.string())))
    files = files.filter(may_match(files, bind(predicate, SHAPE)))
    assert set(locations(tree.plan(predicate))) == set(files["location"].to_pylist())


@law(10)
@given(forests())
def test_without_a_predicate_a_plan_holds_the_live_files(forest: Any) -> None:
    tree, live, _ = forest
    assert sorted(locations(tree.plan())) == sorted(live)


def test_many_deletes_of_many_files_find_each_other() -> None:
    size = 500
    tree = Tree().leaf("L", *(one(f"f{n}", n) for n in range(size)))
    tree.leaf("D", *(data_dv(f"f{n}") for n in range(0, size, 2)), target="L")
    tree.add(*(equality(f"e{n}", n, n) for n in range(0, size, 5)))
    found = tree.plan()
    has_dv = np.array([each is not None for each in found.tasks["dv_location"].to_pylist()])
    assert has_dv.tolist() == [n % 2 == 0 for n in range(size)]
    lists = deletes_of(found, "equality_deletes")
    assert lists == {f"f{n}": [f"e{n}"] if n % 5 == 0 else [] for n in range(size)}
