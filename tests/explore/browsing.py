"""Whether there is a page to look at, and a browser to look with; where they must be, they are."""

from __future__ import annotations

import os
from importlib.resources import files

import pytest

from benchmarks.chromium import NotThere, program

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
