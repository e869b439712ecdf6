"""Statements on Spark, and what they find on the screen."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Final

from typing_extensions import Self

from icetree.cli.aside import aside
from icetree.cli.output import print_json, print_rows, say, say_lines
from icetree.picture.words import counted
from icetree.spark.complaints import one_line
from icetree.spark.session import local_session

if TYPE_CHECKING:
    from icetree.cli.lake import Chosen
    from icetree.spark.lake import SparkLake


#: Columns of results that are texts of lines: of EXPLAIN and SHOW CREATE TABLE. Lines of other values
#: would pass for rows.
_IN_LINES: Final = (["plan"], ["createtab_stmt"])


class Runner:
    """Runs statements on a lake, one after the other."""

    def __init__(self, chosen: Chosen, *, limit: int, as_json: bool = False) -> None:
        self._chosen = chosen
        self._limit = limit
        self._as_json = as_json
        self._open = ExitStack()
        self.lake: SparkLake

    def __enter__(self) -> Self:
        # Whoever mistyped the catalog need not wait for Spark to hear of it.
        with self._chosen.open():
            pass
        if sys.stderr.isatty():
            print("Starting Spark ...", end="\r", file=sys.stderr, flush=True)
        with aside():
            local_session()
        if sys.stderr.isatty():
            print(" " * 18, end="\r", file=sys.stderr, flush=True)
        self.lake = self._open.enter_context(self._chosen.open_on_spark())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()

    def show(self, statement: str) -> None:
        """Run a statement, and print what it finds."""
        with one_line():
            frame = self.lake.sql(statement)
            names = frame.columns
            keys = _distinct(names)
            if keys != names:
                frame = frame.toDF(*keys)
            # One more than is shown tells whether there are more.
            found = frame.limit(self._limit + 1).toArrow() if names else None
        rows = [] if found is None else found.to_pylist(maps_as_pydicts="lossy")
        shown, is_cut = rows[: self._limit], len(rows) > self._limit
        if self._as_json:
            print_json(shown)
        elif not names:
            say("done")
        elif names in _IN_LINES:
            for row in shown:
                say_lines(str(row[names[0]]).rstrip("\n"))
        else:
            print_rows(shown, dict(zip(keys, names, strict=True)), empty="no rows")
            if shown and not is_cut:
                say(f"({counted(len(shown), 'row')})")
        if is_cut:
            more = f"... and more; --limit {self._limit * 10} shows more"
            print(more, file=sys.stderr if self._as_json else sys.stdout)


def _distinct(names: list[str]) -> list[str]:
    """Return a key for each column: its name, with a number where an earlier one has that."""
    taken, found = {*names}, list[str]()
    for name in names:
        key, number = name, 2
        while key in found or (key != name and key in taken):
            key, number = f"{name}_{number}", number + 1
        found.append(key)
    return found
