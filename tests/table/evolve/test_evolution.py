"""Tables change their columns and partitioning; files from before stay readable, stats and all."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from pyiceberg.schema import Schema
from pyiceberg.types import (
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    TimestampType,
)

from icetree.errors import CommitConflict, InvalidInput
from icetree.filters.filter import parse_filter
from icetree.spec.entry.entry import Entry
from icetree.spec.entry.stats import FieldStats
from icetree.spec.metadata.update import SetLocation
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.tree.live import live_files
from icetree.tree.plan.plan import plan
from tests.table.lake import connection, data_file, live, new_table

LEAVES = {"write.root.max-data-entries": "2", "write.commit.compact-min-leaves": "2"}


def file_of(name: str, low: Any, high: Any, *, field_id: int = 1, spec_id: int = 0) -> Entry:
    stats = {field_id: FieldStats(lower=low, upper=high, tight=True, values=10, nulls=0)}
    return Entry(
        location=f"data/{name}.parquet",
        record_count=10,
        file_size_in_bytes=1_000,
        partition_spec_id=spec_id,
        stats=stats,
    )


def planned(table: Table, where: str) -> list[str]:
    """Return which files a filter leaves to be read, having checked the tree."""
    live(table)
    shape = table.metadata.shape()
    root = table.files.root(table.metadata.current_snapshot(), shape)
    tasks = plan(root, table.files.reader(shape), shape, parse_filter(where)).tasks
    names = tasks["location"].to_pylist()
    return sorted(each.removeprefix("data/").partition(".")[0] for each in names)


def one_column(lake: Lake, type: PrimitiveType, properties: dict[str, str]) -> Table:
    schema = Schema(NestedField(1, "x", type, required=False))
    return lake.create_table("db.t", schema, properties=properties)


WIDENINGS = {
    "int to long": (IntegerType(), LongType(), lambda n: n),
    "float to double": (FloatType(), DoubleType(), float),
    "decimal": (DecimalType(9, 2), DecimalType(20, 2), lambda n: Decimal(n).scaleb(-2)),
}


@pytest.mark.parametrize("properties", [{}, LEAVES], ids=["root", "leaves"])
@pytest.mark.parametrize("kind", WIDENINGS)
def test_bounds_from_before_and_after_a_widening_are_compared_alike(
    kind: str, properties: dict[str, str]
) -> None:
    old, new, value = WIDENINGS[kind]
    table = one_column(connection(), old, properties)
    table.append_files([file_of(f"a{i}", value(10 * i), value(10 * i + 9)) for i in range(3)])
    with table.edit_schema() as schema:
        schema.widen("x", new)
    big = 10**6 if kind == "float to double" else 10**9
    table.append_files([file_of(f"b{i}", value(big * 10), value(big * 10 + i)) for i in range(3)])
    table.append_files([file_of("c", value(15), value(16))])
    assert planned(table, f"x >= {value(15)} and x < {value(20)}") == ["a1", "c"]
    assert planned(table, f"x > {value(big)}") == ["b0", "b1", "b2"]
    # And those who read the table for the first time see the same.
    assert planned(table, f"x < {value(10)}") == ["a0"]


@pytest.mark.parametrize("many", [1, 5], ids=["root", "leaves"])
@pytest.mark.parametrize("moment", ["before the commit", "before the swap"])
@pytest.mark.parametrize("kind", WIDENINGS)
def test_an_append_lands_though_its_column_was_widened_meanwhile(
    kind: str, moment: str, many: int
) -> None:
    old, new, value = WIDENINGS[kind]
    lake = connection()
    table = one_column(lake, old, LEAVES)
    table.append_files([file_of("a", value(0), value(9))])
    other = lake.table("db.t")
    append = other.transaction()
    append.append_files([file_of(f"b{i}", value(10 * i), value(10 * i + 9)) for i in range(many)])
    if moment == "before the commit":
        with lake.table("db.t").edit_schema() as schema:
            schema.widen("x", new)
        other.refresh()
    else:
        with table.edit_schema() as schema:
            schema.widen("x", new)
    done = append.commit()
    assert done.report.retries == (0 if moment == "before the commit" else 1)
    assert live(lake.table("db.t")) == ["a", *(f"b{i}" for i in range(many))]
    assert planned(lake.table("db.t"), f"x < {value(5)}") == ["a", "b0"]


def test_files_may_be_added_before_a_widening_in_one_transaction() -> None:
    table = one_column(connection(), IntegerType(), {})
    table.append_files([file_of("a", 0, 9)])
    with table.transaction() as tx:
        tx.append_files([file_of("b", 10, 19)])
        with tx.edit_schema() as schema:
            schema.widen("x", LongType())
        tx.append_files([file_of("c", 2**40, 2**40)])
        tx.delete(f"x = {2**40}")
        tx.append_files([file_of("d", 2**41, 2**41)])
    assert planned(table, "x > 15") == ["b", "d"]


def test_a_date_becomes_a_timestamp_and_its_old_files_are_still_found() -> None:
    from datetime import date, datetime

    table = one_column(connection(), DateType(), LEAVES)
    table.append_files(
        [file_of(f"d{i}", date(2026, 1, 1 + i), date(2026, 1, 1 + i)) for i in range(4)]
    )
    with table.edit_schema() as schema:
        schema.widen("x", TimestampType())
    noon = datetime(2026, 1, 2, 12)  # noqa: DTZ001  # the column has no zone
    table.append_files([file_of("t", noon, noon)])
    assert planned(table, "x >= '2026-01-02T00:00:00' and x < '2026-01-03T00:00:00'") == ["d1", "t"]


def test_a_dropped_column_gives_its_name_but_not_its_values_to_the_next() -> None:
    table = new_table(properties=LEAVES)
    table.append_files([data_file(f"a{i}", 0, 9) for i in range(3)])
    with table.edit_schema() as schema:
        schema.drop("n")
    with table.edit_schema() as schema:
        schema.add("n", "string")
    fresh = table.schema.find_field("n").field_id
    assert fresh > 2
    table.append_files([file_of("b", "x", "z", field_id=fresh)])
    # Rows of old files have no value for the new column; their numbers are another column's.
    assert planned(table, "n = 'y'") == ["a0", "a1", "a2", "b"]
    assert planned(table, "n = 'a'") == ["a0", "a1", "a2"]
    table.append_files([data_file(f"c{i}", 0, 9) for i in range(3)])
    assert len(live(table)) == 7


def test_a_renamed_column_is_found_under_its_new_name() -> None:
    table = new_table()
    table.append_files([data_file("a", 0, 9), data_file("b", 10, 19)])
    with table.edit_schema() as schema:
        schema.rename("n", "number")
    assert planned(table, "number > 12") == ["b"]
    with pytest.raises(InvalidInput, match="n"):
        table.delete("n > 12")


@pytest.mark.parametrize("properties", [{}, LEAVES], ids=["root", "leaves"])
def test_files_of_two_partition_specs_live_side_by_side(properties: dict[str, str]) -> None:
    table = new_table(partition_by=["country"], properties=properties)
    table.append_files([data_file("de", 0, 9, country="DE"), data_file("fr", 0, 9, country="FR")])
    with table.edit_spec() as spec:
        spec.remove("country").add("bucket(4, n)")
    bucket = table.metadata.expressions[-1].expr_id
    assert table.metadata.default_spec_id == 1
    for number in range(4):
        new = data_file(f"b{number}", 20, 29, country="DE", spec_id=1)
        new.stats[bucket] = FieldStats(lower=number, upper=number, tight=True, values=10, nulls=0)
        table.append_files([new])
    table.append_files([data_file("us", 0, 9, country="US")])
    assert live(table) == ["b0", "b1", "b2", "b3", "de", "fr", "us"]
    assert planned(table, "country = 'FR'") == ["fr"]
    assert len(planned(table, "n = 25")) == 1
    assert planned(table, "n = 5") == ["de", "fr", "us"]
    table.delete("country = 'DE' and n < 10")
    assert live(table) == ["b0", "b1", "b2", "b3", "fr", "us"]
    again = data_file("fr2", 0, 9, country="FR")
    table.replace_partitions([again])
    assert live(table) == ["b0", "b1", "b2", "b3", "fr2", "us"]


def test_replacing_partitions_where_there_are_none_any_more_replaces_everything() -> None:
    table = new_table(partition_by=["country"])
    table.append_files([data_file("de", country="DE"), data_file("fr", country="FR")])
    with table.edit_spec() as spec:
        spec.remove("country")
    table.append_files([data_file("any", spec_id=1)])
    table.replace_partitions([data_file("new", spec_id=1)])
    assert live(table) == ["new"]


def test_old_snapshots_are_read_with_the_columns_they_had() -> None:
    table = new_table()
    first = table.append_files([data_file("a")]).snapshot
    with table.edit_schema() as schema:
        schema.add("note", "string").drop("country")
    second = table.append_files([data_file("b")]).snapshot
    assert first is not None
    assert second is not None
    names = [[c.name for c in table.metadata.schema(s.schema_id).fields] for s in (first, second)]
    assert names == [["n", "country"], ["n", "note"]]
    shape = table.metadata.shape(first.schema_id)
    files = live_files(table.files.root(first, shape), table.files.reader(shape))
    assert files["location"].to_pylist() == ["data/a.parquet"]


def _add_column(table: Table) -> None:
    with table.edit_schema() as schema:
        schema.make_optional("n").add("extra", "int")


def _partition(table: Table) -> None:
    with table.edit_spec() as spec:
        spec.add("country")


def _sort(table: Table) -> None:
    with table.edit_sort() as sort:
        sort.asc("n")


CLASHES: list[tuple[Callable[[Table], None], Callable[[Table], None]]] = [
    (_add_column, _add_column),
    (_add_column, _partition),
    (_partition, _add_column),
    (_partition, _partition),
    (_sort, _sort),
    (_add_column, _sort),
]


@pytest.mark.parametrize(("theirs", "mine"), CLASHES)
def test_edits_that_rely_on_what_another_changed_conflict_and_change_nothing(
    theirs: Callable[[Table], None], mine: Callable[[Table], None]
) -> None:
    lake = connection()
    table = new_table(lake)
    stale = lake.table("db.t")
    theirs(table)
    head = lake.table("db.t").metadata
    with pytest.raises(CommitConflict, match="another commit changed the"):
        mine(stale)
    assert lake.table("db.t").metadata == head


def test_a_filter_that_names_a_column_minds_a_change_of_columns() -> None:
    lake = connection()
    table = new_table(lake)
    table.append_files([data_file("a")])
    delete = lake.table("db.t").transaction()
    delete.delete("n < 100")
    with table.edit_schema() as schema:
        schema.rename("n", "m")
    with pytest.raises(CommitConflict, match="current schema"):
        delete.commit()
    assert live(table.refresh()) == ["a"]


def test_properties_of_two_writers_come_together() -> None:
    lake = connection()
    table = new_table(lake)
    stale = lake.table("db.t")
    table.set_properties({"a": "1"})
    stale.set_properties({"b": "2"})
    stale.remove_properties("c")
    assert {"a": "1", "b": "2"}.items() <= stale.properties.items()


def test_a_table_cannot_be_pointed_away_from_its_files() -> None:
    table = new_table()
    with pytest.raises(InvalidInput, match="copy its folder"):
        table.update_metadata(SetLocation(location="memory://elsewhere"))


def test_a_column_added_with_a_default_is_there_in_old_and_new_schemas() -> None:
    table = new_table()
    table.append_files([data_file("a")])
    with table.edit_schema() as schema:
        schema.add("state", StringType(), default="new")
    field = table.schema.find_field("state")
    assert (field.initial_default, field.write_default) == ("new", "new")
