"""Print what the code knows into the pages: `python -m docs.make.parts`.

A part of a page stands between `<!-- made: name -->` and `<!-- end -->`. A test holds every part
against the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from docs.make import entry_parts, format_parts, reference_parts, scale_parts

DOCS: Final = Path(__file__).parents[1]
PARTS: Final[dict[str, Callable[[], str]]] = (
    entry_parts.PARTS | format_parts.PARTS | reference_parts.PARTS | scale_parts.PARTS
)
_PART: Final = re.compile(r"<!-- made: ([\w -]+) -->\n.*?<!-- end -->", re.DOTALL)


def written(text: str) -> str:
    """Return the text of a page with every part as the code has it now."""
    return _PART.sub(
        lambda found: f"<!-- made: {found[1]} -->\n\n{PARTS[found[1]]()}\n\n<!-- end -->", text
    )


def named_in(text: str) -> list[str]:
    """Return the names of the parts that a page has."""
    return _PART.findall(text)


def pages() -> Iterable[Path]:
    """Return every page."""
    return sorted(DOCS.rglob("*.md"))


def main() -> None:
    """Write the parts of all pages anew."""
    for page in pages():
        before = page.read_text("utf-8")
        if (after := written(before)) != before:
            page.write_text(after, "utf-8")
            print(f"{page.relative_to(DOCS)} is new")


if __name__ == "__main__":
    main()
