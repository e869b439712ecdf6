"""Tables made by the REST protocol, at once or staged: what they are like, and where they may be."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from icetree.table.lake import Lake
from tests.serve.asking import Client, Told
from tests.serve.committing import DAY, SCHEMA, T, commit, create


def test_a_table_is_made_with_ids_of_its_own_and_shown_as_v3(client: Client, lake: Lake) -> None:
    made = create(client, properties={"format-version": "2", "owner": "me"})
    assert made.status == 200
    shown = made.json["metadata"]
    assert shown["format-version"] == 3
    assert [each["id"] for each in shown["schemas"][0]["fields"]] == [1, 2, 3]
    assert shown["partition-specs"][0]["fields"] == [
        {"source-id": 2, "field-id": 1000, "name": "ts_day", "transform": "day"}
    ]
    # No client is to delete files: it does not see those of the tree. Nor is it to merge manifests.
    told = {"gc.enabled": "false", "commit.manifest-merge.enabled": "false"}
    assert shown["properties"] == {"owner": "me", **told}
    table = lake.table("db.t")
    assert (table.metadata.format_version, table.spec) == (4, ("day(ts)",))
    assert create(client).error == (409, "AlreadyExistsException")
    table.append(pa.table({"id": pa.array([1], pa.int64())}, schema=pa.schema([pa.field("id", pa.int64(), False)])))  # fmt: skip
    assert client.get(T).json["metadata"]["current-snapshot-id"] == table.metadata.current_snapshot_id  # fmt: skip


def test_a_new_table_may_come_with_ids_from_zero_as_spark_sends_them(client: Client) -> None:
    fields = [{**each, "id": id} for id, each in enumerate(SCHEMA["fields"])]
    day = {**DAY, "source-id": 1}
    made = create(client, schema={**SCHEMA, "fields": fields}, **{"partition-spec": {"fields": [day]}})  # fmt: skip
    assert [each["id"] for each in made.json["metadata"]["schemas"][0]["fields"]] == [1, 2, 3]


def test_a_table_is_sorted_as_its_client_asks(client: Client, lake: Lake) -> None:
    key = {"source-id": 30, "transform": "bucket[4]", "direction": "desc", "null-order": "nulls-last"}  # fmt: skip
    create(client, **{"write-order": {"order-id": 1, "fields": [key]}})
    assert lake.table("db.t").sort_order == ("bucket(4, country) desc",)


@pytest.mark.parametrize(
    "more",
    [
        {"schema": {"type": "struct", "fields": []}, "partition-spec": {"fields": [DAY]}},
        {"partition-spec": {"fields": [{**DAY, "source-id": 99}]}},
        {"partition-spec": {"fields": [{**DAY, "transform": "bucket[0]"}]}},
        {"partition-spec": {"fields": [{**DAY, "transform": "day", "source-id": 30}]}},
        {"partition-spec": {"fields": [{**DAY, "name": "country"}]}},
        {"schema": {"type": "struct", "fields": [{"id": 1, "name": "x", "type": "nonsense", "required": True}]}},
        {"schema": {"type": "struct"}},
        {"location": "/etc"},
        {"location": "s3://elsewhere/t"},
        {"properties": {"write.data.path": "/tmp/elsewhere"}},
        {"properties": {"write.metadata.path": "s3://elsewhere/m"}},
        {"properties": {"write.target-file-size-bytes": "many"}},
        {"name": "a/b"},
        {"name": ".."},
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_is_refused_and_leaves_nothing(
    client: Client, lake: Lake, more: dict[str, Any]
) -> None:
    assert create(client, **more).error == (400, "BadRequestException")
    assert lake.tables() == []
    assert [*lake.store.list(f"{lake.warehouse}/db")] == []


@pytest.mark.parametrize(
    ("properties", "told"),
    [
        ({"write.delete.mod": "merge-on-read"}, "did you mean 'write.delete.mode'?"),
        ({"write.delete.mode": "copy"}, "merge-on-read, copy-on-write"),
        ({"write.target-file-size-bytes": "many"}, "whole numbers"),
    ],
)
def test_a_bad_property_is_told_with_what_helps_at_creation_and_later(
    client: Client, lake: Lake, properties: dict[str, str], told: str
) -> None:
    assert told in create(client, properties=properties).json["error"]["message"]
    create(client)
    refused = commit(client, {"action": "set-properties", "updates": properties})
    assert refused.error == (400, "BadRequestException")
    assert told in refused.json["error"]["message"]
    assert lake.table("db.t").properties == {}


def test_a_place_is_given_only_inside_the_namespace_and_where_no_table_is(
    client: Client, lake: Lake
) -> None:
    create(client)
    taken, above = f"{lake.warehouse}/db/t", f"{lake.warehouse}/db"
    refused = [taken, above, f"{above}/t/x", f"{above}/../other/x", f"{lake.warehouse}/x", above + "/"]  # fmt: skip
    for place in refused:
        assert create(client, "u", location=place).status == 400, place
    made = create(client, "u", location=f"{above}/chosen/")
    assert made.json["metadata"]["location"] == f"{above}/chosen"


def test_a_name_whose_former_table_left_files_gets_a_new_place(client: Client) -> None:
    before = create(client).json["metadata"]["location"]
    assert client.delete(T).status == 204
    after = create(client).json["metadata"]["location"]
    assert after != before
    assert after.startswith(before)


def test_no_table_lies_in_or_around_another(client: Client, lake: Lake) -> None:
    """A namespace may have the name of a table, and so its folder."""
    create(client)
    assert client.post("/v1/namespaces", {"namespace": ["db", "t"]}).status == 200
    inner, body = "/v1/namespaces/db%1Ft/tables", {"name": "data", "schema": SCHEMA}
    assert client.post(inner, body).error == (400, "BadRequestException")
    stage = [{"action": "add-schema", "schema": SCHEMA}]
    made = {"requirements": [{"type": "assert-create"}], "updates": stage}
    assert client.post(f"{inner}/data", made).error == (400, "BadRequestException")
    renamed = {"source": {"namespace": ["db"], "name": "t"}, "destination": {"namespace": ["db"], "name": "v"}}  # fmt: skip
    assert client.post("/v1/tables/rename", renamed).status == 204
    assert client.post(inner, body).error == (400, "BadRequestException")
    # The other way round: the namespace was there first.
    client.post("/v1/namespaces", {"namespace": ["db", "u"]})
    first = client.post(inner.replace("%1Ft", "%1Fu"), body).json["metadata"]["location"]
    around = create(client, "u").json["metadata"]["location"]
    assert not f"{first}/".startswith(f"{around}/")
    asked = create(client, "w", location=f"{lake.warehouse}/db/u")
    assert asked.error == (400, "BadRequestException")


def test_a_staged_table_is_made_by_the_commit_that_ends_it(client: Client, lake: Lake) -> None:
    staged = create(client, **{"stage-create": True}).json
    assert "metadata-location" not in staged
    assert lake.tables() == []
    shown = staged["metadata"]
    assert [*lake.store.list(shown["location"])] == []
    updates = [
        {"action": "assign-uuid", "uuid": shown["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 3},
        {"action": "add-schema", "schema": shown["schemas"][0], "last-column-id": 4},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": shown["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": shown["location"]},
        {"action": "set-properties", "updates": {"owner": "me"}},
    ]
    assert_create = [{"type": "assert-create"}]
    made = commit(client, *updates, require=assert_create)
    assert made.status == 200, made.body
    after = made.json["metadata"]
    same = ("table-uuid", "location", "schemas", "partition-specs", "last-partition-id")
    assert [after[name] for name in same] == [shown[name] for name in same]
    assert lake.table("db.t").properties == {"owner": "me"}
    again = commit(client, *updates, require=assert_create)
    assert again.error == (409, "AlreadyExistsException")


def test_a_create_that_was_refused_can_be_asked_for_again(client: Client, lake: Lake) -> None:
    create(client)
    shown = create(client, "n", **{"stage-create": True}).json["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": shown["table-uuid"]},
        {"action": "add-schema", "schema": shown["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "set-location", "location": shown["location"]},
        {"action": "set-properties", "updates": {"owner": "me"}},
    ]
    new = [{"type": "assert-create"}]
    snapshot = {"snapshot-id": 1, "manifest-list": f"{shown['location']}/metadata/no.avro", "timestamp-ms": 1, "summary": {"operation": "append"}}  # fmt: skip
    for wrong in (
        {"action": "set-properties", "updates": {"write.data.path": "/etc"}},
        {"action": "add-snapshot", "snapshot": snapshot},
    ):
        assert commit(client, *updates, wrong, require=new, path=f"{T[:-1]}n").status == 400
        assert [*lake.store.list(shown["location"])] == []
    stale = {"type": "assert-current-schema-id", "current-schema-id": 9}

    def both(*require: dict[str, Any]) -> Told:
        named = {"namespace": ["db"], "name": "t"}
        other = {"identifier": named, "requirements": require, "updates": []}
        made = {"identifier": {**named, "name": "n"}, "requirements": new, "updates": updates}
        return client.post("/v1/transactions/commit", {"table-changes": [made, other]})

    assert both(stale).status == 409
    assert lake.tables() == ["db.t"]
    assert both().status == 204
    assert lake.table("db.n").location == shown["location"]
    again = commit(client, *updates, require=new, path=f"{T[:-1]}n")
    assert again.status == 409
    assert lake.table("db.n").properties == {"owner": "me"}


@pytest.mark.parametrize("place", ["/etc", "{warehouse}/db/u", "{warehouse}/db", "{warehouse}/x/y"])
def test_a_staged_table_cannot_take_another_place(client: Client, lake: Lake, place: str) -> None:
    create(client, "u")
    shown = create(client, **{"stage-create": True}).json["metadata"]
    updates = [
        {"action": "add-schema", "schema": shown["schemas"][0]},
        {"action": "set-location", "location": place.format(warehouse=lake.warehouse)},
    ]
    refused = commit(client, *updates, require=[{"type": "assert-create"}])
    assert refused.error == (400, "BadRequestException")
    assert lake.tables() == ["db.u"]
