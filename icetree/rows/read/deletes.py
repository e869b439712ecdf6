"""Which rows of a data file are gone: by its DV, by position deletes, by equality deletes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema, prune_columns
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import NestedField
from pyroaring import BitMap64

from icetree.codec import bitmap, puffin
from icetree.codec.encryption import key_metadata
from icetree.codec.places import stored_form
from icetree.errors import CorruptTable
from icetree.files.cache import Cache
from icetree.files.sealed import read_part
from icetree.rows.project import leaf_of
from icetree.rows.read.equality_files import lacking
from icetree.rows.read.files import ReadRules, open_file, position_deletes
from icetree.rows.schema import arrow_type, plain
from icetree.spec.fields import DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.columns import field_path
from icetree.store.base import Store

Flags = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int64]

#: How many delete files, and sets of them, are kept ready for the next data file.
_KEPT: Final = 32
_NO_ROWS: Final[Rows] = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyColumn:
    """A field that equality deletes compare: the column it is in, and the way down to it."""

    column: NestedField
    path: tuple[str, ...]


def key_column(field_id: int, metadata: TableMetadata, current: Schema) -> KeyColumn:
    """Return a field as the newest schema that has it does; it may have been dropped since."""
    newest = sorted(metadata.schemas, key=lambda each: each["schema-id"], reverse=True)
    for schema in (current, *(metadata.schema(each["schema-id"]) for each in newest)):
        for column in prune_columns(schema, {field_id}, select_full_types=False).fields:
            path = field_path(column, field_id)
            if path is not None:
                return KeyColumn(column=column, path=path)
    raise CorruptTable(
        metadata.location, f"an equality delete is by field {field_id}, which no schema has"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """The keys of some equality deletes, ready to be looked for among rows.

    A row is compared key by key: values have numbers, and so have the combinations of the values so
    far that some delete has. There are no more of these than deletes, so no number grows too large.
    """

    keys: tuple[KeyColumn, ...]
    #: The distinct values of each key.
    values: tuple[pa.Array, ...]
    #: The combinations up to each key, ascending: by the number of the one before and the value's.
    combined: tuple[Rows, ...]

    def gone(self, value_of: Callable[[KeyColumn], pa.Array]) -> Flags:
        """Tell which rows have a deleted key; nulls equal nulls, NaNs equal NaNs."""
        code: Any = 0
        known: Any = True
        for key, values, combined in zip(self.keys, self.values, self.combined, strict=True):
            at = pc.index_in(plain(value_of(key)), value_set=values)
            known = known & pc.is_valid(at).to_numpy(zero_copy_only=False)
            here = code * len(values) + pc.fill_null(at, 0).to_numpy().astype(np.int64)
            code = np.minimum(np.searchsorted(combined, here), len(combined) - 1)
            known = known & (combined[code] == here)
        found: Flags = known
        return found


def matcher(keys: Sequence[KeyColumn], columns: Sequence[pa.ChunkedArray]) -> Matcher:
    """Return the keys of deletes, one column each and not without any, ready to be looked for."""
    flat = [plain(column.combine_chunks()) for column in columns]
    values = tuple(each.unique() for each in flat)
    code: Rows = np.zeros(len(columns[0]), np.int64)
    combined: list[Rows] = []
    for each, distinct in zip(flat, values, strict=True):
        here = code * len(distinct) + pc.index_in(each, value_set=distinct).to_numpy()
        step, code = np.unique(here, return_inverse=True)
        combined.append(step)
    return Matcher(keys=tuple(keys), values=values, combined=tuple(combined))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletes:
    """Reads the deletes of a plan; what several data files share is read once."""

    #: `Plan.deletes`.
    files: list[dict[str, Any]]
    store: Store
    metadata: TableMetadata
    schema: Schema
    mapping: NameMapping | None
    cache: Cache = field(default_factory=Cache)

    def _ids(self, number: int) -> tuple[int, ...]:
        entry = self.files[number]
        if not entry["equality_ids"]:
            raise CorruptTable(entry["location"], "an equality delete file must name its fields")
        return tuple(sorted(entry["equality_ids"]))

    def matchers(self, numbers: Sequence[int]) -> list[Matcher]:
        """Return the equality deletes by number, those by the same fields as one."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for number in numbers:
            groups.setdefault(self._ids(number), []).append(number)
        found = [self._matcher(ids, each) for ids, each in groups.items()]
        return [each for each in found if each is not None]

    def _matcher(self, ids: tuple[int, ...], numbers: list[int]) -> Matcher | None:
        def make() -> Matcher | None:
            keys = [key_column(id, self.metadata, self.schema) for id in ids]
            tables = [self._equality(number, keys) for number in numbers]
            if not any(table.num_rows for table in tables):
                return None
            return matcher(keys, pa.concat_tables(tables).columns)

        return self.cache.derive(("matchers", ids, *numbers), make, most=_KEPT)

    def _equality(self, number: int, keys: Sequence[KeyColumn]) -> pa.Table:
        def make() -> pa.Table:
            entry = self.files[number]
            location = absolute(entry["location"], self.metadata.location)
            file = open_file(
                self.store,
                location,
                entry["file_format"],
                mapping=self.mapping,
                key=entry["key_metadata"],
            )
            rule = lacking(file, self._ids(number), self.metadata.shape())
            if rule is not None:
                raise CorruptTable(entry["location"], rule)
            rules = ReadRules(location=location)
            names = [str(at) for at in range(len(keys))]
            parts = []
            for group in file.groups:
                if not group.rows:
                    continue
                made = []
                # One by one: two keys may be inside one column, each with its own part of it.
                for key in keys:
                    batches = file.read(group, [key.column], rules)
                    made.append(
                        pa.chunked_array([leaf_of(each.column(0), key.path) for each in batches])
                    )
                parts.append(pa.table(made, names=names))
            if not parts:
                types = [key_type(key) for key in keys]
                return pa.table([pa.chunked_array([], type) for type in types], names=names)
            return pa.concat_tables(parts)

        return self.cache.derive(("equality", number), make, most=_KEPT)

    def removed_rows(self, task: dict[str, Any], location: str) -> Rows:
        """Return the positions that the task's DV and position deletes remove, ascending."""
        numbers = task["position_deletes"] or ()
        named = [self._positions(number).get(task["location"], _NO_ROWS) for number in numbers]
        found = [each for each in (self._vector(task), *named) if len(each)]
        if not found:
            return _NO_ROWS
        rows = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
        if rows[-1] >= task["record_count"] or rows[0] < 0:
            raise CorruptTable(
                location,
                f"a delete names row {rows[-1]}, but it has {task['record_count']} rows",
            )
        return rows

    def _vector(self, task: dict[str, Any]) -> Rows:
        if task["dv_location"] is None:
            return _NO_ROWS
        return read_vector(self.store, task, self.metadata.location)

    def _positions(self, number: int) -> dict[str, Rows]:
        """Return the rows that a position delete file removes, by stored location."""

        def make() -> dict[str, Rows]:
            entry = self.files[number]
            location = absolute(entry["location"], self.metadata.location)
            file = open_file(
                self.store,
                location,
                entry["file_format"],
                mapping=None,
                key=entry["key_metadata"],
            )
            rows = position_deletes(file, DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD)
            return by_file(rows, self.metadata.location, delete_file=location)

        return self.cache.derive(("positions", number), make, most=_KEPT)


