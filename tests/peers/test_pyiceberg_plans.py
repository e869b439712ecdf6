"""Planning tables that PyIceberg wrote, beside its own planner, on one SQL catalog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import DataScan, Table

import icetree
from icetree.table.lake import Lake
from tests.effort import EFFORT, SEED
from tests.peers.filters import Filter, random_filters, to_pyiceberg
from tests.peers.plans import Planned, planned, require_all_matches, require_same
from tests.peers.pyiceberg_tables import PYICEBERG_TABLES
from tests.peers.rows import RowsOf
from tests.peers.values import pools

#: As many filters must have been compared on each table.
FILTERS = 25 * EFFORT
#: As many are at hand: on some PyIceberg fails.
_ASKED = 60 * EFFORT


@pytest.fixture
def ours(theirs: SqlCatalog) -> Iterator[Lake]:
    with icetree.connect(theirs.properties["uri"], properties={"name": theirs.name}) as lake:
        yield lake


@pytest.mark.law
@pytest.mark.parametrize("name", PYICEBERG_TABLES)
def test_a_plan_has_the_files_and_deletes_that_pyiceberg_plans(
    name: str, ours: Lake, theirs: SqlCatalog
) -> None:
    PYICEBERG_TABLES[name](theirs, name)
    peer, table = theirs.load_table(name), ours.table(name)
    everything = planned(table)
    assert everything == _theirs(peer.scan())
    rows = RowsOf(table)
    left_out = total = answered = 0
    for filter in random_filters(7 + SEED, _ASKED, pools(name)):
        plan = _answer(peer, filter)
        if plan is None:
            require_all_matches(filter, planned(table, filter), everything, rows)
            continue
        left_out += require_same(filter, planned(table, filter), plan, rows)
        total += len(plan)
        answered += 1
        if answered == FILTERS:
            break
    assert answered == FILTERS
    # The filters must ask something: neither all files, nor none, nor mostly what only we skip.
    assert 0.1 < total / (FILTERS * len(everything)) < 0.9
    assert left_out < 0.1 * total


def _answer(peer: Table, filter: Filter) -> Planned | None:
    """Return what PyIceberg plans; None if it fails, which it does comparing a null partition."""
    try:
        return _theirs(peer.scan(row_filter=to_pyiceberg(filter)))
    except TypeError as error:
        if "'NoneType'" not in str(error):
            raise
        return None


def _theirs(scan: DataScan) -> Planned:
    found = {}
    for task in scan.plan_files():
        deletes = frozenset((one.file_path, None, None) for one in task.delete_files)
        assert task.file.file_path not in found
        found[task.file.file_path] = deletes
    return found
