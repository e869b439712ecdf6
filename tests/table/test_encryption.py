"""An encrypted table: all verbs work with its keys, and nobody else finds a value anywhere."""

from __future__ import annotations

import gzip
import io
import shutil
import tempfile
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from msgspec.structs import replace as replaced
from pyarrow import orc

import icetree
from icetree.cli.main import cli
from icetree.codec.metadata import encode
from icetree.errors import CommitConflict, CorruptTable, IcetreeError, InvalidInput, Unsupported
from icetree.explore.entry import entry
from icetree.rows.order import in_order
from icetree.rows.write_deletes import write_data_vectors
from icetree.spec.metadata import EncryptionKey, TableMetadata
from icetree.table.lake import Lake
from icetree.table.scan.planning import planner
from icetree.table.table import Table
from icetree.tree.reading import leaves_in

KEY, WRONG = b"0123456789012345", b"1123456789012345"
#: Values, and names of columns, that nobody may find.
VALUES = (b"hush-", b"Zanzibar")
NAMES = (b"diagnosis", b"city")
SCHEMA = pa.schema([("n", pa.int64()), ("diagnosis", pa.string()), ("city", pa.string())])
#: Small, so that few rows make leaves, manifest DVs in Puffin and all else there is.
SMALL = {
    "encryption.key-id": "k",
    "write.root.max-data-entries": "3",
    "write.root.max-delete-entries": "3",
    "write.manifest-dv.inline-max-bytes": "0",
}


def key_file(tmp_path: Path, **keys: bytes) -> str:
    path = tmp_path / "-".join(["keys", *(key[:4].decode() for key in keys.values())])
    path.write_text("\n".join(f"{id}={b64encode(key).decode()}" for id, key in keys.items()))
    return str(path)


def connected(tmp_path: Path, **keys: bytes) -> Lake:
    return icetree.connect(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=str(tmp_path / "lake"),
        properties={"encryption.key-file": key_file(tmp_path, **keys)} if keys else None,
    )


