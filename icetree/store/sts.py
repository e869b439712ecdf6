"""Keys that last a while and reach little: AWS's Security Token Service, and others that speak as it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from xml.sax.saxutils import unescape

from icetree.errors import InvalidInput, Unavailable
from icetree.store.s3_options import S3Options
from icetree.store.s3_signing import Keys, signed

_VERSION: Final = "2011-06-15"
_FORM: Final = "application/x-www-form-urlencoded"
#: An answer is a few kilobytes.
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Lent:
    """Keys of a role, for a while."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at_ms: int


def lend(options: S3Options, keys: Keys, policy: Mapping[str, Any], *, session: str) -> Lent:
    """Return keys of the role that a connection names, which can do what a policy says and no more.

    Unavailable where the service does not answer, or refuses: then nothing is lent.
    """
    if options.role is None:
        raise InvalidInput("s3.sts.role-arn is not set: there is no role to lend keys of")
    endpoint = options.sts_endpoint or f"https://sts.{keys.region}.amazonaws.com"
    body = urlencode(
        {
            "Action": "AssumeRole",
            "Version": _VERSION,
            "RoleArn": options.role,
            "RoleSessionName": session,
            "DurationSeconds": str(options.lifetime_s),
            "Policy": json.dumps(policy, separators=(",", ":")),
        }
    ).encode()
    uri = f"{endpoint.rstrip('/')}/"
    headers = {"content-type": _FORM}
    told = signed(
        "POST",
        uri,
        headers,
        keys,
        content_sha256=hashlib.sha256(body).hexdigest(),
        service="sts",
    )
    status, text = _asked(uri, body, {**headers, **told}, timeout_s=options.request_timeout_s)
    if status != 200:
        why = _between(text, "Code") or "no reason"
        raise Unavailable(f"{urlsplit(uri).netloc} lends no keys of the role: {status}, {why}")
    return _read(text, urlsplit(uri).netloc)


def _asked(
    uri: str, body: bytes, headers: Mapping[str, str], *, timeout_s: float
) -> tuple[int, str]:
    place = urlsplit(uri)
    kind = HTTPSConnection if place.scheme == "https" else HTTPConnection
    connection = kind(place.netloc, timeout=timeout_s)
    try:
        connection.request("POST", place.path, body, dict(headers))
        answer: HTTPResponse = connection.getresponse()
        return answer.status, answer.read(_MOST_BYTES).decode(errors="replace")
    except (HTTPException, OSError) as error:
        raise Unavailable(f"{place.netloc} lends no keys: {error}") from None
    finally:
        connection.close()


def _read(text: str, where: str) -> Lent:
    names = ("AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration")
    access, secret, token, expires = (_between(text, name) for name in names)
    try:
        at = datetime.fromisoformat(expires.replace("Z", "+00:00"))
    except ValueError:
        at = None
    if not (access and secret and token) or at is None or at.tzinfo is None:
        raise Unavailable(f"{where} lends no keys: its answer cannot be read")
    return Lent(
        access_key_id=access,
        secret_access_key=secret,
        session_token=token,
        expires_at_ms=int(at.timestamp() * 1000),
    )


def _between(text: str, name: str) -> str:
    """Return what an element of an answer holds, empty where there is none."""
    found = re.search(rf"<{name}>([^<>]*)</{name}>", text)
    return unescape(found[1]).strip() if found else ""
