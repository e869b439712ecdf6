"""Encrypted tables over time: maintenance, other keys, expiry, and commits that are cut off."""

from __future__ import annotations

import tempfile
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replaced

import icetree
from icetree.errors import CommitConflict, CorruptTable, IcetreeError, InvalidInput, Unsupported
from icetree.keys.local import LocalKeys
from icetree.rows.write.deletes import write_data_vectors
from icetree.rows.write.order import in_order
from icetree.spec.metadata.metadata import EncryptionKey, TableMetadata
from icetree.table.lake import Lake
from icetree.table.scan.planning import planner
from icetree.table.table import Table
from tests.table.encryption.lake import (
    EXPECTED,
    KEY,
    NAMES,
    SCHEMA,
    SMALL,
    VALUES,
    WRONG,
    connected,
    numbers,
    rows,
    texts_in,
)


def test_maintenance_keeps_a_table_encrypted(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY) as lake:
        table = lake.table("db.t")
        table.remove_tag("before")
        keep = table.maintenance
        keep.rewrite_data_files()
        keep.rewrite_position_delete_files()
        keep.compute_table_stats()
        with pytest.raises(Unsupported, match="no place for the key"):
            keep.compute_partition_stats()
        keep.expire_snapshots(retain_last=1, older_than="2100-01-01")
        assert numbers(lake.table("db.t")) == EXPECTED
        report = lake.table("db.t").verify(deep=True)
        assert report.is_clean, str(report)
    assert texts_in(tmp_lake / "lake", *VALUES) == {}
    found = texts_in(tmp_lake / "lake", *NAMES)
    assert {name.rpartition("/")[2].partition(".")[2] for name in found} == {"gz.metadata.json"}


