"""However another writer spells a location, a file is one file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icetree.errors import CorruptTable, IcetreeError, InvalidInput
from icetree.rows.read.deletes import by_file
from icetree.rows.write.deletes import write_data_vectors
from icetree.spec.entry.entry import Content, with_columns
from icetree.table.table import Table
from icetree.tree.changes import removal
from icetree.tree.live import live_files
from tests.table.damage import Site, make_table, open_lake, planned, rows
from tests.table.lake import data_file, live, new_table, place
from tests.table.spelling import SPELLINGS, respell


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Table:
    return make_table(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module", params=SPELLINGS)
def spelt(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table with leaves, data DVs and manifest DVs, which another writer spelt."""
    folder = tmp_path_factory.mktemp("spelt")
    table = make_table(folder)
    respell(table, SPELLINGS[request.param])
    return open_lake(folder).table("db.t")


def ids(table: Table) -> list[int]:
    return sorted(table.scan(columns=["id"]).to_arrow()["id"].to_pylist())


def changed(table: Table) -> list[tuple[str, int]]:
    found = table.changes().to_arrow()
    return sorted(zip(found["_change_type"].to_pylist(), found["id"].to_pylist(), strict=True))


def test_every_spelling_reads_the_same(spelt: Table, plain: Table) -> None:
    assert ids(spelt) == ids(plain)
    assert changed(spelt) == changed(plain)
    assert spelt.verify(deep=True).findings == ()


def test_rows_of_every_spelling_can_be_deleted_and_added(spelt: Table) -> None:
    tasks, before = planned(spelt), ids(spelt)
    vectors = write_data_vectors(
        {name: [0] for name in tasks["location"].to_pylist()},
        tasks=tasks,
        metadata=spelt.metadata,
        store=spelt.files.store,
    )
    spelt.row_delta(vectors)
    spelt.append(rows(5000))
    assert len(ids(spelt)) == len(before) - len(tasks) + 12 + 1  # one row was gone before
    assert spelt.verify(deep=True).findings == ()


def test_a_file_cannot_be_added_under_a_second_spelling(spelt: Table) -> None:
    shape = spelt.metadata.shape()
    root = spelt.files.root(spelt.snapshot(), shape)
    found = live_files(root, spelt.files.reader(shape), columns=None)
    data = found.filter(pc.equal(found["content_type"], Content.DATA))
    in_root = data.filter(pc.is_null(data["leaf"]))[:1]
    assert in_root.num_rows
    before = ids(spelt)
    with pytest.raises(IcetreeError, match=in_root["location"][0].as_py()):
        spelt.append_files(in_root.drop_columns(["leaf", "position"]))
    assert ids(spelt) == before


def test_every_file_of_every_spelling_can_be_removed_by_name(spelt: Table) -> None:
    names = planned(spelt)["location"].to_pylist()
    spelt.delete_files([f"file:{spelt.location}/{name}" for name in names])
    assert ids(spelt) == []
    assert spelt.verify(deep=True).findings == ()


def test_a_manifest_that_leads_up_is_refused(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    site = Site(table=table)
    for name in ("../other/data/", "data/../../", "/wh/../", "file:/wh/../"):
        bad = with_columns(
            site.root,
            location=pc.binary_join_element_wise(pa.scalar(name), site.root["location"], ""),
        )
        with site.changed_root(lambda _, bad=bad: bad):
            opened = open_lake(tmp_path).table("db.t")
            with pytest.raises(CorruptTable, match=r"part '\.\.'"):
                ids(opened)
            assert any("'..'" in each.rule for each in opened.verify().findings)


def test_names_that_lead_up_are_refused_from_a_caller(plain: Table) -> None:
    for name in ("../other/data/x", "data/../../x", f"{plain.location}/../x"):
        with pytest.raises(InvalidInput, match=r"part '\.\.'"):
            plain.delete_files([name])


def test_a_table_of_files_to_remove_may_spell_them_in_full() -> None:
    table = new_table()
    table.append_files([data_file("a"), data_file("b")])
    table.delete_files(removal([place("a")]))
    assert live(table) == ["b"]


def test_position_deletes_find_their_file_however_it_is_spelt() -> None:
    paths = ["file:/wh/t/data/a", "/wh/t/data/b", "/wh/t/data/a", "file:///wh/t//data/a"]
    deletes = pa.table({"file_path": paths, "pos": [3, 7, 1, 3]})
    for where in ("/wh/t", "file:/wh/t"):
        found = by_file(deletes, where, delete_file="d")
        assert {name: rows.tolist() for name, rows in found.items()} == {
            "data/a": [1, 3],
            "data/b": [7],
        }
    with pytest.raises(CorruptTable, match=r"part '\.\.'"):
        by_file(pa.table({"file_path": ["/wh/t/../a"], "pos": [1]}), "/wh/t", delete_file="d")
