"""What `make statements` draws and compares; Spark runs it in tests/serve/test_spark_statements.py."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from campaigns.statements.compare import ALLOWED, allowed, difference
from campaigns.statements.sides import Told, counted
from campaigns.statements.statements import Drawn

COLUMNS = t.StructType(
    [
        t.StructField("id", t.LongType()),
        t.StructField("x", t.DoubleType()),
        t.StructField("Name", t.StringType()),
        t.StructField("y", t.StructType([t.StructField("a", t.DateType())])),
        t.StructField("c0", t.ArrayType(t.StringType())),
        t.StructField("c1", t.MapType(t.StringType(), t.DecimalType(5, 2))),
    ]
)
ROW = Told(columns="struct<x:double>", rows=Counter(["('0.0',)"]))
ZERO = Told(columns="struct<x:double>", rows=Counter(["('-0.0',)"]))
WRONG = Told(wrong="ParseException: no")


def drawn(seed: int) -> list[str]:
    source = Drawn(seed)
    return [source.statement(number, lambda _: COLUMNS) for number in range(200)]


def test_a_seed_draws_the_same_statements_again() -> None:
    assert drawn(1) == drawn(1)
    assert drawn(1) != drawn(2)


def test_statements_are_of_every_kind() -> None:
    said = " ".join(text for seed in range(5) for text in drawn(seed))
    for word in (
        *("INSERT INTO t BY NAME", "INSERT OVERWRITE t", "REPLACE WHERE", "DELETE FROM t"),
        *("UPDATE t", "UPDATE s", "NOT MATCHED BY SOURCE", "UPDATE SET *", "INSERT *", "EXISTS"),
        *("NOT IN (SELECT", "BETWEEN", "LIKE", "<=>", "WITH t AS", "y.a =", "-0.0D", "NaN"),
        *("ADD COLUMN", "DROP COLUMN", "RENAME COLUMN", "PARTITION FIELD", "CREATE TAG"),
    ):
        assert word in said, word


@pytest.mark.parametrize(
    ("text", "ours", "theirs", "said"),
    [
        ("SELECT x FROM t", ROW, ROW, None),
        ("SELECT x FROM t", ROW, ZERO, "rows differ"),
        ("SELECT max(x) FROM t", ROW, ZERO, None),
        ("SELECT x FROM t", ROW, Told(columns="struct<x:float>", rows=ROW.rows), "columns differ"),
        ("DELETE FROM t", WRONG, Told(), "only ours refuses"),
        ("DELETE FROM t", Told(), WRONG, "only theirs refuses"),
        ("DELETE FROM t", WRONG, WRONG, None),
        ("DELETE FROM t", Told(wrong="KeyError: 1", is_meant=False), WRONG, "ours broke"),
    ],
)
def test_what_both_tell_is_held_against_each_other(
    text: str, ours: Told, theirs: Told, said: str | None
) -> None:
    found = difference(text, ours, theirs)
    assert found is None if said is None else found is not None and found.startswith(said)


def test_only_what_has_a_reason_is_allowed() -> None:
    refused = "only theirs refuses: Cannot delete file where some, but not all, rows match"
    assert allowed("INSERT INTO t REPLACE WHERE id = 1 VALUES (1)", refused) is ALLOWED[0]
    assert allowed("INSERT INTO t VALUES (1)", refused) is None
    lost = (
        "then of t, of which (1, 0, 1, 0) are told, rows differ:\n  ours   1 rows, 0 of them alone"
    )
    assert (
        allowed("DELETE FROM t WHERE x <> 1", f"{lost}: \n  theirs 2 rows, 1 of them alone") is None
    )


def test_values_differ_where_a_bit_of_them_does() -> None:
    x = pa.array([0.0, -0.0, float("nan"), None])
    rows = counted(
        pa.table(
            {
                "x": x,
                "m": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_("string", "int32")),
            }
        )
    )
    assert sorted(rows) == sorted(
        ["('0.0', [('a', 1)])", "('-0.0', [])", "('nan', None)", "(None, [('b', None)])"]
    )
