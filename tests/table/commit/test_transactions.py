"""Operations of one transaction happen one after the other; each sees what those before it left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.table.table import Table
from tests.effort import law
from tests.rows import lake as arrow_lake
from tests.table.lake import data_file, live, vector
from tests.table.lake import new_table as new_file_table

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.int64())])

#: A verb, the partition it is about, and the id of the row it brings.
Step = tuple[str, int, int]


def row(id: int, p: int) -> pa.Table:
    return pa.table({"id": [id], "p": [p]}, schema=SCHEMA)


def some_table(**how: Any) -> Table:
    """Return a table partitioned by p, with rows 1 and 9 in partitions 1 and 2."""
    table = arrow_lake.new_table(SCHEMA, partition_by="p", **how)
    table.append(pa.concat_tables([row(1, 1), row(9, 2)]))
    return table


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def stored(table: Table) -> int:
    return len(list(table.files.store.list(f"{table.location}/data")))


@pytest.mark.parametrize(
    ("steps", "left"),
    [
        ((("append", 1, 2), ("replace", 1, 3)), [3, 9]),
        ((("append", 1, 5), ("truncate", 0, 0)), []),
        ((("delete", 1, 0), ("delete", 1, 0)), [9]),
        ((("delete", 1, 0), ("truncate", 0, 0)), []),
        ((("truncate", 0, 0), ("truncate", 0, 0)), []),
        ((("overwrite", 1, 2), ("overwrite", 1, 3)), [3, 9]),
        ((("replace", 1, 2), ("replace", 1, 3)), [3, 9]),
        ((("delete", 1, 0), ("replace", 1, 3)), [3, 9]),
        ((("truncate", 0, 0), ("append", 1, 2), ("delete", 1, 0)), []),
    ],
)
def test_a_removal_minds_what_the_transaction_added_and_removed_before(
    steps: tuple[Step, ...], left: list[int]
) -> None:
    table = some_table()
    with table.transaction() as tx:
        for step in steps:
            carry_out(tx, step)
    assert ids(table) == left
    assert table.verify(deep=True).is_clean


def test_files_that_a_transaction_writes_and_takes_away_again_are_not_kept() -> None:
    table = some_table()
    with table.transaction() as tx:
        tx.append(row(2, 1))
        tx.append(row(3, 2))
        tx.delete("p = 1")
    assert ids(table) == [3, 9]
    snapshot = table.snapshot()
    assert snapshot is not None
    assert (snapshot.summary or {})["added-data-files"] == "1"
    # Those of rows 1, 3 and 9.
    assert stored(table) == 3


@pytest.mark.parametrize("remove", [lambda tx: tx.delete("n < 10"), lambda tx: tx.truncate()])
def test_a_dv_of_a_transaction_goes_with_its_data_file(remove: Callable[[Any], None]) -> None:
    table = new_file_table()
    table.append_files([data_file("a", 0, 9)])
    with table.transaction() as tx:
        tx.append_files([data_file("b", 0, 9)])
        tx.row_delta([vector("va", "a"), vector("vb", "b")])
        remove(tx)
    assert live(table) == []


def carry_out(on: Any, step: Step) -> None:
    """Do a step on a table or in a transaction."""
    verb, p, id = step
    match verb:
        case "append":
            on.append(row(id, p))
        case "delete":
            on.delete(f"p = {p}")
        case "overwrite":
            on.overwrite(f"p = {p}", row(id, p))
        case "replace":
            on.replace_partitions(row(id, p))
        case "truncate":
            on.truncate()


_VERBS = st.sampled_from(["append", "append", "delete", "overwrite", "replace", "truncate"])
_STEPS = st.lists(st.tuples(_VERBS, st.integers(1, 3), st.integers(10, 99)), max_size=6)


@law(15)
@given(_STEPS, st.booleans())
def test_a_transaction_leaves_the_rows_that_its_operations_leave_one_by_one(
    steps: list[Step], leafy: bool
) -> None:
    how = {"properties": {"write.root.max-data-entries": "1"} if leafy else {}}
    together, apart = some_table(**how), some_table(**how)
    with together.transaction() as tx:
        for step in steps:
            carry_out(tx, step)
    for step in steps:
        carry_out(apart, step)
    assert ids(together) == ids(apart)
    assert together.verify(deep=True).is_clean
