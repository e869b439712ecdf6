"""What happens to the demo's table, commit by commit."""

from __future__ import annotations

from collections.abc import Iterator

from icetree.cli.demo.table import Commit, DemoTable, entries
from icetree.spec.entry.entry import Entry
from icetree.tree.changes import Changes, Intent, removal


def story(table: DemoTable) -> Iterator[Commit]:
    """Make the commits, and yield each as it is made."""
    early: list[Entry] = []
    for day in range(12):
        early += table.orders(day)
        yield _append(table, "append 1 file", early[-1:])

    more = [*table.orders(12), *table.orders(13)]
    yield _append(table, "append 2 files", more)
    yield _remove(table, "remove 1 file, tracked in the leaf", early[3:4])
    yield _remove(table, "remove 2 files, one of them in the root", [early[7], more[0]])

    first = table.vector(early[0], 3, 1)
    yield _row_delta(table, "delete 3 rows: a data DV", [first])
    second = table.vector(early[0], 8, 2)
    yield _row_delta(table, "delete 5 rows more: the data DV is replaced", [second])

    large = [file for day in range(14, 44) for file in table.orders(day, 8)]
    yield _append(table, f"append {len(large)} files: straight into leaves", large)
    for number, some in enumerate((large[0:12:4], large[20:36:8]), 1):
        vectors = [table.vector(file, 20 * number, 1) for file in some]
        yield _row_delta(table, f"delete rows of {len(some)} files", vectors)

    yield _remove(table, "remove two days, 16 files of one leaf", large[112:128])
    fresh = table.orders(44)
    yield table.commit(
        "replace 2 files by 1",
        Changes(
            intent=Intent.OVERWRITE_FILES,
            added=entries(fresh),
            removed=removal([_name(more[1]), _name(early[9])]),
        ),
    )


def _append(table: DemoTable, what: str, files: list[Entry]) -> Commit:
    return table.commit(what, Changes(intent=Intent.APPEND, added=entries(files)))


def _remove(table: DemoTable, what: str, files: list[Entry]) -> Commit:
    names = removal([_name(file) for file in files])
    return table.commit(what, Changes(intent=Intent.DELETE_FILES, removed=names))


def _row_delta(table: DemoTable, what: str, vectors: list[Entry]) -> Commit:
    return table.commit(what, Changes(intent=Intent.ROW_DELTA, added=entries(vectors)))


def _name(file: Entry) -> str:
    assert file.location is not None
    return file.location
