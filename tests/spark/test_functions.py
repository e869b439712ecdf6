"""`system.bucket(16, id)` and its like: what they come to, and which files they leave out."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.transforms import parse_transform
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from icetree.errors import InvalidInput
from icetree.rows.read.read import read_tasks
from icetree.rows.transform import transformed
from icetree.spark.functions.calls import with_functions
from icetree.spark.read.condition import condition_filter
from icetree.table.table import Table
from tests.effort import usually
from tests.spark.sql_lake import SqlLake

ZONE = "America/New_York"
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
#: Columns, and the transforms that each is partitioned by.
COLUMNS = {
    "i": ("INT", ["bucket(5, i)", "truncate(7, i)"]),
    "l": ("BIGINT", ["bucket(5, l)", "truncate(7, l)"]),
    "s": ("STRING", ["bucket(5, s)", "truncate(2, s)"]),
    "b": ("BINARY", ["bucket(5, b)", "truncate(2, b)"]),
    "c": ("DECIMAL(9, 2)", ["bucket(5, c)", "truncate(7, c)"]),
    "e": ("DECIMAL(38, 4)", ["bucket(5, e)", "truncate(7, e)"]),
    "d": ("DATE", ["bucket(5, d)", "years(d)", "months(d)", "days(d)"]),
    "t": ("TIMESTAMP", ["bucket(5, t)", "years(t)", "months(t)", "days(t)", "hours(t)"]),
    "n": ("TIMESTAMP_NTZ", ["bucket(5, n)", "years(n)", "months(n)", "days(n)", "hours(n)"]),
}


@pytest.fixture(scope="module")
def sql(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlLake]:
    """Make a table a column and transform, with a file a row or two."""
    was = spark.conf.get("spark.sql.session.timeZone")
    assert was is not None
    # Where days and hours are others than in UTC.
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    made = SqlLake(spark, tmp_path_factory.mktemp("lake"))
    for name, (type, transforms) in COLUMNS.items():
        for number, transform in enumerate(transforms):
            made(f"CREATE TABLE {name}{number} ({name} {type}) PARTITIONED BY ({transform})")
            made.lake.table(f"db.{name}{number}").append(values_of(name))
    yield made
    spark.conf.set("spark.sql.session.timeZone", was)


def values_of(name: str) -> pa.Table:
    chance = random.Random(name)

    def one() -> Any:
        number = chance.choice([0, -1, 1, 6, 7, chance.randrange(-500, 500)])
        at = EPOCH + timedelta(days=number, seconds=chance.choice([-1, 0, 1, 18_000, 50_000]))
        return {
            "i": chance.choice([number, -(2**31), 2**31 - 1]),
            "l": chance.choice([number, -(2**63), 2**63 - 1]),
            "s": chance.choice(["", "a", "ab", "abc", "zürich", "\U0001f600\U0001f600x"]),
            "b": chance.choice([b"", b"\x00", b"\x00\xff", b"\x00\xff\x01", b"abcdefg"]),
            "c": Decimal(number).scaleb(-2),
            "e": Decimal(number * 10**20 + number).scaleb(-4),
            "d": at.date(),
            "t": at,
            "n": at.replace(tzinfo=None),
        }[name]

    types = {
        "i": pa.int32(),
        "l": pa.int64(),
        "b": pa.binary(),
        "c": pa.decimal128(9, 2),
        "e": pa.decimal128(38, 4),
        "d": pa.date32(),
        "t": pa.timestamp("us", tz="UTC"),
        "n": pa.timestamp("us"),
    }
    return pa.table({name: pa.array([None, *(one() for _ in range(11))], types.get(name))})


def function_of(transform: str) -> tuple[str, Any]:
    """Return a transform as SQL has it, and as the format does."""
    word, _, rest = transform.partition("(")
    number = rest.partition(",")[0] if "," in rest else ""
    plain = f"{word}[{number}]" if number else word.rstrip("s")
    return f"system.{transform}", parse_transform(plain)


TRANSFORMS = [
    (name, number, transform)
    for name, (_, transforms) in COLUMNS.items()
    for number, transform in enumerate(transforms)
]


def test_functions_come_to_what_partitions_do(sql: SqlLake) -> None:
    for name, (_, transforms) in COLUMNS.items():
        table = sql.lake.table(f"db.{name}0")
        rows = table.scan().to_arrow()[name].combine_chunks()
        type = table.schema.find_field(name).field_type
        calls, meant = zip(*map(function_of, transforms), strict=True)
        wanted = zip(*(transformed(rows, each, type).to_pylist() for each in meant), strict=True)
        found = [tuple(map(plain, row)) for row in sql(f"SELECT {', '.join(calls)} FROM {name}0")]
        assert found == sorted(wanted, key=repr), name


def plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, bytearray) else value


def literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return f"'{value}'"
        case Decimal():
            return f"CAST('{value}' AS DECIMAL(38, 4))"
        case date():
            return f"DATE '{value}'"
    return f"CAST('{value}' AS BIGINT)" if abs(value) > 2**31 else str(value)


def kept(table: Table, spark: SparkSession, condition: str) -> tuple[int, list[Any]]:
    """Return how many files a condition keeps, and the rows in them."""
    plan = table.scan(condition_filter(spark, table.schema, condition)).plan()
    how: dict[str, Any] = {"store": table.files.store, "metadata": table.metadata}
    rows = read_tasks(plan.unfiltered(), columns=table.schema, **how)
    return plan.tasks.num_rows, [row for batch in rows for row in batch.column(0).to_pylist()]


#: Each transform once, and each type that literals are made of once.
USUAL = [
    each
    for each in TRANSFORMS
    if each[2]
    in {
        "bucket(5, i)",
        "truncate(7, i)",
        "bucket(5, s)",
        "truncate(2, s)",
        "truncate(2, b)",
        "truncate(7, c)",
        "bucket(5, e)",
        "truncate(7, e)",
        "years(d)",
        "days(t)",
        "months(n)",
        "hours(t)",
    }
]


@pytest.mark.parametrize(("name", "number", "transform"), usually(TRANSFORMS, *USUAL))
def test_files_of_other_partitions_are_left_out_and_no_row_is_lost(
    sql: SqlLake, name: str, number: int, transform: str
) -> None:
    table, spark = sql.lake.table(f"db.{name}{number}"), sql.lake.spark
    call, meant = function_of(transform)
    rows = table.scan().to_arrow()[name].combine_chunks()
    made = transformed(rows, meant, table.schema.find_field(name).field_type).to_pylist()
    pairs = list(zip(rows.to_pylist(), made, strict=True))
    known = sorted({value for value in made if value is not None})
    low, high = known[1], known[-2]
    tests: list[tuple[str, Callable[[Any], bool], int | None]] = [
        (f"{call} = {literal(low)}", lambda v: v == low, 1),
        (f"{literal(high)} <= {call}", lambda v: v is not None and v >= high, 2),
        (f"NOT ({call} <= {literal(low)})", lambda v: v is not None and v > low, len(known) - 2),
        (f"{call} IN ({literal(low)}, {literal(high)})", lambda v: v in (low, high), None),
        (f"{call} IN ({', '.join(map(literal, made[:12]))})", lambda v: v in made[1:12], None),
        (f"{call} IS NULL OR {call} <=> {literal(low)}", lambda v: v in (None, low), 2),
        (
            f"{call} BETWEEN {literal(low)} AND {literal(high)}",
            lambda v: v is not None and low <= v <= high,
            len(known) - 2,
        ),
    ]
    # Of decimals beyond longs, only equality of buckets is known again.
    all_known = (name, meant.__class__.__name__) != ("e", "TruncateTransform")
    for condition, holds, most in tests:
        files, found = kept(table, spark, condition)
        missing = [row for row, value in pairs if holds(value) and row not in found]
        assert not missing, condition
        assert most is None or not all_known or files <= most, condition


@contextmanager
def only_bucket(sql: SqlLake, bucket: int) -> Iterator[None]:
    """Hide the files of all other buckets: whoever looks into one of them fails."""
    held = sql("SELECT DISTINCT _file, system.bucket(4, id) FROM t")
    others = [Path(file.removeprefix("file:")) for file, of in held if of != bucket]
    assert others
    for each in others:
        each.rename(each.with_suffix(".hidden"))
    yield
    for each in others:
        each.with_suffix(".hidden").rename(each)


def test_statements_look_into_the_files_of_their_partitions_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    sql = SqlLake(spark, tmp_path)
    sql("CREATE TABLE t (id BIGINT, s STRING) PARTITIONED BY (bucket(4, id))")
    sql("INSERT INTO t SELECT id, 's' FROM range(0, 40, 1, 1)")
    four = sql("SELECT count(DISTINCT _file), min(system.bucket(4, id)) FROM t")
    assert four == [(4, 0)]
    assert sql.files("SELECT * FROM t WHERE system.bucket(4, id) = 3") == 1
    assert sql.files("SELECT * FROM t JOIN (SELECT 3 AS k) ON system.bucket(4, t.id) = 1") == 1
    in_two = dict(sql("SELECT id, system.bucket(4, id) FROM t"))
    with only_bucket(sql, 0):
        sql("DELETE FROM t WHERE id > 0 AND system.bucket(4, id) = 0")
        sql("DELETE FROM t WHERE system.bucket(4, id) = 0")
    with only_bucket(sql, 1):
        sql(
            "UPDATE t SET s = system.truncate(1, 'new') "
            "WHERE db.t.id > 0 AND system.bucket(4, id) = 1"
        )
    with only_bucket(sql, 2):
        sql(
            "MERGE INTO t USING (SELECT id AS k FROM range(40)) "
            "ON id = k AND system.bucket(4, t.id) = 2 WHEN MATCHED AND system.bucket(2, k) >= 0 "
            "THEN UPDATE SET s = 'm' || system.bucket(4, k)"
        )
    meant = {1: "n", 2: "m2", 3: "s"}
    assert dict(sql("SELECT id, s FROM t")) == {
        id: meant[bucket] if id or bucket != 1 else "s" for id, bucket in in_two.items() if bucket
    }
    where = "system.bucket(4, id) = 3"
    sql.lake.delete("db.t", where)
    sql.lake.update("db.t", {"s": "system.truncate(1, s)"}, "system.bucket(4, id) < 3")
    assert {row[0] for row in sql("SELECT DISTINCT s FROM t")} == {"m", "n"}


@pytest.mark.parametrize(
    ("call", "match"),
    [
        ("bucket(16, true)", "takes a whole number, .* not boolean"),
        ("bucket(16, 1.5D)", "not double"),
        ("bucket(0, 3)", "number of buckets must be 1 or more, not 0"),
        ("bucket(16L, 3)", "number of buckets is an int, not bigint"),
        ("bucket(3)", "takes a number and a value"),
        ("truncate(-4, 'a')", "width must be 1 or more, not -4"),
        ("truncate(4, DATE '2020-01-01')", "not date"),
        ("hours(DATE '2020-01-01')", "takes a timestamp, not date"),
        ("years('2020')", "takes a date or a timestamp, not string"),
        ("days(NULL)", "not void"),
        ("days(current_date(), 1)", "takes one value"),
    ],
)
def test_what_a_function_does_not_take_is_refused_in_a_line(
    sql: SqlLake, call: str, match: str
) -> None:
    with pytest.raises(InvalidInput, match=match) as refusal:
        sql(f"SELECT system.{call} FROM i0")
    assert "\n" not in str(refusal.value)
    with pytest.raises(InvalidInput, match=match):
        sql(f"DELETE FROM i0 WHERE system.{call} IS NULL")


def test_values_are_those_of_iceberg_on_spark(sql: SqlLake) -> None:
    calls = {
        "bucket(16, 34)": 3,
        "bucket(16, CAST(34 AS SMALLINT))": 3,
        "bucket(16, DATE '2017-11-16')": 10,
        "bucket(16, TIMESTAMP '2017-11-16 22:31:08')": 7,
        "bucket(16, 'iceberg')": 9,
        "bucket(16, X'00010203')": 9,
        "bucket(16, CAST(14.20 AS DECIMAL(9, 2)))": 3,
        "bucket(16, CAST(NULL AS INT))": None,
        "truncate(4, 'icebergs')": "iceb",
        "truncate(10, CAST(-1 AS TINYINT))": -10,
        "truncate(10, 12.34)": Decimal("12.30"),
        "years(DATE '1969-12-31')": -1,
        "years(TIMESTAMP '2017-12-31 22:31:08')": 48,
        "months(DATE '1969-12-31')": -1,
        "days(TIMESTAMP '2017-12-31 22:31:08')": date(2018, 1, 1),
        "days(TIMESTAMP_NTZ '2017-12-31 22:31:08')": date(2017, 12, 31),
        "HOURS(TIMESTAMP '2017-12-31 22:31:08')": 420771,
        "hour(CAST(NULL AS TIMESTAMP))": None,
    }
    text = ", ".join(f"`system`.{call}" for call in calls)
    assert sql(f"SELECT {text}") == [tuple(calls.values())]


def test_a_call_in_a_text_or_of_another_system_is_left_alone(spark: SparkSession) -> None:
    text = "SELECT 'system.bucket(1, 2)', x.system.bucket(1, 2), system.bucket -- system.days(d)"
    assert with_functions(text, spark) == text
    assert f.expr(with_functions("system.days(DATE '2020-01-01')", spark)) is not None
