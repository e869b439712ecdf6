"""Verifying finds every kind of damage and names it; repairing undoes what can be undone."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace
from pyiceberg.catalog.sql import SqlCatalog

from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.spec.entry.entry import Content, Entries, Entry, Status
from icetree.spec.metadata.update import UpgradeFormatVersion
from icetree.table.verify.files import LISTED_FROM
from icetree.table.verify.findings import Finding, Kind, Severity
from icetree.tree.reading import leaves_in
from tests.table.damage import Site, cut, flipped, open_lake
from tests.table.lake import data_file, new_table
from tests.table.verify.reports import at_first, kinds, rules


def test_a_sound_table_has_no_findings(site: Site) -> None:
    report = site.table.verify(deep=True)
    assert rules(report) == ""
    assert (report.is_clean, report.exit_status) == (True, 0)
    assert report.counts["snapshots"] == 7
    assert report.counts["data_dvs"] == 2
    assert report.counts["leaves"] >= 2
    assert report.counts["rows"] == 72


def test_the_fixture_has_a_manifest_dv_and_files_at_both_levels(site: Site) -> None:
    contents = set(site.root["content_type"].to_pylist())
    assert contents >= {Content.DATA, Content.DATA_MANIFEST, Content.MANIFEST_DV}


@pytest.mark.parametrize("files", [1, LISTED_FROM])
def test_a_name_that_no_store_takes_is_a_finding(tmp_path: Path, files: int) -> None:
    with open_lake(tmp_path) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", pa.schema([("n", pa.int64())]))
        few = [Entry(location=f"{n}", record_count=1, file_size_in_bytes=9) for n in range(files)]
        bad = ["data/a\0b.parquet", "data/" + "x" * 5000]
        table.append_files([*few, *(dataclasses.replace(few[0], location=name) for name in bad)])
        report = table.verify(deep=True)
        assert len(table.repair().left) == len(report.findings)
    for name in bad:
        assert kinds(report, name) == {Kind.UNREADABLE}
    assert kinds(report, "0") == {Kind.MISSING_FILE}


def test_only_the_current_tree_is_looked_at_on_demand(site: Site) -> None:
    assert site.table.verify(snapshots="current").counts["snapshots"] == 1
    with pytest.raises(InvalidInput, match="'all' and 'current'"):
        site.table.verify(snapshots="some")


def test_progress_is_told(site: Site) -> None:
    told = []
    site.table.verify(progress=lambda *step: told.append(step))
    assert ("snapshots", 7, 7) in told
    assert {what for what, _, _ in told} == {"snapshots", "files"}


# --- files that are gone, cut or flipped --------------------------------------------------------


def test_a_missing_root_is_named_with_its_snapshot(site: Site) -> None:
    with site.without(site.root_file):
        [finding] = site.table.verify().findings
    assert (finding.file, finding.kind) == (site.root_file, Kind.MISSING_FILE)
    assert finding.snapshot_id == site.snapshot.snapshot_id
    assert finding.severity is Severity.ERROR


def test_a_cut_root_is_named(site: Site) -> None:
    with site.changed(site.root_file, cut):
        [finding] = site.table.verify().findings
    assert (finding.file, finding.kind) == (site.root_file, Kind.UNREADABLE)


def test_a_missing_leaf_is_one_finding_for_all_snapshots_that_share_it(site: Site) -> None:
    leaf = site.leaf().location
    with site.without(leaf):
        [finding] = site.table.verify().findings
    assert (finding.file, finding.kind) == (leaf, Kind.MISSING_FILE)
    assert finding.snapshots > 1
    assert f"and {finding.snapshots - 1} more" in str(finding)


def test_a_cut_leaf_is_named_for_its_content_and_its_size(site: Site) -> None:
    leaf = site.leaf().location
    with site.changed(leaf, cut):
        found = kinds(site.table.verify(), leaf)
    assert found == {Kind.UNREADABLE, Kind.WRONG_SIZE}


def test_two_damaged_leaves_are_both_named(site: Site) -> None:
    first, second, *_ = (leaf.location for leaf in leaves_in(site.root))
    with site.changed(first, cut), site.without(second):
        files = {each.file for each in site.table.verify().findings}
    assert files == {first, second}


def test_a_missing_data_file_is_named(site: Site) -> None:
    name = site.live(Content.DATA)[0]
    with site.without(name):
        [finding] = site.table.verify(deep=True).findings
    assert (finding.file, finding.kind) == (name, Kind.MISSING_FILE)


def test_a_cut_data_file_is_named_by_its_size_and_by_its_rows(site: Site) -> None:
    name = site.live(Content.DATA)[0]
    with site.changed(name, cut):
        assert kinds(site.table.verify()) == {Kind.WRONG_SIZE}
        assert kinds(site.table.verify(deep=True)) == {Kind.WRONG_SIZE, Kind.UNREADABLE}


def test_a_missing_puffin_file_is_named(site: Site) -> None:
    name = site.live(Content.POSITION_DELETES)[0]
    with site.without(name):
        [finding] = site.table.verify(deep=True).findings
    assert (finding.file, finding.kind) == (name, Kind.MISSING_FILE)


def test_a_flipped_bit_in_a_dv_is_found_by_its_checksum(site: Site) -> None:
    name = site.live(Content.POSITION_DELETES)[0]
    with site.changed(name, lambda content: flipped(content, 20)):
        assert site.table.verify().is_clean
        assert kinds(site.table.verify(deep=True)) == {Kind.CHECKSUM}


def test_a_flipped_bit_in_a_page_with_a_checksum_is_found(site: Site) -> None:
    name = site.live(Content.DATA)[0]

    def with_checksums(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        table = pq.read_table(pa.BufferReader(content))
        pq.write_table(
            table, sink, write_page_checksum=True, store_schema=False, compression="none",
            use_dictionary=False, write_statistics=False,
        )  # fmt: skip
        made = sink.getvalue().to_pybytes()
        at = made.index(np.int64(table["id"][0].as_py()).tobytes())
        return flipped(made, at)

    with site.changed(name, with_checksums):
        found = kinds(site.table.verify(deep=True), name)
    assert Kind.CHECKSUM in found


def test_a_damaged_metadata_file_is_named(site: Site) -> None:
    file = site.table.state.metadata_location.removeprefix(site.table.location + "/")
    with site.changed(file, cut):
        assert kinds(site.table.verify(), file) == {Kind.METADATA}
    with site.without(file):
        assert kinds(site.table.verify(), file) == {Kind.MISSING_FILE}


def test_many_files_are_listed_rather_than_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    table = new_table()
    names = [f"f{at}" for at in range(LISTED_FROM + 1)]
    for name in names[1:]:
        table.files.store.write_new(f"memory://w/db/t/data/{name}.parquet", bytes(1000))
    table.append_files([data_file(name, 10 * at, 10 * at + 9) for at, name in enumerate(names)])
    asked = []
    size = type(table.files.store).size

    def counting(store: object, location: str) -> int:
        asked.append(location)
        return size(store, location)  # type: ignore[arg-type]

    monkeypatch.setattr(type(table.files.store), "size", counting)
    [finding] = table.verify().findings
    assert finding.file == "data/f0.parquet"
    assert len(asked) < 10


# --- wrong counts -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "column", "value", "says"),
    [
        (Content.DATA_MANIFEST, "record_count", 99, "the root says 99"),
        (Content.DATA_MANIFEST, "existing_files_count", 77, "EXISTING files, the root says 77"),
        (Content.DATA_MANIFEST, "file_size_in_bytes", 5, "its entry says 5"),
        (Content.MANIFEST_DV, "record_count", 3, "positions, its entry says 3"),
        (Content.DATA, "file_size_in_bytes", 5, "its entry says 5"),
        (Content.DATA, "record_count", 10_000, "row ids"),
        (Content.DATA, "snapshot_id", 3, "but not by this snapshot"),
        (Content.DATA, "sequence_number", 1_000, "is above the snapshot's own"),
    ],
)
def test_a_wrong_count_in_a_root_is_found(
    site: Site, content: Content, column: str, value: int, says: str
) -> None:
    # The newest files are the last: an entry that this snapshot ADDED.
    with site.changed_root(lambda root: at_first(_added_first(root), content, **{column: value})):
        report = site.table.verify(snapshots="current")
    assert says in rules(report)
    assert site.snapshot.snapshot_id in {each.snapshot_id for each in report.findings}


def _added_first(root: Entries) -> Entries:
    return root.take(
        pc.sort_indices(pc.not_equal(root["status"], int(Status.ADDED)).cast(pa.int8()))
    )


def test_totals_that_are_not_those_of_the_summary_are_a_warning(site: Site) -> None:
    def without_a_file(root: Entries) -> Entries:
        data = pc.equal(root["content_type"], int(Content.DATA))
        gone = root["location"].filter(data)[0].as_py()
        return root.filter(pc.fill_null(pc.not_equal(root["location"], gone), True))

    with site.changed_root(without_a_file):
        report = site.table.verify(snapshots="current")
    assert "total-data-files in the summary is" in rules(report)
    warnings = [each for each in report.findings if each.severity is Severity.WARNING]
    assert {each.kind for each in warnings} == {Kind.SUMMARY}


def test_bounds_that_the_rows_contradict_are_found_in_the_rows(site: Site) -> None:
    def narrowed(root: Entries) -> Entries:
        at = root.schema.names.index("1:lower")
        return root.set_column(at, "1:lower", pc.add(root["1:lower"], 1))

    with site.changed_root(narrowed):
        found = rules(site.table.verify(deep=True, snapshots="current"))
    assert "lower bound of id is 901, but it has 900" in found


def test_counts_that_the_rows_contradict_are_found_in_the_rows(site: Site) -> None:
    def more_nulls(root: Entries) -> Entries:
        at = root.schema.names.index("3:nulls")
        return root.set_column(at, "3:nulls", pc.add(root["3:nulls"], 1))

    with site.changed_root(more_nulls):
        found = rules(site.table.verify(deep=True, snapshots="current"))
    assert "nulls of country is" in found


def test_split_offsets_that_start_no_row_group_are_found(site: Site) -> None:
    with site.changed_root(lambda root: at_first(root, Content.DATA, split_offsets=[7])):
        found = rules(site.table.verify(deep=True, snapshots="current"))
    assert "split offset 7 is where no row group starts" in found


# --- history ------------------------------------------------------------------------------------


def rewritten(site: Site, **changes: object):  # type: ignore[no-untyped-def]
    """Change fields of the newest metadata file for a while."""
    file = site.table.state.metadata_location.removeprefix(site.table.location + "/")
    metadata = replace(site.table.metadata, **changes)
    content = metadata_codec.encode(metadata, compress=True)
    return site.changed(file, lambda _: content)


def test_a_parent_that_is_not_older_is_found(site: Site) -> None:
    first, *rest = site.table.metadata.snapshots
    broken = replace(first, parent_snapshot_id=rest[-1].snapshot_id)
    with rewritten(site, snapshots=(broken, *rest)):
        assert "which is not older" in rules(site.table.verify())


def test_two_snapshots_with_one_sequence_number_are_found(site: Site) -> None:
    *rest, last = site.table.metadata.snapshots
    broken = replace(last, sequence_number=rest[-1].sequence_number)
    with rewritten(site, snapshots=(*rest, broken)):
        assert "have one sequence number" in rules(site.table.verify())


def test_a_gap_in_row_ids_is_found(site: Site) -> None:
    *rest, last = site.table.metadata.snapshots
    broken = replace(last, first_row_id=(last.first_row_id or 0) - 1)
    with rewritten(site, snapshots=(*rest, broken)):
        assert Kind.ROW_LINEAGE in kinds(site.table.verify())


def test_a_log_that_ends_elsewhere_is_found(site: Site) -> None:
    with rewritten(site, snapshot_log=site.table.metadata.snapshot_log[:-1]):
        assert "the snapshot log ends with" in rules(site.table.verify())


def test_a_missing_former_metadata_file_is_a_warning(site: Site) -> None:
    former = site.table.metadata.metadata_log[0].metadata_file
    with site.without(former):
        [finding] = site.table.verify().findings
    assert (finding.file, finding.severity) == (former, Severity.WARNING)


def test_an_error_comes_before_a_warning(site: Site) -> None:
    former = site.table.metadata.metadata_log[0].metadata_file
    with site.without(former), site.without(site.root_file):
        found = site.table.verify().findings
    assert [each.severity for each in found] == [Severity.ERROR, Severity.WARNING]


def test_a_table_that_was_moved_is_as_clean_as_before(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "lake" / "db" / "t", tmp_path / "lake" / "db" / "t")
    lake = open_lake(tmp_path)
    lake.create_namespace("db")
    newest = max((tmp_path / "lake" / "db" / "t" / "metadata").glob("*.metadata.json"))
    moved = lake.register_table("db.t", str(newest))
    assert rules(moved.verify(deep=True)) == ""


@pytest.mark.filterwarnings("ignore")
def test_tables_of_pyiceberg_are_clean_before_and_after_an_upgrade(tmp_path: Path) -> None:
    catalog = SqlCatalog(
        "default", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake"
    )
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("c", pa.string()), ("l", pa.list_(pa.int64()))])
    theirs = catalog.create_table("db.t", schema)
    with theirs.update_spec() as spec:
        spec.add_identity("c")

    def few(first: int) -> pa.Table:
        made = [{"id": first + at, "c": "ab"[at % 2], "l": [at]} for at in range(10)]
        return pa.Table.from_pylist(made, schema)

    theirs.append(few(0))
    theirs.append(few(10))
    theirs.delete("id = 3")
    catalog.close()
    with open_lake(tmp_path) as lake:
        table = lake.table("db.t")
        assert rules(table.verify(deep=True)) == ""
        table.update_metadata(UpgradeFormatVersion(format_version=4))
        table.append(few(20))
        report = table.verify(deep=True)
    assert rules(report) == ""
    assert report.counts["snapshots"] == 4


def test_a_finding_is_one_line() -> None:
    finding = Finding(
        severity=Severity.ERROR, kind=Kind.TREE, file="a", rule="b", snapshot_id=5, snapshots=3
    )
    assert str(finding) == "ERROR tree: a: b [snapshot 5 and 2 more]"
