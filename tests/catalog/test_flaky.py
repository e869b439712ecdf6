"""The catalog that fails on purpose does what its faults say."""

from __future__ import annotations

import pytest

from icetree.catalog.base import Catalog, Stale, Swapped, Unknown
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitUnknown
from tests.catalog.conftest import EVENTS
from tests.catalog.flaky import (
    After,
    Before,
    FlakyCatalog,
    LoseAnswer,
    LoseRequest,
    Refuse,
)


@pytest.fixture
def inner() -> Catalog:
    catalog = MemoryCatalog()
    catalog.create_namespace(("db",), {})
    catalog.create(EVENTS, "m0")
    return catalog


def test_a_lost_answer_hides_a_swap_that_happened(inner: Catalog) -> None:
    flaky = FlakyCatalog(inner, {("swap", 1): LoseAnswer()})
    assert isinstance(flaky.swap(EVENTS, expected="m0", to="m1"), Unknown)
    assert flaky.swap(EVENTS, expected="m0", to="m1") == Stale(metadata_location="m1")


def test_a_lost_request_hides_that_nothing_happened(inner: Catalog) -> None:
    flaky = FlakyCatalog(inner, {("swap", 1): LoseRequest(), ("drop", 1): LoseRequest()})
    assert isinstance(flaky.swap(EVENTS, expected="m0", to="m1"), Unknown)
    with pytest.raises(CommitUnknown):
        flaky.drop(EVENTS)
    assert flaky.load(EVENTS) == "m0"


def test_a_refusal_comes_before_the_effect(inner: Catalog) -> None:
    flaky = FlakyCatalog(inner, {("swap", 2): Refuse(TimeoutError())})
    assert flaky.swap(EVENTS, expected="m0", to="m1") == Swapped()
    with pytest.raises(TimeoutError):
        flaky.swap(EVENTS, expected="m1", to="m2")
    assert inner.load(EVENTS) == "m1"


def test_another_commit_slips_in_before_or_after(inner: Catalog) -> None:
    flaky = FlakyCatalog(
        inner,
        {
            ("swap", 1): Before(lambda: inner.swap(EVENTS, expected="m0", to="theirs")),
            ("swap", 2): After(lambda: inner.swap(EVENTS, expected="ours", to="last")),
        },
    )
    assert flaky.swap(EVENTS, expected="m0", to="ours") == Stale(metadata_location="theirs")
    assert flaky.swap(EVENTS, expected="theirs", to="ours") == Swapped()
    assert inner.load(EVENTS) == "last"


def test_steps_are_counted(inner: Catalog) -> None:
    flaky = FlakyCatalog(inner)
    flaky.load(EVENTS)
    flaky.swap(EVENTS, expected="m0", to="m1")
    assert flaky.steps == ["load", "swap"]
