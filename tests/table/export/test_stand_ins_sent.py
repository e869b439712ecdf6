"""What clients of v2 say of files that stand for data DVs is said of the DVs: no row is lost, none comes back."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.errors import InvalidInput
from icetree.spec.entry.entry import Content, Entry, Status, from_table, is_live, only, with_columns
from icetree.spec.location import absolute
from icetree.table.foreign import commit_foreign
from icetree.table.table import Table
from tests.table.changing import delete_rows, now
from tests.table.export.stock_client import StockClient
from tests.table.export.test_foreign import first, ids, new_file, some_table
from tests.table.export.test_stand_ins import deletes


def position_deletes(table: Table, name: str, *rows: int) -> Entry:
    """Write a position delete file as a client of v2 does."""
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    sink = pa.BufferOutputStream()
    path = absolute(name, table.location)
    pq.write_table(pa.table([[path] * len(rows), [*rows]], schema=schema), sink)
    content = sink.getvalue().to_pybytes()
    at = f"data/{now(table)}-deletes.parquet"
    table.files.store.write_new(absolute(at, table.location), content)
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=at,
        record_count=len(rows),
        file_size_in_bytes=len(content),
    )


def marked(table: Table, *gone: int) -> tuple[str, list[int]]:
    """Delete rows of one file by a vector; return its name, and the ids by position."""
    name = first(StockClient(table))
    rows = table.scan(columns=["id", "_file", "_pos"]).to_arrow().to_pylist()
    here = sorted((each["_pos"], each["id"]) for each in rows if each["_file"].endswith(name))
    found = [id for _, id in here]
    delete_rows(table, [found[at] for at in gone])
    return name, found


def tell_deletes(client: StockClient, *removed: str, forget: bool = False) -> None:
    """Put a manifest of the client's own in the place of all of deletes, with some as removed."""
    entries = client.files(holds_data=False)
    entries = only(entries, is_live(entries))
    gone = [name in removed for name in entries["referenced_file"].to_pylist()]
    snapshots = entries["snapshot_id"].to_pylist()
    entries = with_columns(
        entries,
        status=pa.array([int(Status.DELETED if g else Status.EXISTING) for g in gone], pa.int32()),
        snapshot_id=pa.array(
            [client.id if g else i for g, i in zip(gone, snapshots, strict=True)], pa.int64()
        ),
    )
    if forget:
        entries = with_columns(entries, referenced_file=None)
    client.kept = [each for each in client.kept if each.holds_data]
    client.write(entries)


def require(table: Table, expected: list[int]) -> None:
    """Require rows, of the table and of its export, and a sound tree with vectors alone."""
    assert ids(table) == expected
    assert table.verify(deep=True).findings == ()
    formats = table.inspect.delete_files()["file_format"].to_pylist()
    assert {each.lower() for each in formats} <= {"puffin"}
    shown = deletes(table)
    live = only(shown, is_live(shown))
    assert set(live["file_format"].to_pylist()) <= {"parquet"}


def test_an_append_keeps_what_stands_for_vectors() -> None:
    table = some_table()
    delete_rows(table, [1, 7])
    client = StockClient(table, version=2)
    client.add(new_file(table, 50))
    commit_foreign(table, client.snapshot())
    require(table, sorted({*range(12), 50} - {1, 7}))


@pytest.mark.parametrize("forget", [False, True])
def test_they_may_be_told_to_stay_by_a_manifest_of_the_clients_own(forget: bool) -> None:
    table = some_table()
    delete_rows(table, [1, 7])
    client = StockClient(table, version=2)
    tell_deletes(client, forget=forget)
    client.add(new_file(table, 50))
    commit_foreign(table, client.snapshot())
    require(table, sorted({*range(12), 50} - {1, 7}))


def test_one_that_is_neither_kept_nor_removed_is_missed() -> None:
    table = some_table()
    delete_rows(table, [1, 7])
    client = StockClient(table, version=2)
    client.kept = [each for each in client.kept if each.holds_data]
    client.add(new_file(table, 50))
    with pytest.raises(InvalidInput, match="neither keeps nor removes"):
        commit_foreign(table, client.snapshot())


