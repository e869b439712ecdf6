"""What a folder of others holds, as what a table is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyroaring import BitMap64


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a folder holds: columns, and files with what they leave out."""

    #: Arrow's.
    schema: Any
    #: Columns that every file has one value of, outermost folder first.
    partition_by: tuple[str, ...]
    #: By absolute location: the values of columns that the file itself has not.
    files: Mapping[str, Mapping[str, pa.Scalar]]
    #: By absolute location: the rows that are gone from a file.
    vectors: Mapping[str, BitMap64] = field(default_factory=dict)
