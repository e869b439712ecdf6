"""Plans of both sides in one form, and what may differ between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from icetree.spec.location import absolute
from icetree.table.table import Table
from icetree.tree.plan.tasks import Plan
from tests.peers.filters import Filter, Row, matches, to_json, to_pyiceberg

#: A delete as a scan needs it: its file and, for a deletion vector, where in it.
Delete = tuple[str, int | None, int | None]
#: What a scan reads: each data file with its deletes.
Planned = Mapping[str, frozenset[Delete]]
#: Returns all rows of a data file, those included that a delete hides.
ReadRows = Callable[[str], Iterable[Row]]


def planned(table: Table, filter: Filter | None = None, **how: Any) -> Planned:
    """Return what icetree plans for a filter, all locations in full."""
    where = None if filter is None else to_pyiceberg(filter)
    return described(table.scan(where, **how).plan(), table.location)


def described(plan: Plan, table_location: str) -> Planned:
    """Return a plan as files with their deletes; no file comes twice."""

    def full(stored: str) -> str:
        return absolute(stored, table_location)

    named = [full(location) for location in plan.deletes["location"].to_pylist()]
    found: dict[str, frozenset[Delete]] = {}
    for task in plan.tasks.to_pylist():
        deletes: set[Delete] = {
            (named[at], None, None)
            for kind in ("equality_deletes", "position_deletes")
            for at in task[kind] or ()
        }
        if task["dv_location"] is not None:
            vector = (full(task["dv_location"]), task["dv_offset"], task["dv_size_in_bytes"])
            deletes.add(vector)
        location = full(task["location"])
        assert location not in found, f"{location} is planned twice"
        found[location] = frozenset(deletes)
    return found


def require_same(filter: Filter, ours: Planned, theirs: Planned, rows: ReadRows) -> int:
    """Require the same files with the same deletes; return how many files only they read.

    Ours may leave out a file in which no row matches: that is proven by its rows. It may never
    read a file that a peer knows to be useless, nor miss or add a delete.
    """
    asked = to_json(filter)
    extra = ours.keys() - theirs.keys()
    assert not extra, f"{asked}: only ours reads {sorted(extra)}"
    require_all_matches(filter, ours, theirs, rows)
    for location, deletes in ours.items():
        assert deletes == theirs[location], f"{asked}: other deletes for {location}"
    return len(theirs) - len(ours)


def require_all_matches(filter: Filter, ours: Planned, known: Planned, rows: ReadRows) -> None:
    """Require of the files that are known that ours reads every one in which a row matches.

    Its deletes must be known ones; one that no matching row can equal may be left out, a
    deletion vector may not.
    """
    asked = to_json(filter)
    for location in known.keys() - ours.keys():
        found = [row for row in rows(location) if matches(filter, row)]
        assert not found, f"{asked}: ours leaves out {location}, which has {found[0]}"
    for location, deletes in ours.items():
        left_out = known[location] - deletes
        assert deletes <= known[location], f"{asked}: other deletes for {location}"
        assert all(offset is None for _, offset, _ in left_out), f"{asked}: no DV for {location}"
