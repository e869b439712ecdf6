"""How to reach S3: PyIceberg's properties, and the usual AWS environment variables below them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from icetree.errors import InvalidInput

#: Our name of an option, and that of obstore. What is not given, obstore looks up in AWS_* variables.
_CREDENTIALS: Final = {
    "access-key-id": "access_key_id",
    "secret-access-key": "secret_access_key",
    "session-token": "session_token",
    "region": "region",
}
DEFAULT_REGION: Final = "us-east-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Options:
    """What to connect with, and how patient to be."""

    endpoint: str | None = None
    path_style: bool = False
    anonymous: bool = False
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_timeout_s: float = 5.0
    #: From the first byte sent to the last byte received, of one request.
    request_timeout_s: float = 30.0
    retries: int = 5
    #: Off only for a server that does not know `If-None-Match`: existence is then checked first.
    conditional_put: bool = True

    def client_settings(self, *, retries: int = 0) -> dict[str, Any]:
        """Return what obstore's S3Store takes; it retries nothing by itself unless told."""
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
                "timeout": f"{round(self.request_timeout_s * 1000)}ms",
            },
            "retry_config": {"max_retries": retries},
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
        endpoint=endpoint,
        path_style=_flag(properties, "s3.path-style-access", default=path_style),
        anonymous=_flag(properties, "s3.anonymous", default=False),
        credentials=credentials,
        connect_timeout_s=_number(properties, "s3.connect-timeout", 5.0),
        request_timeout_s=_number(properties, "s3.request-timeout", 30.0),
        retries=int(_number(properties, "s3.retry.num-retries", 5)),
        conditional_put=_flag(properties, "s3.conditional-put", default=True),
    )


def _flag(properties: Mapping[str, str], name: str, *, default: bool) -> bool:
    value = str(properties.get(name, default)).lower()
    if value not in ("true", "false"):
        raise InvalidInput(f"{name} is {value!r}: give true or false")
    return value == "true"


def _number(properties: Mapping[str, str], name: str, default: float) -> float:
    value = properties.get(name, default)
    try:
        number = float(value)
    except ValueError:
        number = -1
    if number < 0:
        raise InvalidInput(f"{name} is {value!r}: give a number, not below 0")
    return number
