"""Plans that the server makes: the files, deletes and residuals of our own, in the protocol's JSON."""

from __future__ import annotations

import base64
import gc
import gzip
import json
import tracemalloc
import zlib
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace

from icetree.rows.write.deletes import write_equality_deletes
from icetree.serve.plan.tokens import read_token
from icetree.serve.server import Server
from icetree.serve.waiting.held import Held
from icetree.spec.location import absolute
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.serve.asking import Client
from tests.serve.plan.planning import NUMBERS, PLAN, TASKS, ask, at_most, paths, plan, whole


@pytest.fixture
def table(lake: Lake) -> Table:
    """Ten files of ten rows each."""
    made = lake.create_table("db.t", NUMBERS)
    for first in range(0, 100, 10):
        made.append(pa.table({"id": range(first, first + 10), "s": [f"s{first}"] * 10}))
    return made


def test_a_plan_has_the_files_that_may_match_and_what_is_left_to_check(
    client: Client, table: Table
) -> None:
    found = plan(client, filter=at_most(14))
    tasks = table.scan("id <= 14").plan().tasks
    names = [absolute(name, table.location) for name in tasks["location"].to_pylist()]
    assert paths([found]) == names
    assert [task.data_file.record_count for task in found.file_scan_tasks] == [10, 10]
    told = json.loads(ask(client, filter=at_most(14)).body)["file-scan-tasks"]
    assert [task["residual-filter"] for task in told] == [True, at_most(14)]


def test_a_plan_is_told_of_no_other_table_that_says_it_is_this_one(
    client: Client, lake: Lake
) -> None:
    """Uuids and ids of snapshots are what clients choose."""
    ours = lake.create_table("db.t", NUMBERS)
    ours.append(pa.table({"id": [1], "s": ["ours"]}))
    lake.create_namespace("evil")
    named = lake.create_table("evil.unnamed", NUMBERS).metadata
    theirs = lake.stage_table("evil.t", replace(named, table_uuid=ours.metadata.table_uuid))
    lake.catalog.create(theirs.name, theirs.state.metadata_location)
    with theirs.transaction() as transaction:
        transaction.identify(ours.metadata.current_snapshot_id or 0)
        transaction.append(pa.table({"id": [666], "s": ["theirs"]}))
    path = PLAN.replace("/db/", "/evil/")
    poison = client.post(path, {}).json
    found = plan(client)
    assert poison["plan-id"] == found.plan_id
    assert [each for each in paths([found]) if "/evil/" in each] == []
    again = client.get(f"{PLAN}/{found.plan_id}").json["file-scan-tasks"]
    assert ours.location in again[0]["data-file"]["file-path"]
    assert client.delete(f"{path}/{found.plan_id}").status == 204
    assert client.get(f"{PLAN}/{found.plan_id}").status == 200


def test_an_empty_table_has_an_empty_plan(client: Client, lake: Lake) -> None:
    lake.create_table("db.t", NUMBERS)
    assert plan(client).file_scan_tasks == []
    assert plan(client, filter=at_most(1)).file_scan_tasks == []


def ids_of(table: Table) -> list[int]:
    return [each.snapshot_id for each in table.history()][::-1]


def test_a_former_snapshot_is_planned_as_it_was(client: Client, table: Table) -> None:
    assert len(plan(client, snapshot_id=ids_of(table)[1]).file_scan_tasks) == 2


def test_a_scan_of_a_range_has_what_was_appended_in_it(client: Client, table: Table) -> None:
    ids = ids_of(table)
    ends = {"start_snapshot_id": ids[2], "end_snapshot_id": ids[5]}
    wanted = table.scan_appends(since=ids[2], upto=ids[5]).plan().tasks["location"].to_pylist()
    assert paths([plan(client, **ends)]) == [absolute(name, table.location) for name in wanted]
    assert len(wanted) == 3
    assert len(plan(client, **ends, filter=at_most(35)).file_scan_tasks) == 1
    table.delete("id = 31")
    assert plan(client, **ends).delete_files == []
    assert ask(client, **{**ends, "start_snapshot_id": 7}).error == (400, "BadRequestException")


