"""Locations taken apart. Nothing is decoded or normalised: a `%20` in a name is a `%20`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from icetree.errors import InvalidInput
from icetree.spec.location import scheme_of

MEMORY: Final = frozenset({"memory"})


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


def local_folder(given: str | Path) -> str:
    """Return a folder that a user names, from where they are, as a path that leads there alone."""
    path = Path(given).expanduser().absolute()
    # Where `..` leads depends on links on the way, so that nothing but the disk can tell.
    return str(path.resolve() if ".." in path.parts else path)


def bucket_and_key(location: str) -> tuple[str, str]:
    """Return the bucket and the key of an S3 location; the key of a whole bucket is empty."""
    found = re.fullmatch(r"(?i:s3[an]?)://([^/]+)(?:/(.*))?", location, re.DOTALL)
    refuse_credentials(location)
    if not found:
        raise InvalidInput(f"{location!r} is no S3 location: give s3://bucket/key")
    return found[1], found[2] or ""


def refuse_credentials(location: str) -> None:
    """Refuse `s3://key:secret@bucket`, without a word of it: it would get into the table's files."""
    if not {"@", ":"}.isdisjoint(location.partition("://")[2].partition("/")[0]):
        raise InvalidInput(
            "an S3 location holds no credentials: give s3://bucket/key, and the keys as "
            "s3.access-key-id and s3.secret-access-key"
        )
