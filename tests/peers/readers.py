"""Who reads a table of the zoo: each must find the rows that its maker found.

A reader answers many questions at once, so that one in another process is called once, and tells every
column; None where it has no answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.expressions.visitors import bind
from pyiceberg.io.pyarrow import ArrowScan, expression_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.table import DataScan, FileScanTask

from icetree.spec.location import absolute
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT
from tests.peers.filters import Filter, matches, to_json, to_pyiceberg
from tests.peers.java_rows import JavaRows, spoken, text_of


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
#: For how many filters of a call PyIceberg opens every planned file.
_OPENED = 1 if EFFORT == 1 else 1_000_000
#: And icetree.
_OPENED_BY_ICETREE = 10 if EFFORT == 1 else 1_000_000
_NUMBER = "number of the text"
#: Gives a peer's own handle on a table, for a snapshot of it.
Open = Callable[[int | None], Any]


def said(row: Mapping[str, Any]) -> str:
    """Return a row as text, every column of it."""
    return text_of(spoken(row))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Answers questions about a table, in their order."""

    read: Callable[[Table, Sequence[Question]], list[Answer]]
    #: How it says a row: some do not tell all values apart.
    says: Say = said
    #: Whether it reads the very files of which another reader by the same peer is asked.
    reads_again: bool = False
    #: Whether it lets a null or a NaN through some comparisons.
    is_lax: bool = True


def icetree_reads() -> Reader:
    """Return what reads with icetree, in this process.

    For most filters it plans, and of the files that it plans those rows count that match.
    """

    def read(table: Table, questions: Sequence[Question]) -> list[Answer]:
        @cache
        def by_file(at: int | None) -> Mapping[str, list[tuple[Mapping[str, Any], str]]]:
            names = table.scan(at=at).to_arrow().column_names
            found: dict[str, list[tuple[Mapping[str, Any], str]]] = {}
            for row in table.scan(at=at, columns=[*names, "_file"]).to_arrow().to_pylist():
                found.setdefault(row.pop("_file"), []).append((row, said(row)))
            return found

        def answer(turn: int, asked: Question) -> Answer:
            scan = _scanned(table, asked)
            if asked.filter is None or turn <= _OPENED_BY_ICETREE:
                return [said(row) for row in scan.to_arrow().to_pylist()]
            known = by_file(asked.at)
            files = [
                absolute(each, table.location) for each in scan.plan().tasks["location"].to_pylist()
            ]
            rows = [pair for file in files for pair in known.get(file, ())]
            return [text for row, text in rows if matches(asked.filter, row)]

        return [answer(turn, each) for turn, each in enumerate(questions)]

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


def pyiceberg_reads(opened: Callable[[Table], Open], *, reads_again: bool = False) -> Reader:
    """Return what reads with stock PyIceberg, as far as it reads what it writes itself.

    It has no equality deletes and no Avro, takes a null list whose elements have changed for an empty one, and
    looks for NaN in no row group whose bounds Arrow wrote. As with Java, for most filters it plans, and of
    the files that it plans its own expressions filter the rows that it read of them before.
    """

    def read(table: Table, questions: Sequence[Question]) -> list[Answer]:
        peer = opened(table)
        known = _Known()

        def answer(turn: int, asked: Question) -> Answer:
            how = {} if asked.filter is None else {"row_filter": to_pyiceberg(asked.filter)}
            if asked.filter is not None and "-nan" in to_json(asked.filter):
                return None
            try:
                scan = peer(asked.at).scan(snapshot_id=asked.at, **how)
                if asked.filter is not None and turn > _OPENED:
                    return known.answer(scan)
                found = scan.to_arrow()
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

        return [answer(turn, each) for turn, each in enumerate(questions)]

    return Reader(read=read, says=_without_empty, reads_again=reads_again)


class _Known:
    """The rows of files that PyIceberg has read before, with the same deletes."""

    def __init__(self) -> None:
        self._files: dict[Any, pa.Table] = {}
        self._texts: list[str] = []

    def answer(self, scan: DataScan) -> Answer:
        """Return the rows of the files that a scan plans, which its filter lets through."""
        schema = scan.projection()
        found = [self._rows(scan, schema, task) for task in scan.plan_files()]
        if not found:
            return []
        bound = bind(schema, scan.row_filter, case_sensitive=scan.case_sensitive)
        rows = pa.concat_tables(found, promote_options="permissive")
        rows = rows.filter(expression_to_pyarrow(bound, schema))
        return [self._texts[at] for at in rows[_NUMBER].to_pylist()]

    def _rows(self, scan: DataScan, schema: Schema, task: FileScanTask) -> pa.Table:
        """Return the rows of a file, with the numbers of their texts."""
        deletes = frozenset(each.file_path for each in task.delete_files)
        key = (scan.snapshot_id, task.file.file_path, deletes)
        if key not in self._files:
            whole = ArrowScan(
                scan.table_metadata, scan.io, schema, AlwaysTrue(), scan.case_sensitive
            )
            rows = whole.to_table([task])
            numbers = range(len(self._texts), len(self._texts) + rows.num_rows)
            self._texts += map(_without_empty, rows.to_pylist())
            self._files[key] = rows.append_column(_NUMBER, pa.array(numbers, pa.int64()))
        return self._files[key]


def _without_empty(row: Mapping[str, Any]) -> str:
    """Say a row in which a list or map that is empty and one that is null are the same."""
    return said({name: None if value == [] else value for name, value in row.items()})


def java_reads(
    rows: JavaRows, opened: Callable[[Table], Open], *, reads_again: bool = False
) -> Reader:
    """Return what reads with stock Iceberg Java, in one call for each handle that it has on the table."""

    def read(table: Table, questions: Sequence[Question]) -> list[Answer]:
        peer = opened(table)
        answers: dict[int, Answer] = {}
        for handle in {id(peer(each.at)): peer(each.at) for each in questions}.values():
            mine = [at for at, each in enumerate(questions) if peer(each.at) is handle]
            asked = [(questions[at].filter, questions[at].at) for at in mine]
            told = rows(handle, [(filter and to_json(filter), at) for filter, at in asked])
            answers |= dict(zip(mine, told, strict=True))
        return [answers[at] for at in range(len(questions))]

    return Reader(read=read, reads_again=reads_again)


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