def key_type(key: KeyColumn) -> pa.DataType:
    """Return the Arrow type of a key's values."""
    found = arrow_type(key.column.field_type)
    for name in key.path:
        found = found.field(name).type
    return found


#: What `open_vector` reads of a task, beside its name.
VECTOR_COLUMNS: Final = (
    "dv_location",
    "dv_offset",
    "dv_size_in_bytes",
    "dv_cardinality",
    "dv_key_metadata",
)


def read_vector(store: Store, task: dict[str, Any], table_location: str) -> Rows:
    """Return the positions in the data DV of a task, ascending."""
    vector = open_vector(store, task, table_location)
    # Before it is taken apart: a few bytes can name any number of rows.
    if vector and vector.max() >= task["record_count"]:
        raise CorruptTable(
            absolute(task["dv_location"], table_location),
            f"the DV of {task['location']} removes row {vector.max()} of {task['record_count']}",
        )
    found: Rows = bitmap.to_array(vector).to_numpy()
    return found


def open_vector(store: Store, task: dict[str, Any], table_location: str) -> BitMap64:
    """Return the data DV of a task, which has as many rows as its entry says."""
    location = absolute(task["dv_location"], table_location)
    offset, size = task["dv_offset"], task["dv_size_in_bytes"]
    if offset is None or size is None:
        raise CorruptTable(location, "a data DV needs the offset and size of its blob")
    key = key_metadata.standard(task["dv_key_metadata"])
    blob = read_part(store, location, key, offset=offset, length=size)
    vector = puffin.decode_dv(blob, file=location)
    if len(vector) != task["dv_cardinality"]:
        raise CorruptTable(
            location,
            f"the DV of {task['location']} has {len(vector)} rows, "
            f"its entry says {task['dv_cardinality']}",
        )
    return vector


def by_file(table: pa.Table, table_location: str, *, delete_file: str) -> dict[str, Rows]:
    """Return the rows that position deletes name, by the stored location of their file."""
    paths = table["file_path"].combine_chunks().dictionary_encode()
    named = stored_form(paths.dictionary, table_location, file=delete_file).dictionary_encode()
    codes = named.indices.to_numpy()[paths.indices.to_numpy()]
    rows = table["pos"].to_numpy()
    order = np.lexsort((rows, codes))
    codes, rows = codes[order], rows[order]
    names = named.dictionary.to_pylist()
    ends = np.searchsorted(codes, np.arange(len(names) + 1))
    return {name: np.unique(rows[ends[at] : ends[at + 1]]) for at, name in enumerate(names)}
