"""Requests to S3 and its kin, signed: AWS's Signature Version 4, with the headers it adds."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from icetree.store.s3_options import DEFAULT_REGION, S3Options
from icetree.surroundings import now_ms

UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What requests are signed with."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str


def keys_of(options: S3Options) -> Keys | None:
    """Return the keys of a connection, or of the environment; None where it has none to sign with."""
    given = options.credentials
    found = {
        name: given.get(name) or os.environ.get(f"AWS_{name.upper()}")
        for name in ("access_key_id", "secret_access_key", "session_token", "region")
    }
    access, secret = found["access_key_id"], found["secret_access_key"]
    if options.anonymous or not access or not secret:
        return None
    region = found["region"] or os.environ.get("AWS_DEFAULT_REGION") or DEFAULT_REGION
    return Keys(
        access_key_id=access,
        secret_access_key=secret,
        session_token=found["session_token"],
        region=region,
    )


def signed(
    method: str,
    uri: str,
    headers: Mapping[str, str],
    keys: Keys,
    *,
    content_sha256: str = UNSIGNED,
    service: str = "s3",
) -> dict[str, str]:
    """Return the headers to add to a request; `headers`, in lower case, are those to be signed.

    Neither host nor date are among them: these are the request's own. `service` is who is asked.
    """
    place = urlsplit(uri)
    now = datetime.fromtimestamp(now_ms() // 1000, timezone.utc)
    at, day = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d")
    added = {"x-amz-date": at, "x-amz-content-sha256": content_sha256}
    if keys.session_token:
        added["x-amz-security-token"] = keys.session_token
    every = {**headers, **added, "host": place.netloc}
    names = ";".join(sorted(every))
    query = "&".join(
        f"{_quoted(name)}={_quoted(value)}"
        for name, value in sorted(parse_qsl(place.query, keep_blank_values=True))
    )
    lines = "".join(f"{name}:{' '.join(every[name].split())}\n" for name in sorted(every))
    asked = "\n".join((method, place.path or "/", query, lines, names, content_sha256))
    scope = f"{day}/{keys.region}/{service}/aws4_request"
    digest = hashlib.sha256(asked.encode()).hexdigest()
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in (day, keys.region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    told = f"{_ALGORITHM}\n{at}\n{scope}\n{digest}".encode()
    signature = hmac.new(key, told, hashlib.sha256).hexdigest()
    credential = f"{keys.access_key_id}/{scope}"
    return {
        **added,
        "authorization": (
            f"{_ALGORITHM} Credential={credential}, SignedHeaders={names}, Signature={signature}"
        ),
    }


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")
