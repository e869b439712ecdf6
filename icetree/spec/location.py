"""File locations: relative to the table when under it, else absolute URIs.

A stored location is relative exactly when it has no scheme. One file has one stored form, however
a writer spelt it: in full or not, `file:/p`, `file:///p` or `/p`, `s3:`, `s3a:` or `s3n:`, `gs:` or
`gcs:`, `abfss:` or `wasbs:`. A path without a scheme is one where the table is. On a disk `a//b` and `a/./b` are `a/b`; elsewhere names
are keys, and nothing but what stands before them is normalised. A part `..` is refused everywhere:
what it leads to depends on what is on the way there.
"""

from __future__ import annotations

import re
from typing import Final

from icetree.errors import InvalidInput

#: Schemes that name the same places; the empty one is that of a plain path.
LOCAL: Final = frozenset({"", "file"})
S3: Final = frozenset({"s3", "s3a", "s3n"})
GCS: Final = frozenset({"gs", "gcs"})
AZURE: Final = frozenset({"abfs", "abfss", "wasb", "wasbs"})
#: The same without a word of the account, which is then the connection's: other names.
AZURE_SHORT: Final = frozenset({"az", "azure"})
#: Schemes of one store, and the one that is written where the table has none of them.
ONE_STORE: Final = ((S3, "s3"), (GCS, "gs"), (AZURE, "abfss"), (AZURE_SHORT, "az"))
#: The two faces that Azure has for the same files: which of them a name has goes with its scheme.
AZURE_FACE: Final = r"^([A-Za-z]+://[^/@]*@[^/@.]*)\.(?:blob|dfs)\."

SCHEME: Final = r"^[A-Za-z][A-Za-z0-9+.\-]*:/"
#: A URI of a place on this machine's disk, and what stands before the path in it.
ON_DISK: Final = r"^(?i:file):(?:/[^/]|//(?i:localhost)?/)"
DISK: Final = r"^(?i:file):(?://(?i:localhost)?)?/"
#: What is the same as one slash, on a disk.
SLASHES: Final = r"/(?:\.?/)+"
#: The same at the start of a relative location.
LEADING: Final = r"^(?:\./+)+"


def scheme_of(location: str) -> str:
    """Return the scheme in lower case, empty for a plain path."""
    found = re.match(SCHEME, location)
    return found[0][:-2].lower() if found else ""


def is_relative(location: str) -> bool:
    """Tell a location that is relative to a table's from one that stands by itself."""
    return not location.startswith("/") and not re.match(SCHEME, location)


def prefix_of(table_location: str) -> str:
    """Return what every location under the table starts with: its location and one `/`."""
    base = table_location
    while base.endswith("/") and not base.endswith("://"):
        base = base[:-1]
    return base + "/"


def origin_of(table_location: str) -> str:
    """Return what a path without a scheme lacks, to mean what the table's location means."""
    found = re.match(r"[A-Za-z][A-Za-z0-9+.\-]*:(?://[^/]*)?(?=/)", table_location)
    return found[0] if found else ""


def canonical(location: str, table_location: str) -> str:
    """Return an absolute location in the one spelling that is compared: always a URI.

    Of the schemes for one store it is the table's own.
    """
    if location.startswith("/"):
        location = origin_of(table_location) + location
    if location.startswith("/") or re.match(ON_DISK, location):
        return "file://" + re.sub(SLASHES, "/", "/" + re.sub(DISK, "", location))
    scheme = scheme_of(location)
    rest = location[len(scheme) :]
    for same, default in ONE_STORE:
        if scheme in same:
            scheme = scheme_in(table_location, same, default)
    found = scheme + rest
    return re.sub(AZURE_FACE, azure_face(scheme), found) if scheme in AZURE else found


def scheme_in(table_location: str, same: frozenset[str], default: str) -> str:
    """Return the scheme that a store has in this table, of those that name it."""
    own = scheme_of(table_location)
    return own if own in same else default


def azure_face(scheme: str) -> str:
    """Return what takes the place of `AZURE_FACE`."""
    return rf"\1.{'blob' if scheme.startswith('wasb') else 'dfs'}."


def stored_form(location: str, table_location: str) -> str:
    """Return the one form in which a v4 table stores a location, given in any spelling."""
    if is_relative(location):
        if scheme_of(table_location) in LOCAL:
            location = re.sub(SLASHES, "/", re.sub(LEADING, "", location))
        found = location
    else:
        found = canonical(location, table_location)
        prefix = prefix_of(canonical(table_location, table_location))
        rest = found.removeprefix(prefix)
        if rest and rest != found and is_relative(rest):
            found = rest
    if not found or leads_up(found):
        raise InvalidInput(no_name(location))
    return found


def given_form(location: str, table_location: str) -> str:
    """Do `stored_form` for what a caller hands in.

    A location outside the table must be a URI with a scheme, or nobody could find it elsewhere.
    """
    found = stored_form(location, table_location)
    if location.startswith("/") and not is_relative(found):
        raise InvalidInput(outside(location, table_location))
    return found


def absolute(stored: str, table_location: str) -> str:
    """Return the location that a stored one, or a path without a scheme, stands for."""
    if re.match(SCHEME, stored):
        return stored
    if stored.startswith("/"):
        return origin_of(table_location) + stored
    return prefix_of(table_location) + stored


def leads_up(location: str) -> bool:
    """Tell whether a part of a location is `..`."""
    return ".." in location and ".." in location.split("/")


def no_name(location: str) -> str:
    """Say why a location is refused whatever the table's."""
    if not location:
        return "a location is empty: give the file's name"
    return f"{location!r} has a part '..': name the file by the path that it really has"


def outside(location: str, table_location: str) -> str:
    """Say why a path is refused in a table."""
    return (
        f"{location!r} is neither under the table's location {table_location!r} "
        "nor a URI with a scheme: give it as a URI, such as file:///path or s3://bucket/key"
    )
