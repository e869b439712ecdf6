"""What all commands share: which catalog is meant, which table, which snapshot."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import click

from icetree.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from icetree.table.lake import Lake
    from icetree.table.table import Table

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The catalog that the options before the command name; opened when a command needs it."""

    catalog: str | None = field(repr=False)
    warehouse: str | None
    properties: tuple[str, ...] = field(default=(), repr=False)
    debug: bool = False

    @contextmanager
    def open(self, *, create: bool = False) -> Iterator[Lake]:
        """Open the catalog, and close it at the end.

        A database file that is not there is made only with `create`: whoever looks for tables
        in it has mistyped its name.
        """
        from icetree.catalog.config import database_file, resolve
        from icetree.table.lake import open_lake

        given = {} if self.warehouse is None else {"warehouse": self.warehouse}
        for each in self.properties:
            key, equals, value = each.partition("=")
            if not key or not equals:
                # Only its start is shown, up to what may be the value.
                name = re.match(r"[\w.-]*", each)
                raise InvalidInput(f"--property {name[0] if name else ''}: write it as KEY=VALUE")
            given[key] = value
        file = None if create else database_file(resolve(self.catalog, given))
        if file is not None and not file.exists():
            raise NotFound(
                f"there is no catalog {file}: check --catalog, or make one with icetree create"
            )
        with open_lake(self.catalog, given) as connection:
            yield connection

    @contextmanager
    def table(self, name: str) -> Iterator[Table]:
        """Open a table."""
        with self.open() as connection:
            yield connection.table(name)


pass_lake = click.make_pass_decorator(Chosen)

as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
at_option = click.option(
    "--at", metavar="POINT", help="A snapshot id, branch, tag or time; the current state without."
)
where_option = click.option(
    "--where", metavar="FILTER", help="Such as \"country = 'DE' and n > 3\"."
)
table_argument = click.argument("name", metavar="TABLE")


def pairs(given: tuple[str, ...], *, option: str) -> dict[str, str]:
    """Return what an option says that is repeated, each time as KEY=VALUE."""
    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not key or not equals:
            raise InvalidInput(f"{option} {each}: write it as KEY=VALUE")
        found[key] = value
    return found
