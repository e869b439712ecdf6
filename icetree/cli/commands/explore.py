"""`icetree explore`: the explorer in a browser, or as one file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import pass_lake, where_option
from icetree.errors import InvalidInput, Unsupported
from icetree.surroundings import new_uuid

if TYPE_CHECKING:
    from icetree.table.lake import Lake

#: How every page begins.
_START: Final = b"<!doctype html>"


@click.command()
@click.argument("name", metavar="[TABLE]", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write one HTML file, with all in it, and serve nothing.",
)
@click.option("--since", metavar="POINT", help="Of the file: exclusive; from the start without.")
@click.option("--upto", metavar="POINT", help="Of the file: inclusive; up to now without.")
@where_option
@click.option("--port", default=0, show_default=True, help="The port; 0 is any that is free.")
@click.option("--browser", is_flag=True, help="Open it in the browser, too.")
@pass_lake
def explore(
    chosen: Chosen,
    name: str | None,
    output: Path | None,
    since: str | None,
    upto: str | None,
    where: str | None,
    port: int,
    browser: bool,
) -> None:
    """Show tables as a web page, on this machine alone; nothing can be changed there."""
    if output is None and (since or upto):
        raise InvalidInput("--since and --upto are for a file: give --output too")
    if output is not None and (port or browser):
        raise InvalidInput("--port and --browser are for a server: leave out --output, or them")
    if click.get_current_context().find_root().params.get("as_json"):
        raise InvalidInput("explore makes a page and prints no JSON: leave out --json")
    if output is not None:
        _require_page(output)
    with chosen.open() as lake:
        if name is not None:
            lake.table(name)
        if output is None:
            _serve(lake, name, where, port=port, browser=browser)
        elif name is None:
            raise InvalidInput("which table is to be in the file? icetree explore TABLE -o FILE")
        else:
            _write(lake, name, output, since, upto, where)


def _require_page(output: Path) -> None:
    """Refuse to write over what is no page; whoever mistypes may name anything."""
    if output.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"{output} is to be a web page: end its name in .html")
    try:
        with output.open("rb") as file:
            is_page = file.read(len(_START)).lower() in (_START, b"")
    except FileNotFoundError:
        return
    except OSError as error:
        raise InvalidInput(f"{output}: {error.strerror}; name a file that can be written") from None
    if not is_page:
        raise InvalidInput(f"{output} is there, and no web page: name another file")


def _write(
    lake: Lake, name: str, output: Path, since: str | None, upto: str | None, where: str | None
) -> None:
    from icetree.cli.output import say
    from icetree.explore.page import one_file

    text = one_file(lake.table(name), since=since, upto=upto, where=where)
    # Beside it first: what was there before stays until all of the new one is.
    beside = output.with_name(f".{output.name}.{new_uuid()}")
    try:
        beside.write_text(text, encoding="utf-8")
        beside.replace(output)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise InvalidInput(f"{output}: {error.strerror}; name a file that can be written") from None
    say(f"Wrote {output}, {len(text.encode()):,} bytes: any browser shows it")


def _serve(lake: Lake, name: str | None, where: str | None, *, port: int, browser: bool) -> None:
    from urllib.parse import urlencode

    from icetree.cli.output import say
    from icetree.explore.page import page

    try:
        from icetree.serve.access.onlookers import Onlookers
        from icetree.serve.http import run
        from icetree.serve.routes import EXPLORER
        from icetree.serve.server import Server
    except ImportError as error:
        raise Unsupported(
            f"a page needs uvicorn: install icetree[serve], or write a file with -o ({error})"
        ) from error
    page()
    listening = run.Address(port=port).listen()
    shown = {"table": name, "where": where}
    asked = urlencode({key: value for key, value in shown.items() if value})
    uri = f"http://127.0.0.1:{listening.getsockname()[1]}/ui{'#' if asked else ''}{asked}"
    say(f"exploring {lake.catalog.name} at {uri}")
    click.echo("stop      Ctrl-C")
    if browser:
        click.launch(uri)
    run.serve(Server(lake, Onlookers(), routes=EXPLORER), listening)
