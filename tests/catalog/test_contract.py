"""What every catalog does, whatever it is kept in."""

from __future__ import annotations

import pytest

from icetree.catalog.base import Catalog, Stale, Swap, Swapped, TableName, ViewName
from icetree.errors import AlreadyExists, CommitConflict, InvalidInput, NotFound
from tests.catalog.conftest import EVENTS

DB = ("db",)


@pytest.fixture
def table(catalog: Catalog) -> TableName:
    catalog.create_namespace(DB, {})
    catalog.create(EVENTS, "m0")
    return EVENTS


def test_a_new_catalog_is_empty(catalog: Catalog) -> None:
    assert catalog.name == "main"
    assert catalog.namespaces() == []


def test_a_table_made_is_listed_and_loaded(catalog: Catalog, table: TableName) -> None:
    assert catalog.tables(DB) == [table]
    assert catalog.load(table) == "m0"


def test_tables_are_listed_in_order_and_only_those_of_the_namespace(catalog: Catalog) -> None:
    for namespace in (DB, ("db", "inner"), ("db2",)):
        catalog.create_namespace(namespace, {})
        for name in ("b", "a"):
            catalog.create(TableName(namespace, name), "m")
    assert catalog.tables(DB) == [TableName(DB, "a"), TableName(DB, "b")]


def test_a_swap_from_the_head_takes_effect(catalog: Catalog, table: TableName) -> None:
    assert catalog.swap(table, expected="m0", to="m1") == Swapped()
    assert catalog.load(table) == "m1"


def test_a_swap_from_an_old_head_changes_nothing_and_tells_the_new_one(
    catalog: Catalog, table: TableName
) -> None:
    catalog.swap(table, expected="m0", to="m1")
    assert catalog.swap(table, expected="m0", to="other") == Stale(metadata_location="m1")
    assert catalog.load(table) == "m1"


def test_a_swap_asked_for_twice_tells_that_it_happened(catalog: Catalog, table: TableName) -> None:
    catalog.swap(table, expected="m0", to="m1")
    assert catalog.swap(table, expected="m0", to="m1") == Stale(metadata_location="m1")


def test_a_swap_touches_no_other_table(catalog: Catalog, table: TableName) -> None:
    other = TableName(DB, "other")
    catalog.create(other, "m0")
    catalog.swap(table, expected="m0", to="m1")
    assert catalog.load(other) == "m0"


def test_a_name_that_is_taken_cannot_be_made_again(catalog: Catalog, table: TableName) -> None:
    with pytest.raises(AlreadyExists, match=r"db\.events"):
        catalog.create(table, "other")
    assert catalog.load(table) == "m0"


def test_a_table_needs_its_namespace(catalog: Catalog) -> None:
    with pytest.raises(NotFound, match="namespace db"):
        catalog.create(EVENTS, "m0")


def test_what_is_not_there_is_not_found(catalog: Catalog) -> None:
    catalog.create_namespace(DB, {})
    absent, nowhere = TableName(DB, "absent"), ("nowhere",)
    for call in (
        lambda: catalog.load(absent),
        lambda: catalog.swap(absent, expected="a", to="b"),
        lambda: catalog.drop(absent),
        lambda: catalog.rename(absent, TableName(DB, "new")),
        lambda: catalog.tables(nowhere),
        lambda: catalog.namespaces(nowhere),
        lambda: catalog.namespace_properties(nowhere),
        lambda: catalog.update_namespace(nowhere, put={}, remove=()),
        lambda: catalog.drop_namespace(nowhere),
    ):
        with pytest.raises(NotFound, match=r"absent|nowhere"):
            call()


def test_a_dropped_table_is_gone_and_its_name_free(catalog: Catalog, table: TableName) -> None:
    catalog.drop(table)
    assert catalog.tables(DB) == []
    with pytest.raises(NotFound):
        catalog.swap(table, expected="m0", to="m1")
    catalog.create(table, "again")
    assert catalog.load(table) == "again"


def test_a_drop_of_an_expected_head_leaves_any_other(catalog: Catalog, table: TableName) -> None:
    """Whoever looked at a table, and drops it, drops no other that took the name since."""
    catalog.swap(table, expected="m0", to="m1")
    with pytest.raises(CommitConflict, match=r"db\.events is not as it was"):
        catalog.drop(table, expected="m0")
    assert catalog.load(table) == "m1"
    catalog.drop(table, expected="m1")
    assert catalog.tables(DB) == []
    with pytest.raises(NotFound, match="events"):
        catalog.drop(table, expected="m1")


def test_a_renamed_table_keeps_its_head(catalog: Catalog, table: TableName) -> None:
    catalog.create_namespace(("other",), {})
    moved = TableName(("other",), "moved")
    catalog.rename(table, moved)
    assert catalog.load(moved) == "m0"
    with pytest.raises(NotFound):
        catalog.load(table)


