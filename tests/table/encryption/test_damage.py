"""Encrypted files without the right key, damaged, in each other's place, or plain: none is read."""

from __future__ import annotations

import shutil
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as replaced

from icetree.codec.metadata import encode
from icetree.errors import CorruptTable, InvalidInput
from icetree.spec.metadata.metadata import TableMetadata
from icetree.table.table import Table
from icetree.tree.reading import leaves_in
from tests.table.encryption.lake import KEY, SCHEMA, WRONG, connected, rows


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
