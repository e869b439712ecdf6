"""Drawings of trees in the documentation say what icetree draws, however that looks."""

from __future__ import annotations

import re

import pytest

from docs.make.figures import FIGURES, trees
from docs.make.parts import DOCS

DRAWN = trees()


def said(drawing: str) -> list[str]:
    """Return the texts of a drawing; how many bytes a leaf has is the encoder's business."""
    texts = re.findall(r">([^<>]+)</text>", drawing)
    return sorted(re.sub(r" · [\d.,]+ k?B$", "", text) for text in texts)


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawing_says_what_icetree_draws_now(name: str) -> None:
    kept = (FIGURES / f"tree-{name}.svg").read_text()
    assert said(kept) == said(DRAWN[name]), "python -m docs.make.figures"


def test_every_drawing_is_on_a_page() -> None:
    text = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    shown = set(re.findall(r"figures/([\w-]+)\.svg", text))
    assert {path.stem for path in FIGURES.glob("*.svg")} == shown
