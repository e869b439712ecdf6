"""How the tests are shared out when they run side by side.

A file's tests stay together, so that what they share is made once; some folders share more.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

#: What takes longest starts first: nothing is left to run alone at the end.
_FIRST = ("tests/spark", "tests/peers", "tests/laws/test_tree_laws.py", "tests/table")
#: Tests that share what takes long to make: a Spark session, tables of peers.
_SHARING = {
    "tests/spark": "spark",
    "tests/test_docs.py": "spark",
    "tests/peers": "peers",
}


class Together(LoadScopeScheduling):
    """Hand out tests by the group they belong to."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        for place, group in _SHARING.items():
            if file.startswith(place):
                return group
        # The parts of this law are made to run side by side.
        return nodeid if "test_any_history" in nodeid else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    """Share out tests by groups."""
    return Together(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long tests first."""
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    places = (i for i, place in enumerate(_FIRST) if item.nodeid.startswith(place))
    return next(places, len(_FIRST))
