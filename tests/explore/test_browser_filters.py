"""Filters in the explorer, in a real browser: what falls away is what `explain` and the plan say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from benchmarks import plan_tables
from benchmarks.chromium import Chromium, Page
from icetree.explore import film
from icetree.explore.views import look
from icetree.picture.words import size as size_words
from icetree.serve.access.onlookers import Onlookers
from icetree.serve.routes import EXPLORER
from icetree.serve.server import Server
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import usually
from tests.explore.browsing import seen, shown, text
from tests.explore.tables import leafy, live, open_lake
from tests.serve.listening import listening

pytestmark = seen


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("browser")) as lake:
        lake.create_namespace("db")
        live(lake)
        yield lake


@pytest.fixture(scope="module")
def uri(lake: Lake) -> Iterator[str]:
    with listening(Server(lake, Onlookers(), routes=EXPLORER)) as server:
        yield f"http://127.0.0.1:{server.port}/ui"


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.table("db.t")


def test_the_filter_box_shows_the_numbers_of_explain(
    browser: Chromium, uri: str, table: Table
) -> None:
    where = "id < 100 and country = 'DE'"
    page = browser.page(f"{uri}#table=db.t&view=scale&by=id", still=True)
    page.until("document.querySelector('.bar')")
    page.press("/")
    page.type(where)
    page.press("Enter")
    page.until("document.querySelector('[data-way=files]')")
    explained, told = table.explain(where), look(table, "pruned", {"where": where})
    assert text(page, "#left pre") == explained.text()
    ways = {"files": "planned", "v3": "by_partitions", "all": "full"}
    for way, name in ways.items():
        at = f"[data-way={way}] [data-leaves]"
        leaves = page.run(f"document.querySelector('{at}').dataset.leaves")
        assert int(leaves) == told[name]["leaves"]
        looked = page.run(f"document.querySelector('{at}').dataset.looked")
        assert int(looked) == told[name]["looked_through"]
        width = page.run(f"document.querySelector('[data-way={way}] .looked').style.width")
        share = 100 * told[name]["looked_through"] / told["full"]["files"]
        assert float(width.rstrip("%")) == pytest.approx(share, abs=0.01)
    plan = table.scan(where).plan()
    files = page.run("document.querySelector('[data-way=files] [data-files]').dataset.files")
    assert int(files) == plan.metrics.data_files
    parts = page.run("[...document.querySelectorAll('.parts li')].map((each) => each.textContent)")
    assert parts[0].startswith("id < 100 rules out")
    assert parts[1] == "country = 'DE' rules out nothing"
    page.until("document.querySelector('.bar.skipped')")
    page.run("document.querySelector('#where').value = 'id <'")
    page.run("document.querySelector('form.filter').requestSubmit()")
    assert page.until("document.querySelector('#left .wrong')?.textContent")
    # By the network, not by the console: what a browser writes there of a refusal comes when it likes.
    assert page.refused() == [400]
    console = "Failed to load resource: the server responded with a status of 400 (Bad Request)"
    assert [each for each in page.troubles() if each != console] == []


def test_files_of_the_root_fall_away_by_a_filter_as_leaves_do(
    browser: Chromium, uri: str, table: Table
) -> None:
    where = "id < 620"
    told = look(table, "pruned", {"where": where})
    page = browser.page(f"{uri}#table=db.t&where={quote(where)}", still=True)
    page.until("document.querySelector('.cell.skipped')")
    cells = page.run("document.querySelectorAll('.cell.skipped').length")
    assert 0 < cells == len(told["cells"]) < page.run("document.querySelectorAll('.cell').length")
    leaves = page.run("document.querySelectorAll('.leaf.skipped').length")
    assert leaves == len([each for each in told["leaves"].values() if not each["kept"]])
    assert "skipped by id < 620" in text(page, ".cell.skipped title")


def test_leaves_that_share_a_card_fall_away_by_a_filter(
    browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(film, "_LEAVES", 3)
    where = "id < 25"
    with (
        open_lake(tmp_path) as lake,
        listening(Server(lake, Onlookers(), routes=EXPLORER)) as server,
    ):
        lake.create_namespace("db")
        leafy(lake, "db.leafy")
        at = f"http://127.0.0.1:{server.port}/ui#table=db.leafy&where={quote(where)}"
        page = browser.page(at, still=True)
        page.until("document.querySelector('.leaf.skipped')")
        words = (
            "[...document.querySelectorAll('.leaf.group title')].map((each) => each.textContent)"
        )
        faded = (
            "[...document.querySelectorAll('.leaf.group')].map((each) => each.matches('.skipped'))"
        )
        assert page.run(faded) == [False, True]
        kept, gone = page.run(words)
        assert kept.endswith("the filter leaves 3 of them")
        assert gone.endswith("the filter leaves 0 of them")
        assert page.troubles() == []


@pytest.mark.parametrize("count", usually([100_000, 1_000_000], 100_000))
def test_a_table_of_very_many_files_is_shown_and_filtered(
    browser: Chromium, tmp_path: Path, count: int
) -> None:
    plan_tables.build(tmp_path, count)
    with (
        plan_tables.open_lake(tmp_path) as lake,
        listening(Server(lake, Onlookers(), routes=EXPLORER)) as server,
    ):
        table = lake.table(f"db.t{count}")
        address = f"http://127.0.0.1:{server.port}/ui#table={table.name}"
        head = str(table.metadata.current_snapshot_id)
        page = browser.page(address, still=True, width=700, height=600)
        shown(page, "film", head)
        frame = look(table, "film", {"limit": "1"})[-1]
        assert sum(each["files"] for each in frame["leaves"]) == count
        every_card_says_what_it_holds(page, frame)
        stays_in_sight(page, ".legend")

        where = "id < 5000"
        page.press("2")
        shown(page, "scale", head)
        page.run("document.querySelector('#by').value = 'column_5'")
        page.run("document.querySelector('#by').dispatchEvent(new Event('change'))")
        page.until("location.hash.includes('by=column_5') && document.querySelector('.bar')")
        stays_in_sight(page, ".legend")
        page.press("/")
        page.type(where)
        page.press("Enter")
        page.until("document.querySelector('.bar.skipped')")
        told, plan = look(table, "pruned", {"where": where}), table.scan(where).plan()
        assert told["planned"]["files"] == plan.metrics.data_files
        for way, name in {"files": "planned", "v3": "by_partitions", "all": "full"}.items():
            found = page.run(
                f"document.querySelector('[data-way={way}] [data-looked]').dataset.looked"
            )
            assert int(found) == told[name]["looked_through"]
        assert told["planned"]["looked_through"] < told["by_partitions"]["looked_through"] == count
        assert page.troubles() == []


def every_card_says_what_it_holds(page: Page, frame: dict[str, Any]) -> None:
    """Check that no card is without its range, its files and its bytes, in full, and a name."""
    cards = page.run(
        "[...document.querySelectorAll('.leaf:not(.going)')].map((each) => ({"
        " facts: [...each.querySelectorAll('.facts')].map((one) => one.textContent).join(' · '),"
        " range: each.querySelector('.range').textContent, name: each.querySelector('.name').textContent,"
        " inside: [...each.querySelectorAll('text')].every((one) =>"
        "  one.getBBox().x + one.getBBox().width <= each.querySelector('.box').getBBox().width)}))"
    )
    assert len(cards) == len(frame["leaves"])
    for card, leaf in zip(cards, frame["leaves"], strict=True):
        assert (
            card["facts"] == f"{leaf['files']:,} files · {size_words(leaf['file_size_in_bytes'])}"
        )
        assert card["range"]
        assert card["name"]
        assert card["inside"]


def stays_in_sight(page: Page, selector: str) -> None:
    """Check that a part of the stage is still seen when all of that is scrolled through."""
    page.run("document.querySelector('#stage').scrollTop = 1e6")
    top, stage = (
        page.run(f"document.querySelector({json.dumps(each)}).getBoundingClientRect().top")
        for each in (selector, "#stage")
    )
    assert stage <= top < stage + 80
    page.run("document.querySelector('#stage').scrollTop = 0")
