"""Deletion vectors that clients of v3 send: no row comes back whose delete they do not remove."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import InvalidInput
from icetree.rows.write.deletes import write_data_vectors
from icetree.spec.entry.entry import Entries, Status, from_table, is_live, only, with_columns
from icetree.table.foreign import commit_foreign
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import law
from tests.table.changing import delete_rows
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import first, ids, new_file, some_table
from tests.table.export.test_stand_ins_sent import position_deletes


def own(client: StockClient, entries: Entries, status: Status) -> Entries:
    """Return entries as the client's own: files that come, or that go."""
    told = {"status": int(status), "snapshot_id": client.id}
    if status is Status.ADDED:
        age = client.sequence_number
        told |= {"sequence_number": age, "file_sequence_number": age}
    return with_columns(
        entries,
        **{
            name: pa.array([value] * entries.num_rows, entries.schema.field(name).type)
            for name, value in told.items()
        },
    )


def vector(table: Table, name: str, *rows: int) -> Entries:
    """Write the vector of a file with these rows alone, whatever was deleted of it before."""
    tasks = table.scan().plan().tasks
    for column in ("dv_location", "position_deletes"):
        at = tasks.schema.get_field_index(column)
        tasks = tasks.set_column(at, column, pa.nulls(tasks.num_rows, tasks.schema.field(at).type))
    return write_data_vectors(
        {name: rows}, tasks=tasks, metadata=table.metadata, store=table.files.store
    )


def remove_deletes(client: StockClient) -> None:
    """Remove all delete files that the client was shown."""
    entries = client.files(holds_data=False)
    entries = only(entries, is_live(entries))
    if entries.num_rows:
        client.kept = [each for each in client.kept if each.holds_data]
        client.write(own(client, entries, Status.DELETED))


def marked(*rows: int) -> tuple[Table, str, list[int]]:
    """Return a table with rows of a file deleted by a vector, the file and its ids by position."""
    table = some_table()
    name = first(StockClient(table))
    found = table.scan(columns=["id", "_file", "_pos"]).to_arrow().to_pylist()
    here = sorted((each["_pos"], each["id"]) for each in found if each["_file"].endswith(name))
    delete_rows(table, [id for at, id in here if at in rows])
    return table, name, [id for _, id in here]


def upgraded(*rows: int) -> tuple[Table, str, list[int]]:
    """Return the same for a table that was one of v2, with a position delete file."""
    table, name, here = marked()
    store, at = table.files.store, f"{table.location}/metadata/old.metadata.json"
    document = json.loads(store.read(table.export(format_version=2).metadata_location))
    client = StockClient(table, version=2)
    client.sequence_number -= 1
    if rows:
        client.add(position_deletes(table, name, *rows))
    [head] = [each for each in document["snapshots"] if each["snapshot-id"] == client.parent]
    head["manifest-list"] = client.snapshot("delete")["manifest-list"]
    head["summary"] = {"operation": "delete"}
    document |= {"snapshots": [head], "snapshot-log": []}
    store.write_new(at, json.dumps(document).encode())
    lake = Lake(catalog=MemoryCatalog("old"), store=store)
    lake.create_namespace("db")
    old = lake.register_table("db.rows", at)
    old.upgrade()
    assert ids(old) == sorted({*range(12)} - {here[each] for each in rows})
    return old, name, here


def send(table: Table, asked: dict[str, Any], *, is_proper: bool) -> None:
    """Commit what a client asks for, which is refused where deleted rows would be back."""
    if is_proper:
        commit_foreign(table, asked)
    else:
        with pytest.raises(InvalidInput, match="leaves out rows that were deleted before"):
            commit_foreign(table, asked)


@pytest.mark.parametrize("of", [marked, upgraded])
@pytest.mark.parametrize(
    ("before", "after", "removes", "is_proper"),
    [
        ({0}, {0, 1}, True, True),
        ({0, 1}, {1, 2}, True, False),
        ({0}, set(), True, True),
        ({0}, set(), False, True),
        (set(), {1}, False, True),
    ],
)
def test_no_deleted_row_comes_back_whose_delete_is_not_removed(
    of: Callable[..., tuple[Table, str, list[int]]],
    before: set[int],
    after: set[int],
    removes: bool,
    is_proper: bool,
) -> None:
    table, name, here = of(*before)
    client = StockClient(table, id=9)
    if removes:
        remove_deletes(client)
    if after:
        client.write(own(client, vector(table, name, *after), Status.ADDED))
    send(table, client.snapshot("delete"), is_proper=is_proper)
    gone = after if is_proper and (after or removes) else before
    assert ids(table.refresh()) == sorted({*range(12)} - {here[at] for at in gone})
    assert table.verify(deep=True).findings == ()


