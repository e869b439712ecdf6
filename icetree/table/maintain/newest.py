"""Looking at the newest state of a table while others expire what it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from icetree.errors import CorruptTable, NotFound

if TYPE_CHECKING:
    from icetree.table.state import State
    from icetree.table.table import Table

#: How often one looks anew.
_TRIES: Final = 5

T = TypeVar("T")


def has_gone_on(table: Table, since: State) -> bool:
    """See the newest state of a table; tell whether it is another than one that was looked at.

    Then files of that one may have gone by rights.
    """
    return table.refresh().state is not since


def on_newest(table: Table, look: Callable[[], T]) -> T:
    """Return what a look at the newest state finds.

    Files that are gone count where the table has not gone on since: otherwise one looks again.
    """
    for attempt in range(_TRIES):
        state = table.refresh().state
        try:
            return look()
        except (CorruptTable, NotFound):
            if attempt == _TRIES - 1 or not has_gone_on(table, state):
                raise
    raise AssertionError("every try ends in an answer or an error")
