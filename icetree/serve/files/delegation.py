"""What a client is told of a table's files: where S3 is, and with whose keys it is reached.

A client that has none asks for some: lent ones where the store's service can make them for one table
alone, or else signatures of the server's own for each request.
"""

from __future__ import annotations

from typing import Any, Final

from icetree.serve.call import Call
from icetree.serve.files.folders import folder_in, folder_of, options_for
from icetree.serve.files.vending import can_lend, config_of, lent_for
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import Answer
from icetree.store.s3_options import S3Options
from icetree.store.s3_signing import keys_of
from icetree.surroundings import now_ms

_HEADER: Final = "x-iceberg-access-delegation"
_VENDED, _SIGNED = "vended-credentials", "remote-signing"

#: Within such a time a client that has a table need not load it again for the sake of its keys.
_SAME_KEYS_MS: Final = 300_000


def delegation_tag(call: Call) -> str:
    """Return what is another when a client should load a table again for how it reaches the files.

    That is for keys that end, and who asks for another way than before.
    """
    asked = _asked(call)
    ways = " ".join(way for way in (_VENDED, _SIGNED) if way in asked)
    return f"{ways} {now_ms() // _SAME_KEYS_MS}" if _VENDED in asked else ways


def delegated(call: Call, path: str, metadata_location: str) -> dict[str, Any]:
    """Return what the answer that shows a table says of its files; `path` leads to the table."""
    folder = folder_in(metadata_location) or ""
    options = options_for(call.lake, folder)
    if options is None:
        return {"config": {}}
    told = _reached(options)
    asked = _asked(call)
    if _VENDED in asked and can_lend(options, folder):
        lent = config_of(lent_for(call, folder, options))
        told |= {**lent, "client.refresh-credentials-endpoint": f"v1/{path}/credentials"}
        return {"config": told, "storage-credentials": [_credential(folder, lent)]}
    if _SIGNED in asked and keys_of(options) is not None:
        endpoint = f"v1/{path}/sign"
        told |= {
            "s3.remote-signing-enabled": "true",
            "s3.signer": "S3V4RestSigner",
            "s3.signer.endpoint": endpoint,
            "signer.endpoint": endpoint,
        }
    return {"config": told}


def load_credentials(call: Call) -> Answer:
    """Lend keys for a table's files, again for who has some that are about to end."""
    folder = folder_of(call)
    options = options_for(call.lake, folder)
    if options is None or not can_lend(options, folder):
        raise Refused(
            406, "UnsupportedOperationException", "no keys can be lent for this table's files"
        )
    lent = config_of(lent_for(call, folder, options))
    return Answer(
        document={"storage-credentials": [_credential(folder, lent)]},
        headers={"cache-control": "no-store"},
    )


def _asked(call: Call) -> set[str]:
    return {each.strip() for each in call.request.headers.get(_HEADER, "").split(",")}


def _credential(folder: str, lent: dict[str, str]) -> dict[str, Any]:
    return {"prefix": f"{folder}/", "config": lent}


def _reached(options: S3Options) -> dict[str, str]:
    """Return where S3 is."""
    keys = keys_of(options)
    told = {"s3.path-style-access": str(options.path_style).lower()}
    if options.endpoint:
        told["s3.endpoint"] = options.endpoint
    if region := (keys.region if keys else options.credentials.get("region")):
        told |= {"s3.region": region, "client.region": region}
    return told
