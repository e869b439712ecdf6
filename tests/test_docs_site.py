"""The site has every page, every link leads somewhere, and nothing is loaded from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

from docs.make.site import file_of, texts, within_site
from tests.site_menu import CONFIG, MENU, in_nav

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def pages() -> dict[str, str]:
    """Return the text of every page of the site, by its place in it."""
    return texts() | {str(each.relative_to(DOCS)): each.read_text() for each in DOCS.rglob("*.md")}


def headings(text: str) -> set[str]:
    """Return the anchors of a page, as the site makes them of its headings."""
    titles = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", title).strip().lower() for title in titles)
    return {re.sub(r"[-\s]+", "-", title) for title in plain}


def test_every_page_is_in_the_menu_once() -> None:
    named = list(in_nav(MENU))
    assert len(named) == len(set(named))
    records = {page for page in pages() if page.startswith("decisions/0")}
    assert set(named) == set(pages()) - records


def test_every_link_leads_to_a_page_and_a_heading_that_are_there() -> None:
    known = pages()
    lost = []
    for page, text in known.items():
        shown = within_site(text, file_of(page), page)
        for target in LINK.findall(FENCE.sub("", shown)):
            path, _, anchor = target.partition("#")
            if "://" in path:
                continue
            place = (DOCS / page).parent / path if path else DOCS / page
            there = str(place.resolve().relative_to(DOCS))
            is_there = there in known or place.exists()
            if not is_there or (anchor and anchor not in headings(known[there])):
                lost.append(f"{page}: {target}")
    assert lost == []


def test_the_site_loads_nothing_from_other_hosts() -> None:
    assert CONFIG["theme"]["font"] == "false"
    text = (ROOT / "mkdocs.yml").read_text()
    assert "://" not in text
    # Without a script of ours, the plugin would have one loaded.
    assert any("iframe-worker" in each for each in CONFIG["extra"]["polyfills"])
    assert not [page for page, each in pages().items() if "```mermaid" in each]
