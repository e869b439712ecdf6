"""Files in S3 for clients without keys: lent ones, which reach one table and no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs
from pyiceberg.catalog.rest import RestCatalog

import icetree
from icetree.errors import InvalidInput, Unavailable
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.files.vending import can_lend
from icetree.serve.server import Server
from icetree.store.s3_options import options_of
from icetree.store.s3_signing import Keys
from icetree.store.sts import lend
from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.listening import listening
from tests.servers.s3 import ROLE, S3Server, shared_s3

GRANTS = f"""
clients:
  reader:
    token: {digest_of("reader")}
    read: db
  writer:
    token: {digest_of("writer")}
    write: db
"""
TABLE = "/v1/namespaces/db/tables/t"
ASKED = "vended-credentials"


@pytest.fixture(scope="module")
def s3() -> S3Server:
    return shared_s3()


@pytest.fixture(scope="module")
def lake(s3: S3Server) -> Iterator[Lake]:
    bucket = s3.new_bucket()
    lending = {"s3.sts.role-arn": ROLE, "s3.sts.endpoint": s3.endpoint, "s3.sts.lifetime": "900"}
    properties = {**s3.properties(), **lending}
    with icetree.connect(
        "memory://", warehouse=f"s3://{bucket}/lake", properties=properties
    ) as lake:
        lake.create_namespace("db")
        for name in ("t", "t2"):
            lake.create_table(f"db.{name}", pa.schema([("id", pa.int64())])).append(
                pa.table({"id": [1, 2, 3]})
            )
        yield lake


@pytest.fixture(scope="module")
def server(lake: Lake) -> Server:
    return Server(lake, Access(grants=grants_in(GRANTS, "grants")))


def client(server: Server, who: str) -> Client:
    return Client(server, {"authorization": f"Bearer {who}"})


def files(told: dict[str, str], s3: S3Server) -> fs.S3FileSystem:
    """Return S3 as a client has it that knows nothing but what the server told."""
    assert told["s3.endpoint"] == s3.endpoint
    return fs.S3FileSystem(
        endpoint_override=told["s3.endpoint"],
        access_key=told["s3.access-key-id"],
        secret_key=told["s3.secret-access-key"],
        session_token=told["s3.session-token"],
        region=told["s3.region"],
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
    )


def may(filesystem: fs.S3FileSystem, what: str, path: str) -> bool:
    """Tell whether something can be done to a file."""
    with suppress(OSError):
        match what:
            case "read":
                filesystem.open_input_stream(path).read()
            case "write":
                with filesystem.open_output_stream(path) as writing:
                    writing.write(b"x")
            case "delete":
                filesystem.delete_file(path)
            case "list":
                filesystem.get_file_info(fs.FileSelector(path, recursive=True))
        return True
    return False


def export_of(lake: Lake, name: str) -> str:
    """Return where the manifest list of a table's export lies, which is there."""
    table = lake.table(name)
    listed = table.export().manifest_list
    assert listed is not None
    assert table.files.store.exists(listed)
    return listed.removeprefix("s3://")


def test_keys_are_lent_that_reach_one_table_and_do_what_its_client_may(
    server: Server, lake: Lake, s3: S3Server
) -> None:
    own, other = (lake.table(f"db.{name}").location.removeprefix("s3://") for name in ("t", "t2"))
    metadata = lake.table("db.t").state.metadata_location.removeprefix("s3://")
    for who in ("reader", "writer"):
        told = client(server, who).get(TABLE, x_iceberg_access_delegation=ASKED).json
        [lent] = told["storage-credentials"]
        assert lent["prefix"] == f"s3://{own}/"
        assert lent["config"].items() <= told["config"].items()
        there = files(told["config"], s3)
        is_writer = who == "writer"
        assert may(there, "read", metadata)
        assert may(there, "list", own)
        assert may(there, "write", f"{own}/data/new.parquet") == is_writer
        assert may(there, "write", f"{own}/metadata/snap-1.avro") == is_writer
        # What makes the table what it is is the server's to write, and so are exports; other tables
        # are nobody's.
        exported = export_of(lake, "db.t")
        assert may(there, "read", exported)
        for path in (
            metadata,
            exported,
            f"{own}/metadata/00009-x.metadata.json",
            f"{own}/metadata/r.parquet",
            f"{own}/metadata/export/a/v3/snap-1-2.avro",
            f"{own}/metadata/a/x.stats",
        ):
            assert not may(there, "write", path)
            assert not may(there, "delete", path)
        for what in ("read", "write", "list"):
            assert not may(there, what, f"{other}/data/x" if what != "list" else other)
        assert not may(
            there, "read", lake.table("db.t2").state.metadata_location.removeprefix("s3://")
        )
        assert may(there, "delete", f"{own}/data/new.parquet") == is_writer
    assert lake.table("db.t").scan().count() == 3


