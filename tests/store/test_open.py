"""Which store a location gets, and how properties and the environment shape it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from icetree.errors import InvalidInput, Unsupported
from icetree.store.local import LocalStore
from icetree.store.open import EveryStore, store_for
from icetree.store.places import bucket_and_key, local_path
from icetree.store.s3_options import options_of
from tests.servers.s3 import S3Server


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REGION", "DEFAULT_REGION", "ENDPOINT_URL", "ENDPOINT_URL_S3"):
        monkeypatch.delenv(f"AWS_{name}", raising=False)


@pytest.mark.parametrize(
    "location", ["/a/b%20c", "file:/a/b%20c", "file:///a/b%20c", "file://localhost/a/b%20c"]
)
def test_every_spelling_of_a_local_place_is_one_path(location: str) -> None:
    assert local_path(location) == "/a/b%20c"


@pytest.mark.parametrize("location", ["", "a/b", "./a", "file://host/a", "s3://b/k", "/a\0b"])
def test_what_is_no_absolute_local_place_is_refused(location: str) -> None:
    with pytest.raises(InvalidInput, match="no place on this machine's disk"):
        local_path(location)


def test_a_key_is_taken_as_it_stands() -> None:
    assert bucket_and_key("s3://b/a b/%20?x#y") == ("b", "a b/%20?x#y")
    assert bucket_and_key("s3://b") == ("b", "")
    with pytest.raises(InvalidInput, match="s3://bucket/key"):
        bucket_and_key("s3:///key")


def test_an_unknown_scheme_is_unsupported() -> None:
    with pytest.raises(Unsupported, match=r"ftp://.*there are file://, .*s3://, gs://, abfss://"):
        store_for("ftp://bucket/x")


def test_a_name_in_memory_means_the_same_files_for_all() -> None:
    store_for("memory://shared-name/a").write_new("memory://shared-name/a", b"1")
    assert store_for("memory://shared-name").read("memory://shared-name/a") == b"1"
    assert not store_for("memory://other-name").exists("memory://shared-name/a")
    with pytest.raises(InvalidInput, match="names no store"):
        store_for("memory:///a")


def test_one_store_of_every_kind_writes_and_deletes_across_kinds(
    tmp_path: Path, s3: S3Server, bucket: str
) -> None:
    store = EveryStore(s3.properties())
    files = [
        (location, location.encode())
        for location in (f"{tmp_path}/x", f"s3://{bucket}/every/x", "memory://every/x")
    ]
    store.write_many(files)
    assert [store.read(location) for location, _ in files] == [content for _, content in files]
    assert [*LocalStore().list(str(tmp_path))] == [*store.list(str(tmp_path))]
    store.delete(location for location, _ in files)
    assert not any(store.exists(location) for location, _ in files)


def test_properties_are_those_of_pyiceberg() -> None:
    options = options_of(
        {
            "s3.endpoint": "http://host:1",
            "s3.access-key-id": "a",
            "client.secret-access-key": "b",
            "s3.session-token": "c",
            "s3.region": "d",
            "s3.connect-timeout": "1.5",
            "s3.request-timeout": "60",
        }
    )
    assert options.client_settings("bucket") == {
        "bucket": "bucket",
        "endpoint": "http://host:1",
        "access_key_id": "a",
        "secret_access_key": "b",
        "session_token": "c",
        "region": "d",
        "virtual_hosted_style_request": False,
        "client_options": {"allow_http": True, "connect_timeout": "1500ms", "timeout": "60000ms"},
        "retry_config": {"max_retries": 0, "retry_timeout": timedelta(seconds=20)},
    }
    assert "b" not in repr(options).replace("http", "").split("'")


def test_the_style_of_addresses_can_be_chosen() -> None:
    endpoint = {"s3.endpoint": "http://host:1"}
    assert options_of({}).path_style is False
    assert options_of(endpoint).path_style is True
    assert options_of({**endpoint, "s3.force-virtual-addressing": "true"}).path_style is False
    assert options_of({"s3.path-style-access": "True"}).path_style is True


def test_the_environment_fills_in_what_properties_leave_open(
    s3: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    store = store_for(f"s3://{bucket}")
    store.write_new(f"s3://{bucket}/from-environment", b"1")
    assert store.read(f"s3://{bucket}/from-environment") == b"1"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("s3.request-timeout", "soon"),
        ("s3.request-timeout", "0"),
        ("s3.connect-timeout", "nan"),
        ("s3.retry.total-timeout", "inf"),
        ("s3.retry.num-retries", "-1"),
        ("s3.path-style-access", "maybe"),
    ],
)
def test_a_property_that_makes_no_sense_is_refused(name: str, value: str) -> None:
    with pytest.raises(InvalidInput, match=name):
        store_for("s3://b", {name: value})
