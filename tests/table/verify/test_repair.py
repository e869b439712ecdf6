"""Pages of history that are damaged are named; what can be repaired is, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from icetree.codec import metadata as metadata_codec
from icetree.spec.entry.entry import Content, Entry
from icetree.spec.metadata.metadata import StatisticsFile
from icetree.spec.metadata.update import SetStatistics
from icetree.table.table import Table
from icetree.table.verify.findings import Kind
from tests.table.damage import Site, make_table, open_lake
from tests.table.lake import connection, data_file, new_table
from tests.table.verify.reports import at_first, kinds, rules


@pytest.fixture(scope="module")
def paged() -> Table:
    """A table of 54 snapshots, 50 of them or more on a page."""
    table = new_table(connection(), properties={"write.metadata.inline-snapshots": "2"})
    for at in range(54):
        entry: Entry = data_file(f"f{at}", at, at)
        assert entry.location is not None
        table.files.store.write_new(entry.location, bytes(100))
        table.append_files([entry])
    assert len(table.metadata.snapshot_pages) == 1
    return table


def damaged_page(paged: Table, content: bytes | None) -> tuple[Table, str, bytes]:
    """Return a new handle on the table, one page of which is damaged; and how to undo that."""
    [page] = paged.metadata.snapshot_pages
    place = f"{paged.location}/{page.location}"
    store = paged.files.store
    before = store.read(place)
    store.delete([place])
    if content is not None:
        store.write_new(place, content)
    return paged, place, before


def restore(paged: Table, place: str, before: bytes) -> None:
    paged.files.store.delete([place])
    paged.files.store.write_new(place, before)


def test_a_paged_table_is_clean(paged: Table) -> None:
    report = paged.verify()
    assert (rules(report), report.counts["snapshots"], report.counts["pages"]) == ("", 54, 1)


def test_a_damaged_page_is_named_and_the_rest_still_checked(paged: Table) -> None:
    table, place, before = damaged_page(paged, b"not a page")
    try:
        report = table.verify()
    finally:
        restore(table, place, before)
    assert kinds(report) == {Kind.LOST_PAGE}
    assert 0 < report.counts["snapshots"] < 104


def test_a_page_that_is_not_what_its_index_says_is_found(paged: Table) -> None:
    [ref] = paged.metadata.snapshot_pages
    page = paged.files.page(ref)
    short = metadata_codec.encode_page(replace(page, snapshots=page.snapshots[1:]))
    table, place, before = damaged_page(paged, short)
    try:
        report = table.verify()
    finally:
        restore(table, place, before)
    assert kinds(report) == {Kind.HISTORY, Kind.WRONG_SIZE}
    assert "the number of its snapshots is" in rules(report)


def test_a_lost_page_is_repaired_from_former_metadata_files(paged: Table) -> None:
    table, place, _ = damaged_page(paged, None)
    before = table.state.metadata_location
    planned = table.repair()
    assert table.state.metadata_location == before
    assert not planned.is_done
    assert "would: forget the lost page" in planned.text()
    done = table.repair(dry_run=False)
    assert done.is_done
    assert done.actions == planned.actions
    assert place not in {
        f"{table.location}/{page.location}" for page in table.metadata.snapshot_pages
    }
    report = table.verify()
    assert rules(report) == ""
    assert report.counts["snapshots"] == 54


# --- repair -------------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path: Path) -> Site:
    make_table(tmp_path)
    return Site(table=open_lake(tmp_path).table("db.t"))


def files_below(site: Site) -> dict[str, bytes]:
    base = Path(site.table.location)
    return {str(path): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def test_a_dangling_dv_is_removed_by_a_commit(copied: Site) -> None:
    target = "data/nowhere.parquet"
    damage = copied.changed_root(
        lambda root: at_first(root, Content.POSITION_DELETES, referenced_file=target)
    )
    damage.__enter__()
    lake = open_lake(Path(copied.table.location).parents[2])
    table = lake.table("db.t")
    assert Kind.DANGLING_DATA_DV in kinds(table.verify())
    before = files_below(copied)
    planned = table.repair()
    assert files_below(copied) == before
    assert target in planned.text()
    done = table.repair(dry_run=False)
    assert len(done.snapshots) == 1
    mended = lake.table("db.t")
    assert mended.verify(snapshots="current").is_clean
    # A snapshot never changes: the damaged one stays as it is until it expires.
    damaged = copied.snapshot.snapshot_id
    assert {each.snapshot_id for each in mended.verify().findings} == {damaged}


def test_lost_statistics_are_forgotten(copied: Site) -> None:
    lost = StatisticsFile(
        snapshot_id=copied.snapshot.snapshot_id,
        statistics_path=f"file://{copied.table.location}/metadata/gone.stats",
        file_size_in_bytes=10,
        file_footer_size_in_bytes=5,
        blob_metadata=(),
    )
    copied.table.update_metadata(SetStatistics(statistics=lost))
    assert kinds(copied.table.verify()) == {Kind.LOST_STATISTICS}
    copied.table.repair(dry_run=False)
    assert copied.table.verify().is_clean


def test_what_cannot_be_repaired_is_said(copied: Site) -> None:
    name = copied.live(Content.DATA)[0]
    copied.path(name).unlink()
    done = copied.table.repair(dry_run=False)
    assert not done.is_done
    assert done.actions == ()
    assert [each.file for each in done.left] == [name]
    assert done.text().startswith(f"cannot be repaired: ERROR missing file: {name}")
