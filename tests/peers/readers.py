"""Who reads a table of the zoo: each must find the rows that its maker found.

A reader answers many questions at once, so that one in another process starts once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from icetree.table.table import Table
from tests.peers.filters import Filter, to_pyiceberg


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which rows: of a snapshot, else the current one; that a filter lets through, else all."""

    at: int | None = None
    filter: Filter | None = None


#: Answers questions about a table, in their order.
Reader = Callable[[Table, Sequence[Question]], list[pa.Table]]


def icetree_reads(table: Table, questions: Sequence[Question]) -> list[pa.Table]:
    """Read with icetree, in this process."""
    return [
        table.scan(
            None if each.filter is None else to_pyiceberg(each.filter), at=each.at
        ).to_arrow()
        for each in questions
    ]


#: By name. A reader through the server's planning, or of an export, has its place here.
READERS: Mapping[str, Reader] = {"icetree": icetree_reads}
