"""Files in S3 for clients without keys: the server signs their requests, and only those it should."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

import pyarrow as pa
import pytest
from msgspec.structs import replace

import icetree
from icetree.codec.metadata import encode
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.server import Server
from icetree.store.s3_signing import Keys, signed
from icetree.surroundings import Machine, within
from icetree.table.lake import Lake
from tests.serve.asking import Client, Told
from tests.servers.s3 import S3Server, shared_s3

GRANTS = f"""
clients:
  reader:
    token: {digest_of("reader")}
    read: db
  writer:
    token: {digest_of("writer")}
    write: db
"""
SIGN = "/v1/namespaces/db/tables/t/sign"


@pytest.fixture(scope="module")
def s3() -> S3Server:
    return shared_s3()


@pytest.fixture(scope="module")
def lake(s3: S3Server) -> Iterator[Lake]:
    bucket = s3.new_bucket()
    with icetree.connect("memory://", warehouse=f"s3://{bucket}/lake", properties=s3.properties()) as lake:  # fmt: skip
        lake.create_namespace("db")
        for name in ("t", "other"):
            lake.create_table(f"db.{name}", pa.schema([("id", pa.int64())])).append(
                pa.table({"id": [1, 2, 3]})
            )
        yield lake


@pytest.fixture
def reader(lake: Lake) -> Client:
    access = Access(grants=grants_in(GRANTS, "grants"))
    return Client(Server(lake, access), {"authorization": "Bearer reader"})


@pytest.fixture
def writer(reader: Client) -> Client:
    return Client(reader.server, {"authorization": "Bearer writer"})


def ask(client: Client, method: str, uri: str, body: str | None = None, **headers: str) -> Told:
    sent = {name.replace("_", "-"): [value] for name, value in headers.items()}
    request = {"method": method, "uri": uri, "region": "us-east-1", "headers": sent, "body": body, "provider": "s3"}  # fmt: skip
    return client.post(SIGN, request)


def send(method: str, uri: str, told: Told, body: bytes | None = None) -> tuple[int, bytes]:
    """Make a request to S3 with what the server answered, and nothing else."""
    assert told.status == 200, told.body
    place = urlsplit(uri)
    connection = HTTPConnection(place.netloc, timeout=20)
    headers = {name: ", ".join(values) for name, values in told.json["headers"].items()}
    path = f"{place.path}?{place.query}" if place.query else place.path
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.read()
    connection.close()
    return answer.status, found


def uri_of(s3: S3Server, location: str) -> str:
    return f"{s3.endpoint}/{quote(location.removeprefix('s3://'))}"


def test_a_client_is_told_where_s3_is_and_that_the_server_signs_if_it_asks(
    reader: Client, s3: S3Server
) -> None:
    table = "/v1/namespaces/db/tables/t"
    plain = reader.get(table).json["config"]
    assert plain["s3.endpoint"] == s3.endpoint
    assert "s3.remote-signing-enabled" not in plain
    asked = reader.get(table, x_iceberg_access_delegation="vended-credentials, remote-signing")
    config = asked.json["config"]
    assert config["s3.remote-signing-enabled"] == "true"
    assert f"/{config['s3.signer.endpoint']}" == SIGN
    assert not {s3.access_key, s3.secret_key} & {*config.values()}
    assert s3.secret_key not in asked.body.decode()


def test_a_client_that_has_the_table_is_told_of_the_signer_all_the_same(reader: Client) -> None:
    table = "/v1/namespaces/db/tables/t"
    asks = {"x_iceberg_access_delegation": "remote-signing"}
    tag = reader.get(table).headers["etag"]
    told = reader.get(table, if_none_match=tag, **asks)
    assert told.json["config"]["s3.remote-signing-enabled"] == "true"
    assert reader.get(table, if_none_match=told.headers["etag"], **asks).status == 304
    assert reader.get(table, if_none_match=tag).status == 304


def test_files_of_the_table_are_read_written_listed_and_deleted(
    reader: Client, writer: Client, lake: Lake, s3: S3Server
) -> None:
    table = lake.table("db.t")
    metadata = uri_of(s3, table.state.metadata_location)
    status, found = send("GET", metadata, ask(reader, "GET", metadata))
    assert (status, found) == (200, lake.store.read(table.state.metadata_location))
    new = uri_of(s3, f"{table.location}/data/né w={uuid4()}.parquet")
    assert send("PUT", new, ask(writer, "PUT", new), b"content")[0] == 200
    assert send("GET", new, ask(reader, "GET", new))[1] == b"content"
    bucket, _, folder = table.location.removeprefix("s3://").partition("/")
    listing = f"{s3.endpoint}/{bucket}?list-type=2&prefix={quote(folder, safe='')}%2Fdata%2F"
    status, found = send("GET", listing, ask(reader, "GET", listing))
    assert (status, b"<Key>" in found) == (200, True)
    assert send("DELETE", new, ask(writer, "DELETE", new))[0] == 204
    assert send("HEAD", new, ask(reader, "HEAD", new))[0] == 404


@pytest.mark.parametrize("name", ["x-amz-te", "x-amz-checksum-mode", "x-amz-user-agent"])
def test_headers_of_s3_that_a_client_sends_along_are_signed(
    reader: Client, lake: Lake, s3: S3Server, name: str
) -> None:
    """Iceberg Java asks for trailing checksums by `x-amz-te`; S3 refuses it where it is not signed."""
    location = lake.table("db.t").state.metadata_location
    uri, value = uri_of(s3, location), "ENABLED"
    told = ask(reader, "GET", uri, **{name.replace("-", "_"): value})
    assert name not in told.json["headers"], "a client may add what it is told to what it has"
    every = {"headers": told.json["headers"] | {name: [value]}}
    sent = Told(status=200, headers={}, body=json.dumps(every).encode())
    assert send("GET", uri, sent) == (200, lake.store.read(location))


def test_a_file_that_is_there_is_not_replaced(writer: Client, lake: Lake, s3: S3Server) -> None:
    [file] = lake.table("db.t").scan().plan().tasks["location"].to_pylist()
    location = f"{lake.table('db.t').location}/{file}"
    before, uri = lake.store.read(location), uri_of(s3, location)
    told = ask(writer, "PUT", uri)
    assert told.json["headers"]["if-none-match"] == ["*"]
    assert send("PUT", uri, told, b"other")[0] == 412
    # Nor is it by who leaves out what was asked for, or asks for something else itself.
    for other in ({}, {"if-none-match": ["no-such-tag"]}):
        forged = Told(
            status=200,
            headers={},
            body=json.dumps({"headers": _without(told.json["headers"]) | other}).encode(),
        )
        assert send("PUT", uri, forged, b"other")[0] == 403
    assert ask(writer, "PUT", uri, if_none_match="no-such-tag").json["headers"]["if-none-match"] == ["*"]  # fmt: skip
    assert lake.store.read(location) == before


def _without(headers: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: each for name, each in headers.items() if name != "if-none-match"}


def test_parts_become_an_object_where_there_is_none(
    writer: Client, reader: Client, lake: Lake, s3: S3Server
) -> None:
    new = uri_of(s3, f"{lake.table('db.t').location}/data/{uuid4()}.parquet")
    assert (
        "if-none-match" not in ask(writer, "PUT", f"{new}?partNumber=1&uploadId=x").json["headers"]
    )
    assert "if-none-match" not in ask(writer, "POST", f"{new}?uploads").json["headers"]
    assert ask(writer, "POST", f"{new}?uploadId=x").json["headers"]["if-none-match"] == ["*"]
    assert "if-none-match" not in ask(writer, "DELETE", new).json["headers"]
    started = send("POST", f"{new}?uploads", ask(writer, "POST", f"{new}?uploads"))
    id = started[1].partition(b"<UploadId>")[2].partition(b"<")[0].decode()
    part, end = f"{new}?partNumber=1&uploadId={id}", f"{new}?uploadId={id}"
    assert send("PUT", part, ask(writer, "PUT", part), b"content")[0] == 200
    tag = f'"{hashlib.md5(b"content").hexdigest()}"'
    body = f"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{tag}</ETag></Part></CompleteMultipartUpload>"  # fmt: skip
    assert send("POST", end, ask(writer, "POST", end), body.encode())[0] == 200
    assert send("GET", new, ask(reader, "GET", new))[1] == b"content"


def test_several_objects_are_deleted_by_the_very_body_that_was_signed_where_that_is_compared(
    tmp_path: Path,
) -> None:
    """By AWS itself: the S3 server of these tests takes any other body as well."""
    keys = {"s3.access-key-id": "key", "s3.secret-access-key": "secret", "s3.region": "us-east-1"}
    with icetree.connect("memory://", warehouse=str(tmp_path), properties=keys) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        at = "s3://bucket/lake/db/t/metadata/00001-x.metadata.json"
        lake.catalog.swap(table.name, expected=table.state.metadata_location, to=at)
        client, uri = Client(Server(lake)), "https://bucket.s3.us-east-1.amazonaws.com/?delete"
        body = "<Delete><Object><Key>lake/db/t/a&amp;b</Key></Object><Quiet>true</Quiet></Delete>"
        told = ask(client, "POST", uri, body)
        digest = hashlib.sha256(body.encode()).hexdigest()
        assert told.json["headers"]["x-amz-content-sha256"] == [digest]
        for other in (
            "lake/db/u/x",
            "lake/db/t/../u",
            "lake/db/t/metadata/1.metadata.json",
            "&#x6c;",
            "<![CDATA[lake/db/u/x]]>",
        ):
            more = body.replace("<Quiet>", f"<Object><Key>{other}</Key></Object><Quiet>")
            assert ask(client, "POST", uri, more).status in (400, 403), other
        elsewhere = uri.replace("bucket.s3", "bucket.evil.s3")
        assert ask(client, "POST", elsewhere, body).status == 403
        assert ask(client, "GET", "https://s3.amazonaws.com/bucket/lake/db/t/x").status == 200


def outside(s3: S3Server, lake: Lake) -> list[tuple[str, str, str | None, dict[str, str]]]:
    """Requests that a client would like to have signed, and may not."""
    table, other = lake.table("db.t"), lake.table("db.other")
    bucket, _, folder = table.location.removeprefix("s3://").partition("/")
    inside = uri_of(s3, f"{table.location}/data/x")
    theirs = uri_of(s3, other.state.metadata_location)
    away = other.location.removeprefix(f"s3://{bucket}/")
    key = f"<Object><Key>{folder}/x</Key></Object>"
    delete = f"{s3.endpoint}/{bucket}?delete"
    found: list[tuple[str, str, str | None, dict[str, str]]] = [
        ("GET", theirs, None, {}),
        ("GET", inside.replace("/t/", "/t/../other/"), None, {}),
        ("GET", inside.replace("/t/", "/t/%2E%2E/other/"), None, {}),
        ("GET", inside.replace("/t/", "/t2/"), None, {}),
        ("GET", inside.replace("/db/t/data/x", "/db/t"), None, {}),
        ("GET", inside.replace(s3.endpoint, "http://evil.example"), None, {}),
        ("GET", inside.replace("http://", "http://u@"), None, {}),
        ("GET", inside.replace("http:", "https:"), None, {}),
        ("GET", inside.replace(f"/{bucket}/", "/another/"), None, {}),
        ("GET", f"{s3.endpoint}/{bucket}", None, {}),
        ("GET", f"{s3.endpoint}/", None, {}),
        ("GET", f"{s3.endpoint}/{bucket}?list-type=2&prefix=lake", None, {}),
        ("GET", f"{s3.endpoint}/{bucket}?list-type=2&prefix={folder}", None, {}),
        ("GET", f"{s3.endpoint}/{bucket}?list-type=2&prefix={folder}/&policy", None, {}),
        ("GET", f"{s3.endpoint}/{bucket}?list-type=2&prefix=&prefix={folder}/", None, {}),
        ("GET", f"{s3.endpoint}/{bucket}?list-type=2&prefix={folder}/&prefix=", None, {}),
        ("GET", "https://[x/y", None, {}),
        ("PUT", f"{inside}?acl", None, {}),
        ("PUT", f"{inside}?tagging", None, {}),
        ("PUT", inside, None, {"x_amz_copy_source": f"/{bucket}/{away}/metadata/x"}),
        ("PUT", inside, None, {"x_amz_acl": "public-read"}),
        ("PUT", inside, None, {"X_Amz_Grant_Read": "everybody"}),
        ("PUT", f"{s3.endpoint}/{bucket}", None, {}),
        ("PATCH", inside, None, {}),
        ("DELETE", f"{s3.endpoint}/{bucket}", None, {}),
        ("POST", delete, f"<Delete>{key}</Delete>", {}),
        ("POST", delete, None, {}),
    ]  # fmt: skip
    return found


def test_what_is_not_about_files_of_the_table_is_not_signed(
    writer: Client, lake: Lake, s3: S3Server
) -> None:
    for method, uri, body, headers in outside(s3, lake):
        told = ask(writer, method, uri, body, **headers)
        assert told.status in (400, 403), (method, uri, body, headers)
        assert "authorization" not in told.body.decode().lower()


def test_files_that_say_what_the_table_is_are_signed_for_nobody_to_write(
    writer: Client, lake: Lake, s3: S3Server
) -> None:
    table = lake.table("db.t")
    head = table.state.metadata_location
    folder = f"{table.location}/metadata"
    ours = [each.location for each in lake.store.list(folder)]
    assert head in ours
    names = ("x.metadata.json", "x-0-dv0.puffin", "version-hint.text", "export/h/v3/snap-1.avro")
    ours += [f"{folder}/{name}" for name in names]
    ours += [f"{table.location}//metadata/x.json", f"{table.location}/./metadata/x.json"]
    for location in ours:
        uri = uri_of(s3, location)
        for method, query in (("PUT", ""), ("DELETE", ""), ("POST", "?uploads")):
            assert ask(writer, method, uri + query).status == 403, (method, location)
    for name in ("snap-1-x.avro", "x-m0.avro", "x.stats", "partition-stats-1-x.parquet"):
        assert ask(writer, "PUT", uri_of(s3, f"{folder}/{name}")).status == 200, name


def test_what_a_table_s_own_files_say_moves_no_signature_elsewhere(
    writer: Client, lake: Lake, s3: S3Server
) -> None:
    """Whoever could write the newest metadata, by whatever way, gets no other table's files."""
    table = lake.create_table(f"db.m{uuid4().hex}", pa.schema([("id", pa.int64())]))
    above = table.location.rpartition("/db/")[0]
    at = f"{table.location}/metadata/00001-forged.metadata.json"
    lake.store.write_new(at, encode(replace(table.metadata, location=above)))
    lake.catalog.swap(table.name, expected=table.state.metadata_location, to=at)
    theirs = uri_of(s3, lake.table("db.other").state.metadata_location)
    path = SIGN.replace("/t/", f"/{table.name.name}/")
    asked = {"method": "GET", "uri": theirs, "region": "us-east-1", "headers": {}}
    assert writer.post(path, asked).error == (403, "ForbiddenException")


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_a_reader_gets_nothing_signed_that_changes(
    reader: Client, lake: Lake, s3: S3Server, method: str
) -> None:
    uri = uri_of(s3, f"{lake.table('db.t').location}/data/x")
    assert ask(reader, method, uri).error == (403, "ForbiddenException")


