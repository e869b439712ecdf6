"""How to reach S3: PyIceberg's properties, and the usual AWS environment variables below them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from icetree.errors import InvalidInput
from icetree.secrets import Secrets
from icetree.spec.properties import seconds, whole_number

#: Our name of an option, and that of obstore. What is not given, obstore looks up in AWS_* variables.
_CREDENTIALS: Final = {
    "access-key-id": "access_key_id",
    "secret-access-key": "secret_access_key",
    "session-token": "session_token",
    "region": "region",
}
DEFAULT_REGION: Final = "us-east-1"
_SECRET_VARIABLES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

CONNECT_TIMEOUT_S: Final = 5.0
REQUEST_TIMEOUT_S: Final = 10.0
RETRIES: Final = 5
RETRY_TIMEOUT_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """What to connect with, and how patient to be."""

    endpoint: str | None = None
    path_style: bool = False
    anonymous: bool = False
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    #: From the first byte sent to the last byte received, of one request that carries little.
    request_timeout_s: float = REQUEST_TIMEOUT_S
    retries: int = RETRIES
    #: After so long a request that got no answer is not asked again.
    retry_timeout_s: float = RETRY_TIMEOUT_S
    #: Off only for a server that does not know `If-None-Match`: existence is then checked first.
    conditional_put: bool = True

    @property
    def secrets(self) -> Secrets:
        """What no message may show: these credentials, and those of the environment."""
        given = [value for name, value in self.credentials.items() if name != "region"]
        return Secrets([*given, *(os.environ.get(name) for name in _SECRET_VARIABLES)])

    def client_settings(self, *, retries: int = 0, allowance_s: float = 0.0) -> dict[str, Any]:
        """Return what obstore's S3Store takes; it retries nothing by itself unless told.

        A request that carries much gets `allowance_s` more.
        """
        given: dict[str, Any] = dict(self.credentials)
        if self.endpoint:
            given["endpoint"] = self.endpoint
        if self.anonymous:
            given["skip_signature"] = True
        return given | {
            "virtual_hosted_style_request": not self.path_style,
            "client_options": {
                "allow_http": bool(self.endpoint and self.endpoint.startswith("http:")),
                "connect_timeout": f"{round(self.connect_timeout_s * 1000)}ms",
                "timeout": f"{round((self.request_timeout_s + allowance_s) * 1000)}ms",
            },
            "retry_config": {
                "max_retries": retries,
                "retry_timeout": timedelta(seconds=self.retry_timeout_s),
            },
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
    path_style = not _flag(properties, "s3.force-virtual-addressing", default=not endpoint)
    return S3Options(
        endpoint=_without_password(endpoint),
        path_style=_flag(properties, "s3.path-style-access", default=path_style),
        anonymous=_flag(properties, "s3.anonymous", default=False),
        credentials=credentials,
        connect_timeout_s=seconds(properties, "s3.connect-timeout", default=CONNECT_TIMEOUT_S),
        request_timeout_s=seconds(properties, "s3.request-timeout", default=REQUEST_TIMEOUT_S),
        retries=whole_number(properties, "s3.retry.num-retries", default=RETRIES),
        retry_timeout_s=seconds(properties, "s3.retry.total-timeout", default=RETRY_TIMEOUT_S),
        conditional_put=_flag(properties, "s3.conditional-put", default=True),
    )


def _flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = str(properties.get(name, default)).lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"{name} is {value!r}: give true or false")
    return value == "true"


def allowance_s(size_bytes: int) -> int:
    """Return how much longer a request may take that carries so many bytes.

    A second for each MiB, rounded up to a power of two, so that few clients serve all sizes.
    """
    mebibytes = size_bytes >> 20
    return 1 << (mebibytes - 1).bit_length() if mebibytes else 0


def _without_password(endpoint: str | None) -> str | None:
    if endpoint and "@" in endpoint:
        raise InvalidInput(
            "s3.endpoint holds a user name or password, which S3 has no use for: give "
            "https://host:port there, and s3.access-key-id and s3.secret-access-key"
        )
    return endpoint
