"""Types and defaults of columns: what they may become, and how they are stored."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from icetree.errors import InvalidInput
from icetree.spec.apply.apply import apply
from icetree.spec.edit.partitioning import SpecEdit
from tests.spec.edit.editing import column, edited, ids, refused, table


@pytest.mark.parametrize(
    ("path", "type", "stored"),
    [
        ("id", "long", "long"),
        ("ratio", "double", "double"),
        ("price", "decimal(12, 2)", "decimal(12, 2)"),
        ("day", "timestamp", "timestamp"),
        ("day", "timestamp_ns", "timestamp_ns"),
        ("nothing", "string", "string"),
        ("tags.element.x", "long", "long"),
        ("prices.value.net", "long", "long"),
    ],
)
def test_types_widen(path: str, type: str, stored: str) -> None:
    after = edited(lambda e: e.widen(path, type))
    assert column(after, path)["type"] == stored


def test_an_unknown_column_can_become_nested_with_fresh_ids() -> None:
    before = table()
    after = edited(lambda e: e.widen("nothing", "list<string>"), on=before)
    assert ids(after)["nothing.element"] == before.last_column_id + 1


def test_no_table_is_laid_out_by_a_column_that_has_no_type_yet() -> None:
    before = table()
    with pytest.raises(InvalidInput, match="'nothing' is unknown, so it has no value: widen it"):
        SpecEdit(before).add("nothing")


@pytest.mark.parametrize(
    ("path", "type", "why"),
    [
        ("id", "string", "can only become a long"),
        ("price", "decimal(12, 3)", "same scale"),
        ("price", "decimal(8, 2)", "higher precision"),
        ("day", "timestamptz", "timestamp or a timestamp_ns"),
        ("name", "int", "cannot be widened"),
        ("prices.key.k", "long", "keys of a map never change"),
        ("address", "int", "cannot be widened"),
    ],
)
def test_other_changes_of_type_are_refused(path: str, type: str, why: str) -> None:
    assert why in refused(lambda e: e.widen(path, type))


def test_a_date_cannot_widen_where_partition_values_would_change() -> None:
    by_bucket, by_month = (
        table(partition_by=[f"{how}"]) for how in ("bucket(4, day)", "month(day)")
    )
    assert "'day_bucket_4'" in refused(lambda e: e.widen("day", "timestamp"), on=by_bucket)
    assert column(edited(lambda e: e.widen("day", "timestamp"), on=by_month), "day")
    # Files of the former spec keep their values, so removing the field is no way out.
    removed = apply(by_bucket, SpecEdit(by_bucket).remove("day_bucket_4").updates(), at_ms=2)
    assert "add a new column" in refused(lambda e: e.widen("day", "timestamp"), on=removed)


def test_a_widened_column_keeps_its_default() -> None:
    after = edited(
        lambda e: e.add("since", "date", default=date(2020, 1, 2)),
        lambda e: e.widen("since", "timestamp_ns"),
    )
    assert column(after, "since")["initial-default"] == "2020-01-02T00:00:00.000000000"


UTC2 = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("type", "value", "stored"),
    [
        ("boolean", True, True),
        ("int", 34, 34),
        ("long", 2**40, 2**40),
        ("float", 1, 1.0),
        ("double", 1.5, 1.5),
        ("decimal(4, 2)", Decimal("14.2"), "14.20"),
        ("decimal(4, 2)", "-0.5", "-0.50"),
        ("decimal(4, 2)", 3, "3.00"),
        ("date", date(2017, 11, 16), "2017-11-16"),
        ("time", time(22, 31, 8, 123456), "22:31:08.123456"),
        ("time", "22:31:08", "22:31:08.000000"),
        ("timestamp", datetime(2017, 11, 16, 22, 31, 8), "2017-11-16T22:31:08.000000"),  # noqa: DTZ001
        ("timestamp", "2017-11-16 22:31:08.12", "2017-11-16T22:31:08.120000"),
        ("timestamptz", datetime(2017, 11, 16, 1, tzinfo=UTC2), "2017-11-15T23:00:00.000000+00:00"),
        ("timestamptz", "2017-11-16T22:31:08Z", "2017-11-16T22:31:08.000000+00:00"),
        ("timestamp_ns", "2017-11-16T22:31:08.123456789", "2017-11-16T22:31:08.123456789"),
        ("timestamptz_ns", "2017-11-16T22:31:08+00:00", "2017-11-16T22:31:08.000000000+00:00"),
        ("string", "iceberg", "iceberg"),
        ("uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("fixed[2]", b"\x00\xff", "00ff"),
        ("binary", b"\x01", "01"),
        ("list<int>", [1, None], [1, None]),
        ("map<string, int>", {"a": 1}, {"keys": ["a"], "values": [1]}),
        ("struct<x: int>", {}, {}),
    ],
)
def test_defaults_are_stored_as_single_values_in_json(type: str, value: Any, stored: Any) -> None:
    added = column(edited(lambda e: e.add("n", type, required=True, default=value)), "n")
    assert (added["initial-default"], added["write-default"]) == (stored, stored)
    again = column(edited(lambda e: e.add("n", type, default=stored)), "n")
    assert again["initial-default"] == stored


@pytest.mark.parametrize(
    ("type", "value"),
    [
        ("boolean", 1),
        ("int", True),
        ("int", 2**31),
        ("long", "1"),
        ("float", 1e300),
        ("double", float("nan")),
        ("decimal(4, 2)", "1.234"),
        ("decimal(4, 2)", 100),
        ("decimal(4, 2)", 1.5),
        ("decimal(4, 2)", "x"),
        ("date", "16.11.2017"),
        ("date", datetime(2017, 1, 1)),  # noqa: DTZ001
        ("timestamp", "2017-11-16T22:31:08Z"),
        ("timestamptz", "2017-11-16T22:31:08"),
        ("timestamp", "2017-11-16T22:31:08.123456789"),
        ("string", 1),
        ("uuid", "x"),
        ("fixed[2]", b"x"),
        ("binary", "xyz"),
        ("list<int not null>", [None]),
        ("list<int>", "12"),
        ("struct<x: int>", {"x": 1}),
        ("struct<x: int not null>", {}),
        ("unknown", 1),
        ("variant", 1),
    ],
)
def test_a_default_of_another_type_is_refused(type: str, value: Any) -> None:
    assert "'n'" in refused(lambda e: e.add("n", type, default=value))


def test_write_defaults_change_and_initial_ones_do_not() -> None:
    first = edited(lambda e: e.add("n", "int", default=1))
    second = edited(lambda e: e.set_default("n", 2), on=first)
    assert (column(second, "n")["initial-default"], column(second, "n")["write-default"]) == (1, 2)
    third = edited(lambda e: e.set_default("n", None), on=second)
    assert column(third, "n").get("write-default") is None
    assert "'n'" in refused(lambda e: e.set_default("n", "x"), on=first)
