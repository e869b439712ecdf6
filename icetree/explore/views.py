"""Every view of a table by its name, with the parameters that it takes as texts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from icetree.errors import InvalidInput, NotFound
from icetree.explore.costs import costs
from icetree.explore.entry import entry
from icetree.explore.feed import feed
from icetree.explore.film import film
from icetree.explore.health import health
from icetree.explore.history import history
from icetree.explore.pruned import pruned
from icetree.explore.rows import rows
from icetree.explore.scale import scale
from icetree.table.table import Table

#: Characters of a filter: judging costs by its terms, and somebody else may be asking.
_FILTER: Final = 2_000

VIEWS: Final[Mapping[str, Callable[..., Any]]] = {
    "history": history,
    "film": film,
    "scale": scale,
    "pruned": pruned,
    "costs": costs,
    "feed": feed,
    "rows": rows,
    "entry": entry,
    "health": health,
}


def look(table: Table, view: str, given: Mapping[str, str]) -> Any:
    """Return a view as plain values; a parameter that is empty is as one that is not given."""
    if view not in VIEWS:
        raise NotFound(f"there is no view {view[:40]!r}; there are: {', '.join(VIEWS)}")
    function = VIEWS[view]
    known = [
        each for each in inspect.signature(function).parameters.values() if each.name != "table"
    ]
    told = {name: value for name, value in given.items() if value}
    others = told.keys() - {each.name for each in known}
    if others:
        raise InvalidInput(f"{view} is not asked by {min(others)[:40]!r}")
    lacks = [each.name for each in known if each.default is each.empty and each.name not in told]
    if lacks:
        raise InvalidInput(f"{view} needs {lacks[0]}")
    if len(told.get("where", "")) > _FILTER:
        raise InvalidInput(
            f"a filter of {len(told['where']):,} characters is more than the {_FILTER:,} that can be "
            "looked at here: `icetree explain` takes longer ones"
        )
    return function(table, **told)
