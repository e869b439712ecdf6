"""View metadata as JSON, gzip or plain."""

from __future__ import annotations

from icetree.codec.nouns import (
    Broken,
    Json,
    list_in,
    noun_of,
    nouns,
    object_in,
    object_of,
    objects,
    packed,
    prime,
    unpacked,
)
from icetree.errors import CorruptTable, Unsupported
from icetree.spec.metadata.view import (
    VIEW_FORMAT_VERSION,
    Representation,
    VersionLogEntry,
    ViewMetadata,
    ViewVersion,
)
from icetree.spec.rules.view import broken_view_rule


def decode(data: bytes, *, file: str) -> ViewMetadata:
    """Read a view's metadata file; CorruptTable names the rule it breaks."""
    try:
        metadata = _metadata(unpacked(data, file))
    except Broken as error:
        raise CorruptTable(file, str(error)) from None
    if (broken := broken_view_rule(metadata)) is not None:
        raise CorruptTable(file, broken)
    return metadata


def encode(metadata: ViewMetadata, *, compress: bool = False) -> bytes:
    """Write a view's metadata file."""
    return packed(document_of(metadata), compress=compress)


def document_of(metadata: ViewMetadata) -> Json:
    """Return a view's metadata as what encodes to its JSON."""
    return {
        **object_of(metadata),
        "versions": [version_document(each) for each in metadata.versions],
        "version-log": objects(metadata.version_log),
        "properties": metadata.properties,
    }


def version_document(version: ViewVersion) -> Json:
    """Return a version as what encodes to its JSON."""
    return {**object_of(version), "representations": objects(version.representations)}


def read_version(raw: object, where: str) -> ViewVersion:
    """Read a version from its JSON; Broken."""
    version = dict(object_in(raw, where))
    version["representations"] = nouns(
        Representation, version.get("representations"), f"{where}.representations"
    )
    return noun_of(ViewVersion, version, where)


def _metadata(raw: Json) -> ViewMetadata:
    if "view-uuid" not in raw:
        raise Broken("view-uuid is missing: it is no view's metadata")
    version = raw.get("format-version")
    if isinstance(version, int) and version > VIEW_FORMAT_VERSION:
        raise Unsupported(
            f"this is a v{version} view; this version of icetree knows v{VIEW_FORMAT_VERSION}"
        )
    document = dict(raw)
    document["versions"] = [
        read_version(each, f"versions[{at}]")
        for at, each in enumerate(list_in(raw.get("versions"), "versions"))
    ]
    document["version-log"] = nouns(VersionLogEntry, raw.get("version-log"), "version-log")
    if document.get("properties") is None:
        document["properties"] = {}
    return noun_of(ViewMetadata, document, "view metadata")


prime()
