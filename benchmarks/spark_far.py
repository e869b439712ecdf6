"""Tables of very many files, made up but for the few that a query reads.

Every file has its slot of `id`; in a table with parts, so many files share a value of a column that
the table is partitioned by. Iceberg Java is given the same table, as an export has it.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks import data
from benchmarks.data import SLOT
from benchmarks.plan_tables import open_lake
from icetree.rows.schema import arrow_schema
from icetree.spec.entry.entry import Entries
from icetree.spec.entry.stats import column
from icetree.spec.schema.shape import Shape

#: How many rows each file has that is there.
ROWS: Final = 10
#: The column of parts, an int.
PART: Final = 5
#: The column of parts by name, and how many files have the same.
PART_NAME: Final = f"column_{PART}"
FILES_OF_A_PART: Final = 10

_COLUMNS: Final = 20
_AT_ONCE: Final = 100_000


def build(folder: Path, name: str, count: int, read: int, *, parts: bool = False) -> None:
    """Make a table of `count` files, `read` of which are there; in a lake of the folder."""
    folder.mkdir(exist_ok=True)
    with open_lake(folder) as lake:
        lake.create_namespace("db", exist_ok=True)
        schema = data.shape_of(_COLUMNS).schema
        table = lake.create_table(f"db.{name}", schema, partition_by=[PART_NAME] if parts else [])
        shape = table.metadata.shape()
        place = Path(table.location.removeprefix("file://"))
        for first in range(0, count, _AT_ONCE):
            numbers = np.arange(first, min(first + _AT_ONCE, count))
            files = data.new_files(numbers, shape, seed=first)
            if parts:
                files = _in_parts(files, numbers, shape)
            table.append_files(_real(files, numbers, chosen(count, read), place, shape, parts))


def chosen(count: int, read: int) -> range:
    """Return the numbers of the files that are there: whole parts."""
    first = count // 2 // FILES_OF_A_PART * FILES_OF_A_PART
    return range(first, first + read)


def condition(count: int, read: int) -> str:
    """Return the filter that finds the files that are there, and all of their rows."""
    files = chosen(count, read)
    return f"id >= {files.start * SLOT} AND id < {files.stop * SLOT}"


def write_parts(folder: Path, count: int) -> None:
    """Write a row for each part of a table, with its name."""
    folder.mkdir(parents=True)
    parts = np.arange(count // FILES_OF_A_PART, dtype=np.int32)
    names = [part_name(int(part)) for part in parts]
    pq.write_table(pa.table({"part": parts, "name": names}), folder / "parts.parquet")


def part_name(part: int) -> str:
    """Return what a part is called."""
    return f"part {part}"


def hand_over(folder: Path, name: str, place: Path) -> None:
    """Write a table as v3, where a Hadoop catalog of Iceberg Java looks for one."""
    with open_lake(folder) as lake:
        exported = lake.table(f"db.{name}").export()
    metadata = place / "metadata"
    metadata.mkdir(parents=True)
    shutil.copy(exported.metadata_location.removeprefix("file://"), metadata / "v1.metadata.json")
    (metadata / "version-hint.text").write_text("1")


def _in_parts(files: Entries, numbers: Any, shape: Shape) -> Entries:
    parts = pa.array((numbers // FILES_OF_A_PART).astype(np.int32))
    [expression] = shape.expressions.values()
    none = pa.repeat(pa.scalar(0, pa.int64()), len(numbers))
    rows = files["record_count"]
    for field in (PART, expression.expr_id):
        stats = {"lower": parts, "upper": parts, "values": rows, "nulls": none}
        for stat, values in stats.items():
            files = _with(files, column(field, stat), values)
    return files


def _real(
    files: Entries, numbers: Any, read: range, place: Path, shape: Shape, parts: bool
) -> Entries:
    """Write the files that are read, and say of each what is in it."""
    there = np.isin(numbers, np.array(read))
    if not there.any():
        return files
    (place / "data").mkdir(parents=True, exist_ok=True)
    sizes = files["file_size_in_bytes"].to_numpy().copy()
    for at in np.flatnonzero(there).tolist():
        target = place / files["location"][at].as_py()
        pq.write_table(_rows(int(numbers[at]), shape, parts), target)
        sizes[at] = target.stat().st_size
    fields = shape.schema.fields
    empty = [field for field in fields[1:] if not (parts and field.field_id == PART)]
    facts = {"record_count": ROWS, column(1, "nulls"): 0}
    facts |= {column(field.field_id, "values"): ROWS for field in fields}
    facts |= {column(field.field_id, "nulls"): ROWS for field in empty}
    for name, value in facts.items():
        known = files[name]
        made = pc.if_else(pa.array(there), pa.scalar(value, known.type), known)
        files = _with(files, name, made)
    splits = pa.array([[4]] * files.num_rows, files["split_offsets"].type)
    return _with(_with(files, "file_size_in_bytes", pa.array(sizes)), "split_offsets", splits)


def _rows(number: int, shape: Shape, parts: bool) -> pa.Table:
    """Return the rows of a file: nothing but the id is set, and its part."""
    target = arrow_schema(shape.schema)
    ids = pa.array(np.arange(number * SLOT, number * SLOT + ROWS))
    columns = [ids, *(pa.nulls(ROWS, field.type) for field in list(target)[1:])]
    if parts:
        columns[PART - 1] = pa.repeat(pa.scalar(number // FILES_OF_A_PART, pa.int32()), ROWS)
    return pa.Table.from_arrays(columns, schema=target)


def _with(files: Entries, name: str, values: Any) -> Entries:
    at = files.schema.get_field_index(name)
    return files.append_column(name, values) if at < 0 else files.set_column(at, name, values)
