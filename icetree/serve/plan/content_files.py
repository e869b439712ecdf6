"""Content files as the REST protocol writes them, made a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec.json_values import json_texts
from icetree.serve.plan.json_columns import Texts, number_lists, numbers, object_column
from icetree.serve.plan.metrics import metrics
from icetree.serve.plan.tuples import tuples
from icetree.spec.arrays import one_chunk
from icetree.spec.entry.entry import Content
from icetree.spec.locations import absolute_array
from icetree.spec.schema.shape import Shape

_CONTENT: Final = {
    Content.POSITION_DELETES: '"position-deletes"',
    Content.EQUALITY_DELETES: '"equality-deletes"',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """What it takes to tell a file."""

    #: As the table is now: clients read by it.
    shape: Shape
    table_location: str
    #: Whether a partition with a null in it can be told.
    nulls: bool = True


def data_files(tasks: pa.Table, telling: Telling, stats_fields: Sequence[int] = ()) -> Texts:
    """Return the data file of each task, with stats of these fields."""
    return object_column(
        tasks.num_rows,
        {
            **_identity(tasks, '"data"', telling),
            **metrics(tasks, stats_fields, telling.shape),
            **_optional(tasks),
            "sort-order-id": numbers(tasks["sort_order_id"]),
            "first-row-id": numbers(tasks["first_row_id"]),
        },
    )


def vector_files(tasks: pa.Table, telling: Telling) -> Texts:
    """Return the deletion vector of each task; all of them have one, or a file that stands for it."""
    is_vector = one_chunk(pc.is_valid(tasks["dv_offset"]))
    return object_column(
        tasks.num_rows,
        {
            "spec-id": numbers(tasks["partition_spec_id"]),
            "content": '"position-deletes"',
            "file-path": _locations(tasks["dv_location"], telling),
            "file-format": pc.if_else(is_vector, '"puffin"', '"parquet"'),
            "partition": tuples(tasks, telling.shape, nulls=telling.nulls),
            "file-size-in-bytes": numbers(tasks["dv_file_size_in_bytes"]),
            "record-count": numbers(tasks["dv_cardinality"]),
            "referenced-data-file": _locations(tasks["location"], telling),
            "content-offset": numbers(tasks["dv_offset"]),
            "content-size-in-bytes": numbers(tasks["dv_size_in_bytes"]),
            "key-metadata": _keys(tasks["dv_key_metadata"]),
        },
    )


def delete_files(deletes: pa.Table, telling: Telling) -> Texts:
    """Return equality deletes and position delete files."""
    content = one_chunk(deletes["content_type"])
    kinds = pa.array(list(_CONTENT.values())).take(
        pc.index_in(content, pa.array(list(_CONTENT), content.type))
    )
    refers = _locations(deletes["referenced_file"], telling)
    is_named = pc.is_valid(one_chunk(deletes["referenced_file"]))
    return object_column(
        deletes.num_rows,
        {
            **_identity(deletes, kinds, telling),
            **_optional(deletes),
            "equality-ids": number_lists(deletes["equality_ids"]),
            "referenced-data-file": pc.if_else(is_named, refers, pa.scalar(None, pa.string())),
        },
    )


def _identity(files: pa.Table, content: Texts | str, telling: Telling) -> dict[str, Texts | str]:
    return {
        "spec-id": numbers(files["partition_spec_id"]),
        "content": content,
        "file-path": _locations(files["location"], telling),
        "file-format": json_texts(pc.utf8_lower(files["file_format"])),
        "partition": tuples(files, telling.shape, nulls=telling.nulls),
        "file-size-in-bytes": numbers(files["file_size_in_bytes"]),
        "record-count": numbers(files["record_count"]),
    }


def _locations(stored: pa.ChunkedArray, telling: Telling) -> Texts:
    return json_texts(absolute_array(stored, telling.table_location))


def _optional(files: pa.Table) -> dict[str, Texts | str]:
    offsets = number_lists(files["split_offsets"])
    return {"key-metadata": _keys(files["key_metadata"]), "split-offsets": offsets}


def _keys(stored: pa.ChunkedArray) -> Texts:
    keys = one_chunk(stored)
    if keys.null_count == len(keys):
        return pa.nulls(len(keys), pa.string())
    hexed = [None if key is None else f'"{key.hex().upper()}"' for key in keys.to_pylist()]
    return pa.array(hexed, pa.string())
