"""What a commit means to do: intent, independent of the head it will land on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import BooleanExpression

from icetree.spec.entry.entry import Content, Entries, empty


class Intent(Enum):
    """What a writer set out to do; decides what it must be protected from."""

    APPEND = "append"
    DELETE_FILES = "delete files"
    DELETE_BY_FILTER = "delete by filter"
    OVERWRITE_FILES = "overwrite files"
    OVERWRITE_BY_FILTER = "overwrite by filter"
    REPLACE_PARTITIONS = "replace partitions"
    ROW_DELTA = "row delta"
    REWRITE = "rewrite"


class Operation(str, Enum):
    """A snapshot's operation, as its summary says it."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    DELETE = "delete"
    REPLACE = "replace"


#: Columns of `Changes.removed`. A file is named by (content_type, key): the key is the location,
#: except for a data DV, which is named by its data file. `leaf` and `position` say where the
#: writer saw it: a hint that saves a lookup. The counts are needed for the summary where the
#: hint is given; without a hint they are looked up.
REMOVED: Final = pa.schema(
    [
        pa.field("content_type", pa.int32()),
        pa.field("key", pa.string()),
        pa.field("leaf", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("record_count", pa.int64()),
        pa.field("file_size_in_bytes", pa.int64()),
    ]
)


def _no_names() -> pa.Array:
    return pa.array([], pa.string())


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Files to add and to remove, and what the writer relied on when it decided so."""

    intent: Intent
    #: Data files, data DVs and equality deletes; tracking is filled in by `grow`, except that a
    #: given `sequence_number` is kept (a rewrite keeps the data's age). A DV for a data file
    #: that already has one replaces it.
    added: Entries = field(default_factory=empty)
    #: Files that go, as `REMOVED` tells. A data file takes its DV along.
    removed: pa.Table = field(default_factory=REMOVED.empty_table)
    #: Where the writer saw the data files that its DVs are for, in the same columns: a hint too.
    seen: pa.Table = field(default_factory=REMOVED.empty_table)
    #: Locations of added files that were made for this change, under names that nobody else can
    #: have: in no table is there another, so none is looked for.
    fresh: pa.Array = field(default_factory=_no_names)
    #: Data files whose deletes of other commits this change has taken in, though it did not see
    #: them when it was made: no conflict.
    carried: pa.Array = field(default_factory=_no_names)
    #: The rows this change looked at: new rows matching it would have mattered.
    filter: BooleanExpression | None = None
    #: Whether what an overwrite by filter adds must match its filter.
    strict: bool = True

    @property
    def operation(self) -> Operation:
        """The operation as readers of the snapshot should understand it."""
        if self.intent is Intent.REWRITE:
            return Operation.REPLACE
        content = self.added["content_type"]
        adds_data = pc.any(pc.equal(content, Content.DATA)).as_py() or False
        takes = self.removed.num_rows > 0 or (
            pc.any(pc.not_equal(content, Content.DATA)).as_py() or False
        )
        if adds_data or not takes:
            return Operation.OVERWRITE if takes else Operation.APPEND
        return Operation.DELETE


def removal(
    keys: Iterable[str],
    *,
    content: Content = Content.DATA,
    leaf: str | None = None,
    positions: Iterable[int] | None = None,
) -> pa.Table:
    """Return rows for `Changes.removed`: files by name, with a hint where they are known to be."""
    names = pa.array(list(keys), pa.string())
    size = len(names)
    at = pa.nulls(size, pa.int64()) if positions is None else pa.array(list(positions), pa.int64())
    return pa.table(
        {
            "content_type": pa.array([content] * size, pa.int32()),
            "key": names,
            "leaf": pa.array([leaf] * size, pa.string()),
            "position": at,
            "record_count": pa.nulls(size, pa.int64()),
            "file_size_in_bytes": pa.nulls(size, pa.int64()),
        },
        schema=REMOVED,
    )
