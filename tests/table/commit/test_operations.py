"""What each operation does to a table, as one snapshot."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from icetree.errors import AlreadyExists, CommitConflict, InvalidInput, NotFound
from icetree.table.commit.commit import Committed
from icetree.table.table import Table
from tests.table.lake import connection, data_file, live, new_table, place, vector


@pytest.fixture
def table() -> Table:
    found = new_table()
    found.append_files([data_file("a", 0, 9), data_file("b", 10, 19)])
    return found


@pytest.fixture
def countries() -> Table:
    found = new_table(partition_by=["country"])
    found.append_files(
        [
            data_file("de", country="DE"),
            data_file("fr", country="FR"),
            data_file("us", country="US"),
        ]
    )
    return found


def summary(done: Committed) -> dict[str, str]:
    assert done.snapshot is not None
    assert done.snapshot.summary is not None
    return done.snapshot.summary


def test_an_append_writes_one_manifest_and_one_metadata_file(table: Table) -> None:
    done = table.append_files([data_file("c")])
    assert done.report.files == 2
    assert live(table) == ["a", "b", "c"]
    assert summary(done)["operation"] == "append"
    assert summary(done)["total-data-files"] == "3"


def test_an_append_of_many_files_goes_to_leaves(table: Table) -> None:
    table.set_properties({"write.root.max-data-entries": "3"})
    done = table.append_files([data_file(f"x{i}") for i in range(8)])
    assert summary(done)["manifests-created"] == "1"
    assert len(live(table)) == 10


def test_files_are_deleted_by_name(table: Table) -> None:
    done = table.delete_files([place("a")])
    assert live(table) == ["b"]
    assert summary(done)["operation"] == "delete"
    assert summary(done)["deleted-records"] == "10"


def test_a_filter_deletes_whole_files(table: Table) -> None:
    table.delete("n >= 10")
    assert live(table) == ["a"]


def test_a_filter_that_cuts_through_a_file_after_another_change_is_refused_and_names_it(
    table: Table,
) -> None:
    before = table.metadata
    cuts = pytest.raises(InvalidInput, match=r"cannot delete by metadata alone.*data/a.parquet")
    with cuts, table.transaction() as tx:
        tx.append_files([data_file("c")])
        tx.delete("n >= 5")
    assert table.refresh().metadata == before


def test_files_are_overwritten_by_others(table: Table) -> None:
    done = table.overwrite_files([place("a")], [data_file("c")])
    assert live(table) == ["b", "c"]
    assert summary(done)["operation"] == "overwrite"


def test_an_overwrite_by_filter_replaces_what_matches(table: Table) -> None:
    table.overwrite("n < 10", [data_file("c", 2, 5)])
    assert live(table) == ["b", "c"]


def test_an_overwrite_by_filter_refuses_files_outside_the_filter(table: Table) -> None:
    with pytest.raises(InvalidInput, match="outside the overwrite filter"):
        table.overwrite("n < 10", [data_file("c", 5, 15)])
    assert live(table.refresh()) == ["a", "b"]


def test_an_overwrite_that_is_not_strict_takes_files_outside_the_filter(table: Table) -> None:
    table.overwrite("n < 10", [data_file("c", 5, 15)], strict=False)
    assert live(table.refresh()) == ["b", "c"]


def test_replaced_partitions_lose_their_old_files(countries: Table) -> None:
    done = countries.replace_partitions([data_file("de2", country="DE")])
    assert live(countries) == ["de2", "fr", "us"]
    assert summary(done)["replace-partitions"] == "true"


def test_replacing_partitions_of_an_unpartitioned_table_replaces_everything(table: Table) -> None:
    table.replace_partitions([data_file("c")])
    assert live(table) == ["c"]


def test_a_row_delta_adds_vectors_and_replaces_the_ones_that_were(table: Table) -> None:
    table.row_delta([vector("v1", "a"), data_file("c")])
    assert live(table) == ["a", "b", "c", "dv of a"]
    done = table.row_delta([vector("v2", "a", rows=2)])
    assert live(table) == ["a", "b", "c", "dv of a"]
    assert (summary(done)["added-dvs"], summary(done)["removed-dvs"]) == ("1", "1")


def test_a_rewrite_changes_no_rows_and_keeps_their_age(table: Table) -> None:
    before = table.metadata.current_snapshot()
    assert before is not None
    done = table.rewrite([place("a"), place("b")], [data_file("ab", 0, 19)])
    assert live(table) == ["ab"]
    assert summary(done)["operation"] == "replace"
    shape = table.metadata.shape()
    root = table.files.root(done.snapshot, shape)
    ages = dict(zip(root["location"].to_pylist(), root["sequence_number"].to_pylist(), strict=True))
    assert ages["data/ab.parquet"] == before.sequence_number


def test_truncate_leaves_nothing(table: Table) -> None:
    table.row_delta([vector("v", "a")])
    table.truncate()
    assert live(table) == []
    assert table.metadata.current_snapshot().summary["total-records"] == "0"  # type: ignore[union-attr, index]


def test_a_transaction_is_one_snapshot_whatever_it_holds(table: Table) -> None:
    count = len(list(table.history()))
    with table.transaction() as tx:
        tx.delete("n < 10")
        tx.append_files([data_file("c")])
        tx.set_properties({"owner": "ada"})
        with tx.edit_schema() as schema:
            schema.add("note", "string")
    assert live(table) == ["b", "c"]
    assert len(list(table.history())) == count + 1
    assert table.properties["owner"] == "ada"
    assert table.schema.find_field("note").field_id == 3


def test_what_a_transaction_adds_and_removes_again_leaves_no_trace(table: Table) -> None:
    with table.transaction() as tx:
        tx.append_files([data_file("c", 100, 109)])
        tx.delete("n >= 100")
    assert live(table) == ["a", "b"]


def test_a_transaction_that_fails_changes_nothing(table: Table) -> None:
    before = table.metadata

    def fail() -> None:
        with table.transaction() as tx:
            tx.append_files([data_file("c")])
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        fail()
    assert table.refresh().metadata == before


def test_what_an_operation_wrote_goes_when_it_fails(table: Table) -> None:
    before = sorted(file.location for file in table.files.store.list(table.location))
    rows = pa.table({"n": [1, 2], "country": ["DE", "DE"]})
    with pytest.raises(CommitConflict, match="not-there"):
        table.overwrite_files(["data/not-there.parquet"], rows)
    table.set_properties({"write.files.confined": "true", "write.data.path": "memory://elsewhere"})
    with pytest.raises(InvalidInput, match="elsewhere"):
        table.append(rows)
    left = {file.location for file in table.files.store.list("memory://elsewhere")}
    left |= {file.location for file in table.files.store.list(f"{table.location}/data")}
    assert sorted(left) == [name for name in before if "/data/" in name]


def test_a_transaction_cannot_be_used_twice(table: Table) -> None:
    tx = table.transaction()
    tx.append_files([data_file("c")])
    tx.commit()
    with pytest.raises(InvalidInput, match="is over: start another"):
        tx.append_files([data_file("d")])
    with pytest.raises(InvalidInput, match="is over: start another"):
        tx.commit()


def test_a_commit_with_a_key_the_table_has_seen_does_nothing(table: Table) -> None:
    first = table.append_files([data_file("c")], key="job-7")
    for _ in range(3):
        table.append_files([data_file(f"x{_}")])
    again = table.append_files([data_file("c2")], key="job-7")
    assert again.repeated
    assert again.snapshot == first.snapshot
    assert "c2" not in live(table)


def test_removing_a_file_that_is_gone_is_a_conflict(table: Table) -> None:
    table.delete_files([place("a")])
    with pytest.raises(CommitConflict, match=r"data/a.parquet.*not live"):
        table.delete_files([place("a")])


def test_two_writers_from_one_base_both_land_when_they_do_not_meet(table: Table) -> None:
    other = table.transaction()
    mine = table.transaction()
    other.append_files([data_file("c")])
    mine.append_files([data_file("d")])
    other.commit()
    done = mine.commit()
    assert live(table) == ["a", "b", "c", "d"]
    assert done.report.retries == 0


def test_a_stale_handle_lands_after_one_retry_and_reuses_nothing_it_should_not() -> None:
    lake = connection()
    one = new_table(lake)
    two = lake.table("db.t")
    one.append_files([data_file("a")])
    done = two.append_files([data_file("b")])
    assert done.report.retries == 1
    assert live(two) == ["a", "b"]


def test_a_serializable_delete_minds_new_data_that_matches() -> None:
    lake = connection()
    one = new_table(lake)
    one.append_files([data_file("a", 0, 9)])
    two = lake.table("db.t")
    delete = two.transaction()
    delete.delete("n < 100")
    one.append_files([data_file("b", 50, 59)])
    with pytest.raises(CommitConflict, match=r"added .*data/b.parquet"):
        delete.commit()
    relaxed = lake.table("db.t").transaction(isolation="snapshot")
    relaxed.delete("n < 10")
    one.append_files([data_file("c", 5, 6)])
    relaxed.commit()
    assert live(lake.table("db.t")) == ["b", "c"]


def test_schema_changes_of_two_writers_conflict() -> None:
    lake = connection()
    one = new_table(lake)
    two = lake.table("db.t")
    with one.edit_schema() as schema:
        schema.add("x", "int")
    with pytest.raises(CommitConflict, match="another commit changed"), two.edit_schema() as schema:
        schema.add("y", "int")


def test_a_null_that_was_forbidden_meanwhile_does_not_land() -> None:
    lake = connection()
    table = new_table(lake)
    stale = [lake.table("db.t") for _ in range(3)]
    with table.edit_schema() as schema:
        schema.make_required("n", allow_incompatible=True)
    nulls = pa.table({"n": pa.array([None], pa.int64()), "country": ["DE"]})
    with pytest.raises(
        CommitConflict, match=r"made column 'n' required, and data/.* may have a null"
    ):
        stale[0].append(nulls)
    without_stats = replace(data_file("x"), stats={})
    with pytest.raises(CommitConflict, match=r"data/x.parquet may have a null"):
        stale[1].append_files([without_stats])
    stale[2].append(pa.table({"n": [1], "country": pa.array([None], pa.string())}))
    assert table.refresh().scan().to_arrow()["n"].to_pylist() == [1]


def test_nulls_land_though_other_columns_change_meanwhile() -> None:
    lake = connection()
    table = new_table(lake)
    stale = lake.table("db.t")
    with table.edit_schema() as schema:
        schema.add("must", "int", required=True, default=7).rename("country", "land")
    stale.append(pa.table({"n": pa.array([None], pa.int64()), "country": ["DE"]}))
    assert table.refresh().scan().to_arrow().to_pylist() == [{"n": None, "land": "DE", "must": 7}]


def test_row_ids_are_given_out_once_in_root_and_leaves(table: Table) -> None:
    table.set_properties({"write.root.max-data-entries": "2"})
    table.append_files([data_file(f"x{i}") for i in range(5)])
    shape = table.metadata.shape()
    from icetree.tree.live import live_files

    files = live_files(
        table.files.root(table.metadata.current_snapshot(), shape), table.files.reader(shape)
    )
    starts = sorted(
        zip(files["first_row_id"].to_pylist(), files["record_count"].to_pylist(), strict=True)
    )
    assert [start for start, _ in starts] == [0, 10, 20, 30, 40, 50, 60]
    assert table.metadata.next_row_id == 70


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        (lambda t: t.delete("nope = 1"), "nope"),
        (lambda t: t.delete("n = 'x'"), "n"),
        (lambda t: t.delete("n >"), "cannot read the filter"),
        (lambda t: t.append_files([vector("v", "a")]), "data files only"),
        (lambda t: t.append_files([data_file("z", spec_id=7)]), "no partition spec 7"),
        (lambda t: t.transaction(isolation="strict"), "no isolation level"),
        (lambda t: t.transaction(branch="v1"), "is a tag"),
    ],
)
def test_bad_input_names_the_culprit_and_changes_nothing(
    table: Table, mistake: object, sentence: str
) -> None:
    table.create_tag("v1")
    before = table.metadata
    with pytest.raises(InvalidInput, match=sentence):
        mistake(table)  # type: ignore[operator]
    assert table.refresh().metadata == before


def test_a_file_of_a_partitioned_table_must_be_in_one_partition(countries: Table) -> None:
    with pytest.raises(InvalidInput, match="do not say one value"):
        countries.append_files([data_file("mixed")])


def test_confinement_refuses_files_from_elsewhere(table: Table) -> None:
    from dataclasses import replace

    stranger = replace(data_file("x"), location="s3://elsewhere/x.parquet")
    table.append_files([stranger])
    table.set_properties({"write.files.confined": "true"})
    with pytest.raises(InvalidInput, match=r"s3://elsewhere/y\.parquet is outside"):
        table.append_files([replace(stranger, location="s3://elsewhere/y.parquet")])


def test_dropping_a_column_that_partitions_the_table_is_refused(countries: Table) -> None:
    with pytest.raises(InvalidInput, match="country"), countries.edit_schema() as schema:
        schema.drop("country")


def test_tables_are_created_listed_renamed_and_dropped() -> None:
    lake = connection()
    new_table(lake)
    with pytest.raises(AlreadyExists, match=r"db\.t"):
        new_table(lake)
    assert lake.tables("db") == ["db.t"]
    lake.rename_table("db.t", "db.u")
    assert not lake.table_exists("db.t")
    lake.drop_table("db.u")
    with pytest.raises(NotFound, match=r"db\.u"):
        lake.table("db.u")


@pytest.mark.parametrize(
    "bad",
    [
        {"a": 1},
        {"a": None},
        {"commit.retry.num-retries": "abc"},
        {"write.root.max-data-entries": "-1"},
    ],
)
def test_a_property_that_no_commit_could_work_with_is_refused(
    table: Table, bad: dict[str, str]
) -> None:
    with pytest.raises(InvalidInput, match=next(iter(bad))):
        table.set_properties(bad)
    table.refresh().append_files([data_file("c")])


def test_a_fraction_is_not_rounded_to_compare_it_with_a_whole_number(table: Table) -> None:
    with pytest.raises(InvalidInput, match="'n' is long: compare it with a whole number"):
        table.scan("n < 2.5").plan()
    assert table.scan("n < 10.0").plan().tasks.num_rows == 1


def test_a_schema_that_could_not_be_read_again_is_refused() -> None:
    nested = pa.schema([("a.b", pa.int64()), ("a", pa.struct([("b", pa.int64())]))])
    with pytest.raises(InvalidInput, match="could not be read again"):
        connection().create_table("db.w", nested)


def test_rows_without_a_column_to_store_are_refused() -> None:
    nothing = connection().create_table("db.z", pa.schema([("a", pa.null())]))
    with pytest.raises(InvalidInput, match="no column that can be stored"):
        nothing.append(pa.table({"a": pa.nulls(2)}))


def test_a_number_that_is_no_snapshot_is_not_taken_for_a_time(table: Table) -> None:
    with pytest.raises((InvalidInput, NotFound), match="3"):
        table.changes(since=3).files()
