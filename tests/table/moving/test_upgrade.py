"""Upgrading tables of v1 to v3 from wherever they are: what is told, kept, refused and left behind."""

from __future__ import annotations

import gzip
import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from msgspec.structs import replace
from py4j.protocol import Py4JJavaError
from pyiceberg.exceptions import ValidationError
from pyiceberg.table import StaticTable

from icetree.codec import metadata as metadata_codec
from icetree.errors import AlreadyExists, InvalidInput, NotFound, Unsupported
from icetree.spec.metadata.metadata import EncryptionKey
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from tests.java import IcebergJava
from tests.java_copy import CopyingJava
from tests.table.moving.old_tables import (
    as_folder,
    commit_to_folder,
    everything,
    lake_on,
    old_table,
    rows,
)


def sorted_rows(found: pa.Table) -> list[object]:
    return found.sort_by("id").to_pylist()


def require_alive(lake: Lake, name: str, before: list[object]) -> None:
    """Require the same rows, and that a table can be written to."""
    table = lake.table(name)
    assert table.metadata.format_version == 4
    assert sorted_rows(table.scan().to_arrow()) == before
    table.append(rows(100, 1))
    assert table.scan().count() == len(before) + 1
    assert table.verify(deep=True).findings == ()


@pytest.mark.parametrize("version", [1, 2])
def test_a_table_of_pyicebergs_catalog_becomes_v4_in_place(tmp_path: Path, version: int) -> None:
    theirs = old_table(tmp_path, version)
    before = sorted_rows(theirs.scan().to_arrow())
    with lake_on(tmp_path) as lake:
        files = everything(tmp_path / "lake")
        told = lake.upgrade_table("db.old", dry_run=True)
        assert everything(tmp_path / "lake") == files
        assert lake.table("db.old").metadata.format_version == version
        assert (told.dry_run, told.reason, told.format_version) == (True, None, version)
        assert told.data_files == len(theirs.inspect.files())
        assert told.leaves == len(theirs.inspect.manifests())
        assert told.does
        assert told.gains
        done = lake.upgrade_table("db.old")
        assert done.as_dict() == told.as_dict() | {"dry_run": False}
        added = everything(tmp_path / "lake").keys() - files.keys()
        assert len(added) == 1, "nothing but a metadata file is written"
        require_alive(lake, "db.old", before)


@pytest.mark.parametrize("typed", [False, True])
def test_a_table_of_icebergs_jdbc_catalog_becomes_v4_whatever_the_age_of_its_layout(
    tmp_path: Path, typed: bool
) -> None:
    theirs = old_table(tmp_path)
    before = sorted_rows(theirs.scan().to_arrow())
    with closing(sqlite3.connect(tmp_path / "catalog.db")) as database:
        columns = [row[1] for row in database.execute("PRAGMA table_info(iceberg_tables)")]
        if "iceberg_type" in columns:
            database.execute("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type")
        if typed:
            database.execute("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)")
            database.execute("UPDATE iceberg_tables SET iceberg_type = 'TABLE'")
        database.commit()
    with lake_on(tmp_path) as lake:
        lake.upgrade_table("db.old")
        require_alive(lake, "db.old", before)


def test_a_table_without_an_id_gets_one(tmp_path: Path) -> None:
    theirs = old_table(tmp_path, 1)
    with lake_on(tmp_path) as lake:
        path = Path(theirs.metadata_location.removeprefix("file://"))
        document = json.loads(path.read_text())
        del document["table-uuid"]
        bare = path.with_name("00099-bare.metadata.json")
        bare.write_text(json.dumps(document))
        lake.register_table("new.t", str(bare))
        lake.upgrade_table("new.t")
        assert lake.table("new.t").metadata.table_uuid is not None


@pytest.mark.parametrize("hint", ["1", "2", None, "no number", "77"])
def test_a_folder_with_numbered_versions_gets_a_name(tmp_path: Path, hint: str | None) -> None:
    place = as_folder(tmp_path, hint=hint)
    with lake_on(tmp_path) as lake:
        lake.register_table("db.old", str(place / "metadata/v2.metadata.json"))
        before = sorted_rows(lake.table("db.old").scan().to_arrow())
        lake.drop_table("db.old")
        files = everything(place)
        told = lake.upgrade_table("new.t", str(place), dry_run=True)
        assert everything(place) == files
        assert not lake.table_exists("new.t")
        assert "v2.metadata.json" in told.metadata_location
        lake.upgrade_table("new.t", str(place))
        require_alive(lake, "new.t", before)
        table = lake.table("new.t")
        assert Path(table.state.metadata_location).name.startswith("00004-")


