"""CALL: Iceberg's procedures, by its names for them, their arguments and the columns they answer with."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.errors import IcetreeError, InvalidInput, NotFound, Unsupported
from icetree.spark.sql.call.procedures import ELSEWHERE, PROCEDURES
from icetree.table.point import time_of
from tests.spark.calling import ids, rows, told
from tests.spark.settings import setting
from tests.spark.sql_lake import SqlLake


@pytest.fixture
def sql(three_snapshots: SqlLake) -> SqlLake:
    """The table that is called upon."""
    return three_snapshots


# --- arguments ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        "CALL system.rollback_to_snapshot('db.t', {id})",
        "CALL system.rollback_to_snapshot('t', {id});",
        "call System.Rollback_To_Snapshot(SNAPSHOT_ID => {id}, table => '`db`.`t`')",
        "CALL my_catalog.system.rollback_to_snapshot(table => 'db.' || 't', snapshot_id => {id} + 0)",
        "CALL IDENTIFIER('system.rollback_to_snapshot')('db.t', {id})",
        "CALL prod.system.rollback_to_snapshot('prod.db.t', {id})",
        "CALL prod.system.rollback_to_snapshot('Prod.`db`.t', {id})",
    ],
)
def test_arguments_are_given_by_name_or_by_position(sql: SqlLake, call: str) -> None:
    first, *_, last = ids(sql)
    assert told(sql, call.format(id=first)) == [
        {"previous_snapshot_id": last, "current_snapshot_id": first}
    ]
    assert rows(sql) == [1]


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        ("system.rollback_to_snapshot('db.t', snapshot_id => 1)", InvalidInput, "all by position"),
        ("system.rollback_to_snapshot(table => 'db.t')", InvalidInput, "needs snapshot_id"),
        ("system.rollback_to_snapshot()", InvalidInput, "needs table and snapshot_id"),
        ("system.rollback_to_snapshot('db.t', 1, true, 2)", InvalidInput, "too many"),
        ("system.rollback_to_snapshot('db.t', 'x')", InvalidInput, "'x': give a whole number"),
        ("system.rollback_to_snapshot('db.t', 1.5)", InvalidInput, "give a whole number"),
        ("system.rollback_to_snapshot('db.t', NULL)", InvalidInput, "snapshot_id is null"),
        ("system.rollback_to_snapshot('db.t', nowhere)", InvalidInput, "nowhere"),
        ("system.rollback_to_snapshot('db.t', 1)", NotFound, "no snapshot 1"),
        ("system.rollback_to_snapshot('db.x', 1)", NotFound, "no table db.x"),
        ("system.rollback_to_snapshot('db.tt', 1)", NotFound, "did you mean db.t?"),
        ("system.expire_snapshots('dbb.t')", NotFound, "did you mean db?"),
        ("prod.system.rollback_to_snapshot('other.db.t', 1)", NotFound, "no table other.db.t"),
        ("system.rollback_to_snapshot('db.t.files', 1)", InvalidInput, "name the table itself"),
        ("system.rollback_to_timestamp('db.t', 'soon')", InvalidInput, "give a time such as"),
        ("system.expire_snapshots(table => 'db.t', older => 1)", InvalidInput, "'older_than'?"),
        ("system.expire_snapshots(table => 'db.t', table => 'db.t')", InvalidInput, "given twice"),
        ("system.expire_snapshots('db.t', dry_run => true)", InvalidInput, "all arguments by name"),
        (
            "system.expire_snapshots(table => 'db.t', snapshot_ids => array('a'))",
            InvalidInput,
            "whole numbers such as array",
        ),
        (
            "system.expire_snapshots(table => 'db.t', stream_results => 'yes')",
            InvalidInput,
            "give true or false",
        ),
        (
            "system.remove_orphan_files(table => 'db.t', file_list_view => 'v')",
            Unsupported,
            "file_list_view is not taken",
        ),
        ("system.rewrite_data_files('db.t', 'best')", InvalidInput, "best"),
        (
            "system.rewrite_data_files(table => 'db.t', options => map('a', '2', 'b', true))",
            InvalidInput,
            "'2'",
        ),
        (
            "system.rewrite_data_files(table => 'db.t', where => 'rand() < 0.5')",
            InvalidInput,
            "compares columns with constants",
        ),
        ("system.rewrite_data_files(table => 'db.t', where => 'x > 2')", InvalidInput, "x"),
        ("system.expire_snapshot('db.t')", NotFound, "did you mean 'expire_snapshots'?"),
        ("system.what('db.t')", NotFound, "there are add_files, ancestors_of"),
        ("expire_snapshots('db.t')", NotFound, "CALL system.expire_snapshots"),
        ("other.expire_snapshots('db.t')", NotFound, "all are in system"),
        ("a.b.system.expire_snapshots('db.t')", NotFound, "all are in system"),
        ("system.migrate('nowhere.x')", NotFound, "no nowhere.x"),
        ("system.snapshot('nowhere.x', 'db.u')", NotFound, "no nowhere.x"),
        ("system.snapshot('db.t', 'db.u')", InvalidInput, "v4 already"),
        ("system.snapshot('`parquet`.`/nowhere`', 'db.u')", NotFound, "no Parquet files"),
        ("system.snapshot('`csv`.`/x`', 'db.u')", NotFound, "no csv./x"),
        ("system.undelete_column('db.t')", Unsupported, "is not there"),
        ("system.set_current_snapshot('db.t')", InvalidInput, "one of them"),
        ("system.set_current_snapshot(table => 'db.t', ref => 'mian')", NotFound, "'main'?"),
        (
            "system.create_changelog_view('db.t', 'v', map('start-id', '1'))",
            InvalidInput,
            "did you mean 'start-snapshot-id'?",
        ),
        (
            "system.create_changelog_view('db.t', 'v', map('start-timestamp', 'x'))",
            InvalidInput,
            "milliseconds since 1970",
        ),
        (
            "system.create_changelog_view('db.t', 'v', NULL, true, array('idd'))",
            InvalidInput,
            "did you mean 'id'?",
        ),
        ("system.add_files('db.t', '`csv`.`/x`')", Unsupported, "INSERT INTO"),
        ("system.add_files('db.t', 'db.t')", InvalidInput, "a table of the lake"),
        ("system.add_files('db.t', 'nowhere.x')", NotFound, "no nowhere.x"),
        ("system.add_files('db.t', '`parquet`.`/nowhere`')", NotFound, "no Parquet files"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence_and_changes_nothing(
    sql: SqlLake, call: str, kind: type[IcetreeError], said: str
) -> None:
    before = sql.lake.table("db.t").metadata
    with pytest.raises(kind) as refused:
        sql(f"CALL {call}")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sql.lake.table("db.t").metadata == before


def test_a_procedure_of_another_catalog_of_sparks_is_left_to_spark(sql: SqlLake) -> None:
    sql.lake.spark.conf.set("spark.sql.catalog.another", "no.such.Catalog")
    try:
        with pytest.raises(Exception, match=r"no\.such\.Catalog|another"):
            sql("CALL another.system.expire_snapshots('db.t')")
    finally:
        sql.lake.spark.conf.unset("spark.sql.catalog.another")
    assert len(ids(sql)) == 3


def test_every_procedure_of_icebergs_is_there_or_refused_by_name() -> None:
    assert not PROCEDURES.keys() & ELSEWHERE.keys()
    for name, each in PROCEDURES.items():
        # Iceberg's snapshot has its source first.
        assert each.takes[0].name == ("source_table" if name == "snapshot" else "table"), name
        required = [parameter.required for parameter in each.takes]
        assert required == sorted(required, reverse=True), (
            f"{name}: by position, what must be comes first"
        )


# --- branches and snapshots --------------------------------------------------------------------


def test_a_table_is_rolled_back_to_a_time_in_the_zone_of_the_session(sql: SqlLake) -> None:
    first, _, last = ids(sql)
    spark, at_ms = sql.lake.spark, sql.lake.table("db.t").snapshot(first).timestamp_ms  # type: ignore[union-attr]
    with setting(spark, "spark.sql.session.timeZone", "Asia/Tokyo"):
        [[local]] = spark.sql(f"SELECT CAST(timestamp_millis({at_ms}) AS STRING)").collect()
        assert told(sql, f"CALL system.rollback_to_timestamp('db.t', TIMESTAMP '{local}')") == [
            {"previous_snapshot_id": last, "current_snapshot_id": first}
        ]
    assert rows(sql) == [1]


def test_a_text_without_a_zone_is_utc_at_every_door_wherever_the_session_is(sql: SqlLake) -> None:
    first, _, last = ids(sql)
    lake, table = sql.lake, sql.lake.table("db.t")
    at = time_of(table.snapshot(first).timestamp_ms)  # type: ignore[union-attr]
    text = at.replace(tzinfo=None).isoformat(" ", "milliseconds")
    there = (at + timedelta(hours=9)).replace(tzinfo=None).isoformat(" ", "milliseconds")
    day = at.date() + timedelta(days=1)
    with setting(lake.spark, "spark.sql.session.timeZone", "Asia/Tokyo"):
        assert lake.read("db.t", at=text).count() == 1
        for said, found in (
            (f"'{text}'", 1),
            (f"'{there}+09:00'", 1),
            (f"'{there} Asia/Tokyo'", 1),
            (f"concat('{text[:10]}', '{text[10:]}')", 1),
            (f"TIMESTAMP_NTZ '{text}'", 1),
            # This one is Spark's.
            (f"TIMESTAMP '{there}'", 1),
            (f"TIMESTAMP '{there}' + INTERVAL 1 DAY", 3),
            (f"DATE '{day}'", 3),
            (f"'{there}'", 3),
        ):
            query = f"SELECT count(*) FROM t TIMESTAMP AS OF {said}"
            assert sql(query) == [(found,)], said
        call = (
            "CALL system.rollback_to_timestamp(table => 'db.t', timestamp => {}, dry_run => true)"
        )
        gone = {"previous_snapshot_id": last, "current_snapshot_id": first}
        for said in (f"'{text}'", f"TIMESTAMP_NTZ '{text}'", f"TIMESTAMP '{there}'", f"'{text}Z'"):
            assert told(sql, call.format(said)) == [gone], said


def test_a_dry_run_tells_what_would_be_and_changes_nothing(sql: SqlLake, tmp_path: Path) -> None:
    first, second, last = ids(sql)
    table = sql.lake.table("db.t")
    at_ms = table.snapshot(first).timestamp_ms  # type: ignore[union-attr]
    table.create_branch("old", at=first)
    staged = table.append(
        pa.table({"id": [9], "name": ["s"]}), branch=None, summary={"wap.id": "w"}
    ).snapshot
    assert staged is not None
    aside = table.append(pa.table({"id": [10], "name": ["o"]}), branch="old").snapshot
    assert aside is not None
    pq.write_table(pa.table({"id": [5], "name": ["f"]}), tmp_path / "f.parquet")
    at = table.refresh().state.metadata_location
    would = {
        f"rollback_to_snapshot('db.t', {first}, true)": (last, first),
        f"rollback_to_timestamp('db.t', timestamp_millis({at_ms}), true)": (last, first),
        f"set_current_snapshot(table => 'db.t', snapshot_id => {second}, dry_run => true)": (
            last,
            second,
        ),
        f"cherrypick_snapshot('db.t', {staged.snapshot_id}, true)": (
            staged.snapshot_id,
            staged.snapshot_id,
        ),
        # What is to be made has no id.
        f"cherrypick_snapshot('db.t', {aside.snapshot_id}, true)": (aside.snapshot_id, None),
        "publish_changes('db.t', 'w', true)": (staged.snapshot_id, staged.snapshot_id),
        f"fast_forward('db.t', 'main', '{staged.snapshot_id}', true)": (
            "main",
            last,
            staged.snapshot_id,
        ),
        f"add_files(table => 'db.t', source_table => '`parquet`.`{tmp_path}/f.parquet`', "
        "dry_run => true)": (1, None),
        f"register_table('db.other', '{at}', true)": (last, 3, 3),
    }
    for call, expected in would.items():
        assert sql(f"CALL system.{call}") == [expected], call
    assert table.refresh().state.metadata_location == at
    assert not sql.lake.table_exists("db.other")
    with pytest.raises(NotFound, match="no snapshot 1"):
        sql("CALL system.rollback_to_snapshot('db.t', 1, true)")


def test_the_current_snapshot_is_set_by_id_or_by_ref(sql: SqlLake) -> None:
    first, second, last = ids(sql)
    sql(f"ALTER TABLE t CREATE TAG one AS OF VERSION {first}")
    assert sql("CALL system.set_current_snapshot(table => 'db.t', ref => 'one')") == [(last, first)]
    assert sql(f"CALL system.set_current_snapshot('db.t', {second})") == [(first, second)]
    assert rows(sql) == [1, 2]


def test_a_branch_is_moved_ahead_and_a_snapshot_of_it_picked(sql: SqlLake) -> None:
    last = ids(sql)[-1]
    sql("ALTER TABLE t CREATE BRANCH audit")
    sql("INSERT INTO db.t.branch_audit VALUES (4, 'n4')")
    ahead = sql.lake.table("db.t").refs["audit"].snapshot_id
    assert told(sql, "CALL system.fast_forward('db.t', 'main', 'audit')") == [
        {"branch_updated": "main", "previous_ref": last, "updated_ref": ahead}
    ]
    sql(f"CALL system.rollback_to_snapshot('db.t', {last})")
    sql("INSERT INTO t VALUES (5, 'n5')")
    [picked] = told(sql, f"CALL system.cherrypick_snapshot('db.t', {ahead})")
    assert picked["source_snapshot_id"] == ahead
    assert picked["current_snapshot_id"] == sql.lake.table("db.t").metadata.current_snapshot_id
    assert rows(sql) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("meanwhile", [False, True])
def test_what_was_staged_is_published_by_its_id(sql: SqlLake, meanwhile: bool) -> None:
    staged = sql.lake.table("db.t").append(
        pa.table({"id": [9], "name": ["n9"]}), branch=None, summary={"wap.id": "load-1"}
    )
    assert staged.snapshot is not None
    if meanwhile:
        sql("INSERT INTO t VALUES (5, 'n5')")
    [published] = told(sql, "CALL system.publish_changes('db.t', 'load-1')")
    current = sql.lake.table("db.t").metadata.current_snapshot_id
    assert published == {
        "source_snapshot_id": staged.snapshot.snapshot_id,
        "current_snapshot_id": current,
    }
    assert rows(sql) == [1, 2, 3, *([5] if meanwhile else []), 9]


def test_ancestors_are_told_newest_first(sql: SqlLake) -> None:
    every = list(sql.lake.table("db.t").history())
    said = [{"snapshot_id": each.snapshot_id, "timestamp": each.timestamp_ms} for each in every]
    assert told(sql, "CALL system.ancestors_of('db.t')") == said
    second = every[1].snapshot_id
    assert told(sql, f"CALL system.ancestors_of(snapshot_id => {second}, table => 't')") == said[1:]
    sql("CREATE TABLE empty (id INT)")
    assert told(sql, "CALL system.ancestors_of('db.empty')") == []


# --- changes -----------------------------------------------------------------


def changed(sql: SqlLake, view: str) -> list[tuple[Any, ...]]:
    return sql(f"SELECT id, name, _change_type FROM {view}")


def test_a_view_of_changes_tells_what_iceberg_tells(sql: SqlLake) -> None:
    last = ids(sql)[-1]
    sql("UPDATE t SET name = 'new' WHERE id = 1")
    sql("DELETE FROM t WHERE id = 2")
    since = f"options => map('start-snapshot-id', '{last}')"
    assert sql(f"CALL system.create_changelog_view(table => 'db.t', {since})") == [("t_changes",)]
    assert changed(sql, "t_changes") == [
        (1, "n1", "DELETE"),
        (1, "new", "INSERT"),
        (2, "n2", "DELETE"),
    ]
    sql(f"CALL system.create_changelog_view('t', 'images', map('start-snapshot-id', {last}), true)")
    assert changed(sql, "images") == [
        (1, "n1", "UPDATE_BEFORE"),
        (1, "new", "UPDATE_AFTER"),
        (2, "n2", "DELETE"),
    ]
    sql(
        "CALL system.create_changelog_view(table => 't', changelog_view => 'net', net_changes => true)"
    )
    assert changed(sql, "net") == [(1, "new", "INSERT"), (3, "n3", "INSERT")]
    until = f"map('end-snapshot-id', '{last}', 'start-timestamp', '0')"
    sql(f"CALL system.create_changelog_view('t', 'until', {until})")
    assert [kind for *_, kind in changed(sql, "until")] == ["INSERT"] * 3


def test_updates_are_told_by_the_columns_that_are_named(sql: SqlLake) -> None:
    """Rows that were deleted and inserted by one commit share no row id, but a key."""
    last = ids(sql)[-1]
    sql("INSERT OVERWRITE t VALUES (1, 'other'), (7, 'n7')")
    how = f"options => map('start-snapshot-id', '{last}'), identifier_columns => array('id')"
    sql(f"CALL system.create_changelog_view(table => 't', {how})")
    kinds = {(id, name): kind for id, name, kind in changed(sql, "t_changes")}
    assert kinds == {
        (1, "n1"): "UPDATE_BEFORE",
        (1, "other"): "UPDATE_AFTER",
        (2, "n2"): "DELETE",
        (3, "n3"): "DELETE",
        (7, "n7"): "INSERT",
    }
    # By these alone: a row whose key was changed is another row.
    now = ids(sql)[-1]
    sql("UPDATE t SET id = 8 WHERE id = 7")
    how = f"options => map('start-snapshot-id', '{now}'), identifier_columns => array('id')"
    sql(f"CALL system.create_changelog_view(table => 't', {how})")
    assert changed(sql, "t_changes") == [(7, "n7", "DELETE"), (8, "n7", "INSERT")]
