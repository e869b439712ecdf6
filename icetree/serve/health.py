"""Questions of those who run the server: is it well, and what has it done."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from icetree.catalog.base import TableName
from icetree.errors import NotFound
from icetree.serve.call import Call
from icetree.serve.protocol.request import Answer

#: A table that nobody has: a catalog that says so is there.
_NOBODYS: Final = TableName(("healthz",), "healthz")


def healthz(call: Call) -> Answer:
    """Tell whether the catalog answers."""
    with suppress(NotFound):
        call.lake.catalog.load(_NOBODYS)
    return Answer(document={"status": "ok"})


def metrics(call: Call) -> Answer:
    """Tell what the server has done, in Prometheus's format."""
    return Answer(
        document=call.serving.watching.text().encode(),
        headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"},
    )


def tokens(call: Call) -> Answer:
    """Exchange a client's secret, or its token, for a token."""
    return call.serving.access.exchanged(call.request)
