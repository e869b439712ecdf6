"""The explorer in a browser: whether there is a page to look at and one to look with, and what it shows."""

from __future__ import annotations

import json
import os
from importlib.resources import files

import pytest

from benchmarks.chromium import NotThere, Page, program

_MUST = bool(os.environ.get("CI"))


def is_built() -> bool:
    """Tell whether the page was built."""
    return (files("icetree.explore") / "page" / "explorer.js").is_file()


def _has_browser() -> bool:
    try:
        program()
    except NotThere:
        return False
    return True


built = pytest.mark.skipif(not _MUST and not is_built(), reason="`make page` builds the page")
seen = pytest.mark.skipif(
    not _MUST and not (is_built() and _has_browser()), reason="no page, or no Chromium"
)


def shown(page: Page, view: str, at: str) -> None:
    """Wait until a view of a snapshot is shown."""
    page.until(f"document.querySelector('#stage').dataset.shown === {json.dumps(f'{view} {at}')}")


def text(page: Page, selector: str) -> str:
    """Return the text of an element."""
    found: str = page.run(f"document.querySelector({json.dumps(selector)}).textContent")
    return found
