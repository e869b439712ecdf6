"""Conditions of Spark's as filters of ours: no row that Spark keeps is lost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions as ice
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DoubleType,
    FixedType,
    IntegerType,
    NestedField,
    StringType,
    StructType,
    TimestamptzType,
    UUIDType,
)
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from icetree.catalog.memory import MemoryCatalog
from icetree.errors import InvalidInput
from icetree.spark.read.condition import condition_filter
from icetree.spark.types import spark_schema
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED

NAN = float("nan")
ZONE = "America/New_York"
#: The two half past one of the night in which summer time ends in New York.
HALF_PAST_ONE = [
    datetime(2024, 11, 3, 5, 30, tzinfo=timezone.utc),
    datetime(2024, 11, 3, 6, 30, tzinfo=timezone.utc),
]

#: Each column with values that are worth a test, and each value as SQL.
VALUES: dict[str, tuple[pa.DataType, dict[str, Any]]] = {
    "i": (pa.int32(), {str(v): v for v in (-(2**31), -1, 0, 1, 7, 2**31 - 1)}),
    "l": (pa.int64(), {f"{v}L": v for v in (-(2**62), -1, 0, 1, 7, 2**63 - 1)}),
    "x": (
        pa.float64(),
        {
            "double('NaN')": NAN,
            "double('-Infinity')": float("-inf"),
            "double('Infinity')": float("inf"),
            "double('-0.0')": -0.0,
            "0.0D": 0.0,
            "1.5D": 1.5,
            "-1e300D": -1e300,
        },
    ),
    "r": (
        pa.float32(),
        {
            "float('NaN')": NAN,
            "float('-Infinity')": float("-inf"),
            "float('-0.0')": -0.0,
            "0.0F": 0.0,
            "0.1F": pa.scalar(0.1, pa.float32()).as_py(),
            "3.0F": 3.0,
        },
    ),
    "s": (
        pa.string(),
        {
            f"'{v}'": v
            for v in ("", "a", "ab", "abc", "b", "null", "zürich", "\U0001f600", "\uffee")
        },
    ),
    "d": (
        pa.date32(),
        {f"date'{v}'": date.fromisoformat(v) for v in ("0001-01-01", "1969-12-31", "2024-02-29")},
    ),
    "t": (
        pa.timestamp("us", tz="UTC"),
        {
            f"timestamp'{v.isoformat()}'": v
            for v in (*HALF_PAST_ONE, datetime(1969, 12, 31, 23, 59, 59, 999999, timezone.utc))
        },
    ),
    "n": (
        pa.timestamp("us"),
        {
            f"timestamp_ntz'{v}'": datetime.fromisoformat(v)
            for v in ("1969-12-31 23:59:59.999999", "2024-11-03 01:30:00")
        },
    ),
    "c": (
        pa.decimal128(10, 2),
        {f"cast('{v}' as decimal(10,2))": Decimal(v) for v in ("-0.01", "0.00", "3.14")},
    ),
    "b": (pa.binary(), {"X''": b"", "X'00FF'": b"\x00\xff", "X'FF'": b"\xff"}),
    "o": (pa.bool_(), {"true": True, "false": False}),
}
WITHIN = {"q": pa.int32(), "w": pa.struct([pa.field("z", pa.string())])}
COMPARISONS = ("=", "<=>", "<>", "<", "<=", ">", ">=")


def random_rows(chance: random.Random, count: int) -> pa.Table:
    columns: dict[str, pa.Array] = {"id": pa.array(range(count), pa.int64())}
    for name, (type, values) in VALUES.items():
        chosen = [chance.choice([None, *values.values()]) for _ in range(count)]
        columns[name] = pa.array(chosen, type)
    within = [
        chance.choice(
            [None, {"q": None, "w": None}, {"q": 7, "w": {"z": "ab"}}, {"q": -1, "w": {"z": None}}]
        )
        for _ in range(count)
    ]
    columns["st"] = pa.array(within, pa.struct(list(WITHIN.items())))
    return pa.table(columns)


def random_predicate(chance: random.Random, depth: int = 3) -> str:
    if depth and chance.random() < 0.6:
        left, right = (random_predicate(chance, depth - 1) for _ in range(2))
        return chance.choice(
            [f"({left} AND {right})", f"({left} OR {right})", f"NOT {left}", f"({left} AND {left})"]
        )
    name = chance.choice([*VALUES, "st.q", "st.w.z"])
    like = {"st.q": "i", "st.w.z": "s"}.get(name, name)
    literals = [*VALUES[like][1]]
    literal = chance.choice([*literals, "NULL"])
    comparison = chance.choice(COMPARISONS)
    few = ", ".join(chance.sample([*literals, "NULL"], 2))
    many = ", ".join(
        literals + [f"double({n})" if like in "xr" else str(n) for n in range(90, 102)]
    )
    choices = [
        f"{name} {comparison} {literal}",
        f"{literal} {comparison} {name}",
        f"{name} IS NULL",
        f"{name} IS NOT NULL",
        f"{name} IN ({few})",
    ]
    if like in "ilxr":
        choices += [f"{name} IN ({many})", f"{name} % 7 > 2", f"{name} > 2.5D"]
    if like in "xr":
        choices.append(f"isnan({name})")
    if like == "s":
        more = ", ".join(
            [*literals, *(f"'m{n}'" for n in range(9)), chance.choice(["NULL", "'y'"])]
        )
        choices += [
            f"{name} LIKE {chance.choice(['a%', '%', 'ab', '%b'])!r}",
            f"{name} IN ({more})",
        ]
    if like == "o":
        choices += [name, f"NOT {name}"]
    if like == "d":
        choices += ["d > '2000-01-01'", "t > d", "cast(t as date) = d"]
    return f"({chance.choice(choices)})"


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[SparkSession]:
    was = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", ZONE)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", was or "UTC")


def table_of(data: pa.Table, *, files: int) -> Table:
    lake = Lake(catalog=MemoryCatalog("m"), store=MemoryStore(), warehouse="memory://w")
    lake.create_namespace("db")
    table = lake.create_table("db.t", data.schema)
    size = -(-data.num_rows // files)
    for start in range(0, data.num_rows, size):
        table.append(data.slice(start, size))
    return table


@pytest.mark.law
@pytest.mark.parametrize("seed", range(1 + SEED, 1 + SEED + EFFORT))
def test_no_row_that_spark_keeps_is_lost(new_york: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    data = random_rows(chance, 60)
    table = table_of(data, files=30)
    predicates = [random_predicate(chance) for _ in range(40)]
    frame = new_york.createDataFrame(data, spark_schema(table.schema.fields))
    judged = frame.select("id", *(f.expr(text).alias(f"p{n}") for n, text in enumerate(predicates)))
    answers = judged.toArrow()
    skipped = 0
    for number, text in enumerate(predicates):
        where = condition_filter(new_york, table.schema, text)
        found = table.scan(where, columns=["id"])
        kept = {*found.to_arrow()["id"].to_pylist()}
        skipped += 30 - found.plan().tasks.num_rows
        ids = answers["id"].to_pylist()
        wanted = {id for id, yes in zip(ids, answers[f"p{number}"].to_pylist(), strict=True) if yes}
        assert wanted <= kept, (text, where)
    assert skipped > 30 * len(predicates) / 10


SCHEMA = Schema(
    NestedField(1, "a", IntegerType(), required=True),
    NestedField(2, "s", StringType(), required=False),
    NestedField(3, "x", DoubleType(), required=False),
    NestedField(4, "u", UUIDType(), required=False),
    NestedField(5, "fx", FixedType(2), required=False),
    NestedField(6, "b", BinaryType(), required=False),
    NestedField(7, "t", TimestamptzType(), required=False),
    NestedField(
        8, "st", StructType(NestedField(9, "q.r", IntegerType(), required=False)), required=False
    ),
)
ID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a > 3", ice.GreaterThan("a", 3)),
        ("3 > A", ice.LessThan("a", 3)),
        ("x > 1", ice.Or(ice.GreaterThan("x", 1.0), ice.IsNaN("x"))),
        ("x < 1", ice.LessThan("x", 1.0)),
        ("x = double('NaN')", ice.IsNaN("x")),
        ("a > 3 AND length('x' || a) = 2", ice.GreaterThan("a", 3)),
        ("a > 3 OR length(s) = 2", ice.AlwaysTrue()),
        ("NOT (a > 3 OR length('x' || a) = 2)", ice.LessThanOrEqual("a", 3)),
        ("a = 1 AND a = 2", ice.AlwaysFalse()),
        ("a > 3000000000", ice.AlwaysFalse()),
        ("true", ice.AlwaysTrue()),
        ("s LIKE 'ab%'", ice.And(ice.NotNull("s"), ice.StartsWith("s", "ab"))),
        ("s COLLATE UTF8_LCASE = 'x'", ice.AlwaysTrue()),
        (f"u = '{ID}'", ice.And(ice.NotNull("u"), ice.EqualTo("u", ID))),
        (f"u = '{ID.upper()}'", ice.NotNull("u")),
        ("u > 'a'", ice.NotNull("u")),
        ("fx = X'00'", ice.NotNull("fx")),
        ("fx = X'00FF'", ice.And(ice.NotNull("fx"), ice.EqualTo("fx", b"\x00\xff"))),
        ("b >= X'00FF'", ice.And(ice.NotNull("b"), ice.GreaterThanOrEqual("b", b"\x00\xff"))),
        ("st.`q.r` IS NULL", ice.IsNull("st.q.r")),
    ],
)
def test_conditions_are_said_in_our_filters(
    spark: SparkSession, text: str, wanted: ice.BooleanExpression
) -> None:
    found = condition_filter(spark, SCHEMA, text)
    # Spark adds that what is compared is not null.
    for null in ("a", "x"):
        if isinstance(found, ice.And) and found.left == ice.NotNull(null):
            found = found.right
    assert repr(found) == repr(wanted)


def test_a_condition_may_be_a_column_and_call_the_table_by_an_alias(spark: SparkSession) -> None:
    column = condition_filter(spark, SCHEMA, f.col("a") == 3)
    text = condition_filter(spark, SCHEMA, "old.a = 3", alias="old")
    assert repr(column) == repr(text)
    assert "EqualTo" in repr(text)


def test_what_a_subquery_finds_is_not_taken_for_a_column(spark: SparkSession) -> None:
    spark.createDataFrame([(1, 3)], "k int, a int").createOrReplaceTempView("others")
    of_others = "(SELECT max(others.a) AS a FROM others WHERE others.k = length(s)) = 3"
    assert "name='a'" not in repr(condition_filter(spark, SCHEMA, of_others))
    listed = condition_filter(spark, SCHEMA, "a > 5 AND a IN (SELECT k FROM others)")
    assert "GreaterThan" in repr(listed)


def test_a_condition_of_a_thousand_parts_is_no_deeper_than_one(spark: SparkSession) -> None:
    text = " OR ".join(f"(a = {n} AND s = 'x')" for n in range(600))
    assert repr(condition_filter(spark, SCHEMA, text)).count("EqualTo") >= 600


@pytest.mark.parametrize(
    ("text", "culprit"), [("zz > 3", "`zz`.*`a`"), ("a >", "line 1, pos"), ("a + 1", "boolean")]
)
def test_a_condition_that_is_wrong_is_refused_in_a_line(
    spark: SparkSession, text: str, culprit: str
) -> None:
    with pytest.raises(InvalidInput, match=culprit) as refused:
        condition_filter(spark, SCHEMA, text)
    assert "\n" not in str(refused.value)
    assert "org.apache" not in str(refused.value)