def test_new_position_deletes_join_the_vector_of_their_file() -> None:
    table = some_table()
    name, here = marked(table, 0)
    client = StockClient(table, version=2)
    client.add(position_deletes(table, name, 2))
    commit_foreign(table, client.snapshot("delete"))
    require(table, sorted({*range(12)} - {here[0], here[2]}))


@pytest.mark.parametrize("rows", [(0, 2), (0,)])
@pytest.mark.parametrize("forget", [False, True])
def test_position_deletes_in_the_place_of_one_must_cover_it(
    rows: tuple[int, ...], forget: bool
) -> None:
    table = some_table()
    name, here = marked(table, 0)
    client = StockClient(table, version=2)
    tell_deletes(client, name)
    if forget:
        client.made.clear()
        client.kept = StockClient(table, version=2).kept
        tell_deletes_of(client, name)
    client.add(position_deletes(table, name, *rows))
    commit_foreign(table, client.snapshot("delete" if len(rows) > 1 else "replace"))
    require(table, sorted({*range(12)} - {here[at] for at in rows}))


def tell_deletes_of(client: StockClient, name: str) -> None:
    """Remove what stands for the vector of a file, in a manifest that names no data file."""
    entries = client.files(holds_data=False)
    entries = only(entries, is_live(entries))
    assert entries["referenced_file"].to_pylist() == [name]
    entries = with_columns(
        entries, status=int(Status.DELETED), snapshot_id=client.id, referenced_file=None
    )
    client.kept = [each for each in client.kept if each.holds_data]
    client.id += 1
    client.write(with_columns(entries, snapshot_id=client.id))


def test_position_deletes_that_leave_out_rows_of_what_they_replace_are_refused() -> None:
    table = some_table()
    name, here = marked(table, 0, 1)
    client = StockClient(table, version=2)
    tell_deletes(client, name)
    client.add(position_deletes(table, name, 1, 2))
    with pytest.raises(InvalidInput, match="leave out rows that were deleted"):
        commit_foreign(table, client.snapshot("delete"))
    require(table, sorted({*range(12)} - {here[0], here[1]}))


def test_who_removes_one_and_nothing_else_has_the_rows_again() -> None:
    table = some_table()
    name, here = marked(table, 0)
    delete_rows(table, [next(iter({*range(12)} - {*here}))])
    left = [*ids(table), here[0]]
    client = StockClient(table, version=2)
    tell_deletes(client, name)
    commit_foreign(table, client.snapshot("overwrite"))
    require(table, sorted(left))


@pytest.mark.parametrize("together", [True, False])
def test_one_goes_with_its_data_file_whether_that_is_told_or_not(together: bool) -> None:
    table = some_table()
    name, here = marked(table, 0)
    client = StockClient(table, version=2)
    client.rewritten(name)
    if together:
        tell_deletes(client, name)
    client.add(new_file(table, 50))
    commit_foreign(table, client.snapshot("overwrite"))
    require(table, sorted({*range(12), 50} - {*here}))
    assert table.inspect.delete_files().num_rows == 0


def test_a_name_that_is_told_by_nobody_is_no_vector_to_remove() -> None:
    table = some_table()
    marked(table, 0)
    client = StockClient(table, version=2)
    [entry] = from_table(client.files(holds_data=False))
    stranger = replace(entry, location=str(entry.location).replace(".parquet", "0.parquet"))
    client.add(stranger, status=Status.DELETED)
    with pytest.raises(InvalidInput, match="which was not there to be"):
        commit_foreign(table, client.snapshot("overwrite"))
    client = StockClient(table, version=2, id=9)
    client.add(entry)
    with pytest.raises(InvalidInput, match="lies where the table's metadata lies"):
        commit_foreign(table, client.snapshot("overwrite"))
