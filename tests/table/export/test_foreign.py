"""Snapshots that stock clients made: committed as changes of the tree, or refused; nothing is lost."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.codec.legacy.encode_list import encode_manifest_list
from icetree.errors import CommitConflict, InvalidInput
from icetree.rows.write.write import write_files
from icetree.spec.entry.entry import Content, Entries, Entry, Status, from_table
from icetree.spec.fields import LAST_UPDATED_SEQUENCE_NUMBER_FIELD, ROW_ID_FIELD
from icetree.spec.location import absolute
from icetree.table.export.export import export
from icetree.table.foreign import commit_foreign
from icetree.table.table import Table
from tests.table.changing import LEAFY, changing_table, delete_rows, some
from tests.table.export.stock_client import ID, StockClient


def some_table(**properties: str) -> Table:
    table = changing_table(identified=False, properties={**LEAFY, **properties})
    for start in range(0, 12, 3):
        table.append(some(*((start + at, "a") for at in range(3))))
    return table


def new_file(table: Table, *ids: int, value: str = "new") -> Entry:
    """Write rows as a data file that the table does not know."""
    made = write_files(
        some(*((id, value) for id in ids)),
        table="t",
        metadata=table.metadata,
        store=table.files.store,
    )
    [entry] = from_table(made)
    return entry


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def data_files(table: Table) -> list[str]:
    return sorted(table.inspect.data_files()["file_path"].to_pylist())


def first(client: StockClient) -> str:
    """Name one of the files that a client was shown."""
    return str(client.files()["location"][0].as_py())


def with_nulls(manifest: bytes, nulls: dict[int, int]) -> bytes:
    """Return a manifest that counts nulls of more columns."""
    reader: Any = fastavro.reader(BytesIO(manifest))
    entries = [*reader]
    for each in entries:
        told = [{"key": id, "value": count} for id, count in nulls.items()]
        each["data_file"]["null_value_counts"] = [*(each["data_file"]["null_value_counts"] or []), *told]  # fmt: skip
    said = {name: value for name, value in reader.metadata.items() if not name.startswith("avro.")}
    out = BytesIO()
    fastavro.writer(out, reader.writer_schema, entries, metadata=said)
    return out.getvalue()


def test_an_append_is_committed_under_the_clients_id() -> None:
    table = some_table()
    client = StockClient(table)
    client.add(new_file(table, 50, 51))
    done = commit_foreign(table, client.snapshot())
    assert ids(table) == [*range(12), 50, 51]
    head = table.current_snapshot
    assert head is not None
    assert head == done.snapshot
    assert head.snapshot_id == ID
    assert head.parent_snapshot_id == client.parent
    assert head.operation == "append"
    # What a client says of itself is kept, what it counted is counted anew.
    assert (head.summary or {})["engine-name"] == "stock"
    assert (head.summary or {})["added-records"] == "2"
    assert table.verify(deep=True).findings == ()


def test_the_first_snapshot_of_a_table_has_no_parent() -> None:
    table = changing_table(identified=False)
    client = StockClient(table)
    client.add(new_file(table, 1))
    commit_foreign(table, client.snapshot())
    assert ids(table) == [1]


@pytest.mark.parametrize("version", [3, 2])
def test_files_go_and_others_come_in_their_place(version: int) -> None:
    table = some_table()
    client = StockClient(table, version=version)
    gone = first(client)
    left = [name for name in data_files(table) if not name.endswith(gone)]
    client.rewritten(gone)
    entry = new_file(table, 50)
    client.add(entry)
    commit_foreign(table, client.snapshot("overwrite"))
    assert data_files(table) == sorted([*left, absolute(str(entry.location), table.location)])
    assert table.verify(deep=True).findings == ()


def test_manifests_may_be_merged_without_a_change() -> None:
    table = some_table()
    before = data_files(table)
    client = StockClient(table)
    assert len(client.kept) > 1
    client.rewritten()
    commit_foreign(table, client.snapshot("replace"))
    assert data_files(table) == before
    assert ids(table) == list(range(12))


@pytest.mark.parametrize(
    ("operation", "forgotten", "is_refused"),
    [("replace", 3, True), ("replace", 1, True), ("replace", 0, False), ("overwrite", 3, False)],
)
def test_files_that_replace_others_say_when_their_rows_were_last_updated(
    operation: str, forgotten: int, is_refused: bool
) -> None:
    """Who changes rows says nothing of those that it changed."""
    table = some_table()
    before = data_files(table)
    client = StockClient(table)
    gone = first(client)
    client.rewritten(gone)
    manifest = client.add(new_file(table, 0, 1, 2, value="a"))
    nulls = {ROW_ID_FIELD: 0, LAST_UPDATED_SEQUENCE_NUMBER_FIELD: forgotten}
    content = with_nulls(table.files.store.read(manifest.location), nulls)
    table.files.store.delete([manifest.location])
    table.files.store.write_new(manifest.location, content)
    client.made[-1] = replace(manifest, size_bytes=len(content))
    snapshot = client.snapshot(operation)
    if is_refused:
        with pytest.raises(InvalidInput, match="run `icetree rewrite-data-files`"):
            commit_foreign(table, snapshot)
        assert data_files(table.refresh()) == before
    else:
        commit_foreign(table, snapshot)
        assert data_files(table) != before
    assert ids(table) == list(range(12))


@pytest.mark.parametrize("folder", ["data", "metadata/data"])
def test_position_deletes_become_deletion_vectors(folder: str) -> None:
    """Also of a file that lies where the table's metadata lies, as those of other writers may."""
    table = some_table(**{"write.data.path": f"memory://lake/db/rows/{folder}"})
    delete_rows(table, [1])
    client = StockClient(table)
    name = first(client)
    rows = table.scan(columns=["id", "_file", "_pos"]).to_arrow().to_pylist()
    [*_, row] = [each for each in rows if each["_file"].endswith(name)]
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table([[row["_file"]], [row["_pos"]]], schema=schema), sink)
    content = sink.getvalue().to_pybytes()
    table.files.store.write_new(f"{table.location}/data/deletes.parquet", content)
    deletes = Entry(
        content_type=Content.POSITION_DELETES,
        location="data/deletes.parquet",
        referenced_file=name,
        record_count=1,
        file_size_in_bytes=len(content),
    )
    assert name.startswith(folder)
    client.add(deletes)
    commit_foreign(table, client.snapshot("delete"))
    assert ids(table) == sorted({*range(12)} - {1, row["id"]})
    formats = set(table.inspect.delete_files()["file_format"].to_pylist())
    assert {each.lower() for each in formats} == {"puffin"}
    assert table.verify(deep=True).findings == ()


