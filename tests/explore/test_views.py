"""What views tell is what the command line tells: counted by other means, it is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyroaring import BitMap

from icetree.cli.demo.ledger import Ledger
from icetree.errors import IcetreeError, InvalidInput, NotFound
from icetree.explore import film
from icetree.explore.axis import axes, axis_of, ranges
from icetree.explore.bars import draw
from icetree.explore.views import VIEWS, look
from icetree.spec.entry.entry import Entry, Status, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.table.group import commit_group
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.explore.tables import COLUMNS, leafy, live, open_lake, rows


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("views")) as lake:
        lake.create_namespace("db")
        yield lake


@pytest.fixture(scope="module")
def table(lake: Lake) -> Table:
    return live(lake)


@pytest.mark.parametrize("by", ["at_day", "id", "country", "amount", "at"])
def test_bars_hold_every_live_file_once(table: Table, by: str) -> None:
    told = look(table, "scale", {"by": by})
    files = sum(each["files"] - each["removed"] for each in told["bars"])
    assert files == table.scan().plan().metrics.data_files
    assert all(each["first"] <= each["last"] for each in told["bars"])
    assert told["unplaced"] == 0


def test_a_leaf_to_scale_has_its_own_files(table: Table) -> None:
    leaf = next(each for each in look(table, "film", {})[-1]["leaves"] if each["content"] == 3)
    told = look(table, "scale", {"leaf": leaf["file_path"]})
    assert told["objects"] == leaf["entries"]
    assert sum(each["removed"] for each in told["bars"]) == leaf["removed"]


def test_what_a_filter_leaves_is_what_explain_and_the_plan_say(table: Table) -> None:
    where = "id < 100 and country = 'DE'"
    told, explained = look(table, "pruned", {"where": where}), table.explain(where)
    plan, full = table.scan(where).plan(), table.scan().plan()
    assert told["text"] == explained.text()
    assert told["groups"] == explained.groups.to_pylist()
    assert told["planned"]["files"] == plan.metrics.data_files
    assert told["planned"]["leaves"] == plan.metrics.data_leaves_read
    assert told["planned"]["file_size_in_bytes"] == pc.sum(plan.tasks["file_size_in_bytes"]).as_py()
    assert told["full"]["files"] == full.metrics.data_files
    assert told["full"]["leaves"] == full.metrics.data_leaves_total
    # A condition on no partition leaves all leaves to who knows of partitions alone.
    assert told["by_partitions"]["leaves"] == full.metrics.data_leaves_total
    day = look(table, "pruned", {"where": "at >= '2026-03-07T00:00:00'"})
    assert day["by_partitions"]["leaves"] < day["full"]["leaves"]
    assert told["planned"]["looked_through"] < told["by_partitions"]["looked_through"]
    assert told["by_partitions"]["looked_through"] == full.metrics.data_files
    assert day["by_partitions"]["looked_through"] < full.metrics.data_files


@pytest.mark.parametrize("where", ["id < 620", "id >= 620 and country = 'XX'", "id >= 0"])
def test_a_filter_rules_out_the_files_of_a_root_that_explain_says_it_does(
    table: Table, where: str
) -> None:
    found = look(table, "pruned", {"where": where})["cells"]
    cells = look(table, "film", {})[-1]["root"]["cells"]
    assert {each["file_path"] for each in found} <= {each["file_path"] for each in cells}
    explained = table.explain(where).objects.to_pylist()
    own = [each for each in explained if each["level"] == "root" and "manifest" not in each["kind"]]
    assert len(own) == len([each for each in cells if each["status"] != "DELETED"]) > 0
    meant = [(each["object"], each["by"]) for each in own if not each["kept"]]
    assert sorted((each["file_path"], each["by"]) for each in found) == sorted(meant)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_sums_do_not_follow_from_how_many_objects_are_told(
    table: Table, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"where": "country = 'DE' and id < 330"}
    told = look(table, "pruned", given)
    monkeypatch.setattr("icetree.explore.pruned._OBJECTS", most)
    few = look(table, "pruned", given)
    assert 1 < few["planned"]["leaves"] == told["planned"]["leaves"]
    assert few["planned"] == told["planned"]
    assert len(few["leaves"]) == min(most, len(told["leaves"]))


def test_leaves_that_share_a_card_are_told_apart_under_a_filter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_lake(tmp_path) as lake:
        lake.create_namespace("db")
        table = leafy(lake, "db.leafy")
        told = look(table, "pruned", {"where": "id < 35"})
        assert told["snapshot_id"] == str(table.metadata.current_snapshot_id)
        alone = look(table, "film", {})[-1]["leaves"]
        monkeypatch.setattr(film, "_LEAVES", 3)
        cards = look(table, "film", {})[-1]["leaves"]
    assert all("numbers" not in card for card in alone)
    assert {card["objects"] for card in cards} == {1, 3}
    left = [
        sum(told["kept"][number] for number in card["numbers"])
        if "numbers" in card
        else int(told["leaves"][card["file_path"]]["kept"])
        for card in cards
    ]
    # Four leaves of seven are in the range.
    assert (left, sum(told["kept"])) == ([3, 1, 0], 4)


def test_bars_under_a_filter_keep_what_the_plan_keeps(table: Table) -> None:
    told = look(table, "scale", {"by": "id", "where": "id < 100"})
    leaves = [each for each in told["bars"] if each["content"] == 3 and each["kept"]]
    assert len(leaves) == table.scan("id < 100").plan().metrics.data_leaves_read


def test_costs_are_the_metadata_files_that_each_commit_wrote(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        lake.create_namespace("db")
        ledger, seen = Ledger(), {}

        def note(table: Table) -> None:
            written, head = ledger.look(table), table.metadata.current_snapshot_id
            if written.commits and head not in seen:
                seen[head] = written.cost

        table = live(lake, after=note)
        told = {int(each["snapshot_id"]): each for each in look(table, "costs", {})["commits"]}
        assert len(told) > 10
        first = min(told, key=lambda id: table.snapshot(id).sequence_number)  # type: ignore[union-attr]
        for id, cost in told.items():
            if id == first:  # the table's own creation is written with it here
                continue
            assert cost["files"] == seen[id].files, id
            if cost["is_exact"]:
                assert cost["size_bytes"] == seen[id].size_bytes
            assert cost["v3_files"] >= 2


def test_commits_of_a_group_have_one_metadata_file_together(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", COLUMNS)
        folder = Path(table.location) / "metadata"
        before = set(folder.iterdir())
        for group in range(3):
            commit_group(table, [_appends(group * 4 + at) for at in range(4)])
        table.append(rows(900, 1))
        told = look(table, "costs", {})["commits"]
        made = set(folder.iterdir()) - before
        assert len(told) == 13
        assert sum(each["files"] for each in told) == len(made)
        assert sum(each["size_bytes"] for each in told) == sum(at.stat().st_size for at in made)
        assert all(each["is_exact"] for each in told)
        # Neither has v3 more of them than there were.
        assert sum(each["v3_files"] for each in told) == 13 * 2 + 4


def _appends(number: int) -> Callable[[Table], object]:
    return lambda table: table.append(rows(number * 40, 1))


def test_the_feed_of_a_snapshot_is_what_changes_tells(table: Table) -> None:
    line = look(table, "history", {})["line"]
    for before, at in pairwise(line):
        told = look(table, "feed", {"at": at, "rows": "yes"})
        files = table.changes(since=int(before), upto=int(at)).files()
        assert told["added_count"] + told["removed_count"] == files.num_rows
        assert sorted(each["file_path"] for each in told["files"]) == sorted(
            files["file_path"].to_pylist()
        )
        changed = table.changes(since=int(before), upto=int(at)).to_arrow()
        assert len(told["rows"]) == min(100, changed.num_rows)


def test_rows_of_a_file_are_those_that_a_scan_reads_of_it(table: Table) -> None:
    tasks = table.scan().plan().tasks.to_pylist()
    worn = next(each for each in tasks if each["dv_cardinality"])
    for task in (worn, tasks[-1]):
        given = {"file_path": task["location"], "leaf": task["leaf"] or ""}
        told = look(table, "rows", given)
        scanned = table.scan(columns=["id", "_file"]).to_arrow()
        mine = scanned.filter(pc.ends_with(scanned["_file"], task["location"]))
        assert [row[0] for row in told["rows"]] == mine["id"].to_pylist()
    assert look(table, "rows", {"file_path": worn["location"], "leaf": worn["leaf"] or ""})[
        "deleted_rows"
    ]


def test_rows_are_told_of_the_files_that_a_scan_reads_and_of_no_others(table: Table) -> None:
    def read(at: str) -> set[tuple[str, str]]:
        tasks = table.scan(at=int(at)).plan().tasks.select(["location", "leaf"]).to_pylist()
        return {(each["location"], each["leaf"] or "") for each in tasks}

    live = {at: read(at) for at in look(table, "history", {})["line"][::-3]}
    ever = set().union(*live.values())
    for at, mine in live.items():
        told = set()
        for file, leaf in ever:
            with suppress(NotFound):
                look(table, "rows", {"file_path": file, "leaf": leaf, "at": at})
                told.add((file, leaf))
        assert told == mine


@pytest.mark.parametrize("file", ["c.db", "../c.db", "/etc/passwd", "metadata/x.parquet", "data/"])
def test_no_rows_are_read_of_what_is_no_file_of_the_snapshot(table: Table, file: str) -> None:
    with pytest.raises(NotFound, match="is no data file of this snapshot"):
        look(table, "rows", {"file_path": file})


def test_a_raw_entry_says_what_its_manifest_says(table: Table) -> None:
    leaf = look(table, "film", {})[-1]["leaves"][0]["file_path"]
    [told] = look(table, "entry", {"file_path": leaf})["entries"][:1]
    assert told["location"] == leaf.removeprefix(f"{table.location}/")
    assert told["content_type"] == "3 (DATA_MANIFEST)"
    assert told["stats"]["id (field 1)"]["lower"] >= 0
    inner = look(table, "scale", {"leaf": leaf})["bars"][0]["file_path"]
    [entry] = look(table, "entry", {"file_path": inner, "leaf": leaf})["entries"][:1]
    assert entry["position"] >= 0


def test_a_file_is_asked_for_by_what_it_is_told_as_or_as_manifests_name_it(table: Table) -> None:
    leaf = look(table, "film", {})[-1]["leaves"][0]["file_path"]
    file = look(table, "scale", {"leaf": leaf})["bars"][0]["file_path"]
    given = {"leaf": leaf, "file_path": file}
    short = {name: each.removeprefix(f"{table.location}/") for name, each in given.items()}
    other = {name: f"file://{each}" for name, each in given.items()}
    for view, names in {"scale": ["leaf"], "entry": [*given], "rows": [*given]}.items():
        told = look(table, view, {name: given[name] for name in names})
        for spelled in (short, other):
            assert look(table, view, {name: spelled[name] for name in names}) == told


def test_health_is_what_optimize_would_do(table: Table) -> None:
    told = look(table, "health", {})
    assert told["text"] == str(table.maintenance.optimize(dry_run=True))


def test_nothing_that_is_looked_at_changes_a_table(table: Table) -> None:
    before = sorted(each.location for each in table.files.store.list(table.location))
    at, head = table.state.metadata_location, str(table.metadata.current_snapshot_id)
    task = table.scan().plan().tasks.slice(0, 1).to_pylist()[0]
    given = {"pruned": {"where": "id < 9"}, "feed": {"at": head, "rows": "yes"}}
    given |= {
        "rows": {"file_path": task["location"], "leaf": task["leaf"] or ""},
        "entry": {"file_path": "x"},
    }
    for view in VIEWS:
        with suppress(NotFound) if view == "entry" else nullcontext():
            look(table, view, given.get(view, {}))
    assert table.refresh().state.metadata_location == at
    assert sorted(each.location for each in table.files.store.list(table.location)) == before


def test_a_table_that_is_empty_has_views_too(lake: Lake) -> None:
    table = lake.create_table("db.empty", COLUMNS)
    assert look(table, "history", {})["line"] == []
    assert look(table, "film", {}) == []
    assert look(table, "costs", {})["commits"] == []
    assert look(table, "scale", {})["bars"] == []
    assert look(table, "pruned", {"where": "id = 1"})["planned"]["files"] == 0
    with pytest.raises(NotFound):
        look(table, "feed", {"at": "main"})


def test_a_branch_has_a_line_of_its_own(table: Table) -> None:
    main, staging = (look(table, "history", {"at": each}) for each in ("main", "staging"))
    assert main["line"] != staging["line"]
    assert main["line"][:5] == staging["line"][:5]
    assert {each["snapshot_id"] for each in main["snapshots"]} >= {*main["line"], *staging["line"]}


@pytest.mark.parametrize(
    ("view", "given", "why"),
    [
        ("atlas", {}, "there is no view 'atlas'"),
        ("film", {"colour": "red"}, "film is not asked by 'colour'"),
        ("film", {"limit": "-1"}, "give a whole number of 0 or more"),
        ("film", {"limit": "9" * 30}, "give a whole number of 0 or more"),
        ("pruned", {}, "pruned needs where"),
        ("pruned", {"where": "id <"}, ""),
        ("scale", {"by": "idd"}, "did you mean 'id'?"),
        ("scale", {"leaf": "x"}, "x is no leaf of this snapshot"),
        ("history", {"at": "mian"}, "did you mean 'main'?"),
        ("feed", {"at": "12"}, "12"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(
    table: Table, view: str, given: dict[str, str], why: str
) -> None:
    with pytest.raises(IcetreeError) as told:
        look(table, view, given)
    assert isinstance(told.value, InvalidInput | NotFound)
    assert why in str(told.value)


# --- axes and bars ------------------------------------------------------------------------------


def test_a_partition_takes_all_of_its_time_on_the_axis(lake: Lake) -> None:
    parts = ["year(at)", "bucket(4, id)"]
    table = lake.create_table("db.years", COLUMNS, partition_by=parts)
    table.append(rows(0, 0))
    first = look(table, "scale", {"by": "at_year"})["bars"][0]
    year = [datetime(at, 1, 1, tzinfo=timezone.utc).timestamp() * 1000 for at in (2026, 2027)]
    assert [first["first"], first["last"]] == year
    assert first["words"] == "2026"
    for bucket in look(table, "scale", {"by": "id_bucket_4"})["bars"]:
        assert bucket["last"] - bucket["first"] == 1
    assert [each.kind for each in axes(table.metadata.shape())][:2] == ["time", "number"]


def test_grouping_neighbours_loses_nothing_and_keeps_the_ends(table: Table) -> None:
    shape = table.metadata.shape()
    entries = to_table(
        [
            Entry(
                location=f"data/{at}.parquet",
                status=Status.EXISTING,
                record_count=at,
                file_size_in_bytes=2 * at,
                stats={1: FieldStats(lower=at * 7 % 1000, upper=at * 7 % 1000 + 3)},
            )
            for at in range(1_000)
        ],
        shape,
    )
    axis = axis_of(shape, "id")
    gone = np.arange(1_000) % 10 == 0
    drawn = draw(
        *(entries, axis, shape),
        table_location="/t",
        removed={},
        most=50,
        gone=gone,
        kept=~gone,
    )
    assert len(drawn.bars) == 50
    assert sum(each["files"] for each in drawn.bars) == 1_000
    assert sum(each["removed"] for each in drawn.bars) == 100
    assert sum(each["kept"] for each in drawn.bars) == 900
    assert sum(each["rows"] for each in drawn.bars) == sum(range(1_000))
    assert min(each["first"] for each in drawn.bars) == 0
    assert max(each["last"] for each in drawn.bars) == 1_002
    assert drawn.bars[0]["words"] == "0 … 22"


def test_texts_lie_on_an_axis_in_their_order(table: Table) -> None:
    shape = table.metadata.shape()
    bounds = [("b", "d"), ("a", "a"), ("d", "e"), (None, None)]
    entries = to_table(
        [
            Entry(location=str(at), stats={2: FieldStats(lower=low, upper=high)})
            for at, (low, high) in enumerate(bounds)
        ],
        shape,
    )
    axis = axis_of(shape, "country")
    assert axis is not None
    found = ranges(entries, axis)
    assert found.first.tolist()[:3] == [1, 0, 2]
    assert np.isnan(found.first[3])
    assert [name for _, name in found.ticks] == ["a", "b", "d", "e"]
    nothing = draw(pa.Table.from_batches([], entries.schema), axis, shape, table_location="/t", removed={"x": BitMap()}, most=9)  # fmt: skip
    assert nothing.bars == []
