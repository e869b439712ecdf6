"""Writing deletes: data DVs as Puffin files, equality deletes as Parquet files."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import DoubleType, FloatType, NestedField
from pyroaring import BitMap, BitMap64

from icetree.codec import bitmap, puffin
from icetree.codec.encryption.stream import seal
from icetree.errors import InvalidInput
from icetree.rows.read.deletes import VECTOR_COLUMNS, Deletes
from icetree.rows.write.fit import ArrowData, fitted
from icetree.rows.write.layout import Layout, new_location
from icetree.rows.write.partition import Partition, by_partition
from icetree.rows.write.write import Writer
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Content, Entries, Entry, to_table
from icetree.spec.entry.metrics import FULL
from icetree.spec.location import absolute, stored_form
from icetree.spec.metadata.encryption import data_key_bytes, require_told
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.columns import field_path
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.spec.texts import did_you_mean
from icetree.store.base import Store
from icetree.surroundings import new_uuid

#: Row positions of a data file.
Positions: TypeAlias = "pa.Array | pa.ChunkedArray | BitMap | BitMap64 | Iterable[int]"

#: The stats of its data file that a DV's entry carries.
_PARTITION_STATS = ("lower", "upper", "tight", "values", "nulls", "nans")

#: Deletes of a partition are one file, however many they are.
_ONE_FILE = 1 << 62


def write_data_vectors(
    positions: Mapping[str, Positions],
    *,
    tasks: pa.Table,
    metadata: TableMetadata,
    store: Store,
    deletes: pa.Table | None = None,
) -> Entries:
    """Write the rows to be deleted from each data file as one Puffin file; return its entries.

    Files are named by stored location. `tasks` are those of a plan made with `stats_columns`
    and must have every file named. The DV a file has already is kept within the new one, which
    replaces it; so are its position deletes of v2, for which the plan's `deletes` are needed:
    no reader looks at them once there is a DV. Files of which nothing more goes have no new DV.
    """
    require_told(metadata)
    named = _named(tasks, pa.array(positions, pa.string()))
    wanted = ["location", "record_count", *VECTOR_COLUMNS, "position_deletes"]
    facts = named.select(wanted).to_pylist()
    known = Deletes(
        files=[] if deletes is None else deletes.to_pylist(),
        store=store,
        metadata=metadata,
        schema=metadata.schema(),
        mapping=None,
    )
    vectors: dict[int, BitMap64] = {}
    for number, (fact, rows) in enumerate(zip(facts, positions.values(), strict=True)):
        vector = as_vector(rows)
        if vector and vector.max() >= fact["record_count"]:
            raise InvalidInput(
                f"{fact['location']} has {fact['record_count']} rows: there is no row "
                f"{vector.max()} to delete"
            )
        if fact["position_deletes"] and deletes is None:
            raise InvalidInput(
                f"{fact['location']} has position deletes, which its DV must hold: "
                "give the plan's deletes too"
            )
        location = absolute(fact["location"], metadata.location)
        old = as_vector(pa.array(known.removed_rows(fact, location)))
        vector = vector | old
        if vector != old:
            vectors[number] = vector
    if not vectors:
        return to_table([], metadata.shape())
    return store_vectors(vectors, named, metadata, store)


def _named(tasks: pa.Table, names: pa.Array) -> pa.Table:
    """Return the tasks of these files, in the order of the names."""
    at = pc.index_in(names, value_set=tasks["location"].combine_chunks())
    if at.null_count:
        missing = names.filter(at.is_null())[0].as_py()
        raise InvalidInput(f"{missing} is not among the planned files: plan again, then delete")
    return tasks.take(at)


def store_vectors(
    vectors: Mapping[int, BitMap64], tasks: pa.Table, metadata: TableMetadata, store: Store
) -> Entries:
    """Write the rows deleted of data files, by their numbers in the tasks, as one Puffin file.

    Return its entries. The tasks are those of a plan made with `stats_columns`.
    """
    tasks = tasks.take(pa.array(list(vectors), pa.int64()))
    names = tasks["location"].to_pylist()
    # In full: PyIceberg knows a vector's data file by this alone.
    blobs = [
        puffin.dv_blob(vector, referenced_data_file=absolute(name, metadata.location))
        for name, vector in zip(names, vectors.values(), strict=True)
    ]
    file = puffin.write(blobs)
    content, key = seal(file.data, data_key_bytes(metadata.properties))
    location = new_location(metadata, f"{new_uuid()}-deletes.puffin")
    try:
        store.write_new(location, content)
    except BaseException:
        # It may be there though the answer was lost, and nobody will ever name it.
        with suppress(Exception):
            store.delete([location])
        raise
    shape = metadata.shape()
    entries = to_table(
        [
            Entry(
                content_type=Content.POSITION_DELETES,
                location=stored_form(location, metadata.location),
                file_format="puffin",
                dv_offset=blob.offset,
                dv_size_in_bytes=blob.length,
                partition_spec_id=spec_id,
                record_count=len(vector),
                file_size_in_bytes=len(content),
                referenced_file=name,
                key_metadata=key,
            )
            for blob, name, spec_id, vector in zip(
                file.blobs,
                names,
                tasks["partition_spec_id"].to_pylist(),
                vectors.values(),
                strict=True,
            )
        ],
        shape,
    )
    return _with_partition_stats(entries, tasks, shape)


def _with_partition_stats(entries: Entries, tasks: pa.Table, shape: Shape) -> Entries:
    """Return the DVs with their data files' partition stats, so that they are pruned with them."""
    specs = pc.unique(tasks["partition_spec_id"]).to_pylist()
    fields = dict.fromkeys(id for spec_id in specs for id in shape.partition_fields(spec_id))
    for field_id in fields:
        owners = [spec_id for spec_id in specs if field_id in shape.partition_fields(spec_id)]
        owned = pc.is_in(tasks["partition_spec_id"], pa.array(owners, pa.int32()))
        for stat in _PARTITION_STATS:
            name = stats.column(field_id, stat)
            if name in tasks.column_names:
                nothing = pa.scalar(None, tasks[name].type)
                entries = entries.append_column(name, pc.if_else(owned, tasks[name], nothing))
    return entries