@pytest.mark.parametrize("rebase", ["false", "true"])
def test_what_is_based_on_an_older_head_is_a_conflict_but_for_appends_where_asked_for(
    rebase: str,
) -> None:
    table = some_table(**{"commit.rebase-appends": rebase})
    append, delete = StockClient(table), StockClient(table, id=4712)
    append.add(new_file(table, 50))
    delete.rewritten(first(delete))
    asked = [delete.snapshot("delete"), append.snapshot()]
    table.append(some((20, "b")))
    for each in asked if rebase == "false" else asked[:1]:
        with pytest.raises(CommitConflict, match="is based on snapshot"):
            commit_foreign(table, each)
        assert ids(table) == [*range(12), 20]
    if rebase == "true":
        commit_foreign(table, asked[1])
        assert ids(table) == [*range(12), 20, 50]


def test_a_second_snapshot_of_a_request_is_based_on_the_first() -> None:
    table = some_table()
    client = StockClient(table)
    gone = first(client)
    client.rewritten(gone)
    asked = client.snapshot("delete")
    before: dict[int, Entries] = {}
    commit_foreign(table, asked, before=before)
    # Whoever can write to the table's folder may put another list there: it was read once.
    store, at = table.files.store, asked["manifest-list"]
    store.delete([at])
    store.write_new(at, b"another")
    again = StockClient(table, id=4712)
    again.kept = [*client.made, *client.kept]
    again.add(new_file(table, 50))
    commit_foreign(table, again.snapshot(), before=before)
    assert 50 in ids(table)
    assert not [name for name in data_files(table) if name.endswith(gone)]
    assert table.verify(deep=True).findings == ()


def test_a_snapshot_that_is_there_is_not_added_again() -> None:
    table = some_table()
    client = StockClient(table)
    client.add(new_file(table, 50))
    asked = client.snapshot()
    commit_foreign(table, asked)
    with pytest.raises(InvalidInput, match="has a snapshot 4711 already"):
        commit_foreign(table, asked)
    assert ids(table) == [*range(12), 50]


# --- what is refused -----------------------------------------------------------------------------


def _forgets(client: StockClient) -> dict[str, Any]:
    """Leave out a manifest without a word of its files."""
    client.kept = client.kept[1:]
    client.add(new_file(client.table, 50))
    return client.snapshot()


def _invents(client: StockClient) -> dict[str, Any]:
    client.add(new_file(client.table, 50), status=Status.EXISTING, snapshot_id=1)
    return client.snapshot()


