"""Planning tables that Iceberg Java wrote, beside its own planner."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from icetree.spec.location import absolute
from tests.peers.conftest import FILTERS, JavaTable
from tests.peers.plans import planned, require_all_matches, require_same
from tests.peers.rows import RowsOf
from tests.peers.values import JAVA_TABLES


@pytest.mark.law
@pytest.mark.parametrize("name", JAVA_TABLES)
def test_a_plan_has_the_files_and_deletes_that_java_plans(
    java_tables: Mapping[str, JavaTable], name: str
) -> None:
    theirs = java_tables[name]
    table = theirs.opened()
    rows = RowsOf(table)
    assert len(theirs.plans) >= FILTERS
    left_out = 0
    for filter, plan in theirs.plans:
        left_out += require_same(filter, planned(table, filter), plan, rows)
    total = sum(len(plan) for _, plan in theirs.plans)
    # The filters must ask something: neither all files, nor none, nor mostly what only we skip.
    assert 0.1 < total / (len(theirs.plans) * len(theirs.everything)) < 0.9
    assert left_out < 0.1 * total
    for filter in theirs.unanswered:
        require_all_matches(filter, planned(table, filter), theirs.everything, rows)


@pytest.mark.law
@pytest.mark.parametrize("name", JAVA_TABLES)
def test_a_whole_scan_has_the_deletes_and_row_ids_that_java_has(
    java_tables: Mapping[str, JavaTable], name: str
) -> None:
    theirs = java_tables[name]
    table = theirs.opened()
    assert planned(table) == theirs.everything
    tasks = table.scan().plan().tasks
    found = {
        absolute(location, table.location): first
        for location, first in zip(
            tasks["location"].to_pylist(), tasks["first_row_id"].to_pylist(), strict=True
        )
    }
    assert found == theirs.first_row_ids