def as_vector(rows: Positions) -> BitMap64:
    """Return row positions as a bitmap; InvalidInput for what is none."""
    match rows:
        case BitMap64():
            return rows
        case BitMap():
            return bitmap.widen(rows)
        case pa.Array() | pa.ChunkedArray():
            numbers = np.asarray(rows)  # with a null among them, floats
        case _:
            numbers = np.array(list(rows))
    if not len(numbers):
        return BitMap64()
    if numbers.dtype.kind not in "iu":
        raise InvalidInput(f"row positions must be integers and not null, not {numbers.dtype}")
    if numbers.min() < 0:
        raise InvalidInput(f"there is no row {numbers.min()}: positions count from 0")
    return BitMap64(array("Q", numbers.astype(np.uint64).tobytes()))


def write_equality_deletes(
    data: ArrowData,
    columns: Sequence[str],
    *,
    metadata: TableMetadata,
    store: Store,
    table: str | None = None,
    everywhere: bool = False,
) -> Entries:
    """Write deletes of all older rows that equal a row of the data in the columns.

    In a partitioned table a delete reaches its own partition alone, so the data must also have
    the columns that the table is partitioned by; with `everywhere` it reaches all partitions,
    which takes an unpartitioned spec among the table's.
    """
    shape = metadata.shape()
    keys = {field.field_id: field for field in (_column(name, shape) for name in columns)}
    if not keys:
        raise InvalidInput("an equality delete needs at least one column to compare")
    spec_id = _spec_for(metadata, shape, everywhere=everywhere)
    spec = shape.spec(spec_id)
    sources = {field.field_id: field for e in spec for field in _sources(e, shape)}
    batches = list(fitted(data, ({**keys, **sources}).values(), table=table or metadata.location))
    layout = Layout(
        content=Content.EQUALITY_DELETES,
        fields=tuple(keys.values()),
        # Whole bounds: planning skips deletes by them.
        modes=dict.fromkeys(keys, FULL),
        spec_id=spec_id,
        spec=spec,
        shape=shape,
        metadata=metadata,
        equality_ids=tuple(sorted(keys)),
    )
    names = [field.name for field in keys.values()]
    with Writer(layout=layout, store=store, target_bytes=_ONE_FILE) as writer:
        if batches:
            for part in by_partition(pa.Table.from_batches(batches), spec, shape):
                writer.add(Partition(values=part.values, rows=part.rows.select(names)))
    return writer.entries()


def _column(name: str, shape: Shape) -> NestedField:
    for field in shape.schema.fields:
        if field.name == name:
            type = field.field_type
            if type.is_primitive and not isinstance(type, FloatType | DoubleType):
                return field
            raise InvalidInput(f"column {name!r} is {type}: it cannot be deleted by")
    hint = did_you_mean(name, (field.name for field in shape.schema.fields))
    raise InvalidInput(f"there is no column {name!r} to delete by; nested ones cannot be{hint}")


def _sources(expression: Expression, shape: Shape) -> Iterator[NestedField]:
    """Yield the columns of the table that an expression is over, or over a part of."""
    if expression.transform == "void":
        return
    for field in shape.schema.fields:
        if any(field_path(field, id) is not None for id in expression.source_ids):
            yield field


def _spec_for(metadata: TableMetadata, shape: Shape, *, everywhere: bool) -> int:
    if not everywhere:
        return metadata.default_spec_id
    for spec_id in shape.specs:
        if shape.is_unpartitioned(spec_id):
            return spec_id
    raise InvalidInput(
        "the table has no unpartitioned spec, which a delete in all partitions takes: "
        "add one, delete partition by partition, or mark rows with data DVs instead"
    )
