"""Registering over a name that stands for a table: back to a former state, or to another table."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from msgspec.structs import replace
from typing_extensions import override

from icetree.catalog.base import Outcome, TableName, Unknown, parse_name
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import AlreadyExists, CommitConflict
from icetree.rows.schema import arrow_schema
from icetree.rows.write.write import write_files
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.server import Server
from icetree.spec.entry.entry import Entry
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.serve.asking import Client, Told
from tests.serve.test_requirements import lake_on, request
from tests.table.changing import ARROW, some
from tests.table.export.stock_client import StockClient

HERE = "/v1/namespaces/db"


class World:
    """Two tables, one with a past, and a server over them."""

    def __init__(self, catalog: MemoryCatalog | None = None) -> None:
        self.lake = lake_on(MemoryStore(), catalog or MemoryCatalog("m"))
        self.lake.create_namespace("db")
        table = self.lake.create_table("db.t", ARROW)
        table.append(some((1, "a")))
        self.former = table.state.metadata_location
        table.append(some((2, "a")))
        self.newest = table.state.metadata_location
        other = self.lake.create_table("db.other", ARROW)
        other.append(some((9, "a")))
        self.other = other.state.metadata_location
        self.client = Client(Server(self.lake))

    def register(self, at: str, **more: Any) -> Told:
        return self.client.post(
            f"{HERE}/register", {"name": "t", "metadata-location": at, "overwrite": True, **more}
        )

    def ids(self) -> list[int]:
        table = self.lake.table("db.t")
        assert table.verify(deep=True).findings == ()
        return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("told", [{"overwrite": False}, {"overwrite": None}])
def test_a_name_is_not_taken_unless_that_is_asked_for(told: dict[str, Any]) -> None:
    world = World()
    assert world.register(world.former, **told).error == (409, "AlreadyExistsException")
    assert world.ids() == [1, 2]


def test_a_table_goes_back_to_a_former_state_and_forth_again_and_no_file_goes() -> None:
    world = World()
    files = {each.location for each in world.lake.store.list("memory://w")}
    told = []
    for at, ids in ((world.former, [1]), (world.newest, [1, 2]), (world.newest, [1, 2])):
        told.append(world.register(at))
        assert told[-1].status == 200
        assert world.ids() == ids
    # What the name stands for already it need not be made to stand for again.
    assert told[1].json["metadata-location"] == told[2].json["metadata-location"]
    assert files <= {each.location for each in world.lake.store.list("memory://w")}
    world.register(world.former)
    world.lake.table("db.t").append(some((3, "a")))
    assert world.ids() == [1, 3]


def test_a_name_may_stand_for_another_table_then() -> None:
    world = World()
    assert world.register(world.other).status == 200
    assert world.ids() == [9]
    assert world.lake.store.exists(world.newest)


def test_a_name_that_nobody_has_is_given_as_ever() -> None:
    world = World()
    assert world.register(world.other, name="new").status == 200
    assert world.lake.tables() == ["db.new", "db.other", "db.t"]


def test_a_table_whose_newest_metadata_is_lost_is_had_back() -> None:
    world = World()
    world.lake.store.delete([world.newest])
    assert world.client.get(f"{HERE}/tables/t").status == 404
    assert world.register(world.former).status == 200
    assert world.ids() == [1]


def test_commits_that_were_made_of_what_is_gone_are_conflicts() -> None:
    world = World()
    behind = [world.lake.table("db.t") for _ in range(2)]
    body = request(behind[0], 5)
    world.register(world.former)
    assert world.client.post(f"{HERE}/tables/t", body).error == (409, "CommitFailedException")
    # A row that it saw is not there any more.
    with pytest.raises(CommitConflict):
        behind[0].delete("id = 2")
    assert world.ids() == [1]
    world.register(world.other)
    uuid = behind[1].metadata.table_uuid
    change = {
        "requirements": [{"type": "assert-table-uuid", "uuid": uuid}],
        "updates": [{"action": "set-properties", "updates": {"a": "1"}}],
    }
    assert world.client.post(f"{HERE}/tables/t", change).error == (409, "CommitFailedException")
    with pytest.raises(CommitConflict, match="another table now"):
        behind[1].append(some((6, "a")))
    assert world.ids() == [9]


def test_a_table_that_lies_elsewhere_goes_back_where_it_lies_and_no_other_comes_from_there() -> (
    None
):
    world = World()
    table = world.lake.create_table("db.far", ARROW, location="memory://elsewhere/far")
    first = table.state.metadata_location
    table.append(some((1, "a")))
    there = world.register(first, name="far").json["metadata-location"]
    assert there.startswith("memory://elsewhere/far/metadata/")
    for at, name in (
        (first, "t"),
        (first, "new"),
        (first.replace("/far/", "/far/../near/"), "far"),
        ("memory://elsewhere/near/metadata/1.metadata.json", "far"),
        ("/etc/passwd", "far"),
        (first.replace("/metadata/", "/metadata/x/"), "far"),
    ):
        assert world.register(at, name=name).error == (400, "BadRequestException"), (at, name)
    assert world.lake.table("db.far").state.metadata_location == there
    assert world.lake.table("db.far").scan().count() == 0


@pytest.mark.parametrize(
    "at", ["{former}x.metadata.json", "memory://w/db/t/metadata/none.metadata.json"]
)
def test_what_is_not_there_takes_no_place(at: str) -> None:
    world = World()
    told = world.register(at.format(former=world.former))
    assert told.error == (400, "BadRequestException")
    assert world.ids() == [1, 2]


def test_a_file_that_is_no_metadata_takes_no_place() -> None:
    world = World()
    at = world.former.replace(".metadata.json", "-x.metadata.json")
    world.lake.store.write_new(at, b"{}")
    assert world.register(at).status == 422
    assert world.ids() == [1, 2]


def test_a_view_keeps_its_name() -> None:
    world = World()
    world.lake.create_view("db.v", "SELECT 1 AS id", "id int", namespace="db")
    assert world.register(world.other, name="v").error == (409, "AlreadyExistsException")
    assert world.lake.view("db.v").text == "SELECT 1 AS id"


def test_only_who_may_change_all_takes_a_name() -> None:
    world = World()
    grants = grants_in(f"clients:\n  a:\n    token: {digest_of('x')}\n    write: db\n", "grants")
    world.client = Client(Server(world.lake, Access(grants=grants)), {"authorization": "Bearer x"})
    assert world.register(world.former).error == (403, "ForbiddenException")
    assert world.ids() == [1, 2]


class Losing(MemoryCatalog):
    """Has something happen before the next swap, or the next name that is new, or loses its answer."""

    def __init__(self) -> None:
        super().__init__("m")
        self.before: Any = None
        self.first: Any = None
        self.loses = False

    @override
    def create(self, table: TableName, metadata_location: str) -> None:
        first, self.first = self.first, None
        if first is not None:
            first()
        super().create(table, metadata_location)

    @override
    def swap(self, table: TableName, *, expected: str, to: str) -> Outcome:
        before, self.before = self.before, None
        if before is not None:
            before()
        outcome = super().swap(table, expected=expected, to=to)
        return Unknown(reason="lost") if self.loses else outcome


def test_a_commit_that_comes_first_is_not_written_over() -> None:
    catalog = Losing()
    world = World(catalog)
    table = world.lake.table("db.t")
    catalog.before = lambda: table.append(some((7, "a")))
    assert world.register(world.former).error == (409, "CommitFailedException")
    assert world.ids() == [1, 2, 7]
    # Another who asks for the same is no conflict.
    catalog.before = lambda: world.register(world.former)
    assert world.register(world.former).status == 200
    assert world.ids() == [1]


def test_an_answer_that_is_lost_is_told_as_unknown_and_may_be_asked_for_again() -> None:
    catalog = Losing()
    world = World(catalog)
    catalog.loses = True
    assert world.register(world.former).error == (504, "CommitStateUnknownException")
    catalog.loses = False
    assert world.register(world.former).status == 200
    assert world.ids() == [1]


def test_a_lake_takes_names_in_the_same_words() -> None:
    world = World()
    lake: Lake = world.lake
    would = lake.register_table("db.t", world.former, overwrite=True, dry_run=True)
    assert world.ids() == [1, 2]
    is_ = lake.register_table("db.t", world.former, overwrite=True)
    assert is_.scan().count() == 1
    assert would.metadata == replace(is_.metadata, last_updated_ms=would.metadata.last_updated_ms)
    assert world.ids() == [1]
    lake.create_view("db.v", "SELECT 1 AS id", "id int", namespace="db")
    for dry_run in (True, False):
        with pytest.raises(AlreadyExists, match=r"view db\.v exists"):
            lake.register_table("db.v", world.former, overwrite=True, dry_run=dry_run)


def test_a_name_that_comes_or_goes_meanwhile_is_looked_at_again() -> None:
    catalog = Losing()
    world = World(catalog)
    catalog.before = lambda: catalog.drop(parse_name("db.t"))
    assert world.register(world.former).status == 200
    assert world.ids() == [1]
    catalog.first = lambda: catalog.create(parse_name("db.new"), world.other)
    assert world.register(world.newest, name="new").status == 200
    assert world.lake.table("db.new").scan().count() == 2


# --- ids -------------------------------------------------------------------------------------


def widened(world: World) -> Table:
    """The table with another column, in its newest state; the former one has none such."""
    table = world.lake.table("db.t")
    with table.edit_schema() as edit:
        edit.add("secret", "string")
    return table


def secret_row(table: Table) -> pa.Table:
    return pa.Table.from_pylist(
        [{"id": 7, "secret": "s3cr3t"}], arrow_schema(table.metadata.schema())
    )


@pytest.mark.parametrize("kind", ["string", "long"])
def test_what_is_written_under_a_column_that_is_gone_comes_out_under_no_other(kind: str) -> None:
    world = World()
    behind = widened(world)
    world.register(world.former)
    behind.append(secret_row(behind))
    now = world.lake.table("db.t")
    with now.edit_schema() as edit:
        edit.add("nickname", kind)
    assert now.scan(columns=["id", "nickname"]).to_arrow().to_pylist() == [
        {"id": 1, "nickname": None},
        {"id": 7, "nickname": None},
    ]
    assert world.ids() == [1, 7]


def test_nor_what_a_client_writes_who_loaded_the_table_before() -> None:
    world = World()
    world.register(world.former)
    behind = widened(world)
    client = StockClient(behind)
    rows = secret_row(behind)
    made = write_files(rows, table="t", metadata=behind.metadata, store=behind.files.store)
    [one] = made.to_pylist()
    size = one["file_size_in_bytes"]
    client.add(Entry(location=one["location"], record_count=1, file_size_in_bytes=size))
    snapshot = client.snapshot("append")
    # The change of the schema made no snapshot: to what it requires the former state is the same.
    world.register(world.former)
    commit = {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": behind.metadata.table_uuid},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": client.parent},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {
                "action": "set-snapshot-ref",
                "ref-name": "main",
                "type": "branch",
                "snapshot-id": client.id,
            },
        ],
    }
    world.client.post(f"{HERE}/tables/t", commit)
    now = world.lake.table("db.t")
    with now.edit_schema() as edit:
        edit.add("nickname", "string")
    assert not any(now.scan().to_arrow()["nickname"].to_pylist())


@pytest.mark.law
@pytest.mark.parametrize("seed", [3] if EFFORT == 1 else range(1_000 * SEED, 1_000 * SEED + EFFORT))
def test_no_id_is_given_out_twice_whatever_the_name_stood_for_meanwhile(seed: int) -> None:
    draw, world = random.Random(seed), World()
    table = world.lake.table("db.t")
    states = [world.former, world.newest]
    given: dict[int, str] = {}
    sequence_numbers: dict[int, int] = {}
    next_row_id = table.metadata.next_row_id or 0
    for step in range(40):
        match draw.choice(("back", "back", "column", "field", "rows")):
            case "back":
                world.register(draw.choice(states))
            case "column":
                with table.edit_schema() as edit:
                    edit.add(f"c{step}", "long")
            case "field":
                with table.edit_spec() as spec:
                    spec.add(f"bucket({step + 2}, id)")
            case "rows":
                table.append(some((step, "a")))
                snapshot = table.metadata.current_snapshot()
                assert snapshot is not None
                assert snapshot.first_row_id is not None
                assert snapshot.first_row_id >= next_row_id
                next_row_id = snapshot.first_row_id + 1
                number = snapshot.sequence_number
                assert sequence_numbers.setdefault(number, snapshot.snapshot_id) == (
                    snapshot.snapshot_id
                )
        metadata = table.refresh().metadata
        states.append(table.state.metadata_location)
        names = table.metadata.schema()
        meant = {each.field_id: each.name for each in names.fields}
        meant |= {
            each.expr_id: f"{each.transform} {each.source_ids}" for each in metadata.expressions
        }
        fields = {each.partition_field_id: each.transform for each in metadata.expressions}
        meant |= {-id: transform for id, transform in fields.items() if id is not None}
        for id, what in meant.items():
            assert given.setdefault(id, what) == what
    assert table.verify(deep=True).findings == ()