def test_a_table_that_is_not_in_s3_needs_nothing_signed(tmp_path: Any) -> None:
    with icetree.connect("memory://", warehouse=str(tmp_path)) as lake:
        lake.create_namespace("db")
        lake.create_table("db.t", pa.schema([("id", pa.int64())]))
        client = Client(Server(lake))
        told = client.get(
            "/v1/namespaces/db/tables/t", x_iceberg_access_delegation="remote-signing"
        )
        assert told.json["config"] == {}
        assert ask(client, "GET", "https://b.s3.amazonaws.com/x").status == 406


def test_a_request_of_aws_own_example_is_signed_as_they_do() -> None:
    """GET Object of the Amazon S3 documents, "Signature Calculations: Single Chunk"."""

    class Then(Machine):
        def now_ms(self) -> int:
            return 1_369_353_600_000

    keys = Keys(access_key_id="AKIAIOSFODNN7EXAMPLE", secret_access_key="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region="us-east-1")  # fmt: skip
    empty = hashlib.sha256(b"").hexdigest()
    with within(Then()):
        told = signed("GET", "https://examplebucket.s3.amazonaws.com/test.txt", {"range": "bytes=0-9"}, keys, content_sha256=empty)  # fmt: skip
    assert told["authorization"].endswith(
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
    )
    assert json.dumps(told).count("wJalr") == 0
    assert "wJalr" not in repr(keys)
