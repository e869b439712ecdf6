"""Which types of Parquet hold values, as Appendix A of the specification asks, and others' forms."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.table.table import Table
from tests.rows.lake import files, new_table

#: Digits of a decimal, and the type of Parquet that is to hold it.
DIGITS = {
    1: "INT32",
    9: "INT32",
    10: "INT64",
    18: "INT64",
    19: "FIXED_LEN_BYTE_ARRAY",
    38: "FIXED_LEN_BYTE_ARRAY",
}
#: Every way in which a writer may hold decimals.
FORMS: list[dict[str, Any]] = [{"store_decimal_as_integer": True}, {}]


def _decimals() -> Table:
    table = new_table({f"d{digits}": f"decimal({digits}, 1)" for digits in DIGITS})
    row = {f"d{digits}": Decimal((1, (9,) * digits, -1)) for digits in DIGITS}
    types = {f"d{digits}": pa.decimal128(digits, 1) for digits in DIGITS}
    table.append(pa.table({name: pa.array([row[name]], types[name]) for name in row}))
    return table


def _held(schema: pq.ParquetSchema, name: str) -> dict[int, str]:
    """Return what holds the columns of decimals at paths that end in a name, by their digits."""
    found = {}
    for at in range(len(schema.names)):
        column = schema.column(at)
        if column.path.endswith(name) and column.logical_type.type == "DECIMAL":
            found[column.precision] = column.physical_type
    return found


def test_decimals_of_a_data_file_are_integers_as_far_as_they_fit() -> None:
    table = _decimals()
    [file] = files(table)
    assert _held(pq.ParquetFile(table.files.store.open(file)).schema, "") == DIGITS


def test_decimals_of_a_manifest_are_integers_as_far_as_they_fit() -> None:
    table = _decimals()
    root = table.metadata.current_snapshot().root_manifest
    stored = pq.ParquetFile(table.files.store.open(f"{table.location}/{root}")).schema
    assert _held(stored, "lower_bound") == DIGITS
    assert _held(stored, "upper_bound") == DIGITS


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("digits", DIGITS)
def test_decimals_are_read_however_they_are_held(digits: int, form: dict[str, Any]) -> None:
    table = new_table({"d": f"decimal({digits}, 1)"})
    values = [Decimal((sign, (9,) * digits, -1)) for sign in (0, 1)]
    type = pa.decimal128(digits, 1)
    column = pa.field("d", type, metadata={"PARQUET:field_id": "1"})
    out = pa.BufferOutputStream()
    pq.write_table(pa.table([pa.array(values, type)], pa.schema([column])), out, **form)
    table.append(pa.table({"d": pa.array(values, type)}))
    [file] = files(table)
    table.files.store.delete([file])
    table.files.store.write_new(file, out.getvalue().to_pybytes())
    assert table.scan().to_arrow()["d"].to_pylist() == values
    assert table.scan(f"d > {values[1]}").to_arrow()["d"].to_pylist() == values[:1]
