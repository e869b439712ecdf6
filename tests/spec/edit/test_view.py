"""Views, changed: which versions they remember, and which changes they refuse."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from icetree.errors import InvalidInput
from icetree.spec.edit.view import (
    new_view,
    replaced,
    settled,
    view_version,
    with_current,
    with_properties,
)
from icetree.spec.metadata.view import ViewMetadata
from icetree.spec.rules.view import broken_view_rule

UUID = "fa6506c3-7681-40c8-86dc-e36561f83385"


def schema(*names: str) -> dict[str, Any]:
    fields = [
        {"id": at, "name": name, "required": False, "type": "int"}
        for at, name in enumerate(names, 1)
    ]
    return {"type": "struct", "schema-id": 0, "fields": fields}


def view(texts: Any = "SELECT 0", **properties: str) -> ViewMetadata:
    version = view_version(texts, at_ms=0)
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return new_view(version, schema("a"), location="/v", uuid=UUID, properties=named)


def to(metadata: ViewMetadata, texts: Any, *names: str, at_ms: int = 1) -> ViewMetadata:
    return replaced(
        metadata, view_version(texts, at_ms=at_ms), schema(*names or ("a",)), at_ms=at_ms
    )


def test_a_view_remembers_as_many_versions_as_it_is_told_to() -> None:
    found = view(**{"version.history.num-entries": "3"})
    for number in range(1, 7):
        found = to(found, f"SELECT {number}", "a" if number % 2 else "b", at_ms=number)
    assert [each.texts["spark"] for each in found.versions] == ["SELECT 4", "SELECT 5", "SELECT 6"]
    assert found.current.texts == {"spark": "SELECT 6"}
    assert [each.version_id for each in found.version_log] == [5, 6, 7]


def test_a_view_that_goes_there_and_back_for_ever_remembers_the_newest_of_it() -> None:
    found = to(view(), "SELECT 1")
    for number in range(1_200):
        found = to(found, f"SELECT {number % 2}", at_ms=number)
    assert len(found.version_log) == 1_000
    assert found.version_log[-1].timestamp_ms == 1_199
    assert found.version_log[-1].version_id == found.current_version_id
    assert len(found.versions) == 2


def test_a_version_that_says_what_one_before_said_is_used_again() -> None:
    first = view()
    second = to(first, "SELECT 1", "b")
    third = to(second, "SELECT 0", at_ms=2)
    assert third.versions == second.versions
    assert third.schemas == second.schemas
    assert third.current == first.current
    assert [each.version_id for each in third.version_log] == [1, 2, 1]
    assert to(third, "SELECT 0", at_ms=3) == third


def test_a_dialect_is_not_lost_unless_that_is_allowed() -> None:
    both = view({"spark": "SELECT 0", "Trino": "SELECT 0"})
    with pytest.raises(InvalidInput, match=r"query for trino.*replace\.drop-dialect\.allowed"):
        to(both, "SELECT 1")
    allowed = with_properties(both, {"replace.drop-dialect.allowed": "true"})
    assert to(allowed, "SELECT 1").current.texts.keys() == {"spark"}


def test_a_version_that_is_not_remembered_cannot_be_the_current_one() -> None:
    with pytest.raises(InvalidInput, match="no version 7"):
        with_current(view(), 7, at_ms=1)


@pytest.mark.parametrize("given_texts", ["", " ", {}, None, {"spark": ""}, {"": "SELECT 1"}, 3,
                                         {"a": "SELECT 1", "A": "SELECT 2"}])  # fmt: skip
def test_a_view_needs_a_query_in_each_of_its_dialects(given_texts: Any) -> None:
    with pytest.raises(InvalidInput):
        view_version(given_texts, at_ms=0)


@pytest.mark.parametrize(
    "properties",
    [{"version.history.num-entries": "0"}, {"replace.drop-dialect.allowed": "maybe"}],
)
def test_properties_that_mean_nothing_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        with_properties(view(), properties)


@given(
    steps=st.lists(st.integers(0, 4), max_size=12),
    most=st.integers(1, 4),
    names=st.lists(st.sampled_from("abc"), min_size=12, max_size=12),
)
def test_whatever_is_done_to_a_view_leaves_it_sound(
    steps: list[int], most: int, names: list[str]
) -> None:
    found = view(**{"version.history.num-entries": str(most)})
    for at_ms, (number, name) in enumerate(zip(steps, names, strict=False), 1):
        found = to(found, f"SELECT {number}", name, at_ms=at_ms)
        assert broken_view_rule(found) is None
        assert found.current.texts == {"spark": f"SELECT {number}"}
        assert found.schema().fields[0].name == name
        assert len(found.versions) <= most
        assert found.version_log[-1].version_id == found.current_version_id
        ids = {each.version_id for each in found.versions}
        assert {each.version_id for each in found.version_log} <= ids
        assert settled(found, replace(found)) == found
