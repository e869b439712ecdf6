"""The explorer: a page that holds nothing of any table, and the views that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icetree.catalog.base import every_table
from icetree.explore.page import POLICY, page
from icetree.explore.views import look
from icetree.serve.call import Call
from icetree.serve.protocol.names import SEPARATOR
from icetree.serve.protocol.request import Answer

_SAFE: Final = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
_PAGE: Final = {
    **_SAFE,
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": POLICY,
    "cache-control": "no-cache",
}
_VIEW: Final = {**_SAFE, "cache-control": "no-store"}


def explorer(call: Call) -> Answer:
    """Send the page."""
    del call
    return Answer(document=page().html.encode(), headers=_PAGE)


def script(call: Call) -> Answer:
    """Send what the page runs."""
    del call
    return Answer(document=page().script.encode(), headers=_of("text/javascript"))


def style(call: Call) -> Answer:
    """Send how the page looks."""
    del call
    return Answer(document=page().style.encode(), headers=_of("text/css"))


def tables(call: Call) -> Answer:
    """Tell every table that the client may read, each with the path of its views."""
    told = [
        {"table": str(each), "namespace": SEPARATOR.join(each.namespace), "name": each.name}
        for each in every_table(call.lake.catalog)
        if call.who.may_read(each.namespace)
    ]
    return Answer(document={"tables": told}, headers=_VIEW)


def view(call: Call) -> Answer:
    """Tell a view of a table."""
    table = call.table()
    return Answer(document=look(table, call.named["view"], call.request.query), headers=_VIEW)


def _of(type: str) -> Mapping[str, str]:
    return {**_SAFE, "content-type": f"{type}; charset=utf-8", "cache-control": "no-cache"}
