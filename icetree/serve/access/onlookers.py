"""Whoever sits at this machine, and only looks: what `icetree explore` lets in."""

from __future__ import annotations

from typing import Final

from typing_extensions import override

from icetree.serve.access.access import Access
from icetree.serve.access.who import EVERYWHERE, Who
from icetree.serve.protocol.request import Request

_ONLOOKER: Final = Who(name="onlooker", reads=frozenset({EVERYWHERE}))


class Onlookers(Access):
    """Lets read whoever reaches the server by an address of this machine, and nobody write."""

    @override
    def who(self, request: Request) -> Who:
        """Return an onlooker."""
        del request
        return _ONLOOKER
