"""A picture as SVG, by our own hand: no dependency, no script, one style sheet for light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from icetree.picture.layout import (
    ARC,
    HEADER,
    MARGIN,
    MARK,
    PAD,
    PILL,
    ROW,
    SHEET,
    TIER_GAP,
    Layout,
    Placed,
    lay_out,
    text_width,
)
from icetree.picture.model import Kind, Picture, Row
from icetree.spec.entry.entry import Content

Theme: TypeAlias = Literal["auto", "light", "dark"]

_KIND_CLASS: Final = {
    Kind.ROOT: "root",
    Kind.DATA_MANIFEST: "dm",
    Kind.DELETE_MANIFEST: "del",
    Kind.MANIFEST_DV: "mdv",
}
_CONTENT_CLASS: Final = {
    Content.DATA: "data",
    Content.POSITION_DELETES: "del",
    Content.EQUALITY_DELETES: "del",
    Content.DATA_MANIFEST: "dm",
    Content.DELETE_MANIFEST: "del",
    Content.MANIFEST_DV: "mdv",
}
#: Rounding of boxes, and of the corners of lines.
_ROUND: Final = 7.0

_FONTS: Final = """
text{font-family:Inter,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;font-size:11px}
.mono{font-family:"JetBrains Mono","SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace}
.name{font-size:12px}
.title{font-size:13.5px;font-weight:600}
.status{font-size:10px;font-weight:600;letter-spacing:.02em}
.end{text-anchor:end}.mid{text-anchor:middle}
.line,.dots{fill:none;stroke-width:1.3}
.dots{stroke-dasharray:1.5 4;stroke-linecap:round;stroke-width:1.6}
.box{stroke-width:1.3}
.strike{stroke-width:1.1}
"""

#: Part -> colour in light and in dark. Hues of the parts are those of the proposal's drawings.
_INK: Final = {
    ".bg": ("fill", "#ffffff", "#14171c"),
    ".body": ("fill", "#ffffff", "#1b1f26"),
    ".zebra": ("fill", "#f6f7f9", "#20252d"),
    "text": ("fill", "#1f2430", "#e4e8ef"),
    ".muted": ("fill", "#69707d", "#98a1b0"),
    ".line": ("stroke", "#8b93a1", "#6d7684"),
    ".tip": ("fill", "#8b93a1", "#6d7684"),
    ".dots": ("stroke", "#c2410c", "#fb923c"),
    ".dottip": ("fill", "#c2410c", "#fb923c"),
    ".label": ("fill", "#9a3412", "#fdba74"),
    ".ADDED": ("fill", "#15803d", "#4ade80"),
    ".EXISTING": ("fill", "#7b8290", "#8e97a6"),
    ".DELETED": ("fill", "#c81e1e", "#f87171"),
    ".gone": ("fill", "#a3a9b4", "#6f7888"),
    ".strike": ("stroke", "#c81e1e", "#f87171"),
}
#: Kind -> (tint, stroke) in light and in dark.
_HUES: Final = {
    "snap": (("#e1f5fe", "#01579b"), ("#0e2a3d", "#5cb8f0")),
    "root": (("#f3e5f5", "#6a1b9a"), ("#2c1d38", "#c084f5")),
    "dm": (("#e6f4e7", "#2e7d32"), ("#16301c", "#66bb6a")),
    "del": (("#ffebee", "#c62828"), ("#3a1a1e", "#ef7f7f")),
    "mdv": (("#ffedd5", "#ea580c"), ("#3a2413", "#fb923c")),
    "data": (("#fff8e1", "#e5a100"), ("#332a10", "#f5c04a")),
}


def to_svg(picture: Picture, *, theme: Theme = "auto") -> str:
    """Return the picture as an SVG document; `auto` follows what the viewer prefers."""
    at = lay_out(picture)
    width, height = f"{at.width:.0f}", f"{at.height:.0f}"
    label = quoteattr(picture.caption or "Metadata tree")
    view = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img" aria-label={label}>',
        f"<style>{_style(theme)}</style>",
        f'<rect class="bg" width="{width}" height="{height}"/>',
        *_lines(picture, at),
        *(part for one in (at.root, *at.placed.values()) for part in _box(one)),
        *_arrows(picture, at),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _style(theme: Theme) -> str:
    if theme != "auto":
        return _FONTS + _colours(theme == "dark")
    dark = f"@media (prefers-color-scheme:dark){{\n{_colours(True)}}}\n"
    return _FONTS + _colours(False) + dark


def _colours(is_dark: bool) -> str:
    rules = [
        f"{part}{{{what}:{(light, dark)[is_dark]}}}" for part, (what, light, dark) in _INK.items()
    ]
    for kind, hues in _HUES.items():
        tint, ink = hues[is_dark]
        rules += [
            f".f-{kind}{{fill:{tint}}}",
            f".s-{kind}{{stroke:{ink}}}",
            f".i-{kind}{{fill:{ink}}}",
        ]
    return "\n".join(rules) + "\n"


# --- lines ---------------------------------------------------------------------------------


def _lines(picture: Picture, at: Layout) -> Iterator[str]:
    """Yield the caption, and lines from the root to every box, all along one bus."""
    start = at.root.middle
    if picture.caption:
        width = text_width(picture.caption, 12.5) + PILL
        x, y = start - width / 2, MARGIN
        yield (
            f'<rect class="box f-snap s-snap" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
            f'height="{PILL}" rx="{PILL / 2}"/>'
        )
        yield _text(picture.caption, start, y + PILL / 2 + 4, "mid", size=12.5)
        yield f'<path class="line" d="M{start:.1f} {y + PILL:.1f}V{at.root.y - 6:.1f}"/>'
        yield _tip(start, at.root.y, "tip")
    if not at.placed:
        return
    bus = at.root.bottom + TIER_GAP * 0.42
    yield f'<path class="line" d="M{start:.1f} {at.root.bottom:.1f}V{bus:.1f}"/>'
    for one in at.placed.values():
        x, turn = one.drop_x, _ROUND if one.drop_x > start else -_ROUND
        if abs(x - start) <= _ROUND:
            path = f"M{start:.1f} {bus:.1f}H{x:.1f}V{one.y - 6:.1f}"
        else:
            path = (
                f"M{start:.1f} {bus:.1f}H{x - turn:.1f}"
                f"Q{x:.1f} {bus:.1f} {x:.1f} {bus + _ROUND:.1f}V{one.y - 6:.1f}"
            )
        yield f'<path class="line" d="{path}"/>'
        yield _tip(x, one.y, "tip")


def _arrows(picture: Picture, at: Layout) -> Iterator[str]:
    """Yield the dotted arrows, with their labels on top of everything."""
    labels = []
    for arrow in picture.arrows:
        source, target = at.placed[arrow.source], at.placed[arrow.target]
        x = source.middle
        middle = (source.bottom + target.y) / 2 - 2
        for start, end in ((source.bottom + 3, middle - 8), (middle + 9, target.y - 9)):
            yield f'<path class="dots" d="M{x:.1f} {start:.1f}V{end:.1f}"/>'
        yield _tip(x, target.y, "dottip")
        labels.append(_text(arrow.label, x, middle + 4, "label mid"))
    root = at.root
    for order, row_arrow in enumerate(picture.row_arrows):
        top, bottom = sorted((root.row_y(row_arrow.source), root.row_y(row_arrow.target)))
        reach = root.right + 12 + (ARC - 12) * (order % 3 + 1) / 3
        low, high = root.row_y(row_arrow.source), root.row_y(row_arrow.target)
        turn = 6 if high > low else -6
        yield (
            f'<path class="dots" d="M{root.right + 3:.1f} {low:.1f}H{reach - 6:.1f}'
            f"Q{reach:.1f} {low:.1f} {reach:.1f} {low + turn:.1f}V{high - turn:.1f}"
            f'Q{reach:.1f} {high:.1f} {reach - 6:.1f} {high:.1f}H{root.right + 7:.1f}"/>'
        )
        x = root.right + 1
        yield f'<path class="dottip" d="M{x:.1f} {high:.1f}l7 -3.6v7.2z"/>'
        if len(picture.row_arrows) == 1:
            labels.append(_text("applies to", reach + 6, (top + bottom) / 2 + 4, "label"))
    yield from labels


def _tip(x: float, y: float, cls: str) -> str:
    return f'<path class="{cls}" d="M{x:.1f} {y - 1:.1f}l-3.8 -7.5h7.6z"/>'


# --- boxes ---------------------------------------------------------------------------------


def _box(one: Placed) -> Iterator[str]:
    kind = _KIND_CLASS[one.box.kind]
    x, y, width, height = one.x, one.y, one.width, one.height
    for sheet in (2, 1) if one.box.is_group else ():
        yield _rect(x + SHEET * sheet, y + SHEET * sheet, width, height, f"box f-{kind} s-{kind}")
    yield _rect(x, y, width, height, "body")
    yield (
        f'<path class="f-{kind}" d="M{x:.1f} {y + HEADER:.1f}V{y + _ROUND:.1f}q0 -{_ROUND} {_ROUND} '
        f'-{_ROUND}h{width - 2 * _ROUND:.1f}q{_ROUND} 0 {_ROUND} {_ROUND}V{y + HEADER:.1f}z"/>'
    )
    yield _text(one.box.title, x + PAD, y + 19, "title")
    yield _text(one.box.facts, x + PAD, y + 36, "muted")
    for number, row in enumerate(one.box.rows):
        yield from _row(one, number, row)
    for number, line in enumerate(one.box.more, len(one.box.rows)):
        yield _text(line, x + one.columns.name, one.row_y(number) + 4, "muted")
    yield _rect(x, y, width, height, f'box s-{kind}" fill="none')


def _row(one: Placed, number: int, row: Row) -> Iterator[str]:
    x, y, at = one.x, one.row_y(number), one.columns
    base = y + 4
    title = f"<title>{escape(row.title)}</title>" if row.title else ""
    yield f'<g class="row">{title}'
    if number % 2:
        yield (
            f'<rect class="zebra" x="{x + 1:.1f}" y="{y - ROW / 2:.1f}" '
            f'width="{one.width - 2:.1f}" height="{ROW}"/>'
        )
    if row.position is not None:
        yield _text(str(row.position), x + at.position, base, "mono muted end")
    if row.content is not None:
        hue = _CONTENT_CLASS[row.content]
        yield (
            f'<rect class="box f-{hue} s-{hue}" x="{x + at.mark:.1f}" y="{y - MARK / 2:.1f}" '
            f'width="{MARK}" height="{MARK}" rx="2"/>'
        )
    yield _text(row.name, x + at.name, base, "mono name gone" if row.is_gone else "mono name")
    if row.partition:
        yield _text(row.partition, x + at.partition, base, "muted")
    if row.note:
        yield _text(row.note, x + at.note, base, "muted")
    yield _text(row.word, one.right - PAD, base, f"status end {row.looks.name}")
    if row.is_gone:
        end = x + at.name + text_width(row.name, 12.0, is_mono=True)
        yield f'<path class="strike" d="M{x + at.name - 2:.1f} {y:.1f}H{end + 2:.1f}"/>'
    yield "</g>"


def _rect(x: float, y: float, width: float, height: float, cls: str) -> str:
    return (
        f'<rect class="{cls}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" '
        f'height="{height:.1f}" rx="{_ROUND}"/>'
    )


def _text(text: str, x: float, y: float, cls: str, *, size: float | None = None) -> str:
    style = f' style="font-size:{size}px"' if size else ""
    return f'<text class="{cls}" x="{x:.1f}" y="{y:.1f}"{style}>{escape(text)}</text>'
