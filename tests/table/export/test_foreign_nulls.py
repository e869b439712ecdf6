"""Nulls in a client's files, in a column that may have none by now."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.errors import InvalidInput
from icetree.rows.write.write import write_files
from icetree.spec.entry.entry import from_table
from icetree.table.foreign import commit_foreign
from tests.table.changing import some
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import ids, some_table


def test_a_null_of_a_client_that_knew_no_better_does_not_land_where_it_is_forbidden_now() -> None:
    table = some_table()
    client = StockClient(table)
    made = write_files(
        pa.table({"id": [50], "v": pa.array([None], pa.string())}),
        table="t",
        metadata=table.metadata,
        store=table.files.store,
    )
    [entry] = from_table(made)
    client.add(entry)
    sent = client.snapshot()
    with table.edit_schema() as schema:
        schema.make_required("v", allow_incompatible=True)
    with pytest.raises(InvalidInput, match=r"column 'v' is required, and data/.* tells of a null"):
        commit_foreign(table, sent)
    assert ids(table) == list(range(12))


def test_a_staged_null_is_not_picked_where_it_is_forbidden_now() -> None:
    table = some_table()
    staged = table.append(
        pa.table({"id": [50], "v": pa.array([None], pa.string())}), branch=None
    ).snapshot
    assert staged is not None
    with table.edit_schema() as schema:
        schema.make_required("v", allow_incompatible=True)
    table.append(some((51, "b")))
    with pytest.raises(InvalidInput, match="is required"):
        table.cherry_pick(staged.snapshot_id)
    assert ids(table) == [*range(12), 51]