def test_a_rename_onto_a_taken_name_or_into_no_namespace_changes_nothing(
    catalog: Catalog, table: TableName
) -> None:
    other = TableName(DB, "other")
    catalog.create(other, "other0")
    for target in (other, table):
        with pytest.raises(AlreadyExists):
            catalog.rename(table, target)
    with pytest.raises(NotFound, match="nowhere"):
        catalog.rename(table, TableName(("nowhere",), "events"))
    assert (catalog.load(table), catalog.load(other)) == ("m0", "other0")


def test_namespaces_are_listed_level_by_level(catalog: Catalog) -> None:
    for namespace in (("b",), ("a", "x", "deep"), ("a", "y"), ("ab",)):
        catalog.create_namespace(namespace, {})
    assert catalog.namespaces() == [("a",), ("ab",), ("b",)]
    assert catalog.namespaces(("a",)) == [("a", "x"), ("a", "y")]
    assert catalog.namespaces(("a", "x")) == [("a", "x", "deep")]
    assert catalog.namespaces(("b",)) == []


@pytest.mark.parametrize("other", ["DB", "d_", "d%", "db2"])
def test_namespaces_that_look_alike_are_different(catalog: Catalog, other: str) -> None:
    catalog.create_namespace(("db", "inner"), {})
    with pytest.raises(NotFound):
        catalog.tables((other,))
    catalog.create_namespace((other,), {})
    assert catalog.namespaces((other,)) == []


def test_a_namespace_made_twice_is_refused(catalog: Catalog) -> None:
    catalog.create_namespace(DB, {"owner": "ann"})
    with pytest.raises(AlreadyExists):
        catalog.create_namespace(DB, {"owner": "bob"})
    assert catalog.namespace_properties(DB) == {"owner": "ann"}


def test_properties_are_set_and_removed_in_one_step(catalog: Catalog) -> None:
    catalog.create_namespace(DB, {"a": "1", "b": "2"})
    catalog.update_namespace(DB, put={"b": "3", "c": "4"}, remove=["a", "absent"])
    assert catalog.namespace_properties(DB) == {"b": "3", "c": "4"}


def test_a_namespace_outlives_its_last_property(catalog: Catalog) -> None:
    catalog.create_namespace(DB, {"a": "1"})
    catalog.update_namespace(DB, put={}, remove=["a"])
    assert catalog.namespaces() == [DB]
    assert catalog.namespace_properties(DB) == {}


def test_only_an_empty_namespace_can_be_dropped(catalog: Catalog, table: TableName) -> None:
    inner = ("db", "inner")
    catalog.create_namespace(inner, {})
    with pytest.raises(InvalidInput, match="not empty"):
        catalog.drop_namespace(DB)
    catalog.drop(table)
    with pytest.raises(InvalidInput, match="not empty"):
        catalog.drop_namespace(DB)
    catalog.drop_namespace(inner)
    catalog.drop_namespace(DB)
    assert catalog.namespaces() == []


@pytest.mark.parametrize("name", ["o'clock", 'quo"te', "naïve 表 🌲", "a;--", "%s ? :x", "x" * 255])
def test_a_name_may_hold_any_letters(catalog: Catalog, name: str) -> None:
    table = TableName((name,), name)
    catalog.create_namespace((name,), {name: name})
    catalog.create(table, name)
    assert catalog.swap(table, expected=name, to="next") == Swapped()
    assert catalog.tables((name,)) == [table]
    assert catalog.namespaces() == [(name,)]
    assert catalog.namespace_properties((name,)) == {name: name}


@pytest.mark.parametrize("name", ["", "x" * 256, "nul\0", "\ud800", "dot.ted"])
def test_a_name_that_cannot_be_one_is_refused(
    catalog: Catalog, table: TableName, name: str
) -> None:
    for call in (
        lambda: catalog.create(TableName(DB, name), "m"),
        lambda: catalog.create_namespace((name,), {}),
        lambda: catalog.create_namespace(("db", name), {}),
        lambda: catalog.rename(table, TableName(DB, name)),
        lambda: catalog.tables((name,)),
    ):
        with pytest.raises(InvalidInput):
            call()
    assert (catalog.namespaces(), catalog.tables(DB)) == ([DB], [table])


def test_no_namespace_at_all_is_refused(catalog: Catalog) -> None:
    with pytest.raises(InvalidInput):
        catalog.create_namespace((), {})
    with pytest.raises(InvalidInput):
        catalog.create(TableName((), "events"), "m")


@pytest.mark.parametrize("location", ["", "x" * 1001, "nul\0"])
def test_a_location_that_cannot_be_stored_is_refused(
    catalog: Catalog, table: TableName, location: str
) -> None:
    with pytest.raises(InvalidInput):
        catalog.swap(table, expected="m0", to=location)
    with pytest.raises(InvalidInput):
        catalog.create(TableName(DB, "other"), location)
    assert catalog.load(table) == "m0"


