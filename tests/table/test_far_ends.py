"""Values, numbers and texts far beyond what anyone needs: taken, or refused with a sentence."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import expressions as ice

from icetree.errors import InvalidInput
from icetree.spec.schema.text import read_type
from icetree.tree.prune.predicates import Transformed
from tests.rows.lake import files, new_table

YEAR_10000 = 253_402_300_800_000_000
MICROS, ZONED, DATE = pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.date32()


@pytest.mark.parametrize(
    ("type", "partition_by", "value", "folder"),
    [
        (MICROS, "x", YEAR_10000, f"x={YEAR_10000}"),
        (ZONED, "x", -YEAR_10000, f"x=-{YEAR_10000}"),
        (MICROS, "day(x)", YEAR_10000, "x_day=2932897"),
        (ZONED, "hour(x)", YEAR_10000, f"x_hour={2932897 * 24}"),
        (DATE, "x", 2**31 - 1, f"x={2**31 - 1}"),
        (DATE, "day(x)", -800_000, "x_day=-800000"),
        (MICROS, "day(x)", YEAR_10000 - 1, "x_day=9999-12-31"),
    ],
    ids=str,
)
def test_a_time_that_no_calendar_here_has_makes_a_folder_by_its_number(
    type: pa.DataType, partition_by: str, value: int, folder: str
) -> None:
    schema = pa.schema([("x", type)])
    table = new_table(schema, partition_by=[partition_by])
    column = pa.array([value], pa.int32() if type == DATE else pa.int64()).view(type)
    table.append(pa.table({"x": column}, schema))
    [file] = files(table)
    assert file.split("/")[-2] == folder
    assert table.scan("x is not null").count() == 1


def plain_table(**properties: str) -> Any:
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    table = new_table(schema, properties=properties)
    table.append(pa.table({"id": [1, 2], "s": ["a", "b"]}, schema))
    return table


@pytest.mark.parametrize(
    ("filter", "why"),
    [
        ("bucket(99999999999, id) = 1", "a whole number below 2147483648"),
        ("truncate(99999999999999999999, id) = 1", "a whole number below 2147483648"),
        (f"bucket({'9' * 5000}, id) = 1", "a whole number"),
        (f"id = {'9' * 5000}", "has too many digits"),
        ("id < 1e99999999999999999999", "is too large or too small"),
        ("s = '\udcff'", r"'s' is string: it cannot be compared with '\\udcff'$"),
        ("s like '\udcff%'", "'s' is string: it cannot be compared"),
        ("s in ('a', '\udcff')", "'s' is string: it cannot be compared"),
        ("truncate(1, s) = '\udcff'", "is string: it cannot be compared"),
        (ice.EqualTo(Transformed("bucket[99999999999]", "id"), 1), "from 1 to 2147483647"),
        (ice.EqualTo(Transformed("truncate[99999999999]", "id"), 1), "from 1 to 2147483647"),
        (ice.EqualTo(Transformed("bucket[0]", "id"), 1), "from 1 to 2147483647"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_filter_out_of_all_bounds_is_refused(filter: Any, why: str) -> None:
    table = plain_table()
    with pytest.raises(InvalidInput, match=why):
        table.scan(filter).to_arrow()


@pytest.mark.parametrize("limit", [2**63 - 1, 2**63, 2**80])
def test_a_limit_beyond_all_rows_is_none(limit: int) -> None:
    scan = plain_table().scan(limit=limit)
    assert scan.to_arrow().num_rows == scan.count() == 2


@pytest.mark.parametrize("codec", ["gzip", "zstd", "brotli"])
@pytest.mark.parametrize("level", ["99", str(2**70)])
def test_a_compression_level_that_the_codec_lacks_is_refused(codec: str, level: str) -> None:
    how = {"write.parquet.compression-codec": codec, "write.parquet.compression-level": level}
    with pytest.raises(InvalidInput, match=f"write.parquet.compression-level='{level}'"):
        plain_table(**how)


@pytest.mark.parametrize(("codec", "level"), [("gzip", "9"), ("zstd", "22"), ("brotli", "11")])
def test_the_highest_compression_level_is_taken(codec: str, level: str) -> None:
    how = {"write.parquet.compression-codec": codec, "write.parquet.compression-level": level}
    assert plain_table(**how).scan().count() == 2


@pytest.mark.parametrize(("start", "most"), [("list<", 49), ("struct<a: ", 99), ("map<int, ", 49)])
def test_a_column_may_nest_a_hundred_levels_of_a_file_deep_and_no_deeper(
    start: str, most: int
) -> None:
    with plain_table().edit_schema() as edit:
        edit.add("x", start * most + "int" + ">" * most)
    with (
        pytest.raises(InvalidInput, match="deeper than the 100 levels of a data file"),
        plain_table().edit_schema() as edit,
    ):
        edit.add("x", start * (most + 1) + "int" + ">" * (most + 1))
    for depth in (101, 2000, 20_000):
        with pytest.raises(InvalidInput, match="nests more than 100 deep"):
            read_type(start * depth + "int" + ">" * depth)
