"""The law of rows over every type: what is written comes back, however types nest."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.effort import law
from tests.rows.drawn import (
    COLUMNS,
    NEAR,
    ORDERED,
    Column,
    named,
    nested,
    plain,
    rows_of,
    schema_of,
    spelled,
    told,
    without,
)
from tests.rows.lake import new_table

#: A column that has no type yet: it is in no file.
UNKNOWN: Column = ("unknown", pa.null(), st.none())
#: Columns that ORC and Avro have room for.
_PLAIN = nested(without(NEAR, "variant"))


@law(12)
@given(st.data(), st.lists(COLUMNS, min_size=1, max_size=4), st.booleans())
def test_rows_of_every_type_and_nesting_come_back(
    data: st.DataObject, drawn: list[Column], shreds: bool
) -> None:
    _require_back(data, [*drawn, UNKNOWN], "parquet", shreds)


@law(5)
@given(st.data(), st.lists(_PLAIN, min_size=1, max_size=4), st.sampled_from(["orc", "avro"]))
def test_rows_of_every_type_and_nesting_come_back_from_other_formats(
    data: st.DataObject, drawn: list[Column], format: str
) -> None:
    _require_back(data, [*drawn, UNKNOWN], format, False)


def _require_back(data: st.DataObject, drawn: list[Column], format: str, shreds: bool) -> None:
    columns = named(drawn)
    properties = {
        "write.parquet.shred-variants": str(shreds).lower(),
        "write.format.default": format,
    }
    table = new_table(schema_of(columns), properties=properties)
    parts = [data.draw(rows_of(columns, start, 3)) for start in (0, 3)]
    for part in parts:
        table.append(part)
    table.delete("id in (1, 4)")
    kept = [0, 2, 3, 5]
    whole = pa.concat_tables(parts)
    found = table.scan().to_arrow().sort_by("id")
    for name in ("id", *columns):
        assert told(found[name]) == told(whole[name].take(pa.array(kept)))
        wanted = [id for id in kept if not whole[name][id].is_valid]
        assert _ids(table, f"{name} is null") == wanted
    assert table.verify(deep=True).is_clean


_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@law(4)
@given(st.data(), st.booleans(), st.sampled_from(["parquet", "orc", "avro"]))
def test_filters_on_every_type_find_what_a_model_does(
    data: st.DataObject, inside: bool, format: str
) -> None:
    """Each file has one row and bounds of its own, so that a filter prunes; deletes go by filters, too."""
    columns = named(ORDERED)
    where = "s." if inside else ""
    flat = schema_of(columns)
    schema = flat
    if inside:
        members = ", ".join(f"{name}: {type}" for name, type in flat.items() if name != "id")
        schema = {"id": "int", "s": f"struct<{members}>"}
    rows = data.draw(rows_of(columns, 0, 4))
    table = new_table(schema, properties={"write.format.default": format})
    for id in range(4):
        one = rows.slice(id, 1)
        if inside:
            own = one.drop_columns("id").to_struct_array().combine_chunks()
            one = pa.table({"id": one["id"], "s": own})
        table.append(one)
    for name, (type, _, values) in columns.items():
        model = plain(rows[name]).to_pylist()
        there = [each for each in model if each is not None]
        beside = data.draw(values)
        for value in (*there[:1], beside):
            sign, holds = data.draw(st.sampled_from(list(_COMPARED.items())))
            wanted = [
                id for id, each in enumerate(model) if each is not None and holds(each, value)
            ]
            text = f"{where}{name} {sign} {spelled(type, value)}"
            assert _ids(table, text) == wanted, (type, text, model)
        listed = [*there[:2], beside]
        text = f"{where}{name} in ({', '.join(spelled(type, each) for each in listed)})"
        wanted = [id for id, each in enumerate(model) if each is not None and each in listed]
        assert _ids(table, text) == wanted, (type, text, model)
    assert table.verify(deep=True).is_clean


def _ids(table: Any, where: str) -> list[int]:
    return sorted(table.scan(where, columns=["id"]).to_arrow()["id"].to_pylist())


def test_structs_without_a_null_are_told_from_null_by_whoever_reads_other_columns() -> None:
    table = new_table({"id": "int", "s": "struct<a: int>"})
    for id, struct in ((1, {"a": 1}), (2, {"a": None}), (3, None)):
        table.append(
            pa.table(
                {
                    "id": pa.array([id], pa.int32()),
                    "s": pa.array([struct], pa.struct([("a", pa.int32())])),
                }
            )
        )
    assert _ids(table, "s is null") == [3]
    assert _ids(table, "s is not null") == [1, 2]
