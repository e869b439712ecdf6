"""Whoever sits at this machine, and only looks: what `icetree explore` lets in."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from typing_extensions import override

from icetree.serve.access import Access
from icetree.serve.refusals import Refused
from icetree.serve.request import Request
from icetree.serve.who import EVERYWHERE, Who

_ONLOOKER: Final = Who(name="onlooker", reads=frozenset({EVERYWHERE}))


class Onlookers(Access):
    """Lets read whoever reaches the server by an address of this machine, and nobody write.

    A page from elsewhere may have its own name lead here, and so ask as if it were ours: its browser
    then still tells that name.
    """

    @override
    def who(self, request: Request) -> Who:
        """Return an onlooker; Refused with 403 for who asks for another host."""
        if not _is_here(urlsplit(request.base).hostname or ""):
            raise Refused(403, "ForbiddenException", "this is for the machine that it runs on")
        return _ONLOOKER


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