def test_who_opens_an_upgraded_table_by_its_folder_is_refused(
    tmp_path: Path, java: IcebergJava
) -> None:
    place = as_folder(tmp_path)
    conf = java.jvm.org.apache.hadoop.conf.Configuration()
    folders = java.jvm.org.apache.iceberg.hadoop.HadoopTables(conf)
    assert folders.load(str(place)).currentSnapshot() is not None
    with lake_on(tmp_path) as lake:
        lake.upgrade_table("new.t", str(place))
        with pytest.raises(Py4JJavaError, match="location"):
            folders.load(str(place))
        mark = place / "metadata" / "v3.metadata.json"
        with pytest.raises(ValidationError, match="format-version"):
            StaticTable.from_metadata(str(mark))
        # It is found by its number alone, so that clean-up leaves it.
        lake.table("new.t").maintenance.remove_orphan_files(
            older_than="2100-01-01T00:00:00Z", force=True
        )
        assert mark.exists()


def test_a_folder_that_java_wrote_is_upgraded_by_its_name(
    tmp_path: Path, java: IcebergJava
) -> None:
    """With all that Hadoop leaves there: versions, the hint, and a checksum beside each file."""
    folder = tmp_path / "java"
    theirs = java.table(old_table(tmp_path).metadata_location)
    CopyingJava(java).copied(theirs, str(folder), "parquet")
    conf = java.jvm.org.apache.hadoop.conf.Configuration()
    folders = java.jvm.org.apache.iceberg.hadoop.HadoopTables(conf)
    expressions = java.jvm.org.apache.iceberg.expressions.Expressions
    is_german = expressions.equal("country", "DE")
    folders.load(str(folder)).newDelete().deleteFromRowFilter(is_german).commit()
    there = {each.name for each in (folder / "metadata").iterdir()}
    assert {"version-hint.text", ".version-hint.text.crc", "v3.metadata.json"} <= there
    read = java.rows(folders.load(str(folder)), ["id", "country"])
    assert read
    with lake_on(tmp_path) as lake:
        before = everything(folder)
        lake.upgrade_table("new.t", str(folder))
        assert everything(folder).items() >= before.items()
        found = sorted_rows(lake.table("new.t").scan().to_arrow())
        assert sorted((str(each["id"]), each["country"]) for each in found) == read  # type: ignore[index]
        require_alive(lake, "new.t", found)
        with pytest.raises(Py4JJavaError, match="location"):
            folders.load(str(folder))


@pytest.mark.parametrize("end", ["gz.metadata.json", "metadata.json.gz"])
def test_packed_versions_are_found_and_marked_alike(tmp_path: Path, end: str) -> None:
    place = as_folder(tmp_path, hint="2")
    for number in (1, 2):
        plain = place / "metadata" / f"v{number}.metadata.json"
        plain.with_name(f"v{number}.{end}").write_bytes(gzip.compress(plain.read_bytes()))
        plain.unlink()
    with lake_on(tmp_path) as lake:
        lake.upgrade_table("new.t", str(place))
        mark = place / "metadata" / f"v3.{end}"
        assert "moved-to" in gzip.decompress(mark.read_bytes()).decode()
        assert lake.table("new.t").scan().count() == 19
        lake.drop_table("new.t")
        lake.upgrade_table("new.t", str(place))


def test_another_writer_of_the_folder_wins_and_the_upgrade_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = as_folder(tmp_path)
    with lake_on(tmp_path) as lake:
        write_new, done = LocalStore.write_new, []

        def beaten(store: LocalStore, location: str, content: bytes) -> None:
            if location.endswith("/v3.metadata.json") and not done:
                done.append(location)
                commit_to_folder(place, 3)
            write_new(store, location, content)

        monkeypatch.setattr(LocalStore, "write_new", beaten)
        lake.upgrade_table("new.t", str(place))
        assert done
        assert lake.table("new.t").properties["written-by"] == "another"
        left = [each.name for each in (place / "metadata").glob("0000[0-9]-*gz.metadata.json")]
        assert len(left) == 1, "what the lost try wrote is gone"


