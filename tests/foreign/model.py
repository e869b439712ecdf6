"""What a table holds by the rules of the format alone: plain rows, and who deletes which."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.foreign.columns import Row, dig
from tests.foreign.layout import Layout

DATA, VECTOR, EQUALITY = 0, 1, 2


@dataclass(slots=True, kw_only=True, eq=False)
class File:
    """A data file, a data DV or another delete file, with its tracking once committed."""

    content: int
    #: In full, whatever a manifest calls it.
    location: str
    format: str
    spec_id: int
    #: The partition tuple, in the order of the spec.
    partition: tuple[Any, ...]
    record_count: int
    size: int
    stats: dict[int, dict[str, Any]]
    sort_order_id: int | None = None
    key_metadata: bytes | None = None
    split_offsets: list[int] | None = None

    rows: list[Row] = field(default_factory=list)
    #: Rows tell by themselves who they are.
    has_lineage: bool = False

    #: Of a data DV.
    target: File | None = None
    positions: frozenset[int] = frozenset()
    offset: int | None = None
    length: int | None = None

    #: Of a position delete file of v2, which is of a data DV's content: rows by data file.
    deleted: tuple[tuple[File, frozenset[int]], ...] = ()
    #: What its entry tells of the paths: the least and the greatest, or the only file.
    path_bounds: tuple[str, str] | None = None
    only_of: File | None = None

    #: Of an equality delete: keys that lead to its columns, and the values of these that it deletes.
    keys: tuple[str, ...] = ()
    values: frozenset[tuple[Any, ...]] = frozenset()
    equality_ids: list[int] | None = None

    snapshot_id: int | None = None
    sequence_number: int | None = None
    file_sequence_number: int | None = None
    first_row_id: int | None = None

    @property
    def is_vector(self) -> bool:
        return self.content == VECTOR and self.format == "puffin"

    def lineage(self, at: int) -> tuple[int | None, int | None]:
        """Return a row's id and the sequence number of its last change."""
        row = self.rows[at]
        id, updated = row.get("_row_id"), row.get("_last_updated_sequence_number")
        if not self.has_lineage or id is None:
            id = None if self.first_row_id is None else self.first_row_id + at
        if not self.has_lineage or updated is None:
            updated = self.sequence_number
        return id, updated


def rows_of(files: Iterable[File], layout: Layout) -> list[Row]:
    """Return the rows that the live files of a snapshot leave, each with its lineage."""
    files = list(files)
    vectors = {id(each.target): each.positions for each in files if each.is_vector}
    equality = [each for each in files if each.content == EQUALITY]
    found = []
    for each in files:
        if each.content != DATA:
            continue
        # A DV has the rows of position deletes, too.
        gone = vectors.get(id(each), positions_of(each, files))
        apply = [delete for delete in equality if applies(delete, each, layout)]
        for at, row in enumerate(each.rows):
            row_id, updated = each.lineage(at)
            row = layout.filled(row)
            if at in gone or any(_has(delete, row) for delete in apply):
                continue
            found.append(row | {"_row_id": row_id, "_last_updated_sequence_number": updated})
    return found


def positions_of(file: File, files: Iterable[File]) -> frozenset[int]:
    """Return the rows of a data file that position delete files of v2 delete."""
    named = (one for each in files for one in each.deleted if not _is_older(each, file))
    return frozenset(row for target, rows in named if target is file for row in rows)


def _is_older(delete: File, than: File) -> bool:
    return (delete.sequence_number or 0) < (than.sequence_number or 0)


def applies(delete: File, to: File, layout: Layout) -> bool:
    """Tell whether an equality delete is about a data file."""
    if (delete.sequence_number or 0) <= (to.sequence_number or 0):
        return False
    if layout.is_unpartitioned(delete.spec_id):
        return True
    # -0.0 is another partition than 0.0, and NaN is one.
    return delete.spec_id == to.spec_id and repr(delete.partition) == repr(to.partition)


def _has(delete: File, row: Row) -> bool:
    return tuple(dig(row, path) for path in delete.keys) in delete.values
