"""How to reach Google Cloud Storage: PyIceberg's properties, and GOOGLE_* variables below them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from icetree.spec.properties.values import flag
from icetree.store.object_options import (
    PATIENCE,
    ObjectOptions,
    patience_of,
    without_password,
)
from icetree.store.places import google_bucket_and_key

#: Our name of an option, and that of obstore. What is not given, obstore looks up in variables.
_CREDENTIALS: Final = {
    "gcs.oauth2.token": "bearer_token",
    "gcs.service-account": "service_account",
    "gcs.service-account-key": "service_account_key",
}

#: Every property that is read here.
GCS_PROPERTIES: Final = frozenset(
    {*_CREDENTIALS, "gcs.service.host", "gcs.anonymous"} | {f"gcs.{name}" for name in PATIENCE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GcsOptions(ObjectOptions):
    """What to connect to Google Cloud Storage with."""

    service: ClassVar[str] = "Google Cloud Storage"
    extra: ClassVar[str] = "gcs"
    client: ClassVar[str] = "GCSStore"
    check: ClassVar[str] = "gcs.service.host"
    credentials_hint: ClassVar[str] = (
        "gcs.oauth2.token or gcs.service-account, or GOOGLE_APPLICATION_CREDENTIALS"
    )
    secret_variables: ClassVar[tuple[str, ...]] = (
        "GOOGLE_BEARER_TOKEN",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
    )
    public: ClassVar[frozenset[str]] = frozenset({"service_account"})

    def place(self, location: str) -> tuple[str, str]:
        """Return the bucket and the key that a location names; InvalidInput."""
        return google_bucket_and_key(location)

    def settings(self, bucket: str) -> dict[str, Any]:
        """Return what the client of one bucket takes."""
        endpoint = {"base_url": self.endpoint} if self.endpoint else {}
        return {**endpoint, "bucket": bucket}


def options_of(properties: Mapping[str, str]) -> GcsOptions:
    """Read `gcs.*` properties."""
    credentials = {
        theirs: value for ours, theirs in _CREDENTIALS.items() if (value := properties.get(ours))
    }
    return GcsOptions(
        endpoint=without_password(
            properties.get("gcs.service.host"), "gcs.service.host", "gcs.oauth2.token"
        ),
        anonymous=flag(properties, "gcs.anonymous", default=False),
        credentials=credentials,
        **patience_of(properties, "gcs"),
    )
