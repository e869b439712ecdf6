"""Explaining a filter: what it skips at which level, and which part of it does."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg import expressions as ice

from icetree.errors import InvalidInput
from icetree.filters.text import predicate_text
from icetree.spec.entry.entry import Entry
from icetree.spec.locations import absolute_array
from icetree.spec.metadata.update import SetProperties
from icetree.table.scan.explain import GROUPS, NO_ROWS, OBJECTS, OWNER_SKIPPED
from icetree.table.table import Table
from icetree.tree.prune.predicates import Transformed
from tests.table.damage import make_table
from tests.table.lake import data_file, new_table, vector


@pytest.fixture
def table() -> Table:
    """Ten files of ten numbers in two leaves, then three in the root."""
    made = new_table(properties={"write.root.max-data-entries": "4"})
    made.append_files([data_file(f"a{n}", 10 * n, 10 * n + 9, country="DE") for n in range(5)])
    made.append_files([data_file(f"b{n}", 10 * n, 10 * n + 9, country="US") for n in range(5, 10)])
    made.append_files([data_file(f"c{n}", 10 * n, 10 * n + 9) for n in range(10, 13)])
    return made


def groups(table: Table, where: str, level: str, **how: object) -> list[tuple[object, ...]]:
    rows = table.explain(where, **how).groups.to_pylist()
    return [
        (row["kind"], row["kept"], tuple(row["by"]), row["objects"], row["entries"])
        for row in rows
        if row["level"] == level
    ]


def test_every_level_says_what_it_skips_and_why(table: Table) -> None:
    where = "n >= 75 and country = 'US'"
    assert groups(table, where, "root") == [
        ("data file", True, (), 3, 30),
        ("data manifest", True, (), 1, 5),
        ("data manifest", False, ("n >= 75", "country = 'US'"), 1, 5),
    ]
    assert groups(table, where, "leaf") == [
        ("data file", True, (), 3, 30),
        ("data file", False, ("n >= 75",), 2, 20),
    ]


def test_what_is_kept_is_what_a_scan_plans(table: Table) -> None:
    for where in ("n >= 75", "n = 3 or n = 101", "country = 'DE' and n > 20", "n < 0", "n is null"):
        kept = table.explain(where).objects.to_pylist()
        files = {row["object"] for row in kept if row["kept"] and row["kind"] == "data file"}
        planned = table.scan(where).plan().tasks["location"]
        assert files == set(absolute_array(planned, table.location).to_pylist()), where


def test_the_text_says_it_in_words(table: Table) -> None:
    text = table.explain("n >= 75 and country != 'FR'").text()
    assert text.splitlines() == [
        "where n >= 75 and country != 'FR'",
        "root: 3 of 3 data files may match",
        "root: 1 of 2 data manifests may match",
        "  1 skipped: by n >= 75 (5 entries)",
        "leaf: 3 of 5 data files may match",
        "  2 skipped: by n >= 75 (20 rows)",
        "nothing is skipped by country != 'FR'",
    ]


def test_objects_are_told_of_up_to_a_limit(table: Table) -> None:
    few = table.explain("n >= 0", objects=4)
    assert (few.objects.num_rows, few.total_objects) == (4, 15)
    assert few.objects.schema == OBJECTS
    assert few.groups.schema == GROUPS
    assert table.explain("n >= 0", objects=0).objects.num_rows == 0
    with pytest.raises(InvalidInput, match="objects=-1"):
        table.explain("n >= 0", objects=-1)


def test_files_that_a_manifest_dv_removed_are_not_told_of(table: Table) -> None:
    table.delete_files([data_file("b9").location or ""])
    objects = table.explain("n >= 75").objects["object"].to_pylist()
    assert f"{table.location}/data/b9.parquet" not in objects
    assert f"{table.location}/data/b8.parquet" in objects


def test_an_empty_file_is_skipped_for_having_no_rows() -> None:
    table = new_table()
    table.append_files([Entry(location="data/empty.parquet", file_size_in_bytes=4)])
    assert groups(table, "country = 'DE'", "root") == [("data file", False, (NO_ROWS,), 1, 0)]


def test_a_delete_manifest_goes_with_its_data_manifest(table: Table) -> None:
    for n in range(5):
        table.row_delta([vector(f"dv{n}", f"a{n}")])
    flush = {"write.root.max-delete-entries": "2", "write.flush.affinity-min-entries": "1"}
    table.update_metadata(SetProperties(updates=flush))
    table.append_files([data_file("d", 500, 509)])
    found = groups(table, "n >= 75", "root")
    skipped = [row for row in found if row[0] == "delete manifest" and not row[1]]
    assert [row[2] for row in skipped] == [(OWNER_SKIPPED,)]


def test_row_groups_are_looked_at_on_demand(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    assert groups(table, "id >= 905", "row group") == []
    found = groups(table, "id >= 905", "row group", row_groups=True)
    kept = table.scan("id >= 905").plan().tasks.num_rows
    assert sum(row[3] for row in found) == kept  # type: ignore[misc]


def test_an_older_snapshot_can_be_asked_about(table: Table) -> None:
    first = list(table.history())[-1]
    assert table.explain("n >= 0", at=first.snapshot_id).total_objects < 15
    with table.edit_schema() as schema:
        schema.rename("n", "number")
    # Names are those of the time, as in a scan.
    assert table.explain("n >= 0", at=first.snapshot_id).total_objects < 15


def test_an_empty_table_has_nothing_to_skip() -> None:
    assert new_table().explain("n = 1").total_objects == 0


def test_an_unknown_column_is_refused(table: Table) -> None:
    with pytest.raises(InvalidInput, match="no column 'm'"):
        table.explain("m = 1")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (ice.And(ice.GreaterThan("n", 3), ice.LessThan("n", 9)), "n > 3 and n < 9"),
        (
            ice.And(ice.Or(ice.EqualTo("n", 3), ice.IsNull("n")), ice.NotNaN("x")),
            "(n = 3 or n is null) and x is not nan",
        ),
        (ice.In("c", {"b", "it's"}), "c in ('b', 'it''s')"),
        (ice.Not(ice.StartsWith("c", "x")), "not (c starts with 'x')"),
        (ice.EqualTo(Transformed("bucket[16]", "id"), 3), "bucket(16, id) = 3"),
        (ice.EqualTo(Transformed("day", "ts"), 3), "day(ts) = 3"),
        (ice.AlwaysTrue(), "true"),
        (ice.EqualTo("b", True), "b = true"),
    ],
)
def test_a_filter_reads_as_one_writes_it(expression: ice.BooleanExpression, text: str) -> None:
    assert predicate_text(expression) == text


def test_long_lists_are_cut() -> None:
    text = predicate_text(ice.In("n", set(range(100))))
    assert text.endswith("… 92 more)")
