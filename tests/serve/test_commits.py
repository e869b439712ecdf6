"""Commits of metadata by the REST protocol: requirements, updates, several tables."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.committing import DAY, PYICEBERG, SCHEMA, T, commit, create, metadata


def test_a_schema_evolves_and_a_spec_follows_in_one_commit(client: Client, lake: Lake) -> None:
    create(client)
    before = metadata(client)
    new = {**before["schemas"][0], "schema-id": 1}
    last = before["last-column-id"]
    new["fields"] = [*new["fields"], {"id": last + 1, "name": "n", "required": False, "type": "int"}]  # fmt: skip
    field = {"source-id": last + 1, "name": "n_bucket", "transform": "bucket[8]"}
    done = commit(
        client,
        # A spec before the schema that has its column: ids of columns are given first all the same.
        {"action": "add-spec", "spec": {"spec-id": 1, "fields": [DAY | {"source-id": 2}, field]}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-schema", "schema": new},
        {"action": "set-current-schema", "schema-id": -1},
        require=[
            {"type": "assert-table-uuid", "uuid": before["table-uuid"]},
            {"type": "assert-current-schema-id", "current-schema-id": 0},
            {"type": "assert-last-assigned-field-id", "last-assigned-field-id": last},
            {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 1000},
            {"type": "assert-default-spec-id", "default-spec-id": 0},
            {"type": "assert-default-sort-order-id", "default-sort-order-id": 0},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None},
        ],
    )
    assert done.status == 200, done.body
    assert lake.table("db.t").spec == ("day(ts)", "bucket(8, n)")
    after = done.json["metadata"]
    assert after["current-schema-id"] == 1
    assert after["last-column-id"] > last + 1
    assert after["partition-specs"][1]["fields"][1] == field | {"field-id": 1001}


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-table-uuid", "uuid": "no"},
        {"type": "assert-current-schema-id", "current-schema-id": 7},
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 7},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 7},
        {"type": "assert-default-spec-id", "default-spec-id": 7},
        {"type": "assert-default-sort-order-id", "default-sort-order-id": 7},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 7},
    ],
)
def test_a_requirement_that_does_not_hold_changes_nothing(
    client: Client, requirement: dict[str, Any]
) -> None:
    create(client)
    before = metadata(client)
    update = {"action": "set-properties", "updates": {"a": "1"}}
    refused = commit(client, update, require=[requirement])
    assert refused.error == (409, "CommitFailedException")
    assert metadata(client) == before


def test_refs_and_history_are_changed_by_updates(client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    ids = [table.append(pa.table({"id": [n]})).snapshot.snapshot_id for n in range(15)]  # type: ignore[union-attr]
    shown = metadata(client)
    assert [each["snapshot-id"] for each in shown["snapshots"]] == ids
    refs = client.get(f"{T}?snapshots=refs").json["metadata"]
    assert [each["snapshot-id"] for each in refs["snapshots"]] == ids[-1:]
    tag = {"action": "set-snapshot-ref", "ref-name": "old", "type": "tag", "snapshot-id": ids[1]}
    expire = {"action": "remove-snapshots", "snapshot-ids": ids[2:4]}
    assert commit(client, tag, expire, **PYICEBERG).status == 200
    after = metadata(client)
    assert after["refs"]["old"] == {"snapshot-id": ids[1], "type": "tag"}
    assert not {*ids[2:4]} & {each["snapshot-id"] for each in after["snapshots"]}
    used = commit(client, {"action": "remove-snapshots", "snapshot-ids": [ids[1]]}, **PYICEBERG)
    assert used.error == (409, "CommitFailedException")
    back = tag | {"ref-name": "main", "type": "branch", "snapshot-id": ids[5]}
    gone = {"action": "remove-snapshot-ref", "ref-name": "old"}
    done = commit(client, back, gone, {"action": "remove-snapshot-ref", "ref-name": "never"})
    assert done.json["metadata"]["current-snapshot-id"] == ids[5]
    assert list(done.json["metadata"]["refs"]) == ["main"]


def test_statistics_are_named_only_inside_the_table(client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    snapshot = table.append(pa.table({"id": [1]})).snapshot
    assert snapshot is not None
    blob = {"type": "apache-datasketches-theta-v1", "snapshot-id": snapshot.snapshot_id,
            "sequence-number": 1, "fields": [1]}  # fmt: skip

    def statistics(path: str) -> dict[str, Any]:
        file = {"snapshot-id": snapshot.snapshot_id, "statistics-path": path,
                "file-size-in-bytes": 4, "file-footer-size-in-bytes": 2, "blob-metadata": [blob]}  # fmt: skip
        return {"action": "set-statistics", "statistics": file}

    inside = f"{table.location}/metadata/x.stats"
    assert commit(client, statistics(inside)).status == 200
    assert metadata(client)["statistics"][0]["statistics-path"] == inside
    newest = metadata(client)["snapshots"][-1]["manifest-list"]
    outside = ("/etc/passwd", f"{table.location}/../u/x", "s3://b/x", "file:///etc/x")
    for path in (*outside, newest, "metadata/export/x"):
        assert commit(client, statistics(path)).error == (400, "BadRequestException")
    assert lake.table("db.t").metadata.statistics[0].statistics_path == "metadata/x.stats"
    removed = {"action": "remove-statistics", "snapshot-id": snapshot.snapshot_id}
    assert "statistics" not in commit(client, removed).json["metadata"]


def test_a_spec_or_schema_that_files_are_of_cannot_be_removed(client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64())]), partition_by="id")
    table.append(pa.table({"id": [1]}))
    with table.edit_spec() as spec:
        spec.remove("id")
    with table.edit_spec() as spec:
        spec.add("bucket(4, id)")
    with table.edit_schema() as schema:
        schema.add("n", "int")
    before = metadata(client)
    for update in (
        {"action": "remove-partition-specs", "spec-ids": [0]},
        {"action": "remove-schemas", "schema-ids": [0]},
        {"action": "remove-partition-specs", "spec-ids": [2]},
    ):
        assert commit(client, update).error == (400, "BadRequestException")
    assert metadata(client) == before
    done = commit(client, {"action": "remove-partition-specs", "spec-ids": [1]})
    assert [each["spec-id"] for each in done.json["metadata"]["partition-specs"]] == [0, 2]


@pytest.mark.parametrize(
    ("column", "type"), [("id", "string"), ("id", {"type": "list", "element-id": 9, "element": "int", "element-required": False})],
)  # fmt: skip
def test_a_schema_that_would_make_old_files_unreadable_is_refused(
    client: Client, lake: Lake, column: str, type: Any
) -> None:
    table = lake.create_table("db.t", pa.schema([(column, pa.int64())]))
    table.append(pa.table({column: [1]}))
    field = {"id": 1, "name": column, "required": False, "type": type}
    schema = {"type": "struct", "schema-id": 1, "fields": [field]}
    wrong = commit(client, {"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1})  # fmt: skip
    assert wrong.error == (400, "BadRequestException")
    required = {**schema, "fields": [{**field, "type": "long", "required": True}]}
    wrong = commit(client, {"action": "add-schema", "schema": required})
    assert wrong.error == (400, "BadRequestException")


@pytest.mark.parametrize(
    "update",
    [
        {"action": "become-root"},
        {"action": "set-location", "location": "/etc"},
        {"action": "set-properties", "updates": {"write.data.path": "/etc"}},
        {"action": "set-properties", "updates": {"a": 1}},
        {"action": "assign-uuid", "uuid": "another"},
        {"action": "upgrade-format-version", "format-version": 9},
        {"action": "set-current-schema", "schema-id": 9},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-spec", "spec": {"fields": [{**DAY, "source-id": 2**40}]}},
        {"action": "set-snapshot-ref", "ref-name": "x", "type": "branch", "snapshot-id": 5},
        {"action": "set-properties", "updates": {"encryption.key-id": "k"}},
        {
            "action": "add-encryption-key",
            "encryption-key": {"key-id": "k", "encrypted-key-metadata": "aa"},
        },
        {},
    ],
)
def test_an_update_that_cannot_be_changes_nothing(client: Client, update: dict[str, Any]) -> None:
    create(client)
    before = metadata(client)
    good = {"action": "set-properties", "updates": {"good": "1"}}
    assert commit(client, good, update).error == (400, "BadRequestException")
    assert metadata(client) == before


@pytest.mark.parametrize(
    "column",
    [
        {"id": 2**40},
        {"id": 2**31 - 1},
        {"id": 2147483540},
        {"id": 2147483447},
        {"id": True},
        {"type": "fixed[99999999999]"},
        {"type": "decimal(99, 1)"},
    ],
)
def test_a_commit_after_which_nobody_could_load_or_write_is_refused(
    client: Client, lake: Lake, column: dict[str, Any]
) -> None:
    create(client)
    before = metadata(client)
    fields = before["schemas"][0]["fields"]
    new = {"id": 100, "name": "new", "required": False, "type": "string", **column}
    add = {"action": "add-schema", "schema": {"type": "struct", "fields": [*fields, new]}}
    assert commit(client, add).error == (400, "BadRequestException")
    assert metadata(client) == before
    schema = {"type": "struct", "fields": [new]}
    stage = [{"action": "add-schema", "schema": schema}]
    other = f"{T}2"
    made = commit(client, *stage, require=[{"type": "assert-create"}], path=other)
    assert made.error == (400, "BadRequestException")
    assert lake.tables() == ["db.t"]


def test_a_new_table_has_a_uuid_or_is_not_made(client: Client, lake: Lake) -> None:
    shown = create(client, **{"stage-create": True}).json["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": "mine"},
        {"action": "add-schema", "schema": shown["schemas"][0]},
    ]
    refused = commit(client, *updates, require=[{"type": "assert-create"}])
    assert refused.error == (400, "BadRequestException")
    assert lake.tables() == []


def test_a_table_keeps_its_place_and_version_whatever_is_said_of_them(client: Client) -> None:
    create(client)
    before = metadata(client)
    same = {"action": "set-location", "location": before["location"] + "/"}
    done = commit(client, same, {"action": "upgrade-format-version", "format-version": 3},
                  {"action": "assign-uuid", "uuid": before["table-uuid"]})  # fmt: skip
    assert done.status == 200
    assert done.json["metadata"]["location"] == before["location"]


def test_several_tables_change_together_or_not_at_all(client: Client, lake: Lake) -> None:
    for name in ("t", "u"):
        create(client, name)
    was = {name: metadata(client, f"/v1/namespaces/db/tables/{name}") for name in ("t", "u")}

    def change(name: str, **require: Any) -> dict[str, Any]:
        requirement = {"type": "assert-table-uuid", "uuid": was[name]["table-uuid"]} | require
        return {
            "identifier": {"namespace": ["db"], "name": name},
            "requirements": [requirement],
            "updates": [{"action": "set-properties", "updates": {"together": "yes"}}],
        }

    wrong = {"table-changes": [change("t"), change("u", uuid="no")]}
    assert client.post("/v1/transactions/commit", wrong).error == (409, "CommitFailedException")
    missing = change("u") | {"identifier": {"namespace": ["db"], "name": "no"}}
    none = client.post("/v1/transactions/commit", {"table-changes": [change("t"), missing]})
    assert none.error == (404, "NoSuchTableException")
    assert all("together" not in lake.table(f"db.{name}").properties for name in "tu")
    done = client.post("/v1/transactions/commit", {"table-changes": [change("t"), change("u")]})
    assert (done.status, done.body) == (204, b"")
    assert all(lake.table(f"db.{name}").properties["together"] == "yes" for name in "tu")
    twice = {"table-changes": [change("t"), change("t")]}
    assert client.post("/v1/transactions/commit", twice).error == (400, "BadRequestException")


def test_a_table_is_renamed_dropped_and_registered_again(client: Client, lake: Lake) -> None:
    create(client)
    at = client.get(T).json["metadata-location"]
    lake.create_namespace("other")
    names = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["other"], "name": "u"}}  # fmt: skip
    nowhere = names | {"destination": {"namespace": ["no"], "name": "u"}}
    assert client.post("/v1/tables/rename", nowhere).error == (404, "NoSuchNamespaceException")
    assert client.post("/v1/tables/rename", names).status == 204
    assert client.post("/v1/tables/rename", names).error == (404, "NoSuchTableException")
    assert client.head("/v1/namespaces/other/tables/u").status == 204
    assert client.delete("/v1/namespaces/other/tables/u").status == 204
    registered = client.post("/v1/namespaces/db/register", {"name": "t", "metadata-location": at})
    assert registered.json["metadata-location"] == at
    again = client.post("/v1/namespaces/db/register", {"name": "t", "metadata-location": at})
    assert again.error == (409, "AlreadyExistsException")


def test_a_metadata_file_from_elsewhere_is_not_registered(client: Client, lake: Lake) -> None:
    create(client)
    lake.create_namespace("other")
    at = client.get(T).json["metadata-location"]
    for place in (
        at,
        "/etc/passwd",
        "/etc/metadata/x.metadata.json",
        at.replace("/t/", "/../db/t/"),
    ):
        body = {"name": "t", "metadata-location": place}
        assert client.post("/v1/namespaces/other/register", body).status == 400, place
    assert lake.tables("other") == []


def test_a_purge_deletes_files_and_a_drop_does_not(client: Client, lake: Lake) -> None:
    create(client)
    place = lake.table("db.t").location
    client.delete(T)
    assert [*lake.store.list(place)]
    create(client)
    place = lake.table("db.t").location
    assert client.delete(f"{T}?purgeRequested=perhaps").status == 400
    assert client.delete(f"{T}?purgeRequested=true").status == 204
    assert [*lake.store.list(place)] == []


def test_a_request_repeated_under_its_key_is_carried_out_once(client: Client, lake: Lake) -> None:
    key = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    body = {"name": "t", "schema": SCHEMA}
    first = client.post("/v1/namespaces/db/tables", body, idempotency_key=key)
    second = client.post("/v1/namespaces/db/tables", body, idempotency_key=key)
    assert (first.status, first.body) == (200, second.body)
    other = client.post("/v1/namespaces/db/tables", {**body, "name": "u"}, idempotency_key=key)
    assert other.error == (400, "BadRequestException")
    assert lake.tables() == ["db.t"]
    drop = "017f22e2-79b0-7cc3-98c4-dc0c0c073990"
    assert [client.delete(T, idempotency_key=drop).status for _ in range(2)] == [204, 204]
    assert client.delete(T, idempotency_key="no").status == 400


def test_no_answer_to_a_mere_question_is_kept_for_its_key(client: Client) -> None:
    """Plans of some megabytes would take the room of what is to be told again."""
    create(client)
    key = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    first = client.post(f"{T}/plan", {}, idempotency_key=key)
    other = client.post(f"{T}/plan", {"min-rows-requested": 1}, idempotency_key=key)
    assert (first.status, other.status) == (200, 200)


def test_reports_are_logged_on_one_line(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    create(client)
    report = {"report-type": "scan-report", "table-name": "x\ny", "snapshot-id": 1, "metrics": {"a\n": 1}}  # fmt: skip
    with caplog.at_level("INFO", "icetree.serve.reports"):
        assert client.post(f"{T}/metrics", report).status == 204
    (told,) = [each.getMessage() for each in caplog.records if each.name == "icetree.serve.reports"]
    assert "\n" not in told
    assert '"report":"scan-report"' in told
    assert client.post("/v1/namespaces/db/tables/no/metrics", report).status == 404


def test_a_report_that_is_too_long_for_a_line_is_still_json(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    create(client)
    metrics: dict[str, Any] = {f"m{number}": {"value": number} for number in range(1_000)}
    for told in (metrics, {"a": 1, "b": "\u202e" * 4_000, "c": 1}):
        report = {"report-type": "scan-report", "snapshot-id": 1, "metrics": told}
        with caplog.at_level("INFO", "icetree.serve.reports"):
            assert client.post(f"{T}/metrics", report).status == 204
        [*_, line] = [
            each.getMessage() for each in caplog.records if each.name == "icetree.serve.reports"
        ]
        assert len(line) < 4_300
        found = json.loads(line)
        assert found["metrics"].items() <= told.items()
        assert len(found["metrics"]) + found["left_out"] == len(told)
        assert found["metrics"]
