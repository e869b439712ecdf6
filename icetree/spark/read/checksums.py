"""Pages that Spark reads by itself, held against their checksums as our own reader holds them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from icetree.rows.read.files import CHECKSUMS
from icetree.spec.properties.values import flag

#: The options that have Parquet's reader do so, in its own words: deletes are always read with them.
CHECKED: Final[Mapping[str, str]] = MappingProxyType(
    {"parquet.page.verify-checksum.enabled": "true"}
)
_UNCHECKED: Final[Mapping[str, str]] = MappingProxyType({})


def reader_options(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the options that data files of a table with these properties are read with.

    Where the table asks for no checksums, the session's own settings decide.
    """
    return CHECKED if flag(properties, CHECKSUMS, default=True) else _UNCHECKED
