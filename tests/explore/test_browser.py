"""The explorer in a real browser: what it shows is what the table says, and nothing else runs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from benchmarks.chromium import Chromium, Page
from docs.make.figures import FIGURES
from icetree.explore.page import one_file
from icetree.explore.views import look
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.access.onlookers import Onlookers
from icetree.serve.routes import EXPLORER
from icetree.serve.server import Server
from icetree.spec.entry.entry import Entry
from icetree.spec.entry.stats import FieldStats
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.explore.browsing import seen, shown, text
from tests.explore.tables import live, open_lake
from tests.serve.listening import listening

pytestmark = seen

#: Were any of it markup, or a script, the page would be another one.
MARK = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
NAME = MARK.replace("/", "").replace(".", "")
ESCAPES = (
    "\x1b]0;owned\x07\u202eevil\u2066 ' \" ${document.title} {{7*7}} </title> javascript:alert(1)"
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("browser")) as lake:
        lake.create_namespace("db")
        live(lake)
        lake.create_namespace(NAME)
        hostile(lake)
        yield lake


@pytest.fixture(scope="module")
def uri(lake: Lake) -> Iterator[str]:
    with listening(Server(lake, Onlookers(), routes=EXPLORER)) as server:
        yield f"http://127.0.0.1:{server.port}/ui"


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.table("db.t")


def hostile(lake: Lake) -> Table:
    """Make a table of which every name and value would run, were it let."""
    columns = pa.schema([(NAME, pa.string()), ("n", pa.int64())])
    how = {"write.root.max-data-entries": "2", MARK: MARK}
    table = lake.create_table(f"{NAME}.{NAME}", columns, partition_by=[NAME], properties=how)
    for n in range(4):
        rows = pa.table([[MARK, ESCAPES], [n, n]], schema=columns)
        table.append(rows, summary={MARK: ESCAPES, "operation-note": MARK})
    place = f"data/{NAME}{ESCAPES}.parquet".replace("//", "")
    known = {1: FieldStats(lower=MARK, upper=MARK, values=1, nulls=0)}
    table.delete("n = 1")
    table.append_files([Entry(location=place, record_count=1, file_size_in_bytes=9, stats=known)])
    table.create_branch(MARK)
    table.create_tag(ESCAPES)
    return table


def counts(page: Page) -> dict[str, Any]:
    """Return what the film shows, counted in the page."""
    found: dict[str, Any] = page.run(
        "({cells: document.querySelectorAll('.cell:not([opacity=\"0\"])').length, leaves: document.querySelectorAll('.leaf:not(.going)').length,"
        " did: [...document.querySelectorAll('.did span')].map((each) => each.textContent)})"
    )
    return found


def test_the_film_goes_from_the_first_snapshot_to_the_last(
    browser: Chromium, uri: str, table: Table
) -> None:
    frames = look(table, "film", {})
    page = browser.page(f"{uri}#table=db.t", still=True)
    shown(page, "film", frames[-1]["snapshot_id"])
    page.press("Home")
    for frame in frames:
        shown(page, "film", frame["snapshot_id"])
        meant = {
            "cells": len(frame["root"]["cells"]),
            "leaves": len(frame["leaves"]),
            "did": frame["did"],
        }
        # What goes and what comes are drawn one after the other.
        for _ in range(300):
            if counts(page) == meant:
                break
            time.sleep(0.01)
        assert counts(page) == meant
        said = text(page, "#status")
        assert all(each in said for each in frame["did"])
        page.press("ArrowRight")
    assert page.troubles() == []


def test_a_film_plays_by_itself_and_stops_at_the_end(
    browser: Chromium, uri: str, table: Table
) -> None:
    line = look(table, "history", {})["line"]
    page = browser.page(f"{uri}#table=db.t&at={line[-3]}")
    shown(page, "film", line[-3])
    page.run("document.querySelector('.play').click()")
    shown(page, "film", line[-1])
    page.until("document.querySelector('.play').getAttribute('aria-label') === 'Play'")
    page.until("!document.querySelector('.leaf.going')")
    assert counts(page)["leaves"] == len(look(table, "film", {})[-1]["leaves"])
    assert page.troubles() == []


def test_a_snapshot_of_another_line_is_gone_to_on_its_branch(
    browser: Chromium, uri: str, table: Table
) -> None:
    staging = str(table.metadata.refs["staging"].snapshot_id)
    page = browser.page(f"{uri}#table=db.t&view=branches", still=True)
    page.until("document.querySelector('.ref')")
    page.run(
        "[...document.querySelectorAll('.snapshot')].find((each) => each.textContent.includes('staging'))"
        ".dispatchEvent(new MouseEvent('click'))"
    )
    shown(page, "film", staging)
    assert page.run("document.querySelector('[aria-label=Branch]').value") == "staging"
    line = look(table, "history", {"at": "staging"})["line"]
    assert page.run("document.querySelector('input[type=range]').max") == str(len(line) - 1)


def test_a_snapshot_that_no_branch_holds_is_shown_with_those_before_it(
    browser: Chromium, uri: str, lake: Lake
) -> None:
    table = live(lake, "db.left")
    left = str(table.metadata.current_snapshot_id)
    before = look(table, "history", {})["line"]
    table.rollback(int(before[3]))
    page = browser.page(f"{uri}#table=db.left&view=branches", still=True)
    page.until("document.querySelector('.snapshot')")
    # The newest stands on top.
    page.run("document.querySelector('.snapshot').dispatchEvent(new MouseEvent('click'))")
    shown(page, "film", left)
    assert page.run("document.querySelector('input[type=range]').max") == str(len(before) - 1)
    page.press("ArrowLeft")
    shown(page, "film", before[-2])
    assert f"at={before[-2]}" in page.run("location.hash")


def test_the_address_keeps_the_view(browser: Chromium, uri: str, table: Table) -> None:
    line = look(table, "history", {})["line"]
    page = browser.page(f"{uri}#table=db.t", still=True)
    shown(page, "film", line[-1])
    page.press("ArrowLeft")
    page.press("2")
    shown(page, "scale", line[-2])
    page.run(
        "const by = document.querySelector('#by'); by.value = 'id'; by.onchange; by.dispatchEvent(new Event('change'))"
    )
    address = page.until("location.hash.includes('by=id') && location.href")
    again = browser.page(address, still=True)
    shown(again, "scale", line[-2])
    assert again.run("document.querySelector('#by').value") == "id"


@pytest.mark.parametrize("way", ["served", "one file"])
def test_nothing_of_a_table_runs_in_the_page(
    browser: Chromium, uri: str, lake: Lake, tmp_path: Path, way: str
) -> None:
    table = lake.table(f"{NAME}.{NAME}")
    address = f"{uri}#table={quote(str(table.name), safe='')}"
    if way == "one file":
        file = tmp_path / "tree.html"
        file.write_text(one_file(table), encoding="utf-8")
        address = f"{file.as_uri()}#"
    head = str(table.metadata.current_snapshot_id)
    page = browser.page(address, still=True)
    for number, view in enumerate(("film", "scale", "changes", "branches", "health"), 1):
        page.press(str(number))
        shown(page, view, head)
        assert NAME[:20] in page.run("document.body.innerText") or view == "health"
    page.press("1")
    shown(page, "film", head)
    page.run(
        "document.querySelectorAll('.cell, .leaf').forEach((each) => each.dispatchEvent(new MouseEvent('click')))"
    )
    page.until("document.querySelector('#side h2')?.textContent")
    if way == "served":
        page.press("3")
        shown(page, "changes", head)
        page.run("[...document.querySelectorAll('#stage button')].forEach((each) => each.click())")
        page.until("document.querySelector('#stage .rows table, #stage .rows .wrong')")
        page.run("document.querySelector('#where').value = `\"n\" = 1`")
        page.run("document.querySelector('form.filter').requestSubmit()")
        page.until("document.querySelector('#left')?.textContent.length > 9")
    assert "owned" not in page.run("document.title").replace(NAME, "")
    assert page.run("document.querySelectorAll('img, script:not([src]):not([type]), iframe').length") == (way == "one file")  # fmt: skip
    acting = "[\\u0007\\u001b\\u202e\\u2066]"
    assert page.run(f"/{acting}/.test(document.documentElement.outerHTML.replace(document.querySelector('#told').outerHTML, ''))") is False  # fmt: skip
    outside = [each for each in page.asked() if not each.startswith((uri, "file:", "data:"))]
    assert outside == []
    assert [each for each in page.troubles() if "400" not in each] == []


def test_a_page_that_tries_to_run_a_text_is_stopped_by_its_policy(
    browser: Chromium, uri: str, table: Table
) -> None:
    """Even where the page had a fault: markup makes no element, and an inline script does not run."""
    page = browser.page(f"{uri}#table=db.t", still=True)
    shown(page, "film", str(table.metadata.current_snapshot_id))
    assert page.run(
        "(() => { try { document.body.innerHTML = '<b>x</b>'; return 'made' } catch { return 'stopped' } })()"
    ) == "stopped"  # fmt: skip
    assert page.run(
        "fetch('http://127.0.0.1:9/').then(() => 'asked', () => 'stopped')"
    ) == "stopped"  # fmt: skip


def test_a_screen_reader_and_a_keyboard_find_their_way(
    browser: Chromium, uri: str, table: Table
) -> None:
    page = browser.page(f"{uri}#table=db.t", still=True)
    shown(page, "film", str(table.metadata.current_snapshot_id))
    nameless = page.run(
        "[...document.querySelectorAll('button, select, input, [role=button], [role=img]')].filter((each) =>"
        " !(each.textContent.trim() || each.getAttribute('aria-label') || document.querySelector(`label[for='${each.id}']`))).length"
    )
    assert nameless == 0
    assert page.run("document.querySelector('#status').getAttribute('aria-live')") == "polite"
    assert page.run("document.querySelector('input[type=range]').getAttribute('aria-valuetext')")
    for thing in (".leaf", ".cell"):
        page.run(f"document.querySelector('{thing}').focus()")
        page.press("Enter")
        page.until("document.querySelector('#side dl')")
        page.press("Escape")
        page.until("document.querySelector('#side').hidden")


@pytest.mark.parametrize("name", ["append-3", "row-delta-replaced", "compaction-before"])
def test_no_text_of_a_drawing_leaves_its_box(browser: Chromium, name: str) -> None:
    """In the widest of the fonts that a viewer is likely to have."""
    page = browser.page((FIGURES / f"tree-{name}.svg").as_uri())
    wide = "text:not(.mono){font-family:Verdana,'DejaVu Sans'}"
    page.run(f"document.querySelector('style').append({json.dumps(wide)})")
    out = page.run(
        "(() => { const boxes = [...document.querySelectorAll('rect.body')].map((each) => each.getBBox());"
        " return [...document.querySelectorAll('text.title, text.status, text.muted, text.name')].filter((each) => {"
        "  const at = each.getBBox(); return !boxes.some((box) => at.x >= box.x && at.x + at.width <= box.x + box.width"
        "   && at.y >= box.y && at.y + at.height <= box.y + box.height + 1); }).map((each) => each.textContent) })()"
    )
    assert out == []


def test_a_server_that_asks_who_somebody_is_is_told_by_the_page(
    browser: Chromium, lake: Lake
) -> None:
    file = f"clients:\n  ann:\n    secret: {digest_of('of ann')}\n    read: db\n"
    access = Access(grants=grants_in(file, "grants"))
    with listening(Server(lake, access)) as server:
        page = browser.page(f"http://127.0.0.1:{server.port}/ui", still=True)
        page.until("document.querySelector('form.enter')")
        for secret in ("of bob", "of ann"):
            page.run("document.querySelector('#client').value = 'ann'")
            page.run(f"document.querySelector('#secret').value = {json.dumps(secret)}")
            page.run("document.querySelector('form.enter').requestSubmit()")
            if secret == "of bob":
                page.until("document.querySelector('form.enter .wrong').textContent")
        page.until("document.querySelector('.cell, .leaf')")
        names = page.run(
            "[...document.querySelectorAll('header option')].map((each) => each.value)"
        )
        assert "db.t" in names
        assert not [each for each in names if each.startswith(NAME)]
