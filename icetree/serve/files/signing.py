"""Files for clients without keys of their own: requests to S3 that the server signs for them.

What is signed is confined: to objects below the table's own folder, to the methods and parameters
that reading and writing files needs, and to headers that open no other door. Where that folder is,
the catalog says: nothing that a client can write decides it, and the files that make the table what
it is are signed for nobody to write. What is written is new: a file that is there is not replaced.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import unescape

import msgspec

from icetree.errors import InvalidInput
from icetree.serve.call import Call
from icetree.serve.files.folders import folder_of, options_for
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import Answer
from icetree.spec.location import leads_up
from icetree.store.places import bucket_and_key
from icetree.store.s3_options import S3Options
from icetree.store.s3_signing import UNSIGNED, keys_of, signed
from icetree.table.export.places import METADATA

#: What each method is for: only these parameters may go with it.
_PARAMETERS: Final[Mapping[str, frozenset[str]]] = {
    "GET": frozenset({"x-id", "partNumber"}),
    "HEAD": frozenset({"x-id", "partNumber"}),
    "PUT": frozenset({"x-id", "partNumber", "uploadId"}),
    "POST": frozenset({"x-id", "uploads", "uploadId"}),
    "DELETE": frozenset({"x-id", "uploadId"}),
}
_LISTING: Final = frozenset(
    {"list-type", "prefix", "delimiter", "max-keys", "continuation-token", "start-after"}
    | {"encoding-type", "fetch-owner", "x-id"}
)
#: Headers that say how a file is sent, and nothing of who may have it or where it comes from. S3
#: refuses a request with a header of its own that is not signed, even where it does not matter.
_SIGNED: Final = re.compile(
    r"content-md5|x-amz-(?:checksum-[a-z0-9]+|sdk-.*|trailer|checksum-mode|user-agent|te"
    r"|decoded-content-length|checksum-algorithm|checksum-type|mp-object-size)"
)
_OURS: Final = frozenset({"x-amz-date", "x-amz-content-sha256"})
_IF_NONE: Final = "if-none-match"
#: How many parameters a request to S3 may have.
_MOST_PARAMETERS: Final = 20
_SHA256: Final = re.compile(r"[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-UNSIGNED-PAYLOAD-TRAILER")
#: What deletes several objects, to the letter: nothing in it may be read in two ways.
_DELETES: Final = re.compile(
    r"\s*(?:<\?xml[^<>]*\?>\s*)?<Delete(?: xmlns=\"[^\"<>]*\")?>"
    r"(?:\s*(?:<Quiet>(?:true|false)</Quiet>|<Object>\s*<Key>[^<>]*</Key>\s*</Object>))*"
    r"\s*</Delete>\s*"
)
_KEY_IN_BODY: Final = re.compile(r"<Key>([^<>]*)</Key>")
_ENTITY: Final = re.compile(r"&(?!(?:lt|gt|quot|apos|amp);)")
_NAMED: Final = {"&quot;": '"', "&apos;": "'"}
_AWS: Final = re.compile(r"s3(?:[.-][a-z0-9-]+)?\.amazonaws\.com(?:\.cn)?")
#: What clients write there: manifests and statistics. All else in it is the server's to write.
_THEIRS: Final = re.compile(r"metadata/(?:[^/]+\.(?:avro|stats)|partition-stats-[^/]+\.parquet)")


class SignRequest(Body, frozen=True, kw_only=True):
    """A request to S3 that a client is about to make."""

    region: str
    uri: str
    method: str
    headers: dict[str, list[str]] = msgspec.field(default_factory=dict)
    body: str | None = None
    provider: str | None = None


_read = reads(SignRequest)


def sign(call: Call) -> Answer:
    """Sign a client's request to S3, if it is about files of the table."""
    asked = _read(call.request.body)
    method = asked.method.upper()
    if method not in _PARAMETERS or asked.provider not in (None, "s3"):
        raise InvalidInput("what is signed is GET, HEAD, PUT, POST or DELETE of S3")
    if method not in ("GET", "HEAD"):
        call.require_write(call.namespace)
    folder = folder_of(call)
    options = options_for(call.lake, folder)
    keys = None if options is None else keys_of(options)
    if options is None or keys is None:
        raise Refused(
            406,
            "UnsupportedOperationException",
            "the server has no keys to sign with for this table",
        )
    if asked.region != keys.region:
        raise InvalidInput(f"the region is {keys.region}")
    headers = _headers(asked)
    sent = {name.lower(): ", ".join(values) for name, values in asked.headers.items()}
    content = headers.pop("x-amz-content-sha256", UNSIGNED)
    if _confined(method, asked, folder, options):
        # What is deleted is in the body: the signature is for this very one.
        content = hashlib.sha256((asked.body or "").encode()).hexdigest()
    if options.conditional_put and _makes_an_object(method, asked.uri):
        # Signed, so that it cannot be left out: what is there is nobody's to replace.
        headers[_IF_NONE] = "*"
    told = signed(method, asked.uri, headers, keys, content_sha256=content)
    told |= {name: value for name, value in headers.items() if name == _IF_NONE}
    cached = {"cache-control": "private"} if method in ("GET", "HEAD") else {}
    return Answer(
        document={
            "uri": asked.uri,
            "headers": {name: [value] for name, value in told.items() if sent.get(name) != value},
        },
        headers=cached,
    )


