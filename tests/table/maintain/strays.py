"""Tables with files that nothing names, and what removes them."""

from __future__ import annotations

from icetree.spec.entry.entry import Entry
from icetree.spec.entry.stats import FieldStats
from icetree.surroundings import within
from icetree.table.maintain.orphans.orphans import Orphans
from icetree.table.table import Table
from tests.table.changing import changing_table, some
from tests.table.maintain.history import SECOND, Clock

HOUR = 3_600 * SECOND
DAY = 24 * HOUR
#: Longer than the guard.
LONG = 3 * DAY + SECOND


def plant(table: Table, *names: str) -> set[str]:
    """Put files below a table that nothing names."""
    found = {f"{table.location}/{name}" for name in names}
    for each in found:
        table.files.store.write_new(each, b"nobody's")
    return found


def remove(table: Table, clock: Clock, **how: object) -> Orphans:
    with within(clock):
        return table.maintenance.remove_orphan_files(**how)  # type: ignore[arg-type]


def tidy_table(clock: Clock, count: int = 2) -> Table:
    """A table of a few appends, all of them older than the guard."""
    with within(clock):
        table = changing_table()
        for number in range(count):
            clock.tick()
            table.append(some((number, "a")))
    clock.at_ms += LONG
    return table


def another(table: Table) -> Table:
    """A second handle on the same table."""
    return Table(catalog=table.catalog, files=table.files, state=table.state)


def far_file(location: str) -> Entry:
    """A data file that is named in full."""
    stats = {1: FieldStats(lower=1, upper=1, tight=True, values=1, nulls=0)}
    return Entry(location=location, record_count=1, file_size_in_bytes=10, stats=stats)


class Killed(BaseException):
    """The end of a process: nothing that waits for an error runs."""
