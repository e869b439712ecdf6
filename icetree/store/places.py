"""Locations taken apart. Nothing is decoded or normalised: a `%20` in a name is a `%20`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from icetree.errors import InvalidInput
from icetree.spec.location import AZURE, AZURE_SHORT, GCS, LOCAL, S3, scheme_of

MEMORY: Final = frozenset({"memory"})
_AZURE_FORM: Final = "abfss://container@account.dfs.core.windows.net/key"
_HOST: Final = re.compile(r"[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+")


def local_path(location: str) -> str:
    """Return the path that `/path`, `file:/path`, `file:///path` or `file://localhost/path` means."""
    rest = location
    if scheme_of(location) == "file":
        rest = location[len("file:") :]
        if rest.startswith("//"):
            host, slash, path = rest[2:].partition("/")
            rest = slash + path if host in ("", "localhost") else ""
    if "\0" in rest or scheme_of(rest) or not Path(rest).is_absolute():
        raise InvalidInput(
            f"{location!r} is no place on this machine's disk: give file:///path or an absolute path"
        )
    return rest


def folder_behind(location: str) -> str | None:
    """Return the folder that links on the way to a place lead to, with a slash; on disks alone."""
    if scheme_of(location) not in LOCAL:
        return None
    try:
        # Of links that lead in a circle, something is told as well.
        return os.path.realpath(local_path(location)).rstrip("/") + "/"
    except InvalidInput:
        return None


def local_folder(given: str | Path) -> str:
    """Return a folder that a user names, from where they are, as a path that leads there alone."""
    path = Path(given).expanduser().absolute()
    # Where `..` leads depends on links on the way, so that nothing but the disk can tell.
    return str(path.resolve() if ".." in path.parts else path)


def bucket_and_key(location: str) -> tuple[str, str]:
    """Return the bucket and the key of an S3 location; the key of a whole bucket is empty."""
    refuse_credentials(location)
    return _bucket_and_key(location, S3, "S3", "s3://bucket/key")


def google_bucket_and_key(location: str) -> tuple[str, str]:
    """Return the bucket and the key of a location in Google Cloud Storage."""
    refuse_credentials(location, "a Google Cloud Storage", "gs://bucket/key", "gcs.*")
    return _bucket_and_key(location, GCS, "Google Cloud Storage", "gs://bucket/key")


def azure_place(location: str) -> tuple[str, str, str]:
    """Return the container, the account's host, empty where none is named, and the key."""
    authority, key = _bucket_and_key(location, AZURE | AZURE_SHORT, "Azure", _AZURE_FORM)
    container, _, host = authority.partition("@")
    if ":" in authority or "@" in host or not container or (host and not _HOST.fullmatch(host)):
        # What else is before the slash may be a key, and is not repeated.
        raise InvalidInput(
            f"an Azure location names a container and its account: give {_AZURE_FORM}, and keys "
            "as adls.*"
        )
    if host and scheme_of(location) in AZURE_SHORT:
        raise InvalidInput(
            f"{location!r} names an account: give {_AZURE_FORM}, or az://container/key"
        )
    return container, host.lower(), key


def _bucket_and_key(
    location: str, schemes: frozenset[str], service: str, form: str
) -> tuple[str, str]:
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9]*)://([^/]+)(?:/(.*))?", location, re.DOTALL)
    if not found or found[1].lower() not in schemes:
        raise InvalidInput(f"{location!r} is no {service} location: give {form}")
    return found[2], found[3] or ""


def refuse_credentials(
    location: str,
    what: str = "an S3",
    form: str = "s3://bucket/key",
    instead: str = "s3.access-key-id and s3.secret-access-key",
) -> None:
    """Refuse `s3://key:secret@bucket`, without a word of it: it would get into the table's files."""
    if not {"@", ":"}.isdisjoint(location.partition("://")[2].partition("/")[0]):
        raise InvalidInput(
            f"{what} location holds no credentials: give {form}, and the keys as {instead}"
        )
