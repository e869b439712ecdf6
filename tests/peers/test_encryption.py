"""Iceberg Java and icetree open each other's encrypted tables, with the same key."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icetree
from icetree.table.lake import Lake
from tests.java import IcebergJava, iceberg_java
from tests.java_encryption import EncryptingJava
from tests.table.encryption.lake import texts_in

KEY, NEW = b"0123456789012345", b"98765432109876543210987654321098"
COLUMNS = ["n", "diagnosis"]


@pytest.fixture(scope="module")
def java() -> Iterator[IcebergJava]:
    with iceberg_java() as started:
        yield started


@pytest.fixture(scope="module")
def encrypting(java: IcebergJava) -> EncryptingJava:
    return EncryptingJava(java)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    keys = tmp_path / "keys"
    keys.write_text(f"k = {b64encode(KEY).decode()}\nnew = {b64encode(NEW).decode()}")
    lake = icetree.connect(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=str(tmp_path / "lake"),
        properties={"encryption.key-file": str(keys)},
    )
    lake.create_namespace("db")
    return lake


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers, "diagnosis": [f"hush-{n}" for n in numbers]})


def test_java_reads_the_export_of_an_encrypted_table(
    java: IcebergJava, encrypting: EncryptingJava, lake: Lake
) -> None:
    table = lake.create_table(
        "db.t",
        rows(1).schema,
        properties={"encryption.key-id": "k", "write.root.max-data-entries": "2"},
    )
    for start in range(0, 20, 4):
        table.append(rows(*range(start, start + 4)))
    table.delete("n in (3, 17)")
    exported = table.export()
    opened = encrypting.opened(exported.metadata_location, "k", KEY)
    expected = sorted((str(n), f"hush-{n}") for n in range(20) if n not in (3, 17))
    assert java.rows(opened, COLUMNS) == expected
    assert texts_in(Path(table.location), b"hush-") == {}
    # Exported once more, it has other keys, and both are good.
    again = table.export()
    assert again.manifest_list != exported.manifest_list
    for each in (exported, again):
        opened = encrypting.opened(each.metadata_location, "k", KEY)
        assert java.rows(opened, COLUMNS) == expected
    with pytest.raises(Exception, match="no key k"):
        java.rows(encrypting.opened(again.metadata_location, "other", KEY), COLUMNS)
    # With another key of the table it needs that alone.
    table.set_properties({"encryption.key-id": "new"})
    opened = encrypting.opened(table.refresh().export().metadata_location, "new", NEW)
    assert java.rows(opened, COLUMNS) == expected


def test_an_encrypted_table_of_java_is_read_and_upgraded(
    java: IcebergJava, encrypting: EncryptingJava, lake: Lake, tmp_path: Path
) -> None:
    folder = tmp_path / "java" / "t"
    made = encrypting.made(str(folder), "k", KEY)
    assert texts_in(folder, b"hush-") == {}
    lake.register_table("db.j", made)
    table = lake.table("db.j")
    expected = {1: "hush-a", 2: "hush-b", 3: "hush-c", 4: "hush-d"}
    found = table.scan().to_arrow()
    assert dict(zip(*(found[name].to_pylist() for name in COLUMNS), strict=True)) == expected
    assert table.verify(deep=True).is_clean
    lake.upgrade_table("db.j")
    table = lake.table("db.j")
    table.append(rows(9))
    table.delete("n in (2, 3)")
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 4, 9]
    assert table.verify(deep=True).is_clean
    assert texts_in(folder, b"hush-") == {}
    opened = encrypting.opened(table.export().metadata_location, "k", KEY)
    assert java.rows(opened, COLUMNS) == [("1", "hush-a"), ("4", "hush-d"), ("9", "hush-9")]


def test_java_reads_a_table_that_went_back_to_v3(
    java: IcebergJava, encrypting: EncryptingJava, lake: Lake
) -> None:
    table = lake.create_table("db.t", rows(1).schema, properties={"encryption.key-id": "k"})
    table.append(rows(1, 2, 3))
    table.delete("n = 2")
    table.create_tag("kept")
    lake.downgrade_table("db.t")
    table = lake.table("db.t")
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 3]
    opened = encrypting.opened(table.state.metadata_location, "k", KEY)
    assert java.rows(opened, COLUMNS) == [("1", "hush-1"), ("3", "hush-3")]
