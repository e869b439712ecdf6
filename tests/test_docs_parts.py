"""What pages say of the code is what the code says."""

from __future__ import annotations

import pytest

from docs.make.format_parts import MEANING
from docs.make.parts import DOCS, PARTS, named_in, pages, written
from icetree.spec.fields import ENTRY

PAGES = {str(page.relative_to(DOCS)): page.read_text() for page in pages()}


@pytest.mark.parametrize("page", [name for name, text in PAGES.items() if named_in(text)])
def test_a_page_agrees_with_the_code(page: str) -> None:
    assert written(PAGES[page]) == PAGES[page], "python -m docs.make.parts"


def test_every_part_is_on_a_page_once() -> None:
    named = [name for text in PAGES.values() for name in named_in(text)]
    assert sorted(named) == sorted(PARTS)


def test_every_field_of_an_entry_is_explained() -> None:
    assert [each.name for each in ENTRY] == list(MEANING)


def test_the_page_of_ids_has_every_id_of_the_code() -> None:
    page = PAGES["format/manifests.md"]
    for column in ENTRY:
        assert f"| {column.id} |" in page
        if column.group is not None:
            assert f"| {column.group.id} | `{column.group.name}` |" in page
