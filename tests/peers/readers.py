"""Who reads a table of the zoo: each must find the rows that its maker found.

A reader answers many questions at once, so that one in another process starts once, and tells as many
columns as it can; None where it has no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import pyarrow as pa

from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.java import EVERYTHING, IcebergJava
from tests.peers.filters import Filter, to_json, to_pyiceberg


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which rows: of a snapshot, else the current one; that a filter lets through, else all."""

    at: int | None = None
    filter: Filter | None = None


#: Tables that a server has are told apart by them.
_NUMBERS = count()
#: Gives a peer's own handle on a table, for a snapshot of it.
Open = Callable[[int | None], Any]
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


#: What PyIceberg says of deletes and formats that it does not read, and of times in ORC.
_BEYOND_PYICEBERG = (
    "equality deletes",
    "Unsupported file format",
    "Delete file format",
    "Unsupported schema projection from timestamp[ns",
)


def pyiceberg_reads(opened: Callable[[Table], Open]) -> Reader:
    """Return what reads with stock PyIceberg, as far as it reads what it writes itself.

    It has no equality deletes and no Avro, takes a null list whose elements have changed for an empty one, and
    looks for NaN in no row group whose bounds Arrow wrote.
    """

    def read(table: Table, questions: Sequence[Question]) -> list[pa.Table | None]:
        peer = opened(table)

        def answer(asked: Question) -> pa.Table | None:
            how = {} if asked.filter is None else {"row_filter": to_pyiceberg(asked.filter)}
            if asked.filter is not None and "-nan" in to_json(asked.filter):
                return None
            try:
                return _without_lists(peer(asked.at).scan(snapshot_id=asked.at, **how).to_arrow())
            except ValueError as error:
                if not any(each in str(error) for each in _BEYOND_PYICEBERG):
                    raise
                return None
            except TypeError as error:
                # It compares a null partition.
                if "'NoneType'" not in str(error):
                    raise
                return None

        return [answer(each) for each in questions]

    return read


def _without_lists(rows: pa.Table) -> pa.Table:
    is_list = pa.types.is_list, pa.types.is_large_list, pa.types.is_map
    kept = [each.name for each in rows.schema if not any(kind(each.type) for kind in is_list)]
    return rows.select(kept)


def java_reads(java: IcebergJava, opened: Callable[[Table], Open]) -> Reader:
    """Return what reads with stock Iceberg Java: ids of rows."""

    def read(table: Table, questions: Sequence[Question]) -> list[pa.Table | None]:
        peer = opened(table)

        def answer(asked: Question) -> pa.Table | None:
            filter = EVERYTHING if asked.filter is None else to_json(asked.filter)
            found = java.rows(peer(asked.at), ["id"], filter, at=asked.at)
            if found is None:
                return None
            return pa.table({"id": pa.array([int(id) for [id] in found], pa.int64())})

        return [answer(each) for each in questions]

    return read


def of_exports(load: Callable[[str], Any]) -> Callable[[Table], Open]:
    """Return what opens the export of a snapshot, made once, by its metadata file."""

    def opened(table: Table) -> Open:
        return cache(lambda at: load(table.export(at=at).metadata_location))

    return opened


def through_server(lake: Lake, load: Callable[[str, str], Any]) -> Callable[[Table], Open]:
    """Return what opens a table that a server has, as it is now, under a name of its own."""

    def opened(table: Table) -> Open:
        name = f"t{next(_NUMBERS)}"
        lake.register_table(f"db.{name}", table.state.metadata_location)
        peer = load("db", name)
        return lambda _: peer

    return opened
