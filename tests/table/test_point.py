"""A point in history: the same forms in every verb, each with one meaning."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest

from icetree.errors import InvalidInput, NotFound
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.point import resolve, time_of
from icetree.table.table import Table
from tests.table.lake import data_file, live, new_table

NOON = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)
NOON_MS = 1_769_860_800_000


@pytest.mark.parametrize(
    "time",
    [
        NOON,
        NOON.replace(tzinfo=None),
        NOON + timedelta(microseconds=999),
        NOON.astimezone(timezone(timedelta(hours=2))),
        "2026-01-31T12:00:00Z",
        "2026-01-31 12:00:00",
        " 2026-01-31 12:00 ",
        "2026-01-31 12:00:00+00:00",
        "2026-01-31T14:00:00.000999+02:00",
    ],
)
def test_a_time_has_many_forms_and_without_a_zone_is_utc(time: datetime | str) -> None:
    assert resolve(new_table().metadata, time, what="at").at_ms == NOON_MS


def test_a_date_is_its_first_moment_and_a_time_before_1970_is_rounded_down() -> None:
    metadata = new_table().metadata
    assert resolve(metadata, "1970-01-02", what="at").at_ms == 86_400_000
    assert resolve(metadata, "1969-12-31T23:59:59.999500Z", what="at").at_ms == -1
    assert time_of(NOON_MS) == NOON
    with pytest.raises(InvalidInput, match="no time between the years 1 and 9999"):
        time_of(10**18)


@pytest.mark.parametrize("digits", ["9" * 5_000, "-" + "1" * 5_000, "9" * 20])
def test_digits_that_are_no_id_and_no_time_are_told_so_in_few_words(digits: str) -> None:
    with pytest.raises(NotFound, match="no such branch or tag") as told:
        resolve(new_table().metadata, digits, what="at")
    assert len(str(told.value)) < 400


def three() -> tuple[Table, list[Snapshot]]:
    """Return a table of three commits, with a tag at the second, called as a time."""
    table = new_table()
    for name in ("a", "b", "c"):
        table.append_files([data_file(name)])
    made = [*table.history()][::-1]
    table.create_tag("2026-01-31", at=made[1].snapshot_id)
    return table, made


#: Each verb that takes a point, and which snapshot it then speaks of.
VERBS: dict[str, Callable[[Table, Any], Any]] = {
    "snapshot": lambda table, at: table.snapshot(at),
    "scan": lambda table, at: table.scan(at=at).snapshot,
    "create_branch": lambda table, at: _moved(table, table.create_branch("x", at=at), "x"),
    "create_tag": lambda table, at: _moved(table, table.create_tag("x", at=at), "x"),
    "rollback": lambda table, at: _moved(table, table.rollback(at), "main"),
    "set_current": lambda table, at: _moved(table, table.set_current(at), "main"),
    "fast_forward": lambda table, at: _moved(table, table.fast_forward("x", at), "x"),
    "upto": lambda table, at: table.changes(upto=at).snapshots[-1],
}


def _moved(table: Table, _: object, ref: str) -> Snapshot | None:
    return table.snapshot(ref)


@pytest.mark.parametrize("verb", VERBS)
def test_a_point_means_the_same_to_every_verb(verb: str) -> None:
    speaks_of = VERBS[verb]
    forms: list[Callable[[Snapshot], Any]] = [
        lambda second: second.snapshot_id,
        lambda second: np.int64(second.snapshot_id),
        lambda second: str(second.snapshot_id),
        lambda _: "2026-01-31",
    ]
    for form in forms:
        table, made = three()
        assert speaks_of(table, form(made[1])) == made[1]


def test_a_name_comes_before_a_number_and_a_number_before_a_time() -> None:
    table, made = three()
    table.create_branch(str(made[0].snapshot_id), at=made[2].snapshot_id)
    assert table.snapshot(str(made[0].snapshot_id)) == made[2]
    assert table.snapshot(made[0].snapshot_id) == made[0]


def test_a_table_is_read_and_rolled_back_by_time() -> None:
    table = new_table()
    table.append_files([data_file("a")])
    first = table.snapshot()
    assert first is not None
    now = time_of(first.timestamp_ms)
    later, earlier = now + timedelta(days=1), now - timedelta(days=1)
    for form in (later, later.replace(tzinfo=None), later.isoformat()):
        assert table.scan(at=form).snapshot == first
    with pytest.raises(NotFound, match="nothing as early as"):
        table.scan(at=earlier)
    table.rollback(later)
    assert table.snapshot() == first
    with pytest.raises(InvalidInput, match="as old as"):
        table.rollback(earlier)
    assert [each.snapshot_id for each in table.changes(since=earlier).snapshots] == [
        first.snapshot_id
    ]
    assert table.changes(since=later).snapshots == ()
    assert live(table) == ["a"]


def test_what_is_no_point_is_refused_and_says_the_way_out() -> None:
    table, _ = three()
    table.create_branch("audit")
    for bad in (1.5, True, [], b"main"):
        with pytest.raises(InvalidInput, match=r"at=.*give a snapshot id, the name of a branch"):
            table.scan(at=bad)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match=r"at='adit'.*no such branch or tag.*did you mean 'audit'"):
        table.scan(at="adit")
    with pytest.raises(NotFound, match=r"no snapshot 1769860800000.*'2026-01-31T12:00:00.000Z'"):
        table.scan(at=NOON_MS)
    with pytest.raises(NotFound, match="no snapshot 17"):
        table.scan(at=17)
