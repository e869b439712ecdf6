"""Where files are, as Spark wants it told."""

from __future__ import annotations

from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.arrays import every
from icetree.spec.location import AZURE, GCS, LOCAL, S3, scheme_of
from icetree.store.places import local_path


def address(location: str) -> str:
    """Return a location as Spark wants it: a URI that Hadoop has a file system for."""
    scheme = scheme_of(location)
    if scheme in LOCAL:
        return "file://" + quote(local_path(location))
    rest = location.partition("://")[2]
    if scheme in S3:
        return "s3a://" + quote(rest)
    if scheme in GCS:
        return "gs://" + quote(rest)
    if scheme in AZURE:
        return f"{scheme}://" + quote(rest, safe="/@")
    return quote(location, safe="/:")


def addresses(locations: pa.Array) -> pa.Array:
    """Return many locations as `address` does; most have names without anything odd."""
    plain = pc.match_substring_regex(locations, r"^(file://)?/[A-Za-z0-9_.=/-]*$")
    paths = pc.replace_substring_regex(locations, r"^file://", "", max_replacements=1)
    found = pc.binary_join_element_wise("file://", paths, "")
    if every(plain):
        return found
    odd = pa.array([address(each) for each in locations.filter(pc.invert(plain)).to_pylist()])
    return pc.replace_with_mask(found, pc.invert(plain), odd.cast(found.type))
