"""`/v1/config`: what a client is told before it asks anything else."""

from __future__ import annotations

from typing import Final

from icetree.serve.call import Call
from icetree.serve.protocol.idempotency import LIFETIME
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import Answer

#: How clients are told to have scans planned by the server.
PLANNED_HERE: Final[dict[str, str]] = {"scan-planning-mode": "server"}
#: What a client may set otherwise.
DEFAULTS: Final = PLANNED_HERE
#: What holds whatever a client has set.
OVERRIDES: Final[dict[str, str]] = {}


def config(call: Call) -> Answer:
    """Tell which routes there are, and how the catalog is to be used."""
    lake = call.lake
    asked = call.request.query.get("warehouse", "").rstrip("/")
    if asked and asked not in (lake.warehouse, lake.catalog.name):
        raise Refused(
            404,
            "NoSuchWarehouseException",
            f"this server has no warehouse {asked!r}: leave it out, or name the catalog, "
            f"{lake.catalog.name!r}",
        )
    return Answer(
        document={
            "defaults": DEFAULTS,
            "overrides": OVERRIDES,
            "endpoints": call.serving.endpoints,
            "idempotency-key-lifetime": LIFETIME,
        }
    )
