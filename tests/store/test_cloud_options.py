"""How properties become clients of Google Cloud Storage and Azure, and where keys go."""

from __future__ import annotations

from typing import Any

import pytest

from icetree.errors import InvalidInput
from icetree.store import azure_options, gcs_options
from icetree.store.open import EveryStore, store_for
from tests.servers.clouds import ACCOUNT, KEY, TOKEN, shared_cloud

HOST = f"box@{ACCOUNT}.dfs.core.windows.net"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ACCOUNT_NAME", "ACCOUNT_KEY", "SAS_TOKEN", "SAS_KEY"):
        monkeypatch.delenv(f"AZURE_STORAGE_{name}", raising=False)


def _google(**properties: str) -> dict[str, Any]:
    given = {f"gcs.{name.replace('_', '-')}": value for name, value in properties.items()}
    return gcs_options.options_of(given).client_settings("bucket")


def _azure(properties: dict[str, str], location: str) -> dict[str, Any]:
    options = azure_options.options_of(properties)
    return options.client_settings(options.place(location)[0])


def test_properties_of_google_are_those_of_pyiceberg() -> None:
    given = {"gcs.oauth2.token": "t", "gcs.service.host": "http://h:1", "gcs.request-timeout": "3"}
    found = gcs_options.options_of(given).client_settings("b")
    assert found["bearer_token"] == "t"
    assert found["base_url"] == "http://h:1"
    assert found["bucket"] == "b"
    assert found["client_options"]["allow_http"] is True
    assert found["client_options"]["timeout"] == "3000ms"
    assert _google(service_account="/key.json")["service_account"] == "/key.json"
    assert _google(anonymous="true")["skip_signature"] is True


@pytest.mark.parametrize(
    "location", [f"abfss://{HOST}/k", f"wasb://box@{ACCOUNT}.blob.core.windows.net/k", "az://box/k"]
)
def test_every_spelling_of_azure_is_one_container(location: str) -> None:
    found = _azure({"adls.account-name": ACCOUNT, "adls.account-key": "a2V5"}, location)
    assert found["container_name"] == "box"
    assert found["account_name"] == ACCOUNT
    assert found["account_key"] == "a2V5"
    assert found["endpoint"] == f"https://{ACCOUNT}.blob.core.windows.net"


def test_an_account_in_another_cloud_is_found_by_its_host() -> None:
    given = {"adls.account-host": "a.blob.core.chinacloudapi.cn", "adls.token": "t"}
    found = _azure(given, "abfss://box@a.dfs.core.chinacloudapi.cn/k")
    assert found["endpoint"] == "https://a.blob.core.chinacloudapi.cn"
    assert (found["account_name"], found["token"]) == ("a", "t")


def test_a_connection_string_says_what_the_properties_say() -> None:
    text = f"DefaultEndpointsProtocol=https;AccountName={ACCOUNT};AccountKey={KEY}"
    parts = {"adls.account-name": ACCOUNT, "adls.account-key": KEY}
    for more, same in (
        ("", {}),
        (";EndpointSuffix=core.usgovcloudapi.net", {"host": ".blob.core.usgovcloudapi.net"}),
    ):
        also = {"adls.account-host": f"{ACCOUNT}{same['host']}"} if same else {}
        assert azure_options.options_of({"adls.connection-string": text + more}) == (
            azure_options.options_of({**parts, **also})
        )
    with pytest.raises(InvalidInput, match="a part that is not known") as refused:
        azure_options.options_of({"adls.connection-string": f"{text};Sneaky={KEY}"})
    assert KEY not in str(refused.value)


@pytest.mark.parametrize(
    ("properties", "location", "says"),
    [
        # Keys are sent to no other account or host than they are for, whatever a table names.
        ({"adls.account-name": "mine", "adls.sas-token": "s"}, f"abfss://{HOST}/k", "another acc"),
        ({}, f"abfss://box@{ACCOUNT}.dfs.evil.example/k", "outside core.windows.net"),
        ({}, f"abfss://box@{ACCOUNT}.evil.core.windows.net/k", "account.dfs.core.windows.net"),
        ({"adls.sas-token": "s"}, f"abfss://{HOST}/k", "give adls.account-name"),
        ({}, "az://box/k", "names no account"),
        ({}, f"az://{HOST}/k", "az://container/key"),
        ({}, "abfss://user:pass@host.dfs.core.windows.net/k", "and keys as adls"),
        ({"adls.blob-storage-scheme": "ftp"}, f"abfss://{HOST}/k", "give http or https"),
        ({"adls.blob-storage-authority": "h:1"}, f"abfss://{HOST}/k", "give adls.account-name"),
        ({"adls.account-host": "u:p@h"}, f"abfss://{HOST}/k", "give no more than that"),
    ],
)
def test_keys_of_azure_go_where_the_options_say(
    properties: dict[str, str], location: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        store_for(location, properties)
    assert "pass" not in str(refused.value)


def test_a_key_of_the_environment_needs_its_account_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_SAS_TOKEN", "secret-signature")
    with pytest.raises(InvalidInput, match="AZURE_STORAGE_SAS_TOKEN is that of one account"):
        store_for(f"abfss://{HOST}/k")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT)
    store_for(f"abfss://{HOST}/k")


@pytest.mark.parametrize("location", ["gs://user:pass@bucket/k", "gcs:///k", "gs:///"])
def test_what_is_no_place_at_google_is_refused(location: str) -> None:
    with pytest.raises(InvalidInput, match="gs://bucket/key") as refused:
        EveryStore().read(location)
    assert "pass" not in str(refused.value)


def test_wrong_keys_are_refused_and_not_repeated() -> None:
    cloud = shared_cloud()
    stores = {
        "gs://b/k": {**cloud.google, "gcs.oauth2.token": "mistaken-token"},
        f"abfss://{HOST}/k": {**cloud.azure, "adls.account-name": "other"},
    }
    told = []
    for location, properties in stores.items():
        store = EveryStore(properties)
        with pytest.raises(InvalidInput) as refused:
            store.read(location)
        told += [str(refused.value), repr(store), str(vars(store))]
    assert not [each for each in told for secret in (KEY, TOKEN, "mistaken") if secret in each]
    assert "check the credentials" in told[0]
