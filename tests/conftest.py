"""How the tests are shared out when they run side by side.

A file's tests stay together, so that what they share is made once. Tests that need a Java virtual
machine share one session, so one process has them all.
"""

from __future__ import annotations

import pytest

#: What takes longest starts first: nothing is left to run alone at the end.
_FIRST = ("tests/spark", "tests/peers", "tests/laws/test_tree_laws.py", "tests/table")
_JAVA = ("tests/spark", "tests/peers")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give every test its group, and put the long ones first."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_turn)


def _group(item: pytest.Item) -> str:
    file = item.nodeid.partition("::")[0]
    if file.startswith(_JAVA):
        return "java"
    # The parts of this law are made to run side by side.
    return item.nodeid if "test_any_history" in item.nodeid else file


def _turn(item: pytest.Item) -> int:
    places = (i for i, place in enumerate(_FIRST) if item.nodeid.startswith(place))
    return next(places, len(_FIRST))