def _removes_what_stays(client: StockClient) -> dict[str, Any]:
    [one, *_] = from_table(client.files())
    client.add(one, status=Status.DELETED)
    return client.snapshot("delete")


def _in_anothers_name(client: StockClient) -> dict[str, Any]:
    client.add(new_file(client.table, 50), snapshot_id=client.parent)
    return client.snapshot()


def _manifest_of_another(client: StockClient) -> dict[str, Any]:
    made = client.add(new_file(client.table, 50))
    client.made = [replace(made, snapshot_id=client.parent or 0)]
    return client.snapshot()


def _manifest_outside(client: StockClient) -> dict[str, Any]:
    made = client.add(new_file(client.table, 50))
    client.made = [replace(made, location="memory://elsewhere/m.avro")]
    return client.snapshot()


def _list_outside(client: StockClient) -> dict[str, Any]:
    return {**client.snapshot(), "manifest-list": "memory://elsewhere/list.avro"}


def _file_outside(client: StockClient) -> dict[str, Any]:
    client.add(replace(new_file(client.table, 50), location="memory://elsewhere/d.parquet"))
    return client.snapshot()


def _file_among_exports(client: StockClient) -> dict[str, Any]:
    client.add(replace(new_file(client.table, 50), location="metadata/export/x/v3/snap-1-2.avro"))
    return client.snapshot()


def _file_among_metadata(client: StockClient) -> dict[str, Any]:
    """A data file by the name of a page of history, or of statistics: it is there."""
    client.add(replace(new_file(client.table, 50), location="metadata/x.page.json.gz"))
    return client.snapshot()


def _up_and_out(client: StockClient) -> dict[str, Any]:
    return {**client.snapshot(), "manifest-list": f"{client.table.location}/../t2/list.avro"}


def _no_list(client: StockClient) -> dict[str, Any]:
    return {**client.snapshot(), "manifest-list": f"{client.table.location}/metadata/none.avro"}


def _garbage(client: StockClient) -> dict[str, Any]:
    at = f"{client.table.location}/metadata/garbage.avro"
    client.table.files.store.write_new(at, b"Obj\x01" + bytes(range(200)))
    return {**client.snapshot(), "manifest-list": at}


def _no_snapshot(client: StockClient) -> dict[str, Any]:
    return {**client.snapshot(), "snapshot-id": "seven"}


def _twice(client: StockClient) -> dict[str, Any]:
    [one, *_] = from_table(client.files())
    client.add(one)
    return client.snapshot()


@pytest.mark.parametrize(
    ("does", "reason"),
    [
        (_forgets, "neither keeps nor removes"),
        (_invents, "was not there to be"),
        (_removes_what_stays, "was not there to be"),
        (_in_anothers_name, "in the name of another snapshot"),
        (_manifest_of_another, "neither its own nor of what it is based on"),
        (_manifest_outside, "outside the table"),
        (_list_outside, "outside the table"),
        (_file_outside, "outside the table"),
        (_file_among_exports, "where the table's metadata lies"),
        (_file_among_metadata, "where the table's metadata lies"),
        (_up_and_out, r"\.\."),
        (_no_list, "cannot be read"),
        (_garbage, "cannot be read"),
        (_no_snapshot, "that is no snapshot"),
        (_twice, "is in the table already"),
    ],
)
def test_what_would_lose_or_invent_files_or_leads_out_is_refused(does: Any, reason: str) -> None:
    table = some_table()
    before, files = table.state, ids(table)
    asked = does(StockClient(table))
    with pytest.raises(InvalidInput, match=reason):
        commit_foreign(table, asked)
    assert table.refresh().state == before
    assert ids(table) == files


def test_an_export_that_somebody_wrote_over_leads_nowhere() -> None:
    """What a list of an export names is of the table, whoever has written it: nothing else is read."""
    table = some_table()
    client = StockClient(table)
    client.add(new_file(table, 50))
    asked = client.snapshot()
    store, at = table.files.store, export(table.state, table.files, table.current_snapshot)
    listed = str(at.manifest_list)
    elsewhere = replace(client.kept[0], location="memory://elsewhere/secret/m.avro")
    own = replace(client.kept[0], location=client.made[0].location)
    for stranger in (elsewhere, own):
        store.delete([listed])
        content = encode_manifest_list([*client.kept, stranger], {}, format_version=3)
        store.write_new(listed, content)
        with pytest.raises(InvalidInput, match="manifests that are not of this table") as refused:
            commit_foreign(table, asked)
        assert "secret" not in str(refused.value)
        assert ids(table.refresh()) == list(range(12))
