"""Every Python snippet of the documentation runs, top to bottom, file by file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from icetree.spec.table_properties import is_of_others

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


def test_every_property_that_the_code_knows_is_documented() -> None:
    named = re.compile(r'"((?:write|read|commit|schema|io|s3|catalog)\.[a-z0-9{}.-]+[a-z0-9])\.?"')
    code = "".join(file.read_text() for file in sorted((ROOT / "icetree").rglob("*.py")))
    known = {
        name.replace("{}", verb)
        for name in named.findall(code)
        for verb in ("delete", "update", "merge")
    }
    pages = ("docs/properties.md", "docs/connecting.md")
    page = "".join((ROOT / each).read_text() for each in pages)
    assert len(known) > 30
    ours = {name for name in known if not is_of_others(name)}
    assert sorted(name for name in ours if f"`{name}" not in page) == []


def test_every_file_of_the_package_that_a_page_names_is_there() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    rooms = {folder.name for folder in (ROOT / "icetree").iterdir() if folder.is_dir()}
    named = {
        (page.name, name)
        for page in pages
        for name in re.findall(r"`((?:\w+/)+\w+(?:\.py)?)`", page.read_text())
        if name.partition("/")[0] in rooms
    }
    places = {str(each.relative_to(ROOT / "icetree")) for each in (ROOT / "icetree").rglob("*")}
    assert len(named) > 20
    gone = [each for each in named if not {each[1], f"{each[1]}.py"} & places]
    assert sorted(gone) == []
