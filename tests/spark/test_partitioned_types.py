"""The law of partitions over every type: Spark parts rows exactly as one process does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from icetree.spark import SparkLake, local
from icetree.table.table import Table
from tests.effort import usually

#: Each type that some transform takes: how Arrow has it, and values with which transforms differ,
#: those below zero and at the ends among them.
TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "int": (pa.int32(), [-(2**31), 34]),
    "long": (pa.int64(), [-1, 2**63 - 1]),
    "float": (pa.float32(), [float("nan"), -0.0]),
    "double": (pa.float64(), [0.0, float("-inf")]),
    "date": (pa.date32(), [-1, 19_000]),
    "time": (pa.time64("us"), [0, 86_399_999_999]),
    "timestamp": (pa.timestamp("us"), [-1, 1_700_000_000_000_001]),
    "timestamptz": (pa.timestamp("us", "UTC"), [-1, 1_700_000_000_000_001]),
    "timestamp_ns": (pa.timestamp("ns"), [-1, -(2**63) + 1]),
    "timestamptz_ns": (pa.timestamp("ns", "UTC"), [2**63 - 1, 1_700_000_000_000_000_001]),
    "string": (pa.string(), ["", "a😀c"]),
    "binary": (pa.binary(), [b"", b"\0\xff\1"]),
    "uuid": (pa.binary(16), [bytes(range(16)), bytes(16)]),
    "fixed[3]": (pa.binary(3), [b"\0\xff\1", b"abc"]),
    "decimal(9, 2)": (pa.decimal128(9, 2), [Decimal("-0.01"), Decimal("14.20")]),
    "decimal(18, 2)": (pa.decimal128(18, 2), [Decimal("-0.01"), Decimal(10**15)]),
    "decimal(38, 3)": (pa.decimal128(38, 3), [Decimal(-(10**34)), Decimal("0.001")]),
}
#: Which of them each transform takes, as the specification lists them. Nobody asks for `void`.
DAYS = ("date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns")
DECIMALS = ("decimal(9, 2)", "decimal(18, 2)", "decimal(38, 3)")
TAKES = {
    "identity": tuple(TYPES),
    "bucket[7]": (
        "int", "long", *DECIMALS, *DAYS, "time", "string", "uuid", "fixed[3]", "binary"
    ),
    "truncate[2]": ("int", "long", *DECIMALS, "string", "binary"),
    "year": DAYS,
    "month": DAYS,
    "day": DAYS,
    "hour": DAYS[1:],
}  # fmt: skip


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkLake]:
    made = local(tmp_path_factory.mktemp("partitioned"), spark=spark)
    made.create_namespace("db")
    yield made
    made.close()


def _term(transform: str, column: str) -> str:
    word, _, number = transform.rstrip("]").partition("[")
    return f"{word}({number}, {column})" if number else f"{word}({column})"


#: Each pair of a type and a transform, by the name of the column that it is for.
PAIRS = {
    f"{re.sub('[^a-z0-9_]', '_', type)}_{transform.partition('[')[0]}": (type, transform)
    for transform, types in TAKES.items()
    for type in types
}
#: Which of its values each row has: some share all of them, and one is of nulls alone.
ORDER = pa.array([0, 1, 0, 1, 2])


def _rows() -> pa.Table:
    columns = {
        name: pa.array([*TYPES[type][1], None], TYPES[type][0]).take(ORDER)
        for name, (type, _) in PAIRS.items()
    }
    return pa.table({"id": pa.array(range(len(ORDER)), pa.int32()), **columns})


def _told(table: Table) -> tuple[list[str], list[str]]:
    """Return the partitions of a table with how many rows each has, and its rows."""
    parts = table.inspect.partitions().select(["partition", "record_count"])
    return sorted(_texts(parts)), sorted(_texts(table.scan().to_arrow()))


def _texts(rows: pa.Table) -> list[str]:
    """Return rows as texts, in which zeros have signs and nanoseconds count."""
    columns = [_plain(column.combine_chunks()) for column in rows.columns]
    return [repr(each) for each in zip(*columns, strict=True)]


def _plain(array: pa.Array) -> list[Any]:
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    if pa.types.is_struct(array.type):
        return list(zip(*map(_plain, array.flatten()), strict=True))
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return list(array.to_pylist())


@pytest.mark.parametrize("mode", usually(["hash", "range"], "hash"))
def test_spark_parts_rows_of_every_type_by_every_transform_as_one_process_does(
    mode: str, lake: SparkLake
) -> None:
    schema = {"id": "int", **{name: type for name, (type, _) in PAIRS.items()}}
    spec = [_term(transform, name) for name, (_, transform) in PAIRS.items()]
    ours, theirs = (
        lake.create_table(
            f"db.{mode}_by_{name}",
            schema,
            partition_by=spec,
            properties={"write.distribution-mode": mode},
        )
        for name in ("process", "spark")
    )
    ours.append(_rows())
    lake.write(str(theirs.name), lake.read(str(ours.name))).append()
    wanted = _told(ours)
    assert _told(theirs.refresh()) == wanted
    assert len(wanted[0]) == 3
