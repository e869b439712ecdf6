"""The model drawn: SVG, Mermaid, terminal."""

from __future__ import annotations

import io
import re
from collections import Counter
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from icetree.picture.layout import Layout, Placed, lay_out
from icetree.picture.mermaid import to_mermaid
from icetree.picture.model import Box, Kind, Picture, Row
from icetree.picture.svg import to_svg
from icetree.picture.terminal import Drawing
from icetree.picture.tree import picture
from icetree.spec.entry.entry import Content, Status
from tests.golden.drawing import SHAPE
from tests.picture.examples import EXAMPLES
from tests.picture.large import millions_in_leaves

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "a\"b<c>&d#35;'e"


@pytest.fixture(params=EXAMPLES)
def example(request: pytest.FixtureRequest) -> Picture:
    snapshot = EXAMPLES[request.param]()
    return picture(snapshot.root, snapshot.reader, SHAPE, caption="Snapshot 3")


def names(drawn: Picture) -> Counter[str]:
    return Counter(row.name for box in drawn.boxes() for row in box.rows)


def hostile() -> Picture:
    row = Row(name=HOSTILE, status=Status.ADDED, content=Content.DATA, title=HOSTILE, note=HOSTILE)
    return Picture(
        caption=HOSTILE, root=Box(key="root", kind=Kind.ROOT, name="Root Manifest", rows=(row,))
    )


# --- SVG -----------------------------------------------------------------------------------


def svg_texts(svg: str, css: str) -> list[str]:
    found = ET.fromstring(svg).iter(f"{SVG}text")
    return [each.text or "" for each in found if css in each.get("class", "").split()]


def test_svg_shows_each_entry_once(example: Picture) -> None:
    assert Counter(svg_texts(to_svg(example), "name")) == names(example)


def test_svg_says_the_status_of_each_entry(example: Picture) -> None:
    statuses = Counter(row.word for box in example.boxes() for row in box.rows)
    assert Counter(svg_texts(to_svg(example), "status")) == statuses


def test_nothing_of_an_old_leaf_reads_as_what_this_snapshot_did() -> None:
    snapshot = EXAMPLES["complex row delta"]()
    drawn = picture(snapshot.root, snapshot.reader, SHAPE)
    console = Console(width=120, file=io.StringIO(), color_system=None)
    console.print(Drawing(drawn))
    assert isinstance(console.file, io.StringIO)
    # Three entries of the root, and what is in the two leaves of this snapshot.
    for text in (to_svg(drawn), to_mermaid(drawn), console.file.getvalue()):
        shown = re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL)
        assert len(re.findall(r"(?<!was )ADDED", shown)) >= 5
        assert text.count("was ADDED") == 3
    assert Counter(svg_texts(to_svg(drawn), "ADDED"))["was ADDED"] == 0


def test_svg_labels_every_arrow_between_boxes(example: Picture) -> None:
    labels = svg_texts(to_svg(example), "mid")
    assert set(labels) == {"Snapshot 3", *(arrow.label for arrow in example.arrows)}


def test_svg_strikes_out_what_is_gone(example: Picture) -> None:
    gone = sum(row.is_gone for box in example.boxes() for row in box.rows)
    assert to_svg(example).count('class="strike"') == gone


def test_svg_keeps_hostile_names_as_text() -> None:
    svg = to_svg(hostile())
    assert svg_texts(svg, "name") == [HOSTILE]
    assert [each.text for each in ET.fromstring(svg).iter(f"{SVG}title")] == [HOSTILE]


def test_svg_of_three_million_entries_is_small() -> None:
    root, reader, shape = millions_in_leaves()
    svg = to_svg(picture(root, reader, shape))
    assert ET.fromstring(svg).tag == f"{SVG}svg"
    assert len(svg.encode()) < 200_000


