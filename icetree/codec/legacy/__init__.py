"""v1, v2 and v3 metadata in Avro, decoded into the same entries that v4 has."""

from __future__ import annotations

from icetree.codec.legacy.inline import decode_inline_list
from icetree.codec.legacy.list import decode_manifest_list, decode_manifest_lists
from icetree.codec.legacy.manifest import decode_manifest, decode_manifests, narrow

__all__ = [
    "decode_inline_list",
    "decode_manifest",
    "decode_manifest_list",
    "decode_manifest_lists",
    "decode_manifests",
    "narrow",
]
