"""The options that many commands share: which catalog, which table, which snapshot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

import click

from icetree.cli.complete import refs_like, tables_like
from icetree.cli.lake import Chosen
from icetree.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., Any])


def pass_lake(command: F) -> F:
    """Hand a command the catalog that is meant; its options may then stand after it, too."""
    passed = click.make_pass_decorator(Chosen)(command)
    passed.has_lake = True  # type: ignore[attr-defined]
    return cast("F", passed)


def _chosen_after(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Take an option of the connection that stands after the command: it wins."""
    if value and ctx.parent is not None and not ctx.resilient_parsing:
        before = ctx.find_object(Chosen)
        assert before is not None  # the group made it
        if param.name == "given":
            value = (*before.properties, *value)
        field_ = "properties" if param.name == "given" else str(param.name)
        ctx.obj = replace(before, **{field_: value})
        ctx.find_root().params[str(param.name)] = value
    return value


#: The options that say which catalog is meant, and how errors are shown.
CONNECTION_OPTIONS: Final = (
    click.Option(
        ["--catalog"],
        metavar="NAME|URI",
        expose_value=False,
        callback=_chosen_after,
        help="A catalog configured as for PyIceberg, or an address such as sqlite:///catalog.db.",
    ),
    click.Option(
        ["--warehouse"],
        metavar="LOCATION",
        expose_value=False,
        callback=_chosen_after,
        help="Where new tables go: a folder, or s3://bucket/prefix.",
    ),
    click.Option(
        ["--property", "given"],
        metavar="KEY=VALUE",
        multiple=True,
        expose_value=False,
        callback=_chosen_after,
        help="A property of the catalog or its store, as PyIceberg names it; may be repeated.",
    ),
    click.Option(
        ["--debug"],
        is_flag=True,
        expose_value=False,
        callback=_chosen_after,
        help="Show the whole traceback of an error.",
    ),
)


def _json_before(ctx: click.Context, param: click.Parameter, value: bool) -> bool:
    del param
    return value or bool(ctx.find_root().params.get("as_json"))


as_json_option = click.option(
    "--json", "as_json", is_flag=True, callback=_json_before, help="Print JSON."
)
at_option = click.option(
    "--at",
    metavar="POINT",
    shell_complete=refs_like,
    help="A snapshot id, branch, tag or time; the current state without.",
)
where_option = click.option(
    "--where", metavar="FILTER", help="Such as \"country = 'DE' and n > 3\"."
)
branch_option = click.option(
    "--branch", default="main", show_default=True, shell_complete=refs_like, help="The branch."
)


def limit_option(default: int) -> Callable[[F], F]:
    """Return the option that says how many lines are shown."""
    return click.option(
        "--limit",
        type=click.IntRange(min=1),
        metavar="N",
        default=default,
        show_default=str(default),
        help="Show so many; JSON has them all.",
    )


yes_option = click.option(
    "--yes", is_flag=True, help="Do it; without, only say what would be done."
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
table_argument = click.argument("name", metavar="TABLE", shell_complete=tables_like)


def pairs(given: tuple[str, ...], *, option: str) -> dict[str, str]:
    """Return what an option says that is repeated, each time as KEY=VALUE."""
    found = {}
    for each in given:
        key, equals, value = each.partition("=")
        if not key or not equals:
            raise InvalidInput(f"{option} {each}: write it as KEY=VALUE")
        found[key] = value
    return found
