"""Data DVs in the words of v2: a position delete file stands for each.

It has the rows of the DV, beside exports, under a name that follows from the DV: so it is made once,
whoever exports, and what a client says of it is said of the DV. It lives as long as the Puffin file
that the DV is in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyroaring import BitMap64

from icetree.codec import bitmap, limits
from icetree.errors import AlreadyExists, NotFound, Unsupported
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.rows.read.deletes import open_vector
from icetree.spec.arrays import one_chunk
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries, is_data_dv, is_live, only, with_columns
from icetree.spec.fields import DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD
from icetree.spec.location import absolute, stored_form
from icetree.spec.locations import absolute_array
from icetree.table.export.places import stand_in_at, stand_in_folder, vectors_in

_FORMAT: Final = "parquet"
_SCHEMA: Final = pa.schema(
    [
        pa.field(name, type, nullable=False, metadata={"PARQUET:field_id": str(id)})
        for name, type, id in (
            ("file_path", pa.dictionary(pa.int32(), pa.string()), DELETE_FILE_PATH_FIELD),
            ("pos", pa.int64(), DELETE_POS_FIELD),
        )
    ]
)
#: What a task says of its data DV, and the entry of that.
VECTOR_WORDS: Final = {
    "location": "referenced_file",
    "dv_location": "location",
    "dv_offset": "dv_offset",
    "dv_size_in_bytes": "dv_size_in_bytes",
    "dv_cardinality": "record_count",
    "dv_key_metadata": "key_metadata",
}
#: What a row takes in memory.
_ROW_BYTES: Final = 12
#: How many sizes are remembered, and from how many on a folder is listed to learn of them.
_KEPT: Final = 100_000
_MANY: Final = 16
_SIZES: Final = "stand-ins"


@dataclass(frozen=True, slots=True, kw_only=True)
class StandIns:
    """Tells of data DVs as v2 does, and makes the files that it takes."""

    files: TableFiles
    table_location: str
    #: As stored: those that were made.
    written: list[str] = field(default_factory=list)

    def told(self, entries: Entries) -> Entries:
        """Return entries with a position delete file in place of each data DV; Unsupported.

        Those of live ones are there then. Of one that was removed nothing but the name is needed, and
        its Puffin file may be gone: its size is the DV's.
        """
        vectors = one_chunk(is_data_dv(entries))
        if not vectors.true_count:
            return entries
        some = only(entries, vectors)
        if some["key_metadata"].null_count < some.num_rows:
            raise Unsupported("this snapshot has encrypted deletion vectors, and v2 knows no keys")
        words = pa.table({word: some[name] for word, name in VECTOR_WORDS.items()})
        names, sizes = self.made(words, is_live(some).to_pylist())
        nothing = [None] * len(names)
        columns: dict[str, Sequence[Any]] = {
            "location": names,
            "file_format": [_FORMAT] * len(names),
            "file_size_in_bytes": sizes,
            "dv_offset": nothing,
            "dv_size_in_bytes": nothing,
        }
        owners = absolute_array(some["referenced_file"], self.table_location).to_pylist()
        for stat in ("lower", "upper"):
            name = stats.column(DELETE_FILE_PATH_FIELD, stat)
            columns[name] = owners
            if name not in entries.schema.names:
                entries = entries.append_column(name, pa.nulls(entries.num_rows, pa.string()))
        return _placed(entries, columns, vectors)

    def told_in(self, tasks: pa.Table) -> pa.Table:
        """Return the tasks of a plan with what stands for their data DVs, there, in place of these."""
        vectors = one_chunk(pc.is_valid(tasks["dv_location"]))
        if not vectors.true_count:
            return tasks
        some = tasks.filter(vectors)
        names, sizes = self.made(some, [True] * some.num_rows)
        nothing = [None] * len(names)
        columns: dict[str, Sequence[Any]] = {
            "dv_location": names,
            "dv_file_size_in_bytes": sizes,
            "dv_offset": nothing,
            "dv_size_in_bytes": nothing,
        }
        return _placed(tasks, columns, vectors)

    def made(self, tasks: pa.Table, live: Sequence[bool]) -> tuple[list[str], list[int]]:
        """Return the names and sizes of what stands for the data DVs of tasks, of live ones there."""
        folder = stand_in_folder(self.table_location)
        facts = [
            {**fact, "name": _name(folder, fact), "is_live": each}
            for fact, each in zip(tasks.select([*VECTOR_WORDS]).to_pylist(), live, strict=True)
        ]
        self._look(facts)
        return [each["name"] for each in facts], list(in_order(self._size, facts))

    def _look(self, facts: Iterable[Mapping[str, Any]]) -> None:
        """Learn what is there by one listing, where it would take many questions."""
        cache = self.files.cache
        names = {each["name"] for each in facts if each["is_live"]}
        unknown = {each for each in names if cache.recall((_SIZES, each)) is None}
        if len(unknown) < _MANY:
            return
        for file in self.files.store.list(
            absolute(stand_in_folder(self.table_location), self.table_location)
        ):
            name = stored_form(file.location, self.table_location)
            if name in unknown:
                self._remember(name, file.size_bytes)

    def _size(self, fact: Mapping[str, Any]) -> int:
        """Return the size of what stands for a data DV, having made it where it is not there."""
        name = fact["name"]
        if not fact["is_live"]:
            return fact["dv_size_in_bytes"] or 0
        known: int | None = self.files.cache.recall((_SIZES, name))
        if known is not None:
            return known
        store, location = self.files.store, absolute(name, self.table_location)
        with suppress(NotFound):
            return self._remember(name, store.size(location))
        vector = open_vector(store, {**fact}, self.table_location)
        content = _content(vector, absolute(fact["location"], self.table_location), location)
        try:
            store.write_new(location, content)
        except AlreadyExists:
            return self._remember(name, store.size(location))
        self.written.append(name)
        return self._remember(name, len(content))

    def _remember(self, name: str, size_bytes: int) -> int:
        # It is not asked for again: what a live DV has stays as long as the DV does.
        return self.files.cache.derive((_SIZES, name), lambda: size_bytes, most=_KEPT)


def _placed(
    table: pa.Table, columns: Mapping[str, Sequence[Any]], rows: pa.BooleanArray
) -> pa.Table:
    """Return a table with other values in some of its rows."""
    for name, values in columns.items():
        at, field = table.schema.get_field_index(name), table.schema.field(name)
        new = pa.array(values, field.type)
        table = table.set_column(at, field, pc.replace_with_mask(one_chunk(table[name]), rows, new))
    return table


def _name(folder: str, fact: Mapping[str, Any]) -> str:
    return stand_in_at(folder, fact["dv_location"], fact["dv_offset"] or 0, fact["location"])


def _content(vector: BitMap64, data_file: str, file: str) -> bytes:
    """Return the rows of a DV as a position delete file."""
    limits.ROW_GROUP.require(_ROW_BYTES * len(vector), file=file, what="its rows")
    names = pa.DictionaryArray.from_arrays(np.zeros(len(vector), np.int32), [data_file])
    rows = pa.table([names, bitmap.to_array(vector)], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, compression="zstd", store_schema=False)
    return bytes(sink.getvalue())


# --- the way back ------------------------------------------------------------------------------


def is_stand_in(entries: Entries, table_location: str) -> pa.ChunkedArray:
    """Tell which entries are files that stand for data DVs."""
    return pc.starts_with(entries["location"], stand_in_folder(table_location))


def as_vectors(entries: Entries, tasks: pa.Table, table_location: str) -> Entries:
    """Return entries with the data DVs that some of them stand for, found among a plan's tasks.

    One that is not found stands for a DV that is gone, as its data file is: it is left out.
    """
    stands = one_chunk(is_stand_in(entries, table_location))
    owners = _owners({*entries["location"].filter(stands).to_pylist()}, tasks, table_location)
    names = pa.array(owners.keys(), pa.string())
    at = pc.index_in(one_chunk(entries["location"]), value_set=names)
    found = pa.array(owners.values(), pa.string()).take(at)
    known = pc.is_valid(found)
    entries = with_columns(
        entries,
        file_format=pc.if_else(known, "puffin", one_chunk(entries["file_format"])),
        referenced_file=pc.coalesce(found, one_chunk(entries["referenced_file"])),
    )
    return only(entries, pc.or_(known, pc.invert(stands)))


def _owners(names: Collection[str], tasks: pa.Table, table_location: str) -> dict[str, str]:
    """Return the data files whose DVs some files stand for, by these files."""
    folder = stand_in_folder(table_location)
    files = {each.removeprefix(folder).partition("-")[0] for each in names}
    known = tasks["dv_location"].drop_null().unique().to_pylist()
    some = pa.array([each for each in known if vectors_in(each) in files], pa.string())
    picked = tasks.select(["location", "dv_location", "dv_offset"])
    picked = picked.filter(pc.is_in(picked["dv_location"], value_set=some))
    found = {_name(folder, each): each["location"] for each in picked.to_pylist()}
    return {name: owner for name, owner in found.items() if name in names}