def test_sorting_more_rows_than_memory_holds_leaves_no_value_in_temporary_files(
    tmp_lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aside = tmp_path / "aside"
    aside.mkdir()

    def kept(**_: object) -> object:
        return tempfile.NamedTemporaryFile(dir=aside, delete=False)

    monkeypatch.setattr(tempfile, "TemporaryFile", kept)
    monkeypatch.setitem(in_order.__kwdefaults__, "held_bytes", 500)
    with connected(tmp_lake, k=KEY) as lake:
        for order in ({"strategy": "sort", "order_by": "n"}, {"order_by": "zorder(n, city)"}):
            done = lake.table("db.t").maintenance.rewrite_data_files(
                **order, options={"rewrite-all": "true"}
            )
            assert done.rewritten_data_files_count > 1
            assert numbers(lake.table("db.t")) == EXPECTED
        assert lake.table("db.t").verify(deep=True).is_clean
    magics = {path.read_bytes()[:4] for path in aside.iterdir()}
    assert magics == {b"AGS1"}
    assert texts_in(aside, *VALUES, *NAMES) == {}


def test_statistics_have_one_key_and_verify_opens_them(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY) as lake:
        table = lake.table("db.t")
        before = len(table.metadata.encryption_keys)
        for _ in range(3):
            table.maintenance.compute_table_stats()
        table.refresh()
        assert len(table.metadata.encryption_keys) == before + 1
        [told] = table.metadata.statistics
        path = Path(table.location) / told.statistics_path
        whole = path.read_bytes()
        for at in (10, len(whole) // 2, len(whole) - 1):
            flipped = bytearray(whole)
            flipped[at] ^= 1
            path.write_bytes(flipped)
            [finding] = table.verify(deep=True, snapshots="current").findings
            assert finding.kind.value == "lost statistics"
            assert "is not what was encrypted" in finding.rule
        path.write_bytes(whole)
        assert table.verify(deep=True, snapshots="current").is_clean


def test_keys_of_expired_snapshots_go_with_them(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY) as lake:
        table = lake.table("db.t")
        table.remove_tag("before")
        table.maintenance.expire_snapshots(retain_last=1, older_than="2100-01-01")
        kept = lake.table("db.t").metadata
        assert len(kept.snapshots) == 1
        used = {kept.snapshots[0].key_id}
        assert {key.key_id for key in kept.encryption_keys if key.encrypted_by_id != "k"} == used
        assert numbers(lake.table("db.t")) == EXPECTED


def test_whether_a_table_has_a_key_is_chosen_when_it_is_made(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY) as lake:
        table, plain = lake.table("db.t"), lake.create_table("db.plain", SCHEMA)
        for change in (
            lambda: table.set_properties({"encryption.key-id": ""}),
            lambda: table.remove_properties("encryption.key-id"),
            lambda: plain.set_properties({"encryption.key-id": "k"}),
        ):
            with pytest.raises(InvalidInput, match="is chosen when it is made"):
                change()
        table.set_properties({"note": "all else may change"})
        with pytest.raises(InvalidInput, match="data-key-length='17'"):
            lake.create_table(
                "db.bad", SCHEMA, properties=SMALL | {"encryption.data-key-length": "17"}
            )
        with connected(tmp_lake) as other, pytest.raises(InvalidInput, match="has no keys"):
            other.create_table("db.none", SCHEMA, properties=SMALL)
        assert not lake.table_exists("db.none")
        lake.create_table("db.l", SCHEMA, properties=SMALL | {"encryption.data-key-length": "32"})
        lake.table("db.l").append(rows(1))
        assert numbers(lake.table("db.l")) == [1]


def test_another_key_of_a_table_opens_all_of_it_alone(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY, new=WRONG) as lake:
        table = lake.table("db.t")
        table.maintenance.compute_table_stats()
        late = lake.table("db.t")
        before = {key.key_id for key in table.refresh().metadata.encryption_keys}
        snapshots = len(table.metadata.snapshots)
        table.set_properties({"encryption.key-id": "new"})
        assert len(table.refresh().metadata.snapshots) == snapshots
        keys = table.metadata.encryption_keys
        [fresh] = [key for key in keys if key.key_id not in before]
        late.append(rows(2000))
        sealed = {
            key.key_id: key.encrypted_by_id for key in table.refresh().metadata.encryption_keys
        }
        # What is new is under a key that nobody with the former one could ever open.
        assert table.snapshot() is not None
        assert sealed[table.snapshot().key_id] == fresh.key_id
        assert "k" not in sealed.values()
    with connected(tmp_lake, new=WRONG) as lake:
        table = lake.table("db.t")
        assert numbers(table) == [*EXPECTED, 2000]
        assert table.scan("n = 22", at="before").to_arrow()["diagnosis"].to_pylist() == ["hush-22"]
        assert table.verify(deep=True).is_clean
        table.append(rows(2001))
        table.maintenance.rewrite_manifests()
        assert numbers(lake.table("db.t")) == [*EXPECTED, 2000, 2001]
    with connected(tmp_lake, k=KEY) as lake, pytest.raises(InvalidInput, match="no key 'new'"):
        lake.table("db.t").scan().to_arrow()
    assert texts_in(tmp_lake / "lake", *VALUES) == {}


def _versions(tmp_path: Path, *keys: bytes) -> Lake:
    path = tmp_path / f"versions-{len(keys)}-{keys[-1][:4].decode()}"
    path.write_text("\n".join(f"k={at}:{b64encode(key).decode()}" for at, key in enumerate(keys)))
    return icetree.connect(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=str(tmp_path / "lake"),
        properties={"encryption.key-file": str(path)},
    )


def test_a_newer_version_of_a_key_opens_all_of_a_table_alone_once_the_key_is_set_again(
    tmp_lake: Path,
) -> None:
    with _versions(tmp_lake, KEY, WRONG) as lake:
        table = lake.table("db.t")
        assert numbers(table) == EXPECTED
        before = table.metadata.encryption_keys
        table.append(rows(2000))
        assert len(table.refresh().metadata.encryption_keys) == len(before) + 1
        late = lake.table("db.t")
        snapshots = len(table.metadata.snapshots)
        table.set_properties({"encryption.key-id": "k"})
        after = table.refresh().metadata
        assert len(after.snapshots) == snapshots
        by_table = [key for key in after.encryption_keys if key.encrypted_by_id == "k"]
        [fresh] = [key for key in by_table if key.key_id not in {each.key_id for each in before}]
        late.append(rows(2001))
        sealed = {
            key.key_id: key.encrypted_by_id for key in table.refresh().metadata.encryption_keys
        }
        # What is new is under a key that nobody with the former version could ever open.
        assert sealed[table.snapshot().key_id] == fresh.key_id
        # All is of the newest version: there is nothing to do.
        keys = table.refresh().metadata.encryption_keys
        table.set_properties({"encryption.key-id": "k"})
        assert table.refresh().metadata.encryption_keys == keys
    with connected(tmp_lake, k=WRONG) as lake:
        table = lake.table("db.t")
        assert numbers(table) == [*EXPECTED, 2000, 2001]
        assert table.scan("n = 22", at="before").to_arrow()["diagnosis"].to_pylist() == ["hush-22"]
        assert table.verify(deep=True).is_clean
        table.append(rows(2002))
    with connected(tmp_lake, k=KEY) as lake, pytest.raises(InvalidInput, match="is not the one"):
        lake.table("db.t").scan().to_arrow()
    assert texts_in(tmp_lake / "lake", *VALUES) == {}


def test_a_keeper_that_tells_no_versions_wraps_again_whenever_the_key_is_set(
    tmp_lake: Path,
) -> None:
    class Plain:
        """Asks another keeper, and says nothing of versions."""

        def __init__(self, keeper: LocalKeys) -> None:
            self.wrap, self.unwrap = keeper.wrap, keeper.unwrap

    with connected(tmp_lake, k=KEY) as known:
        lake = Lake(
            catalog=known.catalog,
            store=known.store,
            warehouse=known.warehouse,
            keeper=Plain(LocalKeys({"k": KEY})),
        )
        table = lake.table("db.t")
        was = {
            key.key_id: key for key in table.metadata.encryption_keys if key.encrypted_by_id == "k"
        }
        table.set_properties({"encryption.key-id": "k"})
        now = {key.key_id: key for key in table.refresh().metadata.encryption_keys}
        assert all(
            now[id].encrypted_key_metadata != key.encrypted_key_metadata for id, key in was.items()
        )
        assert numbers(table) == EXPECTED


def test_a_key_is_changed_with_both_at_hand_or_not_at_all(tmp_lake: Path) -> None:
    there = sorted(tmp_lake.rglob("lake/**/*"))
    for keys, why in (
        ({"k": KEY}, "there is no key 'new' in .*, which has 'k'"),
        ({"new": WRONG}, "there is no key 'k' in .*, which has 'new'"),
        ({"k": WRONG, "new": WRONG}, "key 'k' of .* is not the one"),
        ({}, "has no keys"),
    ):
        with connected(tmp_lake, **keys) as lake:
            with pytest.raises(InvalidInput, match=why) as error:
                lake.table("db.t").set_properties({"encryption.key-id": "new"})
            assert "\n" not in str(error.value)
    assert sorted(tmp_lake.rglob("lake/**/*")) == there
    with connected(tmp_lake, k=KEY) as lake:
        assert numbers(lake.table("db.t")) == EXPECTED


def test_plain_files_are_not_added_to_an_encrypted_table(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY) as lake:
        plain = lake.create_table("db.plain", SCHEMA)
        plain.append(rows(7))
        [theirs] = (tmp_lake / "lake" / "db" / "plain" / "data").rglob("*.parquet")
        table = lake.table("db.t")
        with pytest.raises(InvalidInput, match="is not encrypted"):
            table.add_files([str(theirs)])
        entries = plain.scan().plan().tasks
        assert entries.num_rows == 1
        assert numbers(lake.table("db.t")) == EXPECTED


def test_a_commit_does_not_land_on_a_table_that_was_encrypted_meanwhile(tmp_path: Path) -> None:
    with connected(tmp_path, k=KEY) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", SCHEMA, properties=SMALL)
        properties = {name: value for name, value in SMALL.items() if "encryption" not in name}
        lake.table("db.t").set_properties({"note": "another commit"})
        plain = replaced(table.metadata, properties=properties)
        table.state = replace(table.state, metadata=plain)
        with pytest.raises(CommitConflict, match=r"encryption\.key-id"):
            table.append(rows(1))
        assert not list((tmp_path / "lake").rglob("*.parquet"))


LOOSE = EncryptionKey(key_id="k", encrypted_key_metadata="eA==")
SIGNS: dict[str, Callable[[TableMetadata], TableMetadata]] = {
    "keys": lambda metadata: replaced(metadata, encryption_keys=(LOOSE,)),
    "a snapshot's key": lambda metadata: replaced(
        metadata, snapshots=tuple(replaced(each, key_id="k") for each in metadata.snapshots)
    ),
}


def vectors(table: Table) -> object:
    plan = planner(table.files, table.metadata, table.snapshot(), stats_columns=True).whole()
    return write_data_vectors(
        {plan.tasks["location"][0].as_py(): [0]},
        tasks=plan.tasks,
        metadata=table.metadata,
        store=table.files.store,
    )


WRITES: dict[str, Callable[[Table], object]] = {
    "append": lambda table: table.append(rows(1)),
    "append_files": lambda table: table.append_files([]),
    "vectors": vectors,
}


@pytest.mark.parametrize("sign", SIGNS)
def test_a_table_that_does_not_name_its_key_is_not_written_to(sign: str, tmp_path: Path) -> None:
    with connected(tmp_path) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", SCHEMA)
        table.append(rows(1, 2, 3))
        table.scan().to_arrow()
        table.state = replace(table.state, metadata=SIGNS[sign](table.metadata))
        there = sorted(tmp_path.rglob("*"))
        for write in WRITES.values():
            with pytest.raises((Unsupported, CorruptTable), match=r"is encrypted|needs encryption"):
                write(table)
        assert sorted(tmp_path.rglob("*")) == there


def test_nothing_is_lost_when_a_commit_is_cut_off_anywhere(tmp_lake: Path) -> None:
    """Keys come with the swap: whatever is left behind before it is no part of the table."""

    class Cut(Exception):
        pass

    with connected(tmp_lake, k=KEY) as lake:
        for step in range(12):
            table = lake.table("db.t")
            store, left = table.files.store, [step]
            write_new = type(store).write_new

            def cutting(
                self: object,
                *args: object,
                left: list[int] = left,
                write_new: Callable[..., None] = write_new,
            ) -> None:
                left[0] -= 1
                if left[0] < 0:
                    raise Cut
                write_new(self, *args)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(type(store), "write_new", cutting)
                patch.setattr(
                    type(store),
                    "write_many",
                    lambda self, files: [self.write_new(*each) for each in files],
                )
                try:
                    table.delete(f"n = {2 * step + 30}")
                except (Cut, IcetreeError):
                    gone = False
                else:
                    gone = True
            now = numbers(lake.table("db.t"))
            assert (2 * step + 30 not in now) == gone
            if gone:
                break
        assert gone
        assert lake.table("db.t").verify(deep=True).is_clean
