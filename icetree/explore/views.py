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
from icetree.spec.texts import did_you_mean
from icetree.table.table import Table

#: Characters of a filter: judging costs by its terms, and somebody else may be asking.
_FILTER: Final = 2_000
#: Characters of a name that nobody knows, as far as it is told again.
_NAME: Final = 40

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


def asked(view: str) -> list[inspect.Parameter]:
    """Return what a view is asked by."""
    parameters = inspect.signature(VIEWS[view]).parameters.values()
    return [each for each in parameters if each.name != "table"]


def look(table: Table, view: str, given: Mapping[str, str]) -> Any:
    """Return a view as plain values; a parameter that is empty is as one that is not given."""
    if view not in VIEWS:
        hint = did_you_mean(view[:_NAME], VIEWS) or f"; there are: {', '.join(VIEWS)}"
        raise NotFound(f"there is no view {view[:_NAME]!r}{hint}")
    function = VIEWS[view]
    known = asked(view)
    told = {name: value for name, value in given.items() if value}
    others = told.keys() - {each.name for each in known}
    if others:
        other, names = min(others)[:_NAME], [each.name for each in known]
        hint = did_you_mean(other, names) or f"; it takes: {', '.join(names)}"
        raise InvalidInput(f"{view} is not asked by {other!r}{hint}")
    lacks = [each.name for each in known if each.default is each.empty and each.name not in told]
    if lacks:
        raise InvalidInput(f"{view} needs {lacks[0]}")
    if len(told.get("where", "")) > _FILTER:
        raise InvalidInput(
            f"a filter of {len(told['where']):,} characters is more than the {_FILTER:,} that can be "
            "looked at here: `icetree explain` takes longer ones"
        )
    return function(table, **told)