def _makes_an_object(method: str, uri: str) -> bool:
    """Tell whether a request makes an object: at once, or of parts that were sent before."""
    query = dict(parse_qsl(urlsplit(uri).query, keep_blank_values=True))
    return (method, "uploadId" in query) in (("PUT", False), ("POST", True))


def _headers(asked: SignRequest) -> dict[str, str]:
    """Return the headers to be signed; refused are those that reach beyond the file itself."""
    found: dict[str, str] = {}
    for name, values in asked.headers.items():
        name = name.lower()
        if _SIGNED.fullmatch(name) or name == "x-amz-content-sha256":
            found[name] = ", ".join(values)
        elif name.startswith("x-amz-") and name not in _OURS:
            raise InvalidInput(f"a request with the header {name[:60]!r} is not signed")
    if not _SHA256.fullmatch(found.get("x-amz-content-sha256", UNSIGNED)):
        raise InvalidInput("x-amz-content-sha256 is none")
    return found


def _confined(method: str, asked: SignRequest, table_folder: str, options: S3Options) -> bool:
    """Refuse a request that is not about the table's files; tell whether its body names them."""
    try:
        place = urlsplit(asked.uri)
        given = parse_qsl(place.query, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise InvalidInput("uri is none") from None
    bucket, folder = bucket_and_key(table_folder)
    folder = f"{folder.strip('/')}/"
    key = _key(place.scheme, place.netloc, place.path, bucket, options)
    query = dict(given)
    # Of a parameter that is there twice, S3 may follow the other one.
    if place.fragment or "@" in place.netloc or key is None or len(query) < len(given):
        raise _outside()
    if method == "GET" and not key:
        if query.keys() - _LISTING or not _is_inside(query.get("prefix", ""), folder):
            raise _outside()
        return False
    if method == "POST" and not key and query.keys() <= {"delete", "x-id"} and "delete" in query:
        # AWS compares a body with what was signed. Others may not, and would delete any.
        if options.endpoint or not all(
            _may_write(each, folder) for each in _deleted(asked.body or "")
        ):
            raise _outside()
        return True
    may = _is_inside if method in ("GET", "HEAD") else _may_write
    if query.keys() - _PARAMETERS[method] or not may(key, folder) or key == folder:
        raise _outside()
    return False


def _key(scheme: str, host: str, path: str, bucket: str, options: S3Options) -> str | None:
    """Return the key that a request to S3 is about; None where it goes elsewhere."""
    decoded = unquote(path).removeprefix("/")
    if options.endpoint:
        there = urlsplit(options.endpoint)
        if scheme != there.scheme:
            return None
        by_path, by_host = host == there.netloc, host == f"{bucket}.{there.netloc}"
    else:
        if scheme != "https":
            return None
        by_path = _AWS.fullmatch(host) is not None
        by_host = host.startswith(f"{bucket}.") and (
            _AWS.fullmatch(host.removeprefix(f"{bucket}.")) is not None
        )
    if by_host:
        return decoded
    named, _, key = decoded.partition("/")
    return key if by_path and named == bucket else None


def _is_inside(key: str, folder: str) -> bool:
    return key.startswith(folder) and not leads_up(key)


def _may_write(key: str, folder: str) -> bool:
    """Tell whether a client may write or delete an object: none that says what the table is."""
    own = key.removeprefix(folder)
    # A store that leaves out empty parts, or `.`, would write another object than is named.
    is_plain = not {"", "."} & {*own.split("/")}
    is_theirs = not own.startswith(METADATA) or _THEIRS.fullmatch(own) is not None
    return _is_inside(key, folder) and is_plain and is_theirs


def _deleted(body: str) -> list[str]:
    """Return the keys that a body deletes; one that could be read otherwise is refused."""
    if not _DELETES.fullmatch(body) or _ENTITY.search(body):
        raise InvalidInput("a body that deletes objects lists their keys, and nothing else")
    return [unescape(each, _NAMED) for each in _KEY_IN_BODY.findall(body)]


def _outside() -> Refused:
    return Refused(
        403, "ForbiddenException", "that is no request about files of this table: it is not signed"
    )
