"""How to reach Azure's blob storage: PyIceberg's properties, and AZURE_* variables below them.

A location names its account. Keys and tokens are given for one account and are sent to no other,
whatever host a table's files may name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from icetree.errors import InvalidInput
from icetree.spec.properties.values import flag
from icetree.store.object_options import PATIENCE, ObjectOptions, patience_of
from icetree.store.places import azure_place

#: Our name of an option, and that of obstore. What is not given, obstore looks up in AZURE_* variables.
_CREDENTIALS: Final = {
    "adls.account-key": "account_key",
    "adls.sas-token": "sas_key",
    "adls.token": "token",
    "adls.tenant-id": "tenant_id",
    "adls.client-id": "client_id",
    "adls.client-secret": "client_secret",
}
#: What is worth nothing but for one account.
_OF_ONE_ACCOUNT: Final = ("adls.account-key", "adls.sas-token")
_KEY_VARIABLES: Final = (
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_MASTER_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
)
_AUTHORITY: Final = "adls.blob-storage-authority"
_SCHEME: Final = "adls.blob-storage-scheme"
_DOMAIN: Final = "core.windows.net"
_CONNECTION: Final = "adls.connection-string"

#: Every property that is read here.
AZURE_PROPERTIES: Final = frozenset(
    {*_CREDENTIALS, "adls.account-name", "adls.account-host", "adls.anonymous"}
    | {_CONNECTION, _AUTHORITY, _SCHEME}
    | {f"adls.{name}" for name in PATIENCE}
)
#: Parts of a connection string, and the option that says the same.
_PARTS: Final = {
    "accountname": "adls.account-name",
    "accountkey": "adls.account-key",
    "sharedaccesssignature": "adls.sas-token",
    "blobendpoint": "",
    "endpointsuffix": "",
    "defaultendpointsprotocol": _SCHEME,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AzureOptions(ObjectOptions):
    """What to connect to Azure with."""

    service: ClassVar[str] = "Azure"
    extra: ClassVar[str] = "azure"
    client: ClassVar[str] = "AzureStore"
    check: ClassVar[str] = "adls.account-name and adls.account-host"
    credentials_hint: ClassVar[str] = (
        "adls.account-key, adls.sas-token or adls.client-id with its secret, or AZURE_* variables"
    )
    secret_variables: ClassVar[tuple[str, ...]] = (
        *_KEY_VARIABLES,
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_CLIENT_SECRET",
    )
    public: ClassVar[frozenset[str]] = frozenset({"tenant_id", "client_id"})
    reads_from_the_end: ClassVar[bool] = False

    #: The one account that is meant; None for whichever a location names.
    account: str | None = None
    #: What stands behind the account and its face in a host: that of Azure's public cloud.
    domain: str = _DOMAIN

    def place(self, location: str) -> tuple[str, str]:
        """Return the container, with its account, and the key that a location names."""
        container, host, key = azure_place(location)
        account, _, rest = host.partition(".")
        account = account or self.account or ""
        if not account:
            raise InvalidInput(f"{location!r} names no account: set adls.account-name")
        if self.account is not None and account != self.account:
            raise InvalidInput(
                f"{location!r} is of another account than adls.account-name={self.account}: "
                "its keys are sent to no other"
            )
        if host and rest.partition(".")[0] not in ("blob", "dfs"):
            raise InvalidInput(f"{location!r}: an account's host is account.dfs.{self.domain}")
        if host and rest.partition(".")[2] not in (self.domain, _DOMAIN):
            raise InvalidInput(
                f"{location!r} is at a host outside {self.domain}: if that is yours, "
                "set adls.account-host"
            )
        return f"{container}@{account}", key

    def settings(self, bucket: str) -> dict[str, Any]:
        """Return what the client of one container takes."""
        container, _, account = bucket.partition("@")
        at = self.endpoint or f"https://{account}.blob.{self.domain}"
        return {"container_name": container, "account_name": account, "endpoint": at}


def options_of(properties: Mapping[str, str]) -> AzureOptions:
    """Read `adls.*` properties."""
    given = {**_connection_string(properties.get(_CONNECTION, "")), **properties}
    account = given.get("adls.account-name") or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
    host = given.get("adls.account-host", "").lower()
    if host and account is None:
        account = host.partition(".")[0]
    for name in (*_OF_ONE_ACCOUNT, *_KEY_VARIABLES):
        if (given.get(name) or os.environ.get(name)) and not account:
            raise InvalidInput(f"{name} is that of one account: give adls.account-name too")
    return AzureOptions(
        account=account,
        domain=host.split(".", 2)[2] if host.count(".") > 1 else _DOMAIN,
        endpoint=_endpoint(given, account, host),
        anonymous=flag(given, "adls.anonymous", default=False),
        credentials={
            theirs: value for ours, theirs in _CREDENTIALS.items() if (value := given.get(ours))
        },
        **patience_of(given, "adls"),
    )


def _endpoint(given: Mapping[str, str], account: str | None, host: str) -> str | None:
    """Return the address of the one account; None for Azure's own."""
    scheme, authority = given.get(_SCHEME, "https"), given.get(_AUTHORITY)
    if scheme not in ("http", "https"):
        raise InvalidInput(f"{_SCHEME} is {scheme!r}: give http or https")
    if {"@", "/"} & set(host + (authority or "")):
        raise InvalidInput(f"adls.account-host and {_AUTHORITY} are hosts: give no more than that")
    if authority is None:
        return f"{scheme}://{host}" if host else None
    if not account:
        raise InvalidInput(f"{_AUTHORITY} needs the account that it serves: give adls.account-name")
    # With a dot before it, it follows the account; an emulator has the account in its paths.
    if authority.startswith("."):
        return f"{scheme}://{account}{authority}"
    return f"{scheme}://{authority}/{account}"


def _connection_string(text: str) -> dict[str, str]:
    """Return the options that a connection string stands for; none of it is ever shown."""
    found = {}
    for part in filter(None, text.split(";")):
        name, equals, value = part.strip().partition("=")
        if not equals or name.lower() not in _PARTS:
            raise InvalidInput(
                f"{_CONNECTION} has a part that is not known: it may have AccountName, AccountKey, "
                "SharedAccessSignature, DefaultEndpointsProtocol, EndpointSuffix and BlobEndpoint"
            )
        found[name.lower()] = value
    options = {_PARTS[name]: value for name, value in found.items() if _PARTS[name]}
    account = found.get("accountname", "")
    if endpoint := found.get("blobendpoint"):
        scheme, _, rest = endpoint.rstrip("/").partition("://")
        authority, _, path = rest.partition("/")
        options[_SCHEME] = scheme
        if path:
            options[_AUTHORITY] = authority
        else:
            options["adls.account-host"] = authority
    elif suffix := found.get("endpointsuffix"):
        options["adls.account-host"] = f"{account}.blob.{suffix}"
    return options
