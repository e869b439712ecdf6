"""Locations as manifests name them, whoever wrote them, in the one form that is compared."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CorruptTable, InvalidInput
from icetree.spec.locations import is_full, stored_form_array


def stored_form(locations: pa.Array, table_location: str, *, file: str) -> pa.Array:
    """Return locations as v4 stores them, refusing what cannot be one."""
    try:
        return stored_form_array(locations, table_location)
    except InvalidInput as error:
        raise CorruptTable(file, str(error)) from error


def stored_form_of_full(locations: pa.Array, table_location: str, *, file: str) -> pa.Array:
    """Do `stored_form` for a manifest of v1-v3, where every location is in full."""
    short = locations.filter(pc.invert(is_full(locations)))
    for each in short[:1].to_pylist():
        raise CorruptTable(file, f"{each!r} is no location in full: neither a URI nor a path")
    return stored_form(locations, table_location, file=file)
