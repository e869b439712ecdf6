"""Who reads a table of the zoo: each must find the rows that its maker found.

A reader answers many questions at once, so that one in another process is called once, and tells every
column; None where it has no answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.peers.filters import Filter, to_json, to_pyiceberg
from tests.peers.java_rows import JavaRows, spoken


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Which rows: of a snapshot, else the current one; that a filter lets through, else all."""

    at: int | None = None
    filter: Filter | None = None


#: Says one row as text, the same for the same rows.
Say = Callable[[Mapping[str, Any]], str]
#: The rows that a question is answered by, each as text.
Answer = list[str] | None
#: Tables that a server has are told apart by them.
_NUMBERS = count()
#: Gives a peer's own handle on a table, for a snapshot of it.
Open = Callable[[int | None], Any]


def said(row: Mapping[str, Any]) -> str:
    """Return a row as text, every column of it."""
    return _text(spoken(row))


def _text(row: Mapping[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Answers questions about a table, in their order."""

    read: Callable[[Table, Sequence[Question]], list[Answer]]
    #: How it says a row: some do not tell all values apart.
    says: Say = said
    #: Whether a question takes it so long that the usual run asks but a few.
    is_dear: bool = False
    #: Whether it lets a null or a NaN through some comparisons.
    is_lax: bool = True


def icetree_reads() -> Reader:
    """Return what reads with icetree, in this process."""

    def read(table: Table, questions: Sequence[Question]) -> list[Answer]:
        return [
            [said(row) for row in _scanned(table, each).to_arrow().to_pylist()]
            for each in questions
        ]

    return Reader(read=read, is_lax=False)


def _scanned(table: Table, asked: Question) -> Any:
    where = None if asked.filter is None else to_pyiceberg(asked.filter)
    return table.scan(where, at=asked.at)


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

    def read(table: Table, questions: Sequence[Question]) -> list[Answer]:
        peer = opened(table)

        def answer(asked: Question) -> Answer:
            how = {} if asked.filter is None else {"row_filter": to_pyiceberg(asked.filter)}
            if asked.filter is not None and "-nan" in to_json(asked.filter):
                return None
            try:
                found = peer(asked.at).scan(snapshot_id=asked.at, **how).to_arrow()
            except ValueError as error:
                if not any(each in str(error) for each in _BEYOND_PYICEBERG):
                    raise
                return None
            except TypeError as error:
                # It compares a null partition, and times in ORC with nothing.
                if not any(each in str(error) for each in ("'NoneType'", "into timestamp_ns")):
                    raise
                return None
            return [_without_empty(row) for row in found.to_pylist()]

        return [answer(each) for each in questions]

    return Reader(read=read, says=_without_empty, is_dear=True)


def _without_empty(row: Mapping[str, Any]) -> str:
    """Say a row in which a list or map that is empty and one that is null are the same."""
    return said({name: None if value == [] else value for name, value in row.items()})


def java_reads(rows: JavaRows, opened: Callable[[Table], Open]) -> Reader:
    """Return what reads with stock Iceberg Java, in one call for each handle that it has on the table."""

    def read(table: Table, questions: Sequence[Question]) -> list[Answer]:
        peer = opened(table)
        answers: dict[int, Answer] = {}
        for handle in {id(peer(each.at)): peer(each.at) for each in questions}.values():
            mine = [at for at, each in enumerate(questions) if peer(each.at) is handle]
            asked = [(questions[at].filter, questions[at].at) for at in mine]
            told = rows(handle, [(filter and to_json(filter), at) for filter, at in asked])
            for at, found in zip(mine, told, strict=True):
                answers[at] = None if found is None else [_text(row) for row in found]
        return [answers[at] for at in range(len(questions))]

    return Reader(read=read)


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
