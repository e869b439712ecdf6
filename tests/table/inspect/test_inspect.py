"""What a table is made of, as Arrow tables."""

from __future__ import annotations

import pytest

from icetree.spec.entry.entry import Status
from icetree.table.table import Table
from tests.table.changing import changing_table, delete_rows, now, some
from tests.table.lake import data_file, new_table, vector

_ALL = (
    "snapshots", "history", "refs", "metadata_log_entries", "expressions", "files", "data_files",
    "delete_files", "entries", "partitions", "manifests", "tree", "all_files", "all_data_files",
    "all_delete_files", "all_entries", "all_manifests",
)  # fmt: skip


@pytest.fixture
def leafy() -> Table:
    """Five files in a leaf, one removed; a DV in an affiliated leaf; a file and a DV in the root."""
    table = new_table(
        partition_by=["country"],
        properties={
            "write.root.max-data-entries": "2",
            "write.root.max-delete-entries": "1",
            "write.flush.affinity-min-entries": "1",
        },
    )
    names = "abcde"
    table.append_files([data_file(name, at, at + 9, country="DE") for at, name in enumerate(names)])
    table.row_delta([vector("dv", "a", rows=3)])
    table.row_delta([vector("dv2", "c")])
    with table.transaction() as tx:
        tx.delete_files(["data/b.parquet"])
        tx.append_files([data_file("z", country="FR")])
    return table


@pytest.mark.parametrize("name", _ALL)
def test_a_table_without_snapshots_has_empty_tables_of_the_same_columns(
    name: str, leafy: Table
) -> None:
    empty = getattr(new_table(partition_by=["country"]).inspect, name)()
    full = getattr(leafy.inspect, name)()
    rows = {"metadata_log_entries": 1, "expressions": 1}
    assert empty.num_rows == rows.get(name, 0)
    assert empty.column_names == full.column_names
    full.validate(full=True)
    empty.validate(full=True)


def test_files_have_partition_metrics_and_deletes(leafy: Table) -> None:
    rows = {_short(row["file_path"]): row for row in leafy.inspect.files().to_pylist()}
    assert sorted(rows) == ["a", "c", "d", "dv", "dv2", "e", "z"]
    assert rows["z"]["partition"] == {"country": "FR"}
    assert rows["c"]["readable_metrics"]["n"] == {
        "column_size": None,
        "value_count": 10,
        "null_value_count": 0,
        "nan_value_count": None,
        "lower_bound": 2,
        "upper_bound": 11,
    }
    assert dict(rows["c"]["value_counts"]) == {1: 10, 2: 10}
    assert _short(rows["dv"]["referenced_data_file"]) == "a"
    assert (rows["dv"]["content_offset"], rows["dv"]["content_size_in_bytes"]) == (4, 40)
    assert leafy.inspect.data_files().num_rows == 5
    assert leafy.inspect.delete_files().num_rows == 2


def test_entries_tell_where_they_are_and_what_a_manifest_dv_removed(leafy: Table) -> None:
    rows = {
        _short(row["data_file"]["file_path"]): row for row in leafy.inspect.entries().to_pylist()
    }
    assert [name for name, row in rows.items() if row["is_removed"]] == ["b"]
    assert rows["b"]["leaf"] == rows["c"]["leaf"] != rows["z"]["leaf"]
    assert rows["z"]["leaf"] is None
    assert rows["z"]["position"] is None
    assert rows["z"]["status"] == Status.ADDED
    assert sorted(row["position"] for row in rows.values() if row["leaf"] == rows["c"]["leaf"]) == [
        0, 1, 2, 3, 4,
    ]  # fmt: skip


