"""Do position delete files of v2 hold what can be deleted: rows that are there, of files by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import LongType, NestedField, StringType

from icetree.codec.places import stored_form
from icetree.rows.read.files import DataFile, ReadRules
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import Entries
from icetree.spec.fields import DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD
from icetree.spec.locations import absolute_array, canonical_array, canonical_range
from icetree.table.verify.contradicted import contradicted, told_by

#: Nulls are for the check to name.
_FIELDS: Final = (
    NestedField(DELETE_FILE_PATH_FIELD, "file_path", StringType(), required=False),
    NestedField(DELETE_POS_FIELD, "pos", LongType(), required=False),
)
_NOTHING: Final = {"values": None, "nulls": None, "nans": None}


def lacks_a_column(file: DataFile) -> str | None:
    """Return what is wrong with a position delete file that lacks one of its columns."""
    for field in _FIELDS:
        if not file.has(field.field_id):
            return f"a position delete file lacks column {field.field_id}"
    return None


def broken_positions(
    file: DataFile, entries: list[Entries], known: pa.Table, table_location: str
) -> Iterator[tuple[str, int]]:
    """Yield a sentence for each broken rule, and the number of the entry that it is about.

    `known` are the table's data files, with the rows that they have; one of another name has gone,
    and deletes nothing.
    """
    rules = ReadRules(location=file.location)
    said: dict[str, None] = {}
    names: list[pa.Array] = []
    ends: list[Any] = []
    for group in file.groups:
        batches = [each for each in file.read(group, _FIELDS, rules) if each.num_rows]
        for batch in batches:
            paths, rows = batch.columns
            said |= dict.fromkeys(_broken_rows(paths, rows))
            spelt = pc.unique(paths.drop_null())
            stored = stored_form(spelt, table_location, file=file.location)
            said |= dict.fromkeys(_past_the_end(paths, rows, spelt, stored, known))
            names.append(pa.table({"spelt": spelt, "stored": stored}))
            ends += [rows]
    yield from ((rule, 0) for rule in said)
    if not names:
        return
    named = pa.concat_tables(names)
    positions = pc.min_max(pa.chunked_array(ends))
    for at, entry in enumerate(entries):
        for rule in (
            *_bounds(entry, named["spelt"], positions, table_location),
            *_others(entry, named["stored"]),
        ):
            yield rule, at


def _broken_rows(paths: pa.Array, rows: pa.Array) -> Iterator[str]:
    if paths.null_count:
        yield "a position delete names no data file: its path is null"
    if rows.null_count:
        yield "a position delete names no row: its position is null"
    least = pc.min(rows).as_py()
    if least is not None and least < 0:
        yield f"a position delete names row {least}"


def _past_the_end(
    paths: pa.Array, rows: pa.Array, spelt: pa.Array, stored: pa.Array, known: pa.Table
) -> Iterator[str]:
    """Yield a sentence for the first row that its data file does not have."""
    at = pc.index_in(stored, value_set=one_chunk(known["location"]))
    held = known["record_count"].take(at)
    which = pc.index_in(paths, value_set=spelt)
    past = pc.fill_null(pc.greater_equal(rows, one_chunk(held.take(which))), False)
    for number in pc.indices_nonzero(past)[:1].to_pylist():
        file = which[number].as_py()
        yield f"it deletes row {rows[number]} of {stored[file]}, which has {held[file]}"


def _bounds(
    entry: Entries, spelt: pa.ChunkedArray, positions: pa.Scalar, table_location: str
) -> Iterator[str]:
    """Yield what bounds leave out: scans go by those of the path."""
    told = told_by(entry)
    ends = {
        id: {stat: told[id, stat] for stat in ("lower", "upper") if (id, stat) in told}
        for id in (DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD)
    }
    real = {"lower": positions["min"], "upper": positions["max"]}
    yield from contradicted("pos", ends[DELETE_POS_FIELD], real | _NOTHING)
    path = ends[DELETE_FILE_PATH_FIELD]
    if len(path) < 2:
        return
    # As they are compared where deletes are matched to files: in one spelling.
    lower, upper = canonical_range(
        pa.array([path["lower"].as_py()]), pa.array([path["upper"].as_py()]), table_location
    )
    full = canonical_array(absolute_array(spelt, table_location), table_location)
    real = {"lower": pc.min(full), "upper": pc.max(full)}
    mine = {"lower": lower[0], "upper": upper[0]}
    known = {stat: value for stat, value in mine.items() if value.is_valid}
    yield from contradicted("file_path", known, real | _NOTHING)


def _others(entry: Entries, stored: pa.ChunkedArray) -> Iterator[str]:
    """Yield a file that an entry passes over: it says that all rows are of another."""
    target = entry["referenced_file"][0].as_py()
    if target is None:
        return
    for name in stored.filter(pc.not_equal(stored, target))[:1]:
        yield f"it deletes rows of {name}, but its entry says of {target} alone"