def test_keys_are_lent_only_to_who_asks_and_may(server: Server) -> None:
    reader = client(server, "reader")
    assert "storage-credentials" not in reader.get(TABLE).json
    both = reader.get(TABLE, x_iceberg_access_delegation=f"remote-signing, {ASKED}").json["config"]
    assert "s3.session-token" in both
    assert "s3.remote-signing-enabled" not in both
    signed = reader.get(TABLE, x_iceberg_access_delegation="remote-signing").json["config"]
    assert "s3.session-token" not in signed
    again = reader.get(f"{TABLE}/credentials").json["storage-credentials"]
    # The same ones, while most of their time is left.
    assert again[0]["config"]["s3.session-token"] == both["s3.session-token"]
    assert both["client.refresh-credentials-endpoint"] == f"{TABLE}/credentials"[1:]
    assert Client(server, {}).get(f"{TABLE}/credentials").status == 401
    assert reader.get("/v1/namespaces/db/tables/no/credentials").status == 404


def test_a_client_that_has_the_table_comes_again_for_keys_in_time(server: Server) -> None:
    reader = client(server, "reader")
    tag = reader.get(TABLE, x_iceberg_access_delegation=ASKED).headers["etag"]
    assert reader.get(TABLE, if_none_match=tag).status == 200


def test_no_keys_are_lent_for_a_folder_that_a_policy_would_read_as_several(lake: Lake) -> None:
    options = lake.store.s3_options()  # type: ignore[attr-defined]
    assert can_lend(options, "s3://b/lake/db/t")
    for sign in "*?$":
        assert not can_lend(options, f"s3://b/lake/db/{sign}")


def test_a_service_that_refuses_or_is_not_there_is_told_without_keys(s3: S3Server) -> None:
    keys = Keys(access_key_id=s3.access_key, secret_access_key="wrong", region="us-east-1")
    for endpoint, told in ((s3.endpoint, "lends no keys of the role: 403"), ("http://127.0.0.1:1", "lends no keys")):  # fmt: skip
        options = options_of({"s3.sts.role-arn": ROLE, "s3.sts.endpoint": endpoint})
        with pytest.raises(Unavailable, match=told) as error:
            lend(options, keys, {"Version": "2012-10-17", "Statement": []}, session="tests")
        assert "wrong" not in str(error.value)


@pytest.mark.parametrize("lifetime", ["0", "899", "43201", "x"])
def test_keys_last_as_long_as_the_service_allows(lifetime: str) -> None:
    with pytest.raises(InvalidInput, match=r"s3\.sts\.lifetime"):
        options_of({"s3.sts.lifetime": lifetime})


def test_stock_pyiceberg_reads_and_writes_with_lent_keys_alone(server: Server, lake: Lake) -> None:
    with listening(server) as there:
        header: dict[str, Any] = {"header.X-Iceberg-Access-Delegation": ASKED}
        catalog = RestCatalog(
            "rest", uri=f"http://127.0.0.1:{there.port}", token="writer", **header
        )
        table = catalog.load_table("db.t2")
        table.append(pa.table({"id": [4]}))
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3, 4]
    assert lake.table("db.t2").scan().count() == 4
