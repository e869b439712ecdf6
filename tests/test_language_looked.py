"""One word for one thing in the explorer: its views, what they are asked by, and what they answer with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from icetree.errors import InvalidInput, NotFound
from icetree.explore import film
from icetree.explore.views import VIEWS, asked, look
from icetree.table.table import Table
from tests.explore.tables import leafy, live, open_lake
from tests.test_language import SHARED, words
from tests.test_language_told import OF_ICEBERG, OF_JSON, OPEN, OUR_COLUMNS, texts_of

#: What views are asked by, beside words of all doors.
OF_VIEWS = words("by file_path leaf limit")
#: Words for what is drawn, and is nowhere but on the page.
OF_THE_PAGE = words(
    """
    added_count at axes axis bars by_partitions cells commits depth did first full is_exact is_new is_tree last leaf_bytes line
    looked_through numbers out out_now planned removed removed_count rows_left size_bytes text ticks unplaced
    v3_files v3_left v3_size_bytes words
    """
)
#: What holds an entry with its names on disk, and what an answer names by files.
_ON_DISK = {"entry": {"entries"}, "pruned": {"leaves"}}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Table]]:
    with (
        open_lake(tmp_path_factory.mktemp("looked")) as lake,
        pytest.MonkeyPatch.context() as patch,
    ):
        # Leaves that are many share a card.
        patch.setattr(film, "_LEAVES", 3)
        lake.create_namespace("db")
        yield [live(lake), leafy(lake, "db.leafy")]


def answers(table: Table) -> Iterator[tuple[str, Any]]:
    """Yield each view with answers to what it can be asked."""
    task = table.scan().plan().tasks.slice(0, 1).to_pylist()[0]
    file = {"file_path": task["location"], "leaf": task["leaf"] or ""}
    given = {"where": "id >= 20", "at": "main", "rows": "yes", "by": "id", "limit": "3"}
    for view in VIEWS:
        names = {each.name for each in asked(view)}
        some = {**given, **(file if "file_path" in names else {})}
        yield view, look(table, view, {name: some[name] for name in names & some.keys()})


def keys_of(value: Any, closed: frozenset[str]) -> Iterator[str]:
    """Yield the names in an answer, but not those within what is closed."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in closed:
                yield from keys_of(inner, closed)
    elif isinstance(value, list):
        for each in value:
            yield from keys_of(each, closed)


def names_a_file(text: str, folder: str) -> bool:
    """Tell a location that says where a file is only to who knows where the table is."""
    return not text.startswith("/") and len(text) < 256 and Path(folder, text).is_file()


def keys_told(tables: list[Table]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {view: set() for view in VIEWS}
    for table in tables:
        for view, answer in answers(table):
            found[view] |= set(keys_of(answer, OPEN | _ON_DISK.get(view, set())))
    return found


def test_every_view_is_asked_by_words_that_are_known() -> None:
    said = {each.name for view in VIEWS for each in asked(view)}
    assert said - SHARED - OF_VIEWS == set()
    assert OF_VIEWS - said == set()


def test_a_view_that_reads_is_asked_at_a_point() -> None:
    """Where `optimize` writes is a branch; all else is read."""
    for view in VIEWS:
        names = {each.name for each in asked(view)}
        assert ("branch" if view == "health" else "at") in names, view
        assert not {"at", "branch"} <= names, view


def test_every_answer_has_words_that_are_known(tables: list[Table]) -> None:
    for view, found in keys_told(tables).items():
        assert found, view
        assert found - OF_ICEBERG - OUR_COLUMNS - OF_JSON - OF_THE_PAGE == set(), view


def test_every_location_is_told_in_full(tables: list[Table]) -> None:
    for table in tables:
        for view, answer in answers(table):
            if view == "entry":
                # They are shown as they are on disk.
                del answer["entries"]
            told = {each for each in texts_of(answer) if names_a_file(each, table.location)}
            assert told == set(), view


def test_no_word_of_the_page_is_kept_that_nobody_says(tables: list[Table]) -> None:
    assert OF_THE_PAGE - set().union(*keys_told(tables).values()) == set()
    assert OF_THE_PAGE.isdisjoint(OF_ICEBERG | OUR_COLUMNS | OF_JSON)


def test_a_mistyped_view_or_parameter_is_answered_with_the_right_one(tables: list[Table]) -> None:
    for view in VIEWS:
        with pytest.raises(NotFound, match=f"there is no view '{view}s'; did you mean '{view}'"):
            look(tables[0], f"{view}s", {})
        for each in asked(view):
            with pytest.raises(InvalidInput, match=f"did you mean '{each.name}'"):
                look(tables[0], view, {f"{each.name}s": "1"})
    with pytest.raises(InvalidInput, match=r"is not asked by 'colour'; it takes: at, limit$"):
        look(tables[0], "film", {"colour": "red"})
