"""Tables anywhere: which stores a connection opens, and for whom."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import icetree
from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput, NotFound
from icetree.spec.entry.entry import Entry
from icetree.table.lake import Lake
from tests.servers.s3 import shared_s3

ROWS = pa.table({"n": [1, 2, 3]})
_WITH_ID = pa.field("n", pa.int64(), metadata={"PARQUET:field_id": "1"})


def connect(tmp_path: Path, **properties: str) -> Lake:
    lake = icetree.connect(f"sqlite:///{tmp_path}/c.db", properties=properties)
    lake.create_namespace("db", exist_ok=True)
    return lake


def test_tables_of_any_store_are_in_one_lake(tmp_path: Path) -> None:
    """A local warehouse with tables in S3 and in memory; no warehouse at all to read them."""
    s3 = shared_s3()
    keys = s3.properties()
    places = {
        "here": None,
        "s3": f"s3://{s3.new_bucket()}/t",
        "memory": f"memory://{tmp_path.name}/t",
    }
    with connect(tmp_path, warehouse=str(tmp_path / "w"), **keys) as lake:
        for name, location in places.items():
            table = lake.create_table(f"db.{name}", ROWS.schema, location=location)
            table.append(ROWS)
    with connect(tmp_path, **keys) as lake:
        for name in places:
            assert lake.table(f"db.{name}").scan().to_arrow() == ROWS
            assert lake.table(f"db.{name}").verify(deep=True).is_clean


def test_a_local_table_is_in_a_lake_of_s3(tmp_path: Path) -> None:
    s3 = shared_s3()
    with connect(tmp_path, warehouse=f"s3://{s3.new_bucket()}/w", **s3.properties()) as lake:
        table = lake.create_table("db.t", ROWS.schema, location=str(tmp_path / "t"))
        table.append(ROWS)
        again = lake.register_table("db.again", table.state.metadata_location)
        assert again.scan().to_arrow() == ROWS


@pytest.fixture
def secret(tmp_path: Path) -> Entry:
    """A file on the disk of whoever runs this."""
    at = tmp_path / "secret.parquet"
    pq.write_table(pa.table([ROWS["n"]], schema=pa.schema([_WITH_ID])), at)
    return Entry(location=at.as_uri(), record_count=3, file_size_in_bytes=at.stat().st_size)


def test_a_table_opens_no_other_kind_of_store_than_its_own(tmp_path: Path, secret: Entry) -> None:
    """Whoever may write to a bucket must not have the reader's own disk read."""
    with connect(tmp_path, **{"io.stores": "s3, file"}) as trusting:
        table = trusting.create_table("db.t", ROWS.schema, location=f"memory://{tmp_path.name}/t")
        table.append_files([secret])
        assert table.scan().to_arrow() == ROWS
    with connect(tmp_path) as lake:
        table = lake.table("db.t")
        for ask in (lambda: table.scan().to_arrow(), lambda: table.append_files([secret])):
            with pytest.raises(
                InvalidInput, match=r"file:///.*another kind of store.*io.stores=file"
            ):
                ask()


def test_where_a_table_lies_is_for_its_catalog_to_say(tmp_path: Path) -> None:
    """Metadata that says of itself to be on the disk is in memory all the same."""
    with connect(tmp_path) as lake:
        table = lake.create_table("db.t", ROWS.schema, location=f"memory://{tmp_path.name}/t")
        table.append(ROWS)
        lie = replace(table.metadata, location=(tmp_path / "t").as_uri())
        at = f"memory://{tmp_path.name}/t/metadata/lie.metadata.json"
        lake.store.write_new(at, metadata_codec.encode(lie))
        lake.catalog.swap(table.name, expected=table.state.metadata_location, to=at)
        lying = lake.table("db.t")
        with pytest.raises(InvalidInput, match="another kind of store"):
            lying.scan().to_arrow()
        with pytest.raises(InvalidInput, match="another kind of store"):
            lying.append(ROWS)
    assert not (tmp_path / "t").exists()


def test_new_files_stay_in_the_kind_of_store_too(tmp_path: Path) -> None:
    with connect(tmp_path) as lake:
        table = lake.create_table("db.t", ROWS.schema, location=f"memory://{tmp_path.name}/t")
        table.set_properties({"write.data.path": (tmp_path / "elsewhere").as_uri()})
        with pytest.raises(InvalidInput, match="another kind of store"):
            table.append(ROWS)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"s3.acces-key-id": "k"}, "did you mean 's3.access-key-id'"),
        ({"warehose": "/w"}, "'warehose' is no property of a connection; did you mean 'warehouse'"),
        ({"url": "memory://"}, "'url' is no property of a connection; did you mean 'uri'"),
        ({"s3.role-arn": "x"}, "'s3.role-arn' is no property of a connection"),
        ({"io.stores": "memry"}, "io.stores has 'memry'.*did you mean 'memory'"),
        ({"gcs.request-timeout": "soon"}, "gcs.request-timeout is 'soon'"),
        ({"adls.account-key": "aGVsbG8="}, "adls.account-name"),
    ],
)
def test_a_connection_refuses_what_it_does_not_know(given: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        icetree.connect("memory://", properties=given)
    assert "aGVsbG8=" not in str(refused.value)


def test_a_configuration_may_hold_what_is_for_other_clients(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__SHARED__S3__ROLE_ARN", "x")
    (tmp_path / ".pyiceberg.yaml").write_text(
        "catalog:\n  shared:\n    uri: memory://\n    echo: true\n    s3.signer: theirs\n"
    )
    with icetree.connect("shared") as lake:
        assert lake.tables() == []


def test_tables_of_all_namespaces_are_listed(tmp_path: Path) -> None:
    with connect(tmp_path, warehouse=str(tmp_path)) as lake:
        lake.create_namespace("a.b")
        names = ["a.b.u", "db.s", "db.t"]
        for name in names:
            lake.create_table(name, ROWS.schema)
        assert lake.tables() == names


def test_a_table_that_exists_is_fine_where_that_is_said(tmp_path: Path) -> None:
    with connect(tmp_path, warehouse=str(tmp_path)) as lake:
        first = lake.create_table("db.t", ROWS.schema, exist_ok=True)
        first.append(ROWS)
        again = lake.create_table("db.t", pa.schema([("other", pa.string())]), exist_ok=True)
        assert again.metadata.table_uuid == first.metadata.table_uuid
        assert again.scan().to_arrow() == ROWS


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("db.orderz", "there is no table db.orderz .*; did you mean db.orders[?]"),
        ("db.zzz", "there are db.orders$"),
        ("shopp.orders", "nor a namespace shopp; did you mean shop[?]"),
        ("zzz.orders", "there are the namespaces db"),
    ],
)
def test_a_table_that_is_not_there_is_told_with_those_that_are(
    tmp_path: Path, name: str, says: str
) -> None:
    with connect(tmp_path, warehouse=str(tmp_path)) as lake:
        lake.create_namespace("shop")
        lake.create_table("db.orders", ROWS.schema)
        with pytest.raises(NotFound, match=says):
            lake.table(name)
