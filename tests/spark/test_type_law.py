"""The law of types on Spark: a drawn table of every type and nesting is the same there and here."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from icetree.rows.write.fit import fitted
from icetree.spark import SparkLake, local
from icetree.spark.restored import fitting
from icetree.table.table import Table
from tests.effort import law
from tests.rows.drawn import NEAR, Column, named, nested, rows_of, schema_of, told

KEPT = [0, 2, 3, 5]


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("drawn"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


@law(1, shrinks=False)
@given(
    st.data(),
    st.lists(nested(NEAR), min_size=4, max_size=4),
    st.sampled_from(["parquet", "orc", "avro"]),
)
def test_spark_reads_and_writes_rows_of_every_type_and_nesting_as_one_process_does(
    lake: SparkLake, data: st.DataObject, drawn: list[Column], format: str
) -> None:
    drawn = [*NEAR, *drawn]
    if format != "parquet":
        drawn = [each for each in drawn if "variant" not in each[0]]
    columns = named(drawn)
    parts = [data.draw(rows_of(columns, start, 3)) for start in (0, 3)]
    wanted = pa.concat_tables(parts).take(pa.array(KEPT))
    # The simplest example is of nulls alone, and Spark is not asked often.
    assume(not any(wanted[name].null_count == len(KEPT) for name in columns))
    for name in ("db.ours", "db.theirs"):
        lake.drop_table(name, missing_ok=True)
    ours, theirs = (
        lake.create_table(name, schema_of(columns), properties={"write.format.default": format})
        for name in ("db.ours", "db.theirs")
    )
    for part in parts:
        ours.append(part)
    ours.delete("id in (1, 4)")
    frame = lake.read("db.ours")
    # PySpark cannot hand a variant that is null to Arrow; written to another table, it is looked at too.
    variants = [name for name, each in zip(columns, drawn, strict=True) if "variant" in each[0]]
    told = _read(frame.drop(*variants).toArrow(), ours)
    _require_same(told, wanted.drop_columns(variants))
    lake.write("db.theirs", frame.coalesce(1)).append()
    _require_same(theirs.refresh().scan().to_arrow(), wanted)
    assert theirs.verify(deep=True).is_clean


def _read(rows: pa.Table, table: Table) -> pa.Table:
    """Return rows that Spark read in the types of the table."""
    fields = [each for each in table.schema.fields if each.name in rows.column_names]
    types = {field.name: field.field_type for field in fields}
    [batch] = rows.combine_chunks().to_batches()
    return pa.Table.from_batches(fitted(fitting(batch, types), fields, table=str(table.name)))


def _require_same(found: pa.Table, wanted: pa.Table) -> None:
    order = pc.sort_indices(found["id"].combine_chunks())
    for name in wanted.column_names:
        assert told(found[name].combine_chunks().take(order)) == told(wanted[name]), name
