"""Keys for clients without keys of their own: lent by the store's own service, for one table alone.

What they reach is said in the policy that they are asked for with: objects in the table's folder, for
who may write also to write data files and manifests. Where that folder is, the catalog says. The files
that make the table what it is, and its exports, are written by the server alone.
"""

from __future__ import annotations

from typing import Any, Final

from icetree.errors import InvalidInput
from icetree.serve.call import Call
from icetree.store.places import bucket_and_key
from icetree.store.s3_options import S3Options
from icetree.store.s3_signing import Keys, keys_of
from icetree.store.sts import Lent, lend
from icetree.surroundings import now_ms

#: What a policy would read otherwise than letter by letter.
_WILD: Final = frozenset("*?$")
#: What clients write, in a table's folder.
_THEIRS: Final = (
    "data/*",
    "metadata/*.avro",
    "metadata/*.stats",
    "metadata/partition-stats-*.parquet",
)
#: What they do not, whatever else is allowed: `*` goes on past a slash, to exports and what is beside them.
_OURS: Final = "metadata/*/*"
_READS: Final = ("s3:GetObject",)
_CHANGES: Final = ("s3:PutObject", "s3:DeleteObject")
_WRITES: Final = (
    *_CHANGES,
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
)
#: What the ARNs of a store's objects begin with.
_ARN: Final = "arn:aws:s3:::"
_LONGEST_SESSION: Final = 64


def can_lend(options: S3Options, folder: str) -> bool:
    """Tell whether keys can be lent that are good for a folder and for no other."""
    return options.role is not None and keys_of(options) is not None and not _WILD & {*folder}


def lent_for(call: Call, folder: str, options: S3Options) -> Lent:
    """Return keys for a table's folder; the same again while most of their time is left."""
    keys = keys_of(options)
    if keys is None or not can_lend(options, folder):
        raise InvalidInput("no keys can be lent for this table: ask for remote-signing")
    may_write = call.who.may_write(call.namespace)
    key = (call.who.name, folder, may_write)
    held = call.serving.lent.get(*key)
    if held is not None and held.expires_at_ms - now_ms() > options.lifetime_s * 500:
        return held
    found = _lent(call, folder, options, keys, may_write=may_write)
    call.serving.lent.put(found, len(found.session_token), *key)
    return found


def config_of(lent: Lent) -> dict[str, str]:
    """Return keys in the words that clients know them by."""
    return {
        "s3.access-key-id": lent.access_key_id,
        "s3.secret-access-key": lent.secret_access_key,
        "s3.session-token": lent.session_token,
        "s3.session-token-expires-at-ms": str(lent.expires_at_ms),
    }


def policy_for(bucket: str, folder: str, *, may_write: bool) -> dict[str, Any]:
    """Return what keys for a folder, which ends in a slash, may be used for."""
    here = f"{_ARN}{bucket}/{folder}"
    statements: list[dict[str, Any]] = [
        {"Effect": "Allow", "Action": [*_READS], "Resource": [f"{here}*"]},
        {
            "Effect": "Allow",
            "Action": ["s3:ListBucket"],
            "Resource": [f"{_ARN}{bucket}"],
            "Condition": {"StringLike": {"s3:prefix": [f"{folder}*"]}},
        },
    ]
    if may_write:
        theirs = [f"{here}{each}" for each in _THEIRS]
        statements += [
            {"Effect": "Allow", "Action": [*_WRITES], "Resource": theirs},
            {"Effect": "Deny", "Action": [*_CHANGES], "Resource": [f"{here}{_OURS}"]},
        ]
    return {"Version": "2012-10-17", "Statement": statements}


def _lent(call: Call, folder: str, options: S3Options, keys: Keys, *, may_write: bool) -> Lent:
    bucket, key = bucket_and_key(folder)
    policy = policy_for(bucket, f"{key.strip('/')}/", may_write=may_write)
    # The store's own log tells by it for whom the keys were.
    session = f"icetree-{call.who.name}"[:_LONGEST_SESSION]
    return lend(options, keys, policy, session=session)
