"""Drawings of trees in the documentation are those that icetree draws."""

from __future__ import annotations

import re

import pytest

from docs.make.figures import FIGURES, trees
from docs.make.parts import DOCS

DRAWN = trees()


@pytest.mark.parametrize("name", DRAWN)
def test_a_drawing_is_as_icetree_draws_it_now(name: str) -> None:
    kept = (FIGURES / f"tree-{name}.svg").read_text()
    assert kept == DRAWN[name], "python -m docs.make.figures"


def test_every_drawing_is_on_a_page() -> None:
    text = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    shown = set(re.findall(r"figures/([\w-]+)\.svg", text))
    assert {path.stem for path in FIGURES.glob("*.svg")} == shown
