"""Files that are not what their entries say, in any format; each says whether it found what to break."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tests.foreign.columns import WHOLE, Json
from tests.foreign.forgery import Forgery, set_in, status_of
from tests.foreign.model import DATA, VECTOR
from tests.foreign.transforms import UNKNOWN
from tests.foreign.tree import DATA_LEAF, DELETED


def orc_that_is_called_avro(f: Forgery) -> bool:
    return set_in(_data(f, "orc"), "file_format", "avro")


def avro_that_is_called_parquet(f: Forgery) -> bool:
    return set_in(_data(f, "avro"), "file_format", "parquet")


def orc_that_is_cut_short(f: Forgery) -> bool:
    return _restored(f, _data(f, "orc"), lambda content: content[: len(content) // 2])


def avro_that_is_cut_short(f: Forgery) -> bool:
    return _restored(f, _data(f, "avro"), lambda content: content[:-20])


def avro_of_an_unknown_codec(f: Forgery) -> bool:
    row = _data(f, "avro", lambda content: b"deflate" in content)
    return _restored(f, row, lambda content: content.replace(b"deflate", b"inflate"))


def avro_whose_blocks_end_with_another_marker(f: Forgery) -> bool:
    return _restored(f, _data(f, "avro"), lambda content: content[:-1] + b"?")


def avro_leaf_that_is_cut_short(f: Forgery) -> bool:
    row = f.where(
        lambda row: (
            row["content_type"] == DATA_LEAF
            and row["file_format"] == "avro"
            and status_of(row) != DELETED
        )
    )
    return _restored(f, row, lambda content: content[:-20])


def orc_with_bounds_that_leave_rows_out(f: Forgery) -> bool:
    return _bound(_data(f, "orc"), f.writer.layout.column("id").id, -9, -8)


def avro_with_bounds_that_leave_rows_out(f: Forgery) -> bool:
    return _bound(_data(f, "avro"), f.writer.layout.column("id").id, -9, -8)


def rows_that_are_not_told(f: Forgery) -> bool:
    row = f.where(
        lambda row: (
            row["content_type"] == DATA and row["record_count"] and status_of(row) != DELETED
        )
    )
    return set_in(row, "record_count", 0)


def bound_that_is_nan(f: Forgery) -> bool:
    price = f.writer.layout.column("price")
    id = price.id
    return id < 200 and _bound(f.live(DATA), id, math.nan, math.nan)


def crossed_bounds_of_an_element(f: Forgery) -> bool:
    inside = [each for each in f.writer.layout.schema.counted() if each.type.name == "int"]
    return bool(inside) and _bound(f.live(DATA), inside[0].id, 9, 1)


def more_nulls_than_lists(f: Forgery) -> bool:
    inside = [each for each in f.writer.layout.schema.counted() if each.type == WHOLE]
    row = f.live(DATA)
    if row is None or not inside:
        return False
    told = {"value_count": 1, "null_value_count": 2}
    row["content_stats"] = {**row["content_stats"], inside[0].id: told}
    return True


def leaf_with_narrow_bounds_of_an_element(f: Forgery) -> bool:
    inside = [each for each in f.writer.layout.schema.counted() if each.type.name == "int"]
    found = f.leaf(DATA_LEAF)
    if not inside or found is None:
        return False
    leaf, row = found
    return _bound(row, inside[0].id, 1000, 1000) and any(
        "lower_bound" in file.stats.get(inside[0].id, {}) for file in leaf.live()
    )


def partition_of_an_unknown_transform_that_spans(f: Forgery) -> bool:
    specs = f.writer.layout.specs
    for row in f.rows:
        if row["content_type"] != DATA or status_of(row) == DELETED or not row["record_count"]:
            continue
        for part in specs[row["partition_spec_id"]]:
            told = row["content_stats"].get(part.stats_id, {})
            if part.transform == UNKNOWN and told["lower_bound"] is not None:
                is_text = isinstance(told["lower_bound"], str)
                upper = "z" if is_text else told["lower_bound"] + 1
                spread = {part.stats_id: told | {"upper_bound": upper}}
                row["content_stats"] = row["content_stats"] | spread
                return True
    return False


def vector_at_a_blob_of_another_type(f: Forgery) -> bool:
    stored = f.writer.shop.stored
    row = f.where(
        lambda row: (
            row["content_type"] == VECTOR
            and row["file_format"] == "puffin"
            and status_of(row) != DELETED
            and stored[_place(f, row)][4:13] == b"some zstd"
        )
    )
    return set_in(row, "deletion_vector", {"offset": 4, "size_in_bytes": 9})


def _data(f: Forgery, format: str, holds: Callable[[bytes], bool] = lambda _: True) -> Json | None:
    return f.where(
        lambda row: (
            row["content_type"] == DATA
            and row["file_format"] == format
            and status_of(row) != DELETED
            and row["record_count"] > 0
            and holds(f.writer.shop.stored[_place(f, row)])
        )
    )


def _bound(row: Json | None, id: int, lower: Any, upper: Any) -> bool:
    if row is None:
        return False
    told = {"lower_bound": lower, "upper_bound": upper}
    row["content_stats"] = {**row["content_stats"], id: told}
    return True


def _place(f: Forgery, row: Json) -> str:
    name: str = row["location"]
    return name if "://" in name else f"{f.writer.names.table}/{name}"


def _restored(f: Forgery, row: Json | None, change: Callable[[bytes], bytes]) -> bool:
    """Store a file anew under its name, and let its entry tell its size."""
    if row is None:
        return False
    place = _place(f, row)
    content = f.writer.shop.stored[place] = change(f.writer.shop.stored[place])
    return set_in(row, "file_size_in_bytes", len(content))
