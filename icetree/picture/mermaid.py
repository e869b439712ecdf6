"""A picture as a Mermaid flowchart: manifests as HTML tables, in the proposal's own colours."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Final

from icetree.picture.model import Box, Kind, Picture, Row
from icetree.spec.entry.entry import Status

_CLASSES: Final = {
    Kind.ROOT: ("rootManifest", "fill:#f3e5f5,stroke:#4a148c"),
    Kind.DATA_MANIFEST: ("dataManifest", "fill:#e8f5e8,stroke:#1b5e20"),
    Kind.DELETE_MANIFEST: ("deleteManifest", "fill:#ffebee,stroke:#c62828"),
    Kind.MANIFEST_DV: ("manifestDeleteVector", "fill:#fed7aa,stroke:#ea580c"),
}
_STATUS_COLOURS: Final = {
    Status.ADDED: "#15803d",
    Status.EXISTING: "#69707d",
    Status.DELETED: "#c81e1e",
}


def to_mermaid(picture: Picture) -> str:
    """Return the picture as the text of a Mermaid flowchart."""
    return "\n".join(_lines(picture)) + "\n"


def _lines(picture: Picture) -> Iterator[str]:
    yield "flowchart TD"
    if picture.caption:
        yield f'  snapshot(["{_text(picture.caption)}"]) --> {picture.root.key}'
    for box in picture.boxes():
        yield f'  {box.key}["{_table(box)}"]'
    for box in (*picture.vectors, *picture.leaves):
        yield f"  {picture.root.key} --> {box.key}"
    for arrow in picture.arrows:
        yield f'  {arrow.source} -.->|"{_text(arrow.label)}"| {arrow.target}'
    if picture.caption:
        yield "  classDef snapshot fill:#e1f5fe,stroke:#01579b,stroke-width:2px,color:#1f2430"
        yield "  class snapshot snapshot"
    for kind, (name, style) in _CLASSES.items():
        keys = [box.key for box in picture.boxes() if box.kind is kind]
        if keys:
            yield f"  classDef {name} {style},stroke-width:2px,color:#1f2430"
            yield f"  class {','.join(keys)} {name}"


def _table(box: Box) -> str:
    rows = [f"<tr><td colspan='3' style='text-align:left'><b>{_text(box.title)}</b></td></tr>"]
    if box.facts:
        rows.append(_wide(box.facts))
    rows += [_row(row) for row in box.rows]
    rows += [_wide(line) for line in box.more]
    return f"<table>{''.join(rows)}</table>"


def _wide(text: str) -> str:
    return f"<tr><td colspan='3' style='text-align:left'>{_text(text)}</td></tr>"


def _row(row: Row) -> str:
    name = f"<s>{_text(row.name)}</s>" if row.is_gone else _text(row.name)
    if row.position is not None:
        name = f"{row.position}&nbsp;&nbsp;{name}"
    about = " ".join(part for part in (row.partition, row.note) if part)
    colour = _STATUS_COLOURS[row.looks]
    cells = (name, _text(about), f"<span style='color:{colour}'>{row.word}</span>")
    return "".join(
        ["<tr>", *(f"<td style='text-align:left'>{cell}</td>" for cell in cells), "</tr>"]
    )


def _text(text: str) -> str:
    """Return text that neither HTML nor Mermaid takes for more than text.

    Mermaid ends a label at a quote and reads `#...;` as its own kind of entity.
    """
    return escape(text.replace("#", "&num;"), quote=True).replace("&amp;num;", "#35;")