def rows(*numbers: int) -> pa.Table:
    return pa.table(
        {
            "n": numbers,
            "diagnosis": [f"hush-{n}" for n in numbers],
            "city": ["Zanzibar" if n % 2 else "Zanzibar-2" for n in numbers],
        },
        schema=SCHEMA,
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake in which every kind of file is."""
    tmp_path = tmp_path_factory.mktemp("made")
    with connected(tmp_path, k=KEY) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", SCHEMA, partition_by="city", properties=SMALL)
        for start in range(0, 60, 10):
            table.append(rows(*range(start, start + 10)))
        table.create_tag("before")
        table.delete("n = 5")
        table.delete("n in (6, 15)")
        table.delete("city = 'Zanzibar' and n < 10")
        table.update({"diagnosis": "'hush-new'"}, "n = 22")
        table.upsert(rows(1, 1000), on=["n"])
        table.merge(rows(22, 23), on=["n"]).when_matched_delete().run()
        table.maintenance.rewrite_manifests()
    return tmp_path


@pytest.fixture
def tmp_lake(made: Path, tmp_path: Path) -> Path:
    """A copy of that lake, to be changed; locations are those of the copy."""
    with connected(made, k=KEY) as lake, connected(tmp_path, k=KEY) as ours:
        at = lake.backup_table("db.t", str(tmp_path / "lake" / "db" / "t"))
        ours.create_namespace("db")
        ours.register_table("db.t", at)
    return tmp_path


EXPECTED = sorted({n for n in range(60) if n % 2 == 0 or n > 10} - {5, 6, 15, 22, 23} | {1, 1000})


def numbers(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["n"].to_pylist())


def texts_in(folder: Path, *words: bytes) -> dict[str, list[bytes]]:
    """Return the words that files have, or their names, as they are or unpacked."""
    found: dict[str, list[bytes]] = {}
    for path in sorted(folder.rglob("*")):
        content = unpacked(path.read_bytes()) if path.is_file() else b""
        content += str(path.relative_to(folder)).encode()
        if there := [word for word in words if word in content]:
            found[str(path.relative_to(folder))] = there
    return found


def unpacked(content: bytes) -> bytes:
    """Return a file's bytes and all that stock readers get out of it, as whoever has no key."""
    rows: object = b""
    if content.startswith(b"\x1f\x8b"):
        return gzip.decompress(content)
    if content.startswith(b"PAR1"):
        rows = pq.read_table(pa.BufferReader(content)).to_pydict()
    elif content.startswith(b"ORC"):
        rows = orc.ORCFile(pa.BufferReader(content)).read().to_pydict()
    elif content.startswith(b"Obj\1"):
        rows = list(fastavro.reader(io.BytesIO(content)))
    return content + repr(rows).encode()


#: What data files begin with that are encrypted, by their format.
SEALED = {"parquet": b"PARE", "orc": b"AGS1", "avro": b"AGS1"}


@pytest.mark.parametrize("format", SEALED)
def test_a_search_finds_values_in_plain_files_of_every_format_and_in_no_encrypted_one(
    format: str, tmp_path: Path
) -> None:
    place = tmp_path / "lake" / "db"
    with connected(tmp_path, k=KEY) as lake:
        lake.create_namespace("db")
        for name in ("plain", "secret"):
            # Stock readers know gzip without more.
            properties = {
                **SMALL,
                "write.format.default": format,
                "write.avro.compression-codec": "gzip",
            }
            if name == "plain":
                del properties["encryption.key-id"]
            table = lake.create_table(f"db.{name}", SCHEMA, properties=properties)
            for start in range(0, 50, 10):
                table.append(rows(*range(start, start + 10)))
            table.delete("n in (3, 14)")
            assert numbers(table) == [n for n in range(50) if n not in (3, 14)]
            assert table.verify(deep=True).is_clean
    plain = texts_in(place / "plain", *VALUES)
    files = [path.relative_to(place / "plain") for path in (place / "plain" / "data").rglob("*")]
    written = [str(each) for each in files if each.suffix == f".{format}"]
    assert len(written) == 5
    for each in written:
        assert plain.get(each) == list(VALUES), each
    # Roots and leaves have bounds, which are values.
    assert any(each.startswith("metadata/") for each in plain)
    assert texts_in(place / "secret", *VALUES) == {}
    assert {name.partition("/")[0] for name in texts_in(place / "secret", *NAMES)} == {"metadata"}
    found = (place / "secret" / "data").rglob(f"*.{format}")
    assert {path.read_bytes()[:4] for path in found} == {SEALED[format]}


def test_every_verb_works_with_the_key(made: Path) -> None:
    with connected(made, k=KEY) as lake:
        table = lake.table("db.t")
        assert numbers(table) == EXPECTED
        assert table.scan("n = 22", at="before").to_arrow()["diagnosis"].to_pylist() == ["hush-22"]
        assert table.scan("n = 24").count() == 1
        net = table.changes("before").to_arrow(net=True)
        assert {"INSERT", "DELETE"} <= set(net["_change_type"].to_pylist())
        report = table.verify(deep=True)
        assert report.is_clean, str(report)
        assert report.counts["data_dvs"] > 0
        assert table.explain("n = 24", row_groups=True)


def test_no_value_is_found_in_any_file_nor_in_any_name(made: Path) -> None:
    kinds = {path.suffix for path in (made / "lake").rglob("*")}
    assert {".parquet", ".puffin", ".json"} <= kinds
    assert texts_in(made / "lake", *VALUES) == {}


def test_names_of_columns_are_in_table_metadata_alone(made: Path) -> None:
    found = texts_in(made / "lake", *NAMES)
    assert found
    assert {name.rpartition("/")[2].partition(".")[2] for name in found} == {"gz.metadata.json"}


def test_every_file_is_of_a_kind_that_the_specification_encrypts(made: Path) -> None:
    magics = {
        path.suffix: path.read_bytes()[:4]
        for path in (made / "lake").rglob("*")
        if path.suffix != ".json" and path.is_file()
    }
    assert magics.pop(".puffin") == b"AGS1"
    for folder, magic in (("data", b"PARE"), ("metadata", b"AGS1")):
        for path in (made / "lake" / "db" / "t" / folder).rglob("*.parquet"):
            assert path.read_bytes()[:4] == magic


def test_without_the_right_key_one_sentence_says_so_and_nothing_is_written(tmp_lake: Path) -> None:
    there = sorted(tmp_lake.rglob("lake/**/*"))
    for keys, why in (
        ({}, "encrypted with key 'k', and this connection has no keys"),
        ({"other": KEY}, "there is no key 'k' in .*, which has 'other'"),
        ({"k": WRONG}, "key 'k' of .* is not the one that the table was encrypted with"),
    ):
        with connected(tmp_lake, **keys) as lake:
            table = lake.table("db.t")
            for verb in (
                lambda table=table: table.scan().to_arrow(),
                lambda table=table: table.append(rows(1)),
                lambda table=table: table.delete("n = 2"),
                lambda table=table: table.verify(deep=True),
                lambda table=table: table.changes().to_arrow(),
                lambda table=table: table.maintenance.rewrite_data_files(),
            ):
                with pytest.raises(InvalidInput, match=why) as error:
                    verb()
                assert "\n" not in str(error.value)
                assert b64encode(KEY).decode() not in str(error.value)
    assert sorted(tmp_lake.rglob("lake/**/*")) == there


def one_of_each(table: Table) -> dict[str, tuple[Path, Path]]:
    """Return, by kind, a file that the newest snapshot needs, and another of the same kind."""
    tasks, place = table.scan().plan().tasks, Path(table.location)
    roots = [each.root_file for each in table.history()]
    leaves = table.inspect.manifests()["path"].to_pylist()
    names = {
        "data": tasks["location"].to_pylist(),
        "data DV": tasks["dv_location"].drop_null().unique().to_pylist(),
        "leaf": [*leaves, *roots],
        "root": roots,
    }
    return {kind: (place / some[0], place / some[1]) for kind, some in names.items()}


def test_damage_and_files_in_each_others_place_are_found(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY) as lake:
        table = lake.table("db.t")
        table.delete("n = 30")
        table.delete("n = 32")
        kinds = one_of_each(table)
    for kind, (path, other) in kinds.items():
        whole = path.read_bytes()
        flipped = bytearray(whole)
        flipped[len(whole) // 2] ^= 1
        for changed in (whole[:-1], bytes(flipped), other.read_bytes()):
            path.write_bytes(changed)
            with connected(tmp_lake, k=KEY) as lake:
                assert lake.table("db.t").verify(deep=True, snapshots="current").findings, kind
        path.write_bytes(whole)
    with connected(tmp_lake, k=KEY) as lake:
        root, _ = kinds["root"]
        root.write_bytes(root.read_bytes()[:-1])
        with pytest.raises(CorruptTable, match="not whole"):
            lake.table("db.t").scan().to_arrow()


def test_a_plain_file_in_the_place_of_an_encrypted_one_is_not_read(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY) as lake:
        plain = lake.create_table("db.plain", SCHEMA)
        plain.append(rows(*range(60)))
        [theirs] = (tmp_lake / "lake" / "db" / "plain" / "data").rglob("*.parquet")
        for path in (tmp_lake / "lake" / "db" / "t" / "data").rglob("*.parquet"):
            shutil.copy(theirs, path)
        with pytest.raises(CorruptTable, match="not encrypted, though its entry has key metadata"):
            lake.table("db.t").scan().to_arrow()


def forged(tmp_lake: Path, change: Callable[[TableMetadata, Table], TableMetadata]) -> None:
    """Write over the table's metadata file; `change` is told of a plain table, which has a row."""
    with connected(tmp_lake, k=KEY) as lake:
        plain = lake.create_table("db.plain", SCHEMA)
        plain.append(rows(666))
        state = lake.table("db.t").state
        made = change(state.metadata, plain)
        Path(state.metadata_location).write_bytes(encode(made, compress=True))


def require_found(tmp_lake: Path) -> None:
    """Whatever is asked of the newest snapshot, it is found not to be the table's own."""
    with connected(tmp_lake, k=KEY) as lake:
        for verb in (
            lambda: lake.table("db.t").scan().to_arrow(),
            lambda: lake.table("db.t").append(rows(7)),
            lambda: lake.table("db.t").scan("n = 1").plan(),
        ):
            with pytest.raises(CorruptTable, match="is plain"):
                verb()
        [finding] = lake.table("db.t").verify(deep=True, snapshots="current").findings
        assert "is plain" in str(finding)


@pytest.mark.parametrize("kept", ["manifest_list", "root_manifest"])
def test_a_plain_root_that_metadata_names_is_not_read(kept: str, tmp_lake: Path) -> None:
    def change(metadata: TableMetadata, plain: Table) -> TableMetadata:
        theirs = plain.snapshot()
        assert theirs is not None
        *others, newest = metadata.snapshots
        if kept == "root_manifest":
            root = {"root_manifest": f"{plain.location}/{theirs.root_manifest}"}
        else:
            root = {"root_manifest": None, "manifest_list": f"{plain.location}/metadata/x.avro"}
        return replaced(metadata, snapshots=(*others, replaced(newest, key_id=None, **root)))

    forged(tmp_lake, change)
    require_found(tmp_lake)


def test_a_plain_leaf_is_not_read(tmp_lake: Path) -> None:
    with connected(tmp_lake, k=KEY) as lake:
        table = lake.table("db.t")
        root = table.files.root(table.snapshot(), table.metadata.shape())
        for leaf in leaves_in(root):
            for size in (leaf.size_bytes, 1 << 40):
                forged = replace(leaf, key_metadata=None, size_bytes=size)
                with pytest.raises(CorruptTable, match="is plain"):
                    table.files.reader(table.metadata.shape()).leaf(forged)


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
        for order in ({"strategy": "sort", "sort_order": "n"}, {"sort_order": "zorder(n, city)"}):
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


def test_no_door_shows_a_key(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with connected(made, k=KEY) as lake:
        table = lake.table("db.t")
        plan = table.scan().plan()
        secrets = [each[2:18] for each in plan.tasks["key_metadata"].to_pylist()]
        secrets += [KEY, b64encode(KEY), KEY.hex().encode()]
        inspected = [
            getattr(table.inspect, name)().to_pylist() for name in ("files", "entries", "manifests")
        ]
        first = plan.tasks["location"][0].as_py()
        leaf = plan.tasks["leaf"][0].as_py()
        inspected.append(entry(table, file=first, leaf=leaf))
        shown = [lake, table, table.files, table.files.ring, table.state, lake.keeper, inspected]
        text = " ".join(map(repr, shown)) + caplog.text
        assert secrets
        for secret in secrets:
            assert repr(secret)[2:-1] not in text
            assert secret.hex() not in text
            assert b64encode(secret).decode() not in text


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


def test_the_command_line_reads_with_keys_and_shows_none(made: Path) -> None:
    address = ["--catalog", f"sqlite:///{made}/catalog.db"]
    given = ["--property", f"encryption.key-file={key_file(made, k=KEY)}"]
    with connected(made, k=KEY) as lake:
        plan = lake.table("db.t").scan().plan()
        secrets = [each[2:18] for each in plan.tasks["key_metadata"].to_pylist()]
    for asked in (["files"], ["plan"], ["tree"], ["describe"], ["verify", "--deep"]):
        ran = CliRunner().invoke(cli, [*address, *given, *asked, "db.t", "--json"])
        assert ran.exit_code == 0, (asked, ran.output)
        for secret in (*secrets, KEY):
            for shown in (repr(secret)[2:-1], secret.hex(), b64encode(secret).decode()):
                assert shown not in ran.output
    ran = CliRunner().invoke(cli, [*address, "files", "db.t"])
    assert ran.exit_code != 0
    assert "this connection has no keys" in ran.output
