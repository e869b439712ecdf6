"""What only an object store can do wrong, on a real server behind a wire that can be cut."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from icetree.errors import AlreadyExists, InvalidInput, NotFound, Unavailable
from icetree.store import object as object_store
from icetree.store.base import NotDeleted, Store
from icetree.store.open import store_for
from tests.servers.proxy import Wire, wire_to
from tests.servers.s3 import S3Server


@pytest.fixture
def wire(s3: S3Server) -> Iterator[Wire]:
    with wire_to(s3.port) as wire:
        yield wire


@pytest.fixture
def wired(s3: S3Server, wire: Wire) -> Store:
    return store_for("s3://", s3.properties(port=wire.port))


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_FIRST_WAIT_S", 0.01)


def test_a_write_whose_answer_was_lost_succeeds(wire: Wire, wired: Store, bucket: str) -> None:
    wire.cut_answer = f"PUT /{bucket}/lost-answer".encode()
    wired.write_new(f"s3://{bucket}/lost-answer", b"mine")
    assert wire.cut_answer is None
    assert wired.read(f"s3://{bucket}/lost-answer") == b"mine"


def test_a_write_that_never_arrived_is_sent_again(wire: Wire, wired: Store, bucket: str) -> None:
    wire.cut_request = f"PUT /{bucket}/lost-request".encode()
    wired.write_new(f"s3://{bucket}/lost-request", b"mine")
    assert wire.cut_request is None
    assert wired.read(f"s3://{bucket}/lost-request") == b"mine"


@pytest.mark.parametrize("theirs", [b"they", b"longer"])
def test_after_a_lost_request_the_file_of_another_is_not_taken_for_ones_own(
    wire: Wire, wired: Store, s3: S3Server, bucket: str, theirs: bytes
) -> None:
    at = f"s3://{bucket}/theirs-{len(theirs)}"
    store_for(at, s3.properties()).write_new(at, theirs)
    wire.cut_request = f"PUT /{bucket}/theirs".encode()
    with pytest.raises(AlreadyExists, match="theirs"):
        wired.write_new(at, b"mine")
    assert wire.cut_request is None
    assert wired.read(at) == theirs


def test_a_read_whose_answer_was_lost_is_asked_again(wire: Wire, wired: Store, bucket: str) -> None:
    at = f"s3://{bucket}/read-again"
    wired.write_new(at, b"0123456789")
    for ask, expected in (
        (lambda: wired.read(at), b"0123456789"),
        (lambda: wired.read_range(at, offset=2, length=3), b"234"),
        (lambda: wired.open(at).read(), b"0123456789"),
    ):
        wire.cut_answer = f"GET /{bucket}/read-again".encode()
        assert ask() == expected
        assert wire.cut_answer is None


def test_a_listing_that_broke_off_between_pages_is_whole_all_the_same(
    wire: Wire, wired: Store, bucket: str
) -> None:
    files = [(f"s3://{bucket}/pages/{number:04}", b"") for number in range(1_010)]
    wired.write_many(files)
    wire.cut_request = b"continuation-token"
    assert [info.location for info in wired.list(f"s3://{bucket}/pages")] == [
        location for location, _ in files
    ]
    assert wire.cut_request is None


def test_a_server_that_is_not_there_is_named_after_a_few_tries(s3: S3Server, bucket: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    store = store_for("s3://", {**s3.properties(port=port), "s3.retry.num-retries": "2"})
    with pytest.raises(Unavailable, match=rf"127.0.0.1:{port}.*s3://{bucket}/x.*s3.endpoint"):
        store.read(f"s3://{bucket}/x")
    with pytest.raises(Unavailable, match=f"s3://{bucket}/x"):
        store.write_new(f"s3://{bucket}/x", b"1")
    with pytest.raises(Unavailable, match=f"s3://{bucket}/x"):
        store.exists(f"s3://{bucket}/x")
    with pytest.raises(Unavailable, match=f"s3://{bucket}/x"):
        store.delete([f"s3://{bucket}/x"])
    with pytest.raises(Unavailable, match=f"s3://{bucket}"):
        [*store.list(f"s3://{bucket}")]


def test_a_server_that_never_answers_is_given_up_in_time(s3: S3Server, bucket: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        patience = {"s3.request-timeout": "0.2", "s3.retry.num-retries": "2"}
        store = store_for("s3://", {**s3.properties(port=port), **patience})
        started = time.monotonic()
        with pytest.raises(Unavailable, match=f"s3://{bucket}/x"):
            store.write_new(f"s3://{bucket}/x", b"1")
        assert 0.6 <= time.monotonic() - started < 5


@pytest.mark.parametrize("wrong", ["s3.access-key-id", "s3.secret-access-key"])
def test_wrong_credentials_are_refused_at_once(s3: S3Server, bucket: str, wrong: str) -> None:
    store = store_for("s3://", {**s3.properties(), wrong: "wrong"})
    with pytest.raises(InvalidInput, match=rf"s3://{bucket}/x.*credentials"):
        store.read(f"s3://{bucket}/x")
    with pytest.raises(InvalidInput, match=rf"s3://{bucket}/x.*credentials"):
        store.write_new(f"s3://{bucket}/x", b"1")


def test_no_secret_is_told_in_an_error(s3: S3Server, bucket: str) -> None:
    store = store_for("s3://", {**s3.properties(), "s3.access-key-id": "wrong"})
    with pytest.raises(InvalidInput) as refused:
        store.read(f"s3://{bucket}/x")
    assert s3.secret_key not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_bucket_is_said_to_be_missing(s3: S3Server) -> None:
    store = store_for("s3://", s3.properties())
    with pytest.raises(NotFound, match="bucket"):
        store.read("s3://no-such-bucket/x")
    with pytest.raises(NotFound, match="bucket"):
        store.write_new("s3://no-such-bucket/x", b"1")


@pytest.mark.parametrize("key", ["", "/x", "a//b", "a/", "a/../b", "./a"])
def test_a_key_that_the_client_would_change_is_refused(s3: S3Server, bucket: str, key: str) -> None:
    store = store_for("s3://", s3.properties())
    with pytest.raises(InvalidInput, match=bucket):
        store.write_new(f"s3://{bucket}/{key}", b"1")


def test_without_conditional_put_existence_is_checked_first(s3: S3Server, bucket: str) -> None:
    store = store_for("s3://", {**s3.properties(), "s3.conditional-put": "false"})
    store.write_new(f"s3://{bucket}/unconditional", b"1")
    with pytest.raises(AlreadyExists, match="unconditional"):
        store.write_new(f"s3://{bucket}/unconditional", b"2")
    assert store.read(f"s3://{bucket}/unconditional") == b"1"


def test_opening_a_small_file_and_reading_its_end_is_one_request(
    wire: Wire, wired: Store, bucket: str
) -> None:
    at = f"s3://{bucket}/footer"
    wired.write_new(at, bytes(200_000) + b"footer")
    with wired.open(at) as file:
        wire.cut_request = f"GET /{bucket}/footer".encode()
        file.seek(200_000)
        assert file.read() == b"footer"
        assert wire.cut_request is not None, "the end was asked for again"
        wire.cut_request = None
        file.seek(0)
        assert file.read() == bytes(200_000) + b"footer"


def test_other_spellings_of_the_scheme_mean_the_same_file(s3: S3Server, bucket: str) -> None:
    store = store_for("s3a://", s3.properties())
    store.write_new(f"s3a://{bucket}/spelt/file", b"1")
    assert store.read(f"s3://{bucket}/spelt/file") == b"1"
    assert [info.location for info in store.list(f"s3a://{bucket}/spelt")] == [
        f"s3a://{bucket}/spelt/file"
    ]


def test_files_that_are_refused_alike_are_not_tried_one_by_one(
    s3: S3Server, wire: Wire, bucket: str
) -> None:
    names = [f"s3://{bucket}/kept/{number:03}" for number in range(200)]
    refused = store_for("s3://", {**s3.properties(port=wire.port), "s3.access-key-id": "wrong"})
    with pytest.raises(NotDeleted, match=rf"s3://{bucket}/kept/.*credentials") as told:
        refused.delete(names)
    assert told.value.locations == {*names}
    assert wire.requests < 20
