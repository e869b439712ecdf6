"""A tree that shows itself: in a notebook as a drawing, printed as the command line prints it."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

from rich.console import Console

from icetree.picture.mermaid import to_mermaid
from icetree.picture.model import Picture
from icetree.picture.svg import to_svg
from icetree.picture.terminal import Drawing


@dataclass(frozen=True, slots=True)
class Tree:
    """The picture of a snapshot's tree, in whatever form is asked for."""

    picture: Picture

    def __repr__(self) -> str:
        return f"Tree({self.picture.caption!r})"

    def __str__(self) -> str:
        sink = StringIO()
        console = Console(file=sink, width=120, color_system=None, highlight=False)
        console.print(Drawing(self.picture))
        return sink.getvalue().rstrip("\n")

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def to_svg(self) -> str:
        """Return it as SVG, for light and dark."""
        return to_svg(self.picture)

    def to_mermaid(self) -> str:
        """Return it as Mermaid."""
        return to_mermaid(self.picture)
