"""The command `tree`: a snapshot's picture, in the terminal or as a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from icetree.cli.lake import Chosen
from icetree.cli.options import as_json_option, at_option, pass_lake, table_argument
from icetree.errors import InvalidInput

if TYPE_CHECKING:
    from icetree.picture.model import Picture

#: How a file's ending says what is drawn.
_ENDINGS: Final = {".txt": "terminal", ".mmd": "mermaid", ".svg": "svg", ".html": "html"}


@click.command()
@table_argument
@at_option
@click.option(
    "--format",
    "form",
    type=click.Choice([*_ENDINGS.values()]),
    help="What is drawn; without, the ending of the file says it.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file: .txt, .mmd (Mermaid), .svg or .html.",
)
@as_json_option
@pass_lake
def tree(
    lake: Chosen, name: str, at: str | None, form: str | None, output: Path | None, as_json: bool
) -> None:
    """Draw a snapshot's root, leaves and manifest DVs."""
    from dataclasses import asdict

    from icetree.cli.console import stdout
    from icetree.cli.output import print_json, say, say_lines
    from icetree.picture.terminal import Drawing

    form = form or _form_of(output)
    with lake.table(name) as table:
        drawn = table.tree(at).picture
    if as_json:
        print_json(asdict(drawn))
        return
    if form == "terminal" and output is None:
        stdout().print(Drawing(drawn))
        return
    text = _drawn()[form](drawn)
    if output is None:
        say_lines(text.removesuffix("\n"))
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"{output}: {error.strerror}; name a file that can be written") from None
    say(f"Wrote {output}")


def _form_of(output: Path | None) -> str:
    if output is None:
        return "terminal"
    found = _ENDINGS.get(output.suffix.lower())
    if found is None:
        raise InvalidInput(
            f"{output}: a tree can be drawn as {', '.join(_ENDINGS)}: end the name in one of these, "
            "or say --format"
        )
    return found


def _drawn() -> Mapping[str, Callable[[Picture], str]]:
    from icetree.picture.mermaid import to_mermaid
    from icetree.picture.page import to_html
    from icetree.picture.svg import to_svg

    return {"terminal": _to_text, "mermaid": to_mermaid, "svg": to_svg, "html": to_html}


def _to_text(picture: Picture) -> str:
    from io import StringIO

    from rich.console import Console

    from icetree.picture.terminal import Drawing

    sink = StringIO()
    Console(file=sink, width=120, color_system=None, highlight=False).print(Drawing(picture))
    return sink.getvalue()
