"""Deletes of every kind as deletion vectors that name their data file in full.

Some readers know no equality deletes, and find a vector by the name of its data file alone, which may
be another where the table was copied. For them all deletes of a file become one vector, in a file of
its own beside exports. Its name follows from what it stands for, so it is made once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyroaring import BitMap64

from icetree.codec import puffin
from icetree.errors import AlreadyExists, CorruptTable
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.rows.read.read import read_by_task
from icetree.spec.arrays import one_chunk
from icetree.spec.location import absolute, canonical
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.metadata_columns import METADATA_COLUMNS
from icetree.table.export.places import EXPORTS
from icetree.tree.plan.tasks import Plan

_LISTS: Final = ("equality_deletes", "position_deletes")
_FACTS: Final = ("location", "record_count", "dv_location", "dv_offset", "dv_file_size_in_bytes")
#: How many vectors, and footers, are remembered.
_KEPT: Final = 10_000
_PLAIN: Final = "plain vectors"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Vector:
    """Where a vector is; nowhere, where a file has no row that is gone."""

    location: str | None = None
    offset: int | None = None
    size_bytes: int | None = None
    cardinality: int | None = None
    file_size_bytes: int | None = None


def with_plain_vectors(plan: Plan, files: TableFiles, metadata: TableMetadata) -> Plan:
    """Return a plan whose tasks have no deletes but vectors that name their data files in full.

    That of an encrypted table stays as it is: who knows key metadata knows deletes.
    """
    if is_encrypted(metadata):
        return plan
    tasks = plan.tasks.combine_chunks()
    odd = ~_is_plain(tasks, files, metadata)
    if not odd.any():
        return plan
    picked = replace(plan, tasks=tasks.filter(pa.array(odd))).unfiltered()
    vectors = _vectors(picked, files, metadata)
    columns = {
        "dv_location": [each.location for each in vectors],
        "dv_offset": [each.offset for each in vectors],
        "dv_size_in_bytes": [each.size_bytes for each in vectors],
        "dv_cardinality": [each.cardinality for each in vectors],
        "dv_file_size_in_bytes": [each.file_size_bytes for each in vectors],
        **{name: [None] * len(vectors) for name in _LISTS},
    }
    at = np.where(odd, tasks.num_rows + np.cumsum(odd) - 1, np.arange(tasks.num_rows))
    for name, values in columns.items():
        field = tasks.schema.field(name)
        both = pa.concat_arrays([one_chunk(tasks[name]), pa.array(values, field.type)])
        place = tasks.schema.get_field_index(name)
        tasks = tasks.set_column(place, field, both.take(pa.array(at)))
    return replace(plan, tasks=tasks)


def _is_plain(
    tasks: pa.Table, files: TableFiles, metadata: TableMetadata
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Tell which tasks have no deletes, or a vector that names its data file in full."""
    others = [pc.fill_null(pc.list_value_length(tasks[name]), 0).to_numpy() for name in _LISTS]
    plain: np.ndarray[tuple[int], np.dtype[np.bool_]] = sum(others) == 0
    marked = np.flatnonzero(plain & pc.is_valid(tasks["dv_location"]).to_numpy())
    facts = tasks.select(_FACTS).take(pa.array(marked, pa.int64())).to_pylist()
    sizes = {fact["dv_location"]: fact["dv_file_size_in_bytes"] for fact in facts}
    footers = in_order(lambda each: _names(files, metadata, *each), sizes.items())
    names = dict(zip(sizes, footers, strict=True))
    for at, fact in zip(marked.tolist(), facts, strict=True):
        named = names[fact["dv_location"]].get(fact["dv_offset"])
        plain[at] = named == absolute(fact["location"], metadata.location)
    return plain


def _names(files: TableFiles, metadata: TableMetadata, stored: str, size: int) -> dict[int, str]:
    """Return the data files that a Puffin file names, by where the vectors of each start."""
    location = absolute(stored, metadata.location)

    def make() -> dict[int, str]:
        blobs = _footer(files, location, size).blobs
        return {each.offset: each.properties.get(puffin.REFERENCED_DATA_FILE, "") for each in blobs}

    return files.cache.derive(("vector names", location), make, most=_KEPT)