def test_manifests_tell_of_their_dvs_affiliation_and_partitions(leafy: Table) -> None:
    data, deletes = leafy.inspect.manifests().sort_by("content").to_pylist()
    assert data["entries"] == 5
    assert data["manifest_dv_cardinality"] == 1
    assert data["added_data_files_count"] + data["existing_data_files_count"] == 5
    assert data["partition_summaries"] == [
        {"contains_null": False, "contains_nan": None, "lower_bound": "DE", "upper_bound": "DE"}
    ]
    assert data["readable_metrics"]["n"]["upper_bound"] == 13
    assert deletes["affiliated_with"] == data["path"]
    assert deletes["manifest_dv_cardinality"] == 0


def test_the_tree_has_a_row_a_node(leafy: Table) -> None:
    root, *leaves = leafy.inspect.tree().to_pylist()
    assert (root["level"], root["content"], root["status"]) == (0, "root", None)
    assert root["record_count"] == 10, "the rows of the one data file that is in the root itself"
    assert root["entries"] == 5
    told = {
        row["content"]: (row["entries"], row["live_entries"], row["record_count"]) for row in leaves
    }
    assert told == {"data": (5, 4, 50), "delete": (1, 1, 3)}
    assert {row["status"] for row in leaves} == {"EXISTING"}


def test_partitions_add_up_what_is_live_in_them(leafy: Table) -> None:
    rows = {row["partition"]["country"]: row for row in leafy.inspect.partitions().to_pylist()}
    assert rows["FR"]["last_updated_snapshot_id"] == now(leafy)
    assert rows["DE"]["file_count"] == 4
    assert rows["DE"]["record_count"] == 40
    assert rows["DE"]["total_data_file_size_in_bytes"] == 4000
    assert sum(row["position_delete_record_count"] for row in rows.values()) == 4


def test_an_earlier_snapshot_can_be_inspected(leafy: Table) -> None:
    first = leafy.changes().snapshots[0].snapshot_id
    leafy.create_tag("start", at=first)
    by_id = leafy.inspect.files(at=first)
    assert by_id.num_rows == 5
    assert leafy.inspect.files(at="start").equals(by_id)


def test_files_of_all_snapshots_are_there_once(leafy: Table) -> None:
    found = [_short(name) for name in leafy.inspect.all_files()["file_path"].to_pylist()]
    assert sorted(found) == ["a", "b", "c", "d", "dv", "dv2", "e", "z"]
    manifests = leafy.inspect.all_manifests()
    last = [id == now(leafy) for id in manifests["reference_snapshot_id"].to_pylist()]
    assert sum(last) == leafy.inspect.manifests().num_rows


def test_expressions_say_which_specs_use_them() -> None:
    table = new_table(partition_by=["bucket(16, n)", "country"])
    bucket, country = table.inspect.expressions().to_pylist()
    assert (bucket["transform"], bucket["source_names"], bucket["type"]) == (
        "bucket[16]", ["n"], "int",
    )  # fmt: skip
    assert country["spec_ids"] == [table.metadata.default_spec_id]
    assert country["is_default"]


def test_history_and_snapshots_reach_into_pages() -> None:
    table = new_table(properties={"write.metadata.inline-snapshots": "1"})
    for number in range(103):
        table.append_files([data_file(f"f{number}")])
    assert table.metadata.snapshot_pages
    assert table.inspect.snapshots().num_rows == 103
    history = table.inspect.history()
    assert history.num_rows == 103
    assert all(history["is_current_ancestor"].to_pylist())
    assert history["parent_id"].to_pylist()[1:] == history["snapshot_id"].to_pylist()[:-1]


def test_the_metadata_log_ends_with_the_current_file() -> None:
    table = changing_table()
    table.append(some((1, "a")))
    delete_rows(table, [1])
    log = table.inspect.metadata_log_entries().to_pylist()
    assert log[-1]["file"] == table.state.metadata_location
    assert log[-1]["latest_snapshot_id"] == now(table)
    assert log[0]["latest_snapshot_id"] is None


def _short(location: str) -> str:
    return location.rpartition("/")[2].partition(".")[0]