@pytest.mark.parametrize(
    ("put", "remove"),
    [({"exists": "no"}, ()), ({}, ["exists"]), ({"a": "1"}, ["a"]), ({"": "1"}, ()),
     ({"a": "x" * 1001}, ()), ({"a": 1}, ())],
)  # fmt: skip
def test_properties_that_cannot_be_are_refused(
    catalog: Catalog, put: dict[str, str], remove: list[str]
) -> None:
    catalog.create_namespace(DB, {"a": "0"})
    with pytest.raises(InvalidInput):
        catalog.update_namespace(DB, put=put, remove=remove)
    assert catalog.namespace_properties(DB) == {"a": "0"}


def test_several_swaps_happen_together(catalog: Catalog, table: TableName) -> None:
    other, new = TableName(("db",), "other"), TableName(("db",), "new")
    catalog.create(other, "o1")
    head = catalog.load(table)
    swaps = [
        Swap(table=table, expected=head, to="e2"),
        Swap(table=other, expected="o1", to="o2"),
        Swap(table=new, expected=None, to="n1"),
    ]
    assert catalog.swap_all(swaps) == Swapped()
    assert [catalog.load(each) for each in (table, other, new)] == ["e2", "o2", "n1"]


def test_of_several_swaps_none_happens_where_one_cannot(catalog: Catalog, table: TableName) -> None:
    other, new = TableName(("db",), "other"), TableName(("db",), "new")
    catalog.create(other, "o1")
    head = catalog.load(table)
    good = [Swap(table=table, expected=head, to="e2"), Swap(table=new, expected=None, to="n1")]
    stale = Swap(table=other, expected="o0", to="o2")
    assert catalog.swap_all([*good, stale]) == Stale(metadata_location="o1")
    with pytest.raises(AlreadyExists):
        catalog.swap_all([*good, Swap(table=other, expected=None, to="o2")])
    with pytest.raises(NotFound):
        catalog.swap_all([*good, Swap(table=TableName(("no",), "x"), expected=None, to="x1")])
    with pytest.raises(NotFound):
        catalog.swap_all([*good, Swap(table=TableName(("db",), "x"), expected="x0", to="x1")])
    assert catalog.tables(("db",)) == [table, other]
    assert [catalog.load(each) for each in (table, other)] == [head, "o1"]


SEEN = ViewName(DB, "seen")


def test_views_are_named_beside_tables_and_apart_from_them(
    catalog: Catalog, table: TableName
) -> None:
    catalog.create(SEEN, "v0")
    assert (catalog.tables(DB), catalog.views(DB)) == ([table], [SEEN])
    assert catalog.load(SEEN) == "v0"
    assert catalog.swap(SEEN, expected="v0", to="v1") == Swapped()
    assert catalog.swap(SEEN, expected="v0", to="v2") == Stale(metadata_location="v1")
    catalog.rename(SEEN, ViewName(DB, "other"))
    assert (catalog.tables(DB), catalog.views(DB)) == ([table], [ViewName(DB, "other")])
    catalog.drop(ViewName(DB, "other"))
    assert catalog.views(DB) == []


def test_a_name_is_a_tables_or_a_views_and_never_both(catalog: Catalog, table: TableName) -> None:
    catalog.create(SEEN, "v0")
    as_table, as_view = TableName(DB, "seen"), ViewName(DB, "events")
    with pytest.raises(AlreadyExists, match=r"view db\.seen"):
        catalog.create(as_table, "m1")
    with pytest.raises(AlreadyExists, match=r"table db\.events"):
        catalog.create(as_view, "v1")
    for name, to in ((table, as_table), (SEEN, as_view)):
        with pytest.raises(AlreadyExists):
            catalog.rename(name, to)
    with pytest.raises(AlreadyExists):
        catalog.swap_all([Swap(table=as_table, expected=None, to="m1")])
    for name, what in ((as_table, "it is a view"), (as_view, "it is a table")):
        for call in (
            lambda name=name: catalog.load(name),
            lambda name=name: catalog.drop(name),
            lambda name=name: catalog.swap(name, expected="x", to="y"),
            lambda name=name: catalog.rename(name, type(name)(DB, "new")),
        ):
            with pytest.raises(NotFound, match=what):
                call()
    assert (catalog.load(table), catalog.load(SEEN)) == ("m0", "v0")


def test_a_namespace_that_holds_a_view_is_not_empty(catalog: Catalog) -> None:
    catalog.create_namespace(DB, {})
    catalog.create(SEEN, "v0")
    with pytest.raises(InvalidInput, match="not empty"):
        catalog.drop_namespace(DB)
    catalog.drop(SEEN)
    catalog.drop_namespace(DB)
