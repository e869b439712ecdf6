"""The menu of the documentation's site."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import strictyaml

_FILE = Path(__file__).parents[1] / "mkdocs.yml"
CONFIG = strictyaml.dirty_load(_FILE.read_text(), allow_flow_style=True).data
MENU = CONFIG["nav"]


def in_nav(nav: object) -> Iterator[str]:
    """Yield the pages that a menu names, in its order."""
    if isinstance(nav, str):
        yield nav
    elif isinstance(nav, list):
        for each in nav:
            yield from in_nav(each)
    elif isinstance(nav, dict):
        for each in nav.values():
            yield from in_nav(each)
