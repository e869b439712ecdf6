"""A table of very many manifests, upgraded: filters leave the files that a plain model says."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from pyiceberg.table import StaticTable

from icetree.catalog.memory import MemoryCatalog
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.reading import leaves_in
from tests.effort import SEED, usually
from tests.peers.filters import matches, random_filters, to_json, to_pyiceberg
from tests.peers.many_manifests import Imagined, imagined, may_match, pools_of, write_table
from tests.peers.plans import planned


def _opened(metadata_location: str) -> Table:
    lake = Lake(catalog=MemoryCatalog("peers"), store=LocalStore())
    lake.create_namespace("db")
    return lake.register_table("db.t", metadata_location)


def _leaves(table: Table) -> int:
    return len(leaves_in(table.files.root(table.snapshot(), table.metadata.shape())))


@pytest.mark.law
@pytest.mark.parametrize("count", usually([100, 2_000], 100))
def test_of_many_manifests_a_plan_has_the_files_that_a_model_says(
    tmp_path: Path, count: int
) -> None:
    files = imagined(tmp_path / "t", count)
    table = _opened(write_table(tmp_path / "t", files))
    table.upgrade()
    assert _leaves(table) == count
    there = [each for each in files if not each.is_deleted]
    assert planned(table).keys() == {each.location for each in there}
    _require_model(table, there, 50)
    before = table.snapshot()
    assert before is not None
    gone = {each.location for each in there[::97]}
    table.delete_files(sorted(gone))
    left = [each for each in there if each.location not in gone]
    _require_model(table, left, 10)
    table.maintenance.rewrite_manifests()
    assert _leaves(table) < count / 50
    _require_model(table, left, 20)
    assert planned(table, at=before.snapshot_id).keys() == {each.location for each in there}


def _require_model(table: Table, files: Collection[Imagined], count: int) -> None:
    """Require of many filters the files that the model leaves, and of them some to be pruned."""
    asked = random_filters(SEED, count, pools_of(len(files)))
    shares = []
    for filter in asked:
        wanted = {each.location for each in files if may_match(filter, each.rows)}
        found = planned(table, filter).keys()
        assert found == wanted, (to_json(filter), [*found ^ wanted][:3])
        shares.append(len(wanted) / len(files))
    # The filters must ask something: neither all files, nor none.
    assert 0.1 < sum(shares) / len(shares) < 0.9


@pytest.mark.law
@pytest.mark.parametrize("count", usually([50, 1_000], 50))
def test_the_model_leaves_out_nothing_that_pyiceberg_would_not(tmp_path: Path, count: int) -> None:
    files = imagined(tmp_path / "t", count)
    peer = StaticTable.from_metadata(write_table(tmp_path / "t", files))
    there = {each.location: each for each in files if not each.is_deleted}
    answered = 0
    for filter in random_filters(SEED, 50, pools_of(count)):
        left = {name for name, each in there.items() if may_match(filter, each.rows)}
        for name, each in there.items():
            assert name in left or not any(matches(filter, row) for row in each.rows)
        try:
            plan = peer.scan(row_filter=to_pyiceberg(filter)).plan_files()
        except TypeError:
            # It compares a null partition.
            continue
        answered += 1
        found = {each.file.file_path for each in plan}
        extra = found - left
        assert found >= left, to_json(filter)
        # Only what is unequal to all that a file has is more than PyIceberg leaves out.
        assert not extra or "not" in to_json(filter), to_json(filter)
    assert answered > 30
