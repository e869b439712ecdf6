"""Pages of the documentation name what there is: every page, every property, no file that is gone."""

from __future__ import annotations

import re
from pathlib import Path

from icetree.spec.properties.names import is_of_others

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
#: The README, and then the pages in the order in which it names them.
PAGES = [
    README,
    *(
        ROOT / name
        for name in re.findall(r"^\| \[(docs/[\w-]+\.md)\]", README.read_text(), re.MULTILINE)
    ),
]


def test_the_readme_names_every_page() -> None:
    assert sorted(PAGES[1:]) == sorted((ROOT / "docs").glob("*.md"))


def test_every_property_that_the_code_knows_is_documented() -> None:
    rooms = "write|read|commit|schema|io|s3|catalog|history|gc|export|encryption"
    named = re.compile(rf'"((?:{rooms})\.[a-z0-9{{}}.-]+[a-z0-9])\.?"')
    code = "".join(file.read_text() for file in sorted((ROOT / "icetree").rglob("*.py")))
    known = {
        name.replace("{}", verb)
        for name in named.findall(code)
        for verb in ("delete", "update", "merge")
    }
    pages = ("docs/properties.md", "docs/connecting.md", "docs/server.md")
    page = "".join((ROOT / each).read_text() for each in pages)
    assert len(known) > 40
    assert {"history.expire.max-ref-age-ms", "gc.enabled", "export.on-commit"} <= known
    assert "encryption.key-id" in known
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