def _footer(files: TableFiles, location: str, size: int) -> puffin.Footer:
    def read(offset: int, length: int) -> bytes:
        return files.store.read_range(location, offset=offset, length=length)

    return puffin.read_footer(read, size, file=location)


def _vectors(plan: Plan, files: TableFiles, metadata: TableMetadata) -> list[_Vector]:
    """Return a vector for each task, those made that are not there yet."""
    names = list(_names_for(plan, metadata))
    there = in_order(lambda name: _found(files, name, metadata), names)
    found = {at: each for at, each in enumerate(there) if each is not None}
    missing = [at for at in range(len(names)) if at not in found]
    tasks = plan.tasks.take(pa.array(missing, pa.int64()))
    locations = tasks["location"].to_pylist()
    removed = _removed(replace(plan, tasks=tasks), files, metadata)
    for at, stored, rows in zip(missing, locations, removed, strict=True):
        data_file = absolute(stored, metadata.location)
        found[at] = _written(files, names[at], metadata, rows, data_file)
    return [found[at] for at in range(len(names))]


def _names_for(plan: Plan, metadata: TableMetadata) -> Iterator[str]:
    """Yield where the vector of each task lies: no two deletes of two kinds have one name."""
    deletes = plan.deletes["location"].to_pylist()
    here = canonical(metadata.location, metadata.location)
    facts = plan.tasks.select(["location", "dv_location", "dv_offset", *_LISTS])
    for fact in facts.to_pylist():
        numbers = [at for name in _LISTS for at in fact[name] or ()]
        parts = [here, fact["location"], fact["dv_location"], fact["dv_offset"]]
        told = repr([*parts, sorted(deletes[at] for at in numbers)])
        yield f"{EXPORTS}vectors/{hashlib.sha256(told.encode()).hexdigest()[:40]}.puffin"


def _found(files: TableFiles, name: str, metadata: TableMetadata) -> _Vector | None:
    location = absolute(name, metadata.location)
    known: _Vector | None = files.cache.recall((_PLAIN, name))
    if known is not None and known.location is None:
        return known
    # It may be gone again: nothing but its name says that it is of use.
    if not files.store.exists(location):
        return None
    if known is not None:
        return known
    size = files.store.size(location)
    blobs = _footer(files, location, size).blobs
    if len(blobs) != 1:
        raise CorruptTable(location, f"{len(blobs)} vectors are in a file for one")
    return _kept(files, name, blobs[0], size)


def _removed(plan: Plan, files: TableFiles, metadata: TableMetadata) -> Iterable[BitMap64]:
    """Return the rows that are gone of each task's file."""
    counts = plan.tasks["record_count"].to_pylist()
    live = [BitMap64() for _ in counts]
    if counts:
        position = Schema(METADATA_COLUMNS["_pos"])
        for number, batch in read_by_task(
            plan, store=files.store, metadata=metadata, columns=position
        ):
            live[number].update(batch.column(0).to_numpy(zero_copy_only=False))
    for count, rows in zip(counts, live, strict=True):
        gone = BitMap64()
        gone.add_range(0, count)
        yield gone - rows


def _written(
    files: TableFiles, name: str, metadata: TableMetadata, removed: BitMap64, data_file: str
) -> _Vector:
    if not removed:
        return files.cache.derive((_PLAIN, name), _Vector, most=_KEPT)
    made = puffin.write([puffin.dv_blob(removed, referenced_data_file=data_file)])
    with suppress(AlreadyExists):
        files.store.write_new(absolute(name, metadata.location), made.data)
    return _kept(files, name, made.blobs[0], len(made.data))


def _kept(files: TableFiles, name: str, blob: puffin.Blob, file_size_bytes: int) -> _Vector:
    vector = _Vector(
        location=name,
        offset=blob.offset,
        size_bytes=blob.length,
        cardinality=int(blob.properties[puffin.CARDINALITY]),
        file_size_bytes=file_size_bytes,
    )
    return files.cache.derive((_PLAIN, name), lambda: vector, most=_KEPT)
