"""Every route keeps the laws of the server, those that are still to come as well."""

from __future__ import annotations

import json

import pytest

from icetree.errors import InvalidInput
from icetree.serve.call import Call
from icetree.serve.http.limits import Limits
from icetree.serve.protocol.request import Answer
from icetree.serve.route import Needs, Route
from icetree.serve.routes import ENDPOINTS, ROUTES
from icetree.serve.server import Server
from tests.serve.asking import Client
from tests.serve.listening import listening
from tests.serve.route_law import (
    LAWS,
    OPEN,
    Law,
    World,
    broken,
    chiefs_are_served,
    no_name_leads_elsewhere,
    no_place_leads_elsewhere,
    nobody_comes_in,
    nonsense_is_refused_in_a_sentence,
    path_of,
    readers_change_nothing,
    strangers_learn_nothing,
)

SMALL = Limits(body_bytes=2_000, small_body_bytes=1_000)


def test_every_route_is_looked_at() -> None:
    chief = {"authorization": "Bearer chief token"}
    told = Client(World(ROUTES).server, chief).get("/v1/config").json["endpoints"]
    assert {*told} == {*ENDPOINTS} <= {each.endpoint for each in ROUTES}
    assert len(told) >= 29


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_every_route_keeps_the_law(law: Law) -> None:
    assert [each for route in ROUTES for each in broken(law, route, ROUTES)] == []


def test_no_route_takes_more_than_it_may() -> None:
    world = World(ROUTES)
    before = world.state()
    token = {"Authorization": "Bearer chief token"}
    with listening(world.server, SMALL) as at:
        for route in ROUTES:
            told = at.ask(route.method, path_of(route), b"x" * 2_001, **token)
            assert told.status == 413, route
            if route.method != "HEAD":
                assert json.load(told)["error"]["message"]
            told.close()
        assert at.ask("GET", "/v1/namespaces", **token).status == 200
    assert world.state() == before


def test_where_nobody_needs_a_token_no_route_takes_what_does_not_say_that_it_is_json() -> None:
    world = World(ROUTES)
    before = world.state()
    client = Client(Server(world.lake), {"content-type": "text/plain"})
    for route in ROUTES:
        if route.method == "POST" and route.endpoint not in OPEN:
            told = client.ask(route.method, path_of(route), b"{}")
            assert told.error == (415, "UnsupportedMediaTypeException"), route
    assert world.state() == before


# --- planted faults ----------------------------------------------------------------------------


def tells(call: Call) -> Answer:
    return Answer(document={"tables": call.lake.tables()})


def drops(call: Call) -> Answer:
    call.lake.drop_table(str(call.table_name))
    return Answer(document={})


def believes(call: Call) -> Answer:
    """Carry out a body without reading it by a type."""
    asked = json.loads(call.request.body)
    call.lake.update_namespace("treasure", {"told": str(asked["report-type"])})
    return Answer()


def shrugs(call: Call) -> Answer:
    del call
    return Answer(document={"is": "fine"})


def mumbles(call: Call) -> Answer:
    try:
        json.loads(call.request.body)
        return Answer()
    except ValueError as error:
        raise InvalidInput(f"{error!r}\n") from None


def opens(call: Call) -> Answer:
    """Read whatever file a body names."""
    place = json.loads(call.request.body)["report-type"]
    return Answer(document={"there": call.lake.store.exists(place)})


def joins(call: Call) -> Answer:
    """Read a file by a name as the path has it."""
    name = call.named["table"]
    return Answer(document={"there": call.lake.store.exists(f"memory://w/treasure/{name}")})


_TABLE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}/new"
_METRICS = "/v1/{prefix}/namespaces/{namespace}/tables/{table}/new/metrics"
PLANTED = (
    (nobody_comes_in, Route(method="GET", path=_TABLE, function=tells, needs=Needs.NOTHING)),
    (strangers_learn_nothing, Route(method="GET", path=_TABLE, function=tells, needs=Needs.A_NAME)),
    (
        strangers_learn_nothing,
        Route(method="GET", path="/v1/{prefix}/all", function=tells, needs=Needs.A_NAME),
    ),
    (readers_change_nothing, Route(method="DELETE", path=_TABLE, function=drops, needs=Needs.READ)),
    (
        nonsense_is_refused_in_a_sentence,
        Route(method="POST", path=_METRICS, function=believes, needs=Needs.WRITE),
    ),
    (
        nonsense_is_refused_in_a_sentence,
        Route(method="POST", path=_METRICS, function=shrugs, needs=Needs.WRITE),
    ),
    (
        nonsense_is_refused_in_a_sentence,
        Route(method="POST", path=_METRICS, function=mumbles, needs=Needs.WRITE),
    ),
    (
        no_place_leads_elsewhere,
        Route(method="POST", path=_METRICS, function=opens, needs=Needs.WRITE),
    ),
    (no_name_leads_elsewhere, Route(method="GET", path=_TABLE, function=joins, needs=Needs.READ)),
    # Nobody has said what it takes.
    (
        chiefs_are_served,
        Route(method="POST", path="/v1/{prefix}/what", function=shrugs, needs=Needs.A_NAME),
    ),
)


@pytest.mark.parametrize(
    ("law", "route"), PLANTED, ids=[f"{law.__name__}-{at}" for at, (law, _) in enumerate(PLANTED)]
)
def test_a_route_that_is_not_guarded_is_found(law: Law, route: Route) -> None:
    found = broken(law, route, (*ROUTES, route))
    assert found
    assert all(each.startswith(route.endpoint) for each in found)
