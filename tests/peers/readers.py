"""Who reads a table of the zoo: each must find the rows that its maker found.

A reader answers many questions at once, so that one in another process starts once, and tells as many
columns as it can; None where it has no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa
from pyiceberg.table import StaticTable

from icetree.table.table import Table
from tests.java import EVERYTHING, IcebergJava
from tests.peers.filters import Filter, to_json, to_pyiceberg


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which rows: of a snapshot, else the current one; that a filter lets through, else all."""

    at: int | None = None
    filter: Filter | None = None


#: Answers questions about a table, in their order.
Reader = Callable[[Table, Sequence[Question]], list[pa.Table | None]]


def icetree_reads(table: Table, questions: Sequence[Question]) -> list[pa.Table | None]:
    """Read with icetree, in this process."""
    return [
        table.scan(
            None if each.filter is None else to_pyiceberg(each.filter), at=each.at
        ).to_arrow()
        for each in questions
    ]


def pyiceberg_reads_exports(table: Table, questions: Sequence[Question]) -> list[pa.Table | None]:
    """Read exports as v3 with stock PyIceberg, as far as it reads what it writes itself.

    It has no equality deletes, takes a null list whose elements have changed for an empty one, and
    looks for NaN in no row group whose bounds Arrow wrote.
    """
    exported = _exports(table)

    def answer(asked: Question) -> pa.Table | None:
        peer = StaticTable.from_metadata(exported(asked.at))
        how = {} if asked.filter is None else {"row_filter": to_pyiceberg(asked.filter)}
        if asked.filter is not None and "-nan" in to_json(asked.filter):
            return None
        try:
            return _without_lists(peer.scan(snapshot_id=asked.at, **how).to_arrow())
        except ValueError as error:
            if "equality deletes" not in str(error):
                raise
            return None
        except TypeError as error:
            # It compares a null partition.
            if "'NoneType'" not in str(error):
                raise
            return None

    return [answer(each) for each in questions]


def _without_lists(rows: pa.Table) -> pa.Table:
    is_list = pa.types.is_list, pa.types.is_large_list, pa.types.is_map
    kept = [each.name for each in rows.schema if not any(kind(each.type) for kind in is_list)]
    return rows.select(kept)


def java_reads_exports(java: IcebergJava) -> Reader:
    """Return what reads exports as v3 with stock Iceberg Java: ids of rows."""

    def read(table: Table, questions: Sequence[Question]) -> list[pa.Table | None]:
        exported = _exports(table)
        opened = cache(lambda at: java.table(exported(at)))

        def answer(asked: Question) -> pa.Table | None:
            filter = EVERYTHING if asked.filter is None else to_json(asked.filter)
            found = java.rows(opened(asked.at), ["id"], filter, at=asked.at)
            if found is None:
                return None
            return pa.table({"id": pa.array([int(id) for [id] in found], pa.int64())})

        return [answer(each) for each in questions]

    return read


def _exports(table: Table) -> Callable[[int | None], str]:
    """Return what exports a snapshot, once, and tells where its metadata is."""
    return cache(lambda at: table.export(at=at).metadata_location)