def test_svg_follows_the_viewer_unless_told() -> None:
    drawn = hostile()
    assert "prefers-color-scheme:dark" in to_svg(drawn)
    assert "prefers-color-scheme" not in to_svg(drawn, theme="dark")
    assert to_svg(drawn, theme="dark") != to_svg(drawn, theme="light")


# --- layout --------------------------------------------------------------------------------


def boxes_of(layout: Layout) -> list[Placed]:
    return [layout.root, *layout.placed.values()]


def test_no_two_boxes_overlap(example: Picture) -> None:
    for one, other in combinations(boxes_of(lay_out(example)), 2):
        beside = one.right <= other.x or other.right <= one.x
        below = one.bottom <= other.y or other.bottom <= one.y
        assert beside or below, (one.box.title, other.box.title)


def test_every_box_is_on_the_page(example: Picture) -> None:
    layout = lay_out(example)
    for one in boxes_of(layout):
        assert one.x > 0
        assert one.right < layout.width
        assert one.y > 0
        assert one.bottom < layout.height


def test_a_line_from_the_root_crosses_no_box(example: Picture) -> None:
    layout = lay_out(example)
    for end in layout.placed.values():
        for other in layout.placed.values():
            if other is not end:
                in_the_way = other.x <= end.drop_x <= other.right and other.y < end.y
                assert not in_the_way, (end.box.title, other.box.title)


def test_what_applies_to_a_box_stands_right_above_it(example: Picture) -> None:
    layout = lay_out(example)
    for arrow in example.arrows:
        source, target = layout.placed[arrow.source], layout.placed[arrow.target]
        assert source.bottom < target.y
        assert target.x < source.middle < target.right


# --- Mermaid -------------------------------------------------------------------------------


def test_mermaid_declares_every_box_and_draws_every_arrow(example: Picture) -> None:
    lines = to_mermaid(example).splitlines()
    assert lines[0] == "flowchart TD"
    declared = [found[1] for line in lines if (found := re.match(r'  (\w+)\["<table>.*"\]$', line))]
    assert declared == [box.key for box in example.boxes()]
    solid = [line for line in lines if " --> " in line]
    assert len(solid) == len(declared)
    dotted = [line for line in lines if " -.->|" in line]
    assert len(dotted) == len(example.arrows)


def test_mermaid_names_only_boxes_that_exist(example: Picture) -> None:
    keys = {box.key for box in example.boxes()} | {"snapshot"}
    for line in to_mermaid(example).splitlines():
        if found := re.fullmatch(r"  (\w+) -.*[->|] (\w+)", line):
            assert set(found.groups()) <= keys


def test_mermaid_keeps_hostile_names_inside_their_label() -> None:
    (label,) = re.findall(r'root\["(.*)"\]', to_mermaid(hostile()))
    assert '"' not in label
    assert "<c>" not in label
    assert "&lt;c&gt;&amp;d#35;35;" in label


# --- terminal ------------------------------------------------------------------------------


def printed(drawn: Picture, encoding: str = "utf-8") -> str:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    Console(file=file, width=160, color_system=None).print(Drawing(drawn))
    file.seek(0)
    return file.read()


def test_the_terminal_shows_every_entry(example: Picture) -> None:
    words = Counter(re.findall(r"[\w+…-]+", printed(example)))
    for box in (example.root, *example.leaves):
        for row in box.rows:
            assert words[row.name.split()[0]] >= 1


def test_the_terminal_shows_every_arrow(example: Picture) -> None:
    text = printed(example)
    for arrow in example.arrows:
        assert f"..> {arrow.label}" in text


def test_without_unicode_the_lines_still_meet() -> None:
    root, reader, shape = millions_in_leaves()
    lines = printed(picture(root, reader, shape), "ascii").splitlines()
    top, *rows = lines[: next(i for i, line in enumerate(lines) if i and line.startswith("+-")) + 1]
    assert {len(row.rstrip()) for row in rows} == {len(top.rstrip())}
    assert "... 47 more data manifests" in "\n".join(rows)
