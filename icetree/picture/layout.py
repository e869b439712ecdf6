"""Where everything stands in a drawn picture: the root on top, leaves below, DVs above theirs.

Each data manifest has a column. What applies to it, its manifest DV and its affiliated delete
manifests, stands right above it, so that dotted arrows are short and straight; lines from the
root come down at the left of that, so that nothing crosses a box.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from icetree.picture.model import Box, Kind, Picture

MARGIN: Final = 28.0
HEADER: Final = 46.0
ROW: Final = 22.0
PAD: Final = 12.0
#: Between two boxes side by side, and between rows of boxes (room for an arrow's label).
GAP: Final = 26.0
TIER_GAP: Final = 50.0
#: How far from the left edge a line from the root comes down, and where what stands above starts.
DROP: Final = 16.0
LANE: Final = 34.0
PILL: Final = 30.0
#: How far a group's second and third sheet stick out.
SHEET: Final = 5.0
MARK: Final = 8.0
COLUMN_GAP: Final = 14.0
#: How far arrows between rows of the root reach out, and the label beside them.
ARC: Final = 26.0
ARC_LABEL: Final = 62.0

#: Widths of glyphs in em: a sans font's, rounded up, since the viewer's font is not known.
_NARROW: Final = frozenset("iljftI.,:;'|! ()[]·/")
_WIDE: Final = frozenset("mwMW…")
#: How much wider bold letters are, in the widest of the fonts.
_BOLD: Final = 1.18


def text_width(text: str, font_px: float, *, is_mono: bool = False, is_bold: bool = False) -> float:
    """Return about how wide a text is, rather more than less."""
    if is_mono:
        return len(text) * 0.605 * font_px
    ems = sum(
        0.36 if c in _NARROW else 0.92 if c in _WIDE else 0.72 if c.isupper() else 0.59
        for c in text
    )
    return ems * font_px * (_BOLD if is_bold else 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Where the parts of a box's rows start; the status ends at the right padding."""

    position: float
    mark: float
    name: float
    partition: float
    note: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A box with its place."""

    box: Box
    columns: Columns
    x: float
    y: float
    width: float
    height: float
    #: Where the line from the root arrives.
    drop_x: float = 0.0

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    def row_y(self, number: int) -> float:
        """Return the middle of a row."""
        return self.y + HEADER + ROW * (number + 0.5) + 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Every box with its place, and the size of the whole."""

    root: Placed
    #: All other boxes, by key.
    placed: dict[str, Placed]
    width: float
    height: float


def lay_out(picture: Picture) -> Layout:
    """Give every box its place."""
    columns = [_Column.of(picture, box) for box in _owners(picture)]
    tiers = [
        max((each.tier_height(tier) for each in columns), default=0.0) for tier in range(_TIERS)
    ]
    root_columns = columns_of(picture.root)
    root_width = root_columns.width
    # The root stands over the middle of the page: what sticks out on one side is kept free on both.
    reach = ARC + ARC_LABEL if picture.row_arrows else 0.0
    caption = text_width(picture.caption, 12.5) + 2 * PILL
    below = sum(each.width for each in columns) + GAP * max(0, len(columns) - 1)
    width = max(below, root_width + 2 * reach, caption) + 2 * MARGIN
    y = MARGIN + (PILL + 26 if picture.caption else 0.0)
    root = Placed(
        box=picture.root,
        columns=root_columns,
        x=(width - root_width) / 2,
        y=y,
        width=root_width,
        height=_height(picture.root),
    )
    tops = []
    y = root.bottom + TIER_GAP
    for height in tiers:
        tops.append(y)
        y += height + TIER_GAP if height else 0.0
    placed: dict[str, Placed] = {}
    x = (width - below) / 2
    for each in columns:
        placed |= {one.box.key: one for one in each.place(x, tops, tiers)}
        x += each.width + GAP
    bottom = max((one.bottom for one in placed.values()), default=root.bottom)
    return Layout(root=root, placed=placed, width=width, height=bottom + MARGIN + 2 * SHEET)


