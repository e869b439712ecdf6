"""A picture for the terminal: manifests as small tables, hung on a tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from rich import box as borders
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from icetree.picture.model import Box, Kind, Picture, Row
from icetree.picture.words import plain
from icetree.spec.entry.entry import Content, Status

_BORDER: Final = {
    Kind.ROOT: "magenta",
    Kind.DATA_MANIFEST: "green",
    Kind.DELETE_MANIFEST: "red",
    Kind.MANIFEST_DV: "yellow",
}
_STATUS: Final = {
    Status.ADDED: "bold green",
    Status.EXISTING: "dim",
    Status.DELETED: "bold red",
}
_MARK: Final = {
    Content.DATA: "yellow",
    Content.POSITION_DELETES: "red",
    Content.EQUALITY_DELETES: "red",
    Content.DATA_MANIFEST: "green",
    Content.DELETE_MANIFEST: "red",
    Content.MANIFEST_DV: "yellow",
}
_GUIDE: Final = "dim"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture that rich prints; in ASCII where the console has nothing else."""

    picture: Picture

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the caption and the tree."""
        # Before anything is measured: three dots are wider than one ellipsis.
        picture = _in_ascii(self.picture) if options.ascii_only else self.picture
        if picture.caption:
            yield Text(picture.caption, style="bold cyan")
        yield _tree(picture)


def _in_ascii(picture: Picture) -> Picture:
    return replace(
        picture,
        caption=plain(picture.caption),
        root=_box_in_ascii(picture.root),
        leaves=tuple(map(_box_in_ascii, picture.leaves)),
        vectors=tuple(map(_box_in_ascii, picture.vectors)),
        arrows=tuple(replace(each, label=plain(each.label)) for each in picture.arrows),
    )


def _box_in_ascii(box: Box) -> Box:
    rows = tuple(
        replace(row, name=plain(row.name), partition=plain(row.partition), note=plain(row.note))
        for row in box.rows
    )
    return replace(
        box,
        name=plain(box.name),
        facts=plain(box.facts),
        rows=rows,
        more=tuple(map(plain, box.more)),
    )


def _tree(picture: Picture) -> Tree:
    tree = Tree(_manifest(picture.root), guide_style=_GUIDE)
    labels = {arrow.source: arrow.label for arrow in picture.arrows}
    boxes = {each.key: each for each in picture.boxes()}
    for leaf in picture.leaves:
        if leaf.key not in labels:
            _hang(tree, leaf, picture, boxes, labels)
    return tree


def _hang(
    tree: Tree, box: Box, picture: Picture, boxes: dict[str, Box], labels: dict[str, str]
) -> None:
    """Hang a box on the tree, and below it what applies to it."""
    label = labels.get(box.key, "")
    is_vector = box.kind is Kind.MANIFEST_DV
    branch = tree.add(_vector(box, label) if is_vector else _manifest(box, label))
    for key in picture.onto(box.key):
        _hang(branch, boxes[key], picture, boxes, labels)


def _manifest(box: Box, label: str = "") -> RenderableType:
    """Return a manifest as a small table under its heading."""
    heading = _heading(box, label)
    if not box.rows and not box.more:
        return heading
    table = Table.grid(padding=(0, 2))
    columns = _columns(box)
    for name in columns:
        table.add_column(
            justify="right" if name == "position" else "left",
            no_wrap=name != "note",
            overflow="fold" if name == "note" else "ellipsis",
        )
    for row in box.rows:
        table.add_row(*(_cell(row, name) for name in columns))
    more = [Text(line, style="dim") for line in box.more]
    return Panel(
        Group(table, *more),
        title=heading,
        title_align="left",
        box=borders.ROUNDED,
        border_style=_BORDER[box.kind],
        expand=False,
    )


def _vector(box: Box, label: str) -> Text:
    """Return a manifest DV as a line: its positions, those that are new with a plus."""
    line = _heading(box, label)
    line.append("  ")
    for at, row in enumerate(box.rows):
        line.append(", " if at else "")
        is_new = row.status == Status.ADDED
        line.append(f"+{row.name}" if is_new else row.name, style=_STATUS[row.status])
    for more in box.more:
        line.append(f" {more}", style="dim")
    return line


def _heading(box: Box, label: str) -> Text:
    heading = Text(box.title, style=f"bold {_BORDER[box.kind]}")
    if label:
        heading.append(f" ..> {label}", style="not bold yellow")
    return heading.append(f"  {box.facts}", style="not bold dim")


def _columns(box: Box) -> list[str]:
    optional = [
        name for name in ("partition", "note") if any(getattr(row, name) for row in box.rows)
    ]
    has_position = any(row.position is not None for row in box.rows)
    return [*(["position"] if has_position else []), "name", "status", *optional]


def _cell(row: Row, name: str) -> Text:
    if name == "position":
        return Text("" if row.position is None else str(row.position), style="dim")
    if name == "name":
        hue = _MARK[row.content] if row.content is not None else ""
        return Text(row.name, style=f"{hue} strike dim" if row.is_gone else hue)
    if name == "status":
        return Text(row.word, style=_STATUS[row.looks])
    return Text(getattr(row, name), style="dim")
