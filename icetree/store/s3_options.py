"""How to reach S3: PyIceberg's properties, and the usual AWS environment variables below them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from icetree.errors import InvalidInput
from icetree.spec.properties.values import flag, whole_number
from icetree.store.object_options import (
    PATIENCE,
    ObjectOptions,
    patience_of,
    without_password,
)
from icetree.store.places import bucket_and_key

#: Our name of an option, and that of obstore. What is not given, obstore looks up in AWS_* variables.
_CREDENTIALS: Final = {
    "access-key-id": "access_key_id",
    "secret-access-key": "secret_access_key",
    "session-token": "session_token",
    "region": "region",
}
DEFAULT_REGION: Final = "us-east-1"
_KEYS: Final = "s3.access-key-id and s3.secret-access-key"

#: Every property that is read here.
S3_PROPERTIES: Final = frozenset(
    {f"{prefix}.{name}" for prefix in ("s3", "client") for name in _CREDENTIALS}
    | {f"s3.{name}" for name in PATIENCE}
    | {"s3.endpoint", "s3.anonymous", "s3.conditional-put"}
    | {"s3.path-style-access", "s3.force-virtual-addressing"}
    | {"s3.sts.role-arn", "s3.sts.endpoint", "s3.sts.lifetime"}
)
#: How long keys last that are lent, in seconds; the service itself has these bounds.
_LIFETIME_S: Final = 3_600
_LIFETIMES_S: Final = (900, 43_200)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options(ObjectOptions):
    """What to connect to S3 with."""

    service: ClassVar[str] = "AWS"
    extra: ClassVar[str] = "s3"
    client: ClassVar[str] = "S3Store"
    check: ClassVar[str] = "s3.region and s3.endpoint"
    credentials_hint: ClassVar[str] = f"{_KEYS}, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    secret_variables: ClassVar[tuple[str, ...]] = (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
    )
    public: ClassVar[frozenset[str]] = frozenset({"region"})

    path_style: bool = False
    #: The role that keys are lent of, by whom, and for how many seconds.
    role: str | None = None
    sts_endpoint: str | None = None
    lifetime_s: int = _LIFETIME_S

    def place(self, location: str) -> tuple[str, str]:
        """Return the bucket and the key that a location names; InvalidInput."""
        return bucket_and_key(location)

    def settings(self, bucket: str) -> dict[str, Any]:
        """Return what the client of one bucket takes."""
        endpoint = {"endpoint": self.endpoint} if self.endpoint else {}
        return endpoint | {
            "bucket": bucket,
            "virtual_hosted_style_request": not self.path_style,
        }


def options_of(properties: Mapping[str, str]) -> S3Options:
    """Read `s3.*` properties; those of `client.*` stand in for credentials and region."""
    credentials = {
        theirs: value
        for ours, theirs in _CREDENTIALS.items()
        if (value := properties.get(f"s3.{ours}") or properties.get(f"client.{ours}"))
    }
    if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        credentials.setdefault("region", DEFAULT_REGION)
    endpoint = (
        properties.get("s3.endpoint")
        or os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
    )
    # Buckets as host names need a name server that knows them: only AWS itself is sure to have one.
    path_style = not flag(properties, "s3.force-virtual-addressing", default=not endpoint)
    return S3Options(
        endpoint=without_password(endpoint, "s3.endpoint", _KEYS),
        path_style=flag(properties, "s3.path-style-access", default=path_style),
        anonymous=flag(properties, "s3.anonymous", default=False),
        credentials=credentials,
        conditional_put=flag(properties, "s3.conditional-put", default=True),
        role=properties.get("s3.sts.role-arn") or None,
        sts_endpoint=without_password(properties.get("s3.sts.endpoint"), "s3.sts.endpoint", _KEYS),
        lifetime_s=_lifetime(properties),
        **patience_of(properties, "s3"),
    )


def _lifetime(properties: Mapping[str, str]) -> int:
    least, most = _LIFETIMES_S
    found = whole_number(properties, "s3.sts.lifetime", default=_LIFETIME_S, least=least)
    if found > most:
        raise InvalidInput(f"s3.sts.lifetime={found}: keys last {most} seconds at most")
    return found