def columns_of(box: Box, *, least: float = 0.0) -> Columns:
    """Return where the parts of a box's rows start, and how wide the box must be for them."""
    positions = max(
        (len(str(row.position)) for row in box.rows if row.position is not None), default=0
    )
    mark = PAD + (positions * 6.9 + 10 if positions else 0.0)
    name = mark + (MARK + 8 if any(row.content is not None for row in box.rows) else 0.0)
    at = [name]
    for texts, font, is_mono in (
        ([row.name for row in box.rows], 12.0, True),
        ([row.partition for row in box.rows], 11.0, False),
        ([row.note for row in box.rows], 11.0, False),
    ):
        widest = max((text_width(text, font, is_mono=is_mono) for text in texts), default=0.0)
        at.append(at[-1] + (widest + COLUMN_GAP if widest else 0.0))
    status = max((text_width(row.word, 10.0, is_bold=True) for row in box.rows), default=0.0)
    heading = (
        max(text_width(box.title, 13.5, is_bold=True), text_width(box.facts, 11.0)) + 2 * PAD + 6
    )
    more = max((text_width(line, 11.0) for line in box.more), default=0.0) + name + PAD
    width = max(at[3] + status + PAD, heading, more, least)
    return Columns(
        position=mark - 8, mark=mark, name=name, partition=at[1], note=at[2], width=width
    )


def _height(box: Box) -> float:
    return HEADER + ROW * (len(box.rows) + len(box.more)) + (8.0 if box.rows or box.more else 0.0)


# --- columns -------------------------------------------------------------------------------

#: Manifest DVs of delete manifests; delete manifests and manifest DVs of data manifests; data.
_TIERS: Final = 3
_DATA_TIER: Final = 2
_DELETE_TIER: Final = 1


def _owners(picture: Picture) -> list[Box]:
    """Return the boxes that have a column: all leaves but those that stand above another."""
    above = {
        arrow.source
        for arrow in picture.arrows
        if any(box.key == arrow.source for box in picture.leaves)
    }
    return [box for box in picture.leaves if box.key not in above]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A box and what stands above it, side by side, each of them a column again."""

    box: Box
    tier: int
    columns: Columns
    above: Sequence[_Column]
    width: float

    @classmethod
    def of(cls, picture: Picture, box: Box) -> _Column:
        boxes = {each.key: each for each in picture.boxes()}
        above = [cls.of(picture, boxes[key]) for key in picture.onto(box.key)]
        label = max(
            (text_width(arrow.label, 11.0) for arrow in picture.arrows if arrow.source == box.key),
            default=0.0,
        )
        tier = _DELETE_TIER if box.kind is Kind.DELETE_MANIFEST else _DATA_TIER
        if box.kind is Kind.MANIFEST_DV:
            target = next(arrow.target for arrow in picture.arrows if arrow.source == box.key)
            tier = 0 if boxes[target].kind is Kind.DELETE_MANIFEST else _DELETE_TIER
        spread = LANE + sum(each.width for each in above) + GAP * (len(above) - 1) if above else 0.0
        columns = columns_of(box, least=max(spread, label))
        sheets = 2 * SHEET if box.is_group else 0.0
        return cls(box=box, tier=tier, columns=columns, above=above, width=columns.width + sheets)

    def tier_height(self, tier: int) -> float:
        own = _height(self.box) if self.tier == tier else 0.0
        return max([own, *(each.tier_height(tier) for each in self.above)])

    def place(self, x: float, tops: Sequence[float], tiers: Sequence[float]) -> Iterable[Placed]:
        """Yield the boxes of the column; those above stand at the foot of their tier."""
        height = _height(self.box)
        slack = 0.0 if self.tier == _DATA_TIER else tiers[self.tier] - height
        yield Placed(
            box=self.box,
            columns=self.columns,
            x=x,
            y=tops[self.tier] + slack,
            width=self.columns.width,
            height=height,
            drop_x=x + (DROP if self.above else self.columns.width / 2),
        )
        at = x + LANE
        for each in self.above:
            yield from each.place(at, tops, tiers)
            at += each.width + GAP
