"""Each update and requirement that the protocol knows, with anything in the place of each of its parts.

What they consist of is read from the classes themselves, so that a new one is tried as those before.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from msgspec import inspect

from icetree.serve.commit.actions import AnyAction
from icetree.serve.commit.requirements import Requirement
from icetree.serve.views.change import AssertViewUUID, ViewAction
from icetree.table.lake import Lake
from icetree.table.verify.findings import Kind
from tests.effort import EFFORT, SEED
from tests.serve.asking import Client
from tests.serve.test_hostile_bodies import SCHEMA, T, changed
from tests.table.changing import ARROW, some

V = "/v1/namespaces/db/views/v"
#: What stands for a type in a sample.
_SAMPLES: dict[type[Any], Any] = {
    inspect.StrType: "x",
    inspect.IntType: 1,
    inspect.BoolType: True,
    inspect.AnyType: "x",
}
#: How many of each kind are tried.
TRIED = 40 * EFFORT


def sample(kind: inspect.Type) -> Any:
    """Return a value of a type, with all that it may have."""
    match kind:
        case inspect.StructType():
            told = {} if kind.tag_field is None else {kind.tag_field: kind.tag}
            return told | {each.encode_name: sample(each.type) for each in kind.fields}
        case inspect.UnionType():
            return sample(kind.types[0])
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.DictType():
            return {"a": sample(kind.value_type)}
        case inspect.ListType() | inspect.VarTupleType():
            return [sample(kind.item_type)]
    return _SAMPLES[type(kind)]


def _samples(*kinds: Any) -> Iterator[Any]:
    """Yield one of each kind; a schema, and a snapshot, are what their makers say."""
    for kind in kinds:
        found = sample(inspect.type_info(kind))
        if "schema" in found:
            found["schema"] = SCHEMA
        if "snapshot" in found:
            found["snapshot"] = {"snapshot-id": 1, "sequence-number": 9, "timestamp-ms": 1, "manifest-list": "x", "summary": {"operation": "append"}, "schema-id": 0}  # fmt: skip
        yield found


UPDATES = [*_samples(*get_args(AnyAction))]
REQUIREMENTS = [*_samples(*get_args(Requirement))]
OF_VIEWS = [*_samples(*get_args(ViewAction))]


def _tried(
    client: Client, path: str, told: dict[str, Any], body: Callable[[Any], dict[str, Any]]
) -> None:
    """Send many of a kind, each with something strange in it: none makes the server fail."""
    chance = random.Random(f"{SEED} {told}")
    for each in (told, *(changed(told, chance) for _ in range(TRIED))):
        answer = client.post(path, body(each))
        assert answer.status < 500, (answer.body, each)
        if answer.status >= 400:
            assert answer.json["error"]["message"]


def test_there_is_one_of_each_kind() -> None:
    assert len(UPDATES) >= 23
    assert {each["type"] for each in REQUIREMENTS} >= {"assert-create", "assert-table-uuid"}
    assert all(isinstance(each["action"], str) for each in (*UPDATES, *OF_VIEWS))


@pytest.mark.law
@pytest.mark.parametrize("told", UPDATES, ids=lambda each: each["action"])
def test_a_strange_update_harms_nothing(told: Any, client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", ARROW)
    table.append(some((1, "a")))
    _tried(client, T, told, lambda each: {"updates": [each]})
    assert client.get(T).status == 200
    lake.table("db.t").append(some((2, "a")))
    # Statistics may be named that are not there: nobody reads wrong rows by that.
    found = {each.kind for each in lake.table("db.t").verify(deep=True).findings}
    assert found <= {Kind.LOST_STATISTICS}


@pytest.mark.law
def test_a_strange_requirement_changes_nothing(client: Client, lake: Lake) -> None:
    table = lake.create_table("db.t", ARROW)
    table.append(some((1, "a")))
    for told in REQUIREMENTS:
        _tried(client, T, told, lambda each: {"requirements": [each]})
    assert lake.table("db.t").state.metadata_location == table.state.metadata_location


@pytest.mark.law
def test_a_strange_update_of_a_view_harms_nothing(client: Client, lake: Lake) -> None:
    lake.create_view("db.v", "SELECT 1 AS id", "id int", namespace="db")
    for told in OF_VIEWS:
        _tried(client, V, told, lambda each: {"updates": [each]})
    (required,) = _samples(AssertViewUUID)
    _tried(client, V, required, lambda each: {"requirements": [each]})
    assert client.get(V).status == 200
    assert lake.view("db.v").text
