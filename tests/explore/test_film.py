"""The film of a table: a frame for each snapshot, which says what its commit did to the tree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from icetree.explore.views import look
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.explore.tables import COLUMNS, live, open_lake, rows


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("views")) as lake:
        lake.create_namespace("db")
        yield lake


@pytest.fixture(scope="module")
def table(lake: Lake) -> Table:
    return live(lake)


def test_a_frame_has_every_entry_of_its_root_and_every_leaf(table: Table) -> None:
    frames = look(table, "film", {})
    assert [each["snapshot_id"] for each in frames] == look(table, "history", {})["line"]
    for frame in frames:
        nodes = table.inspect.tree(at=int(frame["snapshot_id"])).to_pylist()
        root, *leaves = nodes
        assert frame["root"]["entries"] == root["entries"]
        assert frame["root"]["file_size_in_bytes"] == root["length"]
        told = sorted(
            (each["file_path"], each["files"] - each["removed"]) for each in frame["leaves"]
        )
        assert told == sorted((each["path"], each["live_entries"]) for each in leaves)


def test_frames_say_what_commits_did_to_the_tree(table: Table) -> None:
    did = [" ".join(each["did"]) for each in look(table, "film", {})]
    assert did[0] == "2 entries came to the root"
    assert any("flushed to 1 new leaf" in each for each in did)
    assert any("went out" in each for each in did)
    assert any("folded into" in each for each in did)


def test_a_leaf_that_a_flush_made_of_old_entries_is_new_in_one_frame_only(table: Table) -> None:
    frames = look(table, "film", {})
    new = [each["file_path"] for frame in frames for each in frame["leaves"] if each["is_new"]]
    ever = {each["file_path"] for frame in frames for each in frame["leaves"]}
    assert len(new) == len(set(new))
    assert set(new) == ever


def test_frames_come_in_parts_that_make_the_whole(table: Table) -> None:
    whole = look(table, "film", {})
    for at, frame in enumerate(whole):
        given = {"at": frame["snapshot_id"], "limit": "3"}
        assert look(table, "film", given) == whole[max(0, at - 2) : at + 1]


def test_a_frame_is_of_the_snapshot_that_was_asked_for_whatever_is_committed(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("icetree.explore.history.MOST", 3)
    table = lake.create_table("db.moving", COLUMNS)
    for at in range(5):
        table.append(rows(at * 40, at))
    line = look(table, "history", {})["line"]
    table.append(rows(400, 5))
    for at in line:
        [frame] = look(table, "film", {"at": at, "limit": "1"})
        assert frame["snapshot_id"] == at


def test_bits_that_go_out_are_those_of_the_manifest_dvs(table: Table) -> None:
    for frame in look(table, "film", {}):
        for leaf in frame["leaves"]:
            assert sum(leaf["out"]) == leaf["removed"]
            assert sum(leaf["out_now"]) <= leaf["removed"]