def test_an_upgrade_of_a_folder_that_was_cut_off_before_the_name_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = as_folder(tmp_path)
    with lake_on(tmp_path) as lake:
        with monkeypatch.context() as patch:
            patch.setattr(lake.catalog, "create", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                lake.upgrade_table("new.t", str(place))
        files = everything(place)
        lake.upgrade_table("new.t", str(place))
        assert everything(place) == files
        lake.table("new.t").append(rows(100, 1))
        lake.drop_table("new.t")
        with pytest.raises(InvalidInput, match="has gone on since"):
            lake.upgrade_table("new.t", str(place))


@pytest.mark.parametrize("verb", ["upgrade_table", "trial_table"])
def test_killed_at_any_write_the_folder_is_as_it_was_or_the_next_try_goes_on(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_new = LocalStore.write_new
    place = as_folder(tmp_path)
    with lake_on(tmp_path) as lake:
        for cut in range(10):
            writes: list[str] = []

            def dying(
                store: LocalStore,
                location: str,
                content: bytes,
                cut: int = cut,
                writes: list[str] = writes,
            ) -> None:
                if len(writes) == cut:
                    raise KeyboardInterrupt
                writes.append(location)
                write_new(store, location, content)

            with monkeypatch.context() as patch:
                patch.setattr(LocalStore, "write_new", dying)
                # A process that is killed cleans nothing up.
                patch.setattr(LocalStore, "delete", lambda *_: None)
                try:
                    getattr(lake, verb)("new.t", str(place))
                    break
                except KeyboardInterrupt:
                    assert not lake.table_exists("new.t")
        assert cut > 0
        assert lake.table("new.t").scan().count() == 19
        findings = lake.table("new.t").verify(deep=True).findings
        assert findings == ()


def test_a_metadata_file_gets_a_name(tmp_path: Path) -> None:
    theirs = old_table(tmp_path)
    before = sorted_rows(theirs.scan().to_arrow())
    with lake_on(tmp_path) as lake:
        lake.drop_table("db.old")
        lake.upgrade_table("new.t", theirs.metadata_location)
        require_alive(lake, "new.t", before)
        with pytest.raises(AlreadyExists, match=r"new\.t exists"):
            lake.upgrade_table("new.t", theirs.metadata_location)


@pytest.mark.parametrize(
    ("source", "error"),
    [("/nowhere/at/all", NotFound), ("/nowhere/metadata/v1.metadata.json", NotFound)],
)
def test_a_place_without_a_table_is_no_source(
    tmp_path: Path, source: str, error: type[Exception]
) -> None:
    with lake_on(tmp_path) as lake:
        with pytest.raises(error, match="nowhere"):
            lake.upgrade_table("new.t", source)
        assert not lake.table_exists("new.t")


def test_a_copied_table_whose_files_are_named_in_full_is_refused(tmp_path: Path) -> None:
    place = as_folder(tmp_path)
    copy = tmp_path / "copy"
    shutil.copytree(place, copy)
    files = everything(tmp_path / "lake")
    with lake_on(tmp_path) as lake, pytest.raises(InvalidInput, match="named in full"):
        lake.upgrade_table("new.t", str(copy))
    assert everything(tmp_path / "lake") == files


CANNOT = {
    "encrypted": (
        lambda m: replace(
            m, encryption_keys=(EncryptionKey(key_id="k", encrypted_key_metadata="eA=="),)
        ),
        "is encrypted",
    ),
    "v4 already": (lambda m: m, "v4 already"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_what_cannot_be_kept_is_refused_with_the_reason(tmp_path: Path, case: str) -> None:
    theirs = old_table(tmp_path)
    change, why = CANNOT[case]
    path = Path(theirs.metadata_location.removeprefix("file://"))
    metadata = metadata_codec.decode(path.read_bytes(), file=str(path))
    bad = path.with_name("00099-bad.metadata.json")
    bad.write_bytes(metadata_codec.encode(change(metadata), compress=False))
    with lake_on(tmp_path) as lake:
        lake.register_table("new.t", str(bad))
        if case == "v4 already":
            lake.upgrade_table("new.t")
        at = lake.table("new.t").state.metadata_location
        told = lake.upgrade_table("new.t", dry_run=True)
        assert told.reason is not None
        assert why in told.reason
        assert (told.does, told.gains) == ((), ())
        with pytest.raises(Unsupported, match=why):
            lake.upgrade_table("new.t")
        if case != "v4 already":
            with pytest.raises(Unsupported, match=why):
                lake.table("new.t").upgrade()
        assert lake.table("new.t").state.metadata_location == at