@pytest.mark.parametrize("size", [1, 3, 10, 11])
def test_the_pages_of_a_plan_are_the_plan(lake: Lake, table: Table, size: int) -> None:
    table.delete("id in (3, 13, 53, 93)")
    everything = whole(Client(Server(lake)))
    pages = whole(Client(Server(lake, plan_page=size)))
    assert len(pages) == -(-10 // size)
    assert paths(pages) == paths(everything)

    def deletes(pages: list[Any]) -> list[Any]:
        return [
            [page.delete_files[at].content_offset for at in task.delete_file_references or ()]
            for page in pages
            for task in page.file_scan_tasks
        ]

    assert deletes(pages) == deletes(everything)
    assert sum(map(len, deletes(pages))) == 4


def test_a_page_can_be_fetched_from_a_server_that_never_saw_the_plan(
    lake: Lake, table: Table
) -> None:
    small = Client(Server(lake, plan_page=4))
    [first, second] = plan(small, filter=at_most(99)).plan_tasks
    before = Client(Server(lake)).post(TASKS, {"plan-task": second})
    table.append(pa.table({"id": [1], "s": ["late"]}))
    after = Client(Server(lake)).post(TASKS, {"plan-task": second})
    assert before.json == after.json
    assert len(after.json["file-scan-tasks"]) == 2
    assert first != second


def test_a_token_of_what_is_gone_or_was_never_there_is_refused(lake: Lake, table: Table) -> None:
    client = Client(Server(lake, plan_page=4))
    [token, _] = plan(client).plan_tasks
    assert read_token(token).tasks == range(4, 8)
    for bad in ("", "x", token[:-8], token + "AAAA", "é", "AAAA"):
        assert client.post(TASKS, {"plan-task": bad}).error == (404, "NoSuchPlanTaskException")
    assert client.post(TASKS, {}).error == (400, "BadRequestException")
    assert client.post(TASKS, b"{").error == (400, "BadRequestException")
    with table.edit_schema() as edit:
        edit.add("more", pa.int64())
    assert client.post(TASKS, {"plan-task": token}).error == (404, "NoSuchPlanTaskException")
    lake.drop_table("db.t")
    lake.create_table("db.t", NUMBERS)
    assert client.post(TASKS, {"plan-task": token}).error == (404, "NoSuchPlanTaskException")


def test_a_long_filter_is_told_once_in_an_answer(lake: Lake, table: Table) -> None:
    del table
    client = Client(Server(lake, plan_page=3))
    rest = [-at * 7_919 for at in range(5_000)]
    long = {"type": "in", "term": "id", "values": [*range(0, 100, 5), *rest]}
    pages = whole(client, filter=long)
    assert [len(page.plan_tasks) for page in pages] == [1, 1, 1, 0]
    assert paths(pages) == paths(whole(Client(Server(lake)), filter=long))


def test_a_plan_is_told_again_until_it_is_let_go(client: Client, table: Table) -> None:
    del table
    first = plan(client, filter=at_most(14))
    again = client.get(f"{PLAN}/{first.plan_id}")
    assert again.json["file-scan-tasks"]
    assert client.delete(f"{PLAN}/{first.plan_id}").status == 204
    assert client.get(f"{PLAN}/{first.plan_id}").error == (404, "NoSuchPlanIdException")
    assert client.delete(f"{PLAN}/{first.plan_id}").error == (404, "NoSuchPlanIdException")


def test_plans_that_are_held_are_bounded(lake: Lake, table: Table) -> None:
    del table
    plans: Held[Any] = Held(most_bytes=100_000)
    client = Client(Server(lake, plans=plans))
    ids = [plan(client, filter=at_most(value)).plan_id for value in range(30)]
    assert 0 < plans.size_bytes <= 100_000
    assert client.get(f"{PLAN}/{ids[-1]}").status == 200
    assert client.get(f"{PLAN}/{ids[0]}").status == 404


def test_a_plan_that_is_held_takes_no_more_memory_than_is_accounted_for(
    lake: Lake, table: Table
) -> None:
    """JSON is many times as large once it is decoded, and a filter as long as its client likes."""
    del table
    plans: Held[Any] = Held()
    client = Client(Server(lake, plans=plans))
    long = {"type": "in", "term": "id", "values": [[]] * 100_000}
    plan(client, filter=at_most(1))
    before = plans.size_bytes
    gc.collect()
    tracemalloc.start()
    try:
        plan(client, filter=long)
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 2 * (plans.size_bytes - before) < 2_000_000


def test_a_token_with_a_filter_that_nobody_can_read_is_refused(lake: Lake, table: Table) -> None:
    del table
    client = Client(Server(lake, plan_page=4))
    [token, _] = plan(client, filter={"type": "not-eq", "term": "s", "value": "none"}).plan_tasks
    told = zlib.decompress(base64.urlsafe_b64decode(token))
    for bad in (b'"\\ud800"', b'"\xff"', b"[" * 100_000 + b"]" * 100_000):
        forged = base64.urlsafe_b64encode(zlib.compress(told.replace(b'"none"', bad))).decode()
        assert client.post(TASKS, {"plan-task": forged}).status in (400, 404)


def test_plans_that_nobody_asks_for_expire(lake: Lake, table: Table) -> None:
    del table
    plans: Held[Any] = Held(hold_s=0)
    client = Client(Server(lake, plans=plans))
    assert client.get(f"{PLAN}/{plan(client).plan_id}").status == 404
    assert plans.size_bytes == 0


def test_as_few_files_are_told_as_surely_have_the_rows_wanted(client: Client, table: Table) -> None:
    table.delete("id = 2")
    assert len(plan(client, min_rows_requested=9).file_scan_tasks) == 1
    assert len(plan(client, min_rows_requested=10).file_scan_tasks) == 2
    assert len(plan(client, min_rows_requested=0).file_scan_tasks) == 0
    assert len(plan(client, min_rows_requested=10_000).file_scan_tasks) == 10
    # A file that may match in part is sure of no row.
    some = {"type": "gt-eq", "term": "id", "value": 5}
    assert len(plan(client, min_rows_requested=1, filter=some).file_scan_tasks) == 2


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"filter": {"type": "eq", "term": "nothing", "value": 1}}, "no column 'nothing'"),
        ({"filter": {"type": "like"}}, "a filter has no 'like'"),
        ({"filter": {"type": "eq", "term": "id", "value": "x"}}, "'id' is long"),
        ({"select": ["idd"]}, "select: no column 'idd'; did you mean 'id'?"),
        ({"stats-fields": ["x"]}, "stats-fields: no column 'x'"),
        ({"snapshot-id": 5}, "there is no snapshot 5"),
        ({"snapshot-id": "5"}, "the body cannot be read"),
        ({"snapshot-id": 5, "start-snapshot-id": 5}, "exclude each other"),
        ({"start-snapshot-id": 5}, "needs an end-snapshot-id"),
        ({"end-snapshot-id": 5}, "needs a start-snapshot-id"),
        ({"min-rows-requested": -1}, "give 0 or more"),
        ([], "the body cannot be read"),
    ],
)
def test_what_cannot_be_planned_is_refused_with_a_sentence(
    client: Client, table: Table, body: Any, told: str
) -> None:
    del table
    answer = client.post(PLAN, body)
    assert answer.error == (400, "BadRequestException")
    assert told in answer.json["error"]["message"]