@law(40, usual=4, shrinks=False)
@given(
    of=st.sampled_from([marked, upgraded]),
    before=st.frozensets(st.sampled_from([0, 1, 2])),
    after=st.frozensets(st.sampled_from([0, 1, 2])),
    removes=st.booleans(),
)
def test_whatever_a_client_sends_no_deleted_row_is_back_whose_delete_is_there(
    of: Callable[..., tuple[Table, str, list[int]]],
    before: frozenset[int],
    after: frozenset[int],
    removes: bool,
) -> None:
    table, name, here = of(*sorted(before))
    client = StockClient(table, id=9)
    if removes:
        remove_deletes(client)
    if after:
        client.write(own(client, vector(table, name, *after), Status.ADDED))
    asked = client.snapshot("delete")
    with suppress(InvalidInput):
        commit_foreign(table, asked)
    left = {*ids(table.refresh())}
    gone = {at for at, id in enumerate(here) if id not in left}
    assert left >= {*range(12)} - {*here}
    assert before <= gone or (removes and not after)
    assert gone in (before, after)


def test_a_vector_holds_the_rows_of_position_deletes_that_stay() -> None:
    """As of those that are of several data files: the vector alone is read."""
    for rows, is_proper in (((1,), False), ((0, 1), True)):
        table, name, here = upgraded(0)
        client = StockClient(table, id=9)
        client.write(own(client, vector(table, name, *rows), Status.ADDED))
        send(table, client.snapshot("delete"), is_proper=is_proper)
        gone = {here[at] for at in rows} if is_proper else {here[0]}
        assert ids(table.refresh()) == sorted({*range(12)} - gone)


def test_a_vector_beside_one_that_stays_is_refused() -> None:
    table, name, here = marked(0)
    client = StockClient(table)
    client.write(own(client, vector(table, name, 1), Status.ADDED))
    with pytest.raises(InvalidInput, match="neither removes nor replaces"):
        commit_foreign(table, client.snapshot("delete"))
    assert here[0] not in ids(table.refresh())


def test_a_file_gets_one_vector() -> None:
    table, name, _ = marked()
    client = StockClient(table)
    client.write(own(client, vector(table, name, 0), Status.ADDED))
    client.write(own(client, vector(table, name, 1), Status.ADDED))
    with pytest.raises(InvalidInput, match="more than one data DV"):
        commit_foreign(table, client.snapshot("delete"))
    client = StockClient(table, id=9)
    client.write(own(client, vector(table, name, 0), Status.ADDED))
    client.add(position_deletes(table, name, 1))
    with pytest.raises(InvalidInput, match="more than one data DV"):
        commit_foreign(table, client.snapshot("delete"))
    assert ids(table.refresh()) == list(range(12))


def test_a_vector_that_cannot_be_read_takes_no_others_place() -> None:
    table, name, here = marked(0)
    client = StockClient(table)
    remove_deletes(client)
    [made] = from_table(vector(table, name, 0, 1))
    client.add(replace(made, record_count=1))
    with pytest.raises(InvalidInput, match="cannot be read"):
        commit_foreign(table, client.snapshot("delete"))
    assert here[0] not in ids(table.refresh())


def test_a_file_that_goes_and_comes_again_does_not_lose_its_vector() -> None:
    table, name, here = marked(0)
    client = StockClient(table)
    [gone] = [each for each in from_table(client.files()) if each.location == name]
    client.rewritten(name)
    client.add(gone)
    with pytest.raises(InvalidInput, match="and adds it again"):
        commit_foreign(table, client.snapshot("overwrite"))
    assert here[0] not in ids(table.refresh())


def test_a_new_file_may_come_with_its_vector() -> None:
    table = some_table()
    client = StockClient(table)
    made = new_file(table, 50, 51)
    client.add(made)
    assert made.location is not None
    client.add(
        replace(
            from_table(vector(table, first(client), 0))[0],
            referenced_file=made.location,
        )
    )
    commit_foreign(table, client.snapshot("overwrite"))
    assert ids(table) == [*range(12), 51]
