"""Every Python snippet of the documentation runs, top to bottom, file by file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
WITH_SNIPPETS = [page for page in PAGES if SNIPPET.search(page.read_text())]


def test_the_readme_has_snippets() -> None:
    assert ROOT / "README.md" in WITH_SNIPPETS


@pytest.mark.parametrize("page", WITH_SNIPPETS, ids=lambda page: page.name)
def test_the_snippets_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in SNIPPET.findall(page.read_text()):
        exec(compile(snippet, str(page), "exec"), names)