def test_a_filter_that_nests_too_deep_is_refused(client: Client, table: Table) -> None:
    del table
    deep = b'{"type":"not","child":' * 100_000 + b"true" + b"}" * 100_000
    assert client.post(PLAN, b'{"filter":' + deep + b"}").error == (400, "BadRequestException")


def test_a_table_that_is_not_there_is_not_planned(client: Client) -> None:
    assert ask(client).error == (404, "NoSuchTableException")


def test_stats_are_told_of_the_columns_asked_for_alone(client: Client, table: Table) -> None:
    del table
    none = plan(client, filter=at_most(1)).file_scan_tasks[0].data_file
    assert none.lower_bounds is None
    assert none.value_counts is None
    one = plan(client, filter=at_most(1), stats_fields=["id"]).file_scan_tasks[0].data_file
    assert one.value_counts is not None
    assert one.value_counts.to_dict() == {1: 10}
    assert one.lower_bounds is not None
    assert one.lower_bounds.to_dict() == {1: (0).to_bytes(8, "little").hex().upper()}
    assert one.upper_bounds is not None
    assert one.upper_bounds.to_dict() == {1: (9).to_bytes(8, "little").hex().upper()}


def test_bounds_that_are_no_values_of_the_file_are_not_told(client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", NUMBERS)
    table.append(pa.table({"id": [1], "s": ["x" * 100]}))
    [file] = [task.data_file for task in plan(client, stats_fields=["s"]).file_scan_tasks]
    assert file.value_counts is not None
    assert file.lower_bounds is None


def test_deletes_are_told_once_and_referred_to_by_number(client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", NUMBERS)
    for first in (0, 10, 20):
        table.append(pa.table({"id": range(first, first + 10), "s": ["x"] * 10}))
    table.delete("id in (3, 24)")
    keys = pa.table({"id": [5, 15]})
    places = {"metadata": table.metadata, "store": table.files.store}
    table.row_delta(write_equality_deletes(keys, ["id"], **places))
    told = ask(client).json
    deletes = told["delete-files"]
    assert [each["content"] for each in deletes] == ["position-deletes"] * 2 + ["equality-deletes"]
    data = [task["data-file"]["file-path"] for task in told["file-scan-tasks"]]
    refers = [task.get("delete-file-references") for task in told["file-scan-tasks"]]
    assert refers == [[0, 2], [2], [1]]
    assert deletes[0]["referenced-data-file"] == data[0]
    assert deletes[0]["file-format"] == "puffin"
    assert deletes[0]["record-count"] == 1
    assert deletes[0]["content-size-in-bytes"] > 0
    assert deletes[0]["file-size-in-bytes"] > deletes[0]["content-offset"]
    assert deletes[2]["equality-ids"] == [1]


@pytest.mark.parametrize(
    "parts",
    [
        {"type": "in", "term": "id", "values": [*range(10_001)]},
        {"type": "and", "left": {"type": "in", "term": "id", "values": [*range(6_000)]}, "right": {"type": "not-in", "term": "id", "values": [*range(6_000)]}},
    ],
)  # fmt: skip
def test_a_filter_that_is_too_long_rules_nothing_out(
    client: Client, table: Table, parts: dict[str, Any]
) -> None:
    """It costs no time to plan, and rows are tested by the client, that has it."""
    told = ask(client, filter={"type": "and", "left": parts, "right": at_most(14)}).json
    left = {json.dumps(task["residual-filter"]) for task in told["file-scan-tasks"]}
    assert len(told["file-scan-tasks"]) == 10 == len(ids_of(table))
    assert left == {'{"type": "not", "child": false}'}


def test_a_filter_of_too_many_predicates_rules_nothing_out(client: Client, table: Table) -> None:
    def balanced(count: int) -> dict[str, Any]:
        if count == 1:
            return at_most(14)
        return {"type": "or", "left": balanced(count // 2), "right": balanced(count - count // 2)}

    told = ask(client, filter=balanced(2_001)).json["file-scan-tasks"]
    assert len(told) == 10 == len(ids_of(table))
    assert len(ask(client, filter=balanced(20)).json["file-scan-tasks"]) == 2


def test_what_clients_cannot_find_under_todays_names_they_check_themselves(
    client: Client, table: Table
) -> None:
    before = table.current_snapshot
    assert before is not None
    with table.edit_schema() as edit:
        edit.rename("id", "number")
    now = ask(client, filter={"type": "eq", "term": "number", "value": 4}).json
    assert now["file-scan-tasks"][0]["residual-filter"]["term"] == "number"
    then = {"snapshot-id": before.snapshot_id, "use-snapshot-schema": True}
    told = client.post(PLAN, {**then, "filter": {"type": "eq", "term": "id", "value": 4}}).json
    assert told["file-scan-tasks"][0]["residual-filter"] == {"type": "not", "child": False}
    assert len(told["file-scan-tasks"]) == 1


def test_a_large_answer_is_compressed_for_who_can_read_that(client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", NUMBERS, partition_by=["id"])
    table.append(pa.table({"id": range(300), "s": ["x"] * 300}))
    plain = client.post(PLAN, {})
    packed = client.post(PLAN, {}, accept_encoding="gzip, deflate")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    few = client.post(PLAN, {"filter": at_most(1)}, accept_encoding="gzip")
    assert "content-encoding" not in few.headers
