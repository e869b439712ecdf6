"""The law of the change feed: replayed on the old state it gives the new state."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from icetree.table.table import Table
from tests.effort import law
from tests.table.changing import (
    LEAFY,
    bag,
    changing_table,
    compact,
    data_files,
    delete_equal,
    delete_rows,
    replayed,
    some,
    written,
)

_IDS = st.lists(st.integers(0, 5), min_size=1, max_size=3)
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["append", "dv", "equality", "upsert", "overwrite", "compact", "drop", "truncate"]
        ),
        _IDS,
    ),
    min_size=2,
    max_size=6,
)


def _step(table: Table, verb: str, ids: list[int], at: int) -> None:
    rows = some(*((id, f"{verb}{at}") for id in ids))
    files = data_files(table)
    match verb:
        case "append":
            table.append(rows)
        case "dv":
            delete_rows(table, ids)
        case "equality":
            delete_equal(table, ids)
        case "upsert":
            delete_equal(table, ids, add=rows)
        case "overwrite" if files:
            kept = table.scan().to_arrow()
            table.overwrite_files(files, written(table, pa.concat_tables([kept, rows])))
        case "compact" if files:
            compact(table, keep_lineage=at % 2 == 0)
        case "drop" if files:
            table.delete_files(files[:1])
        case "truncate" if files:
            table.truncate()


@law(8)
@given(_STEPS, st.booleans(), st.data())
def test_changes_replayed_on_the_old_state_give_the_new_state(
    steps: list[tuple[str, list[int]]], leafy: bool, data: st.DataObject
) -> None:
    table = changing_table(properties=LEAFY if leafy else {})
    table.append(some((0, "first"), (1, "first")))
    for at, (verb, ids) in enumerate(steps):
        _step(table, verb, ids, at)
    made = table.changes().snapshots
    first = data.draw(st.integers(-1, len(made) - 1), label="since")
    last = data.draw(st.integers(max(first, 0), len(made) - 1), label="upto")
    since = None if first < 0 else made[first].snapshot_id
    before: Counter[str] = Counter()
    if since is not None:
        before = bag(table.scan(at=since).to_arrow())
    after = bag(table.scan(at=made[last].snapshot_id).to_arrow())
    changes = table.changes(since, made[last].snapshot_id)
    assert replayed(before, changes.to_arrow()) == after
    assert replayed(before, changes.to_arrow(images=True)) == after
    net = changes.to_arrow(net=True)
    assert replayed(before, net) == after
    kinds = net["_change_type"].to_pylist()
    sides = [
        bag(net.filter(pa.array([kind == side for kind in kinds], pa.bool_()))) for side in _SIDES
    ]
    assert not sides[0] & sides[1], "a net change takes nothing away that it gives"
    _replay_files(table, since, made[last].snapshot_id)


_SIDES = ("INSERT", "DELETE")


def _replay_files(table: Table, since: int | None, upto: int) -> None:
    """Carry out file changes on the files of the old state, step by step and at once."""
    state = set() if since is None else _files(table, since)
    whole = set(state)
    for row in table.changes(since, upto).files().to_pylist():
        _carry_out(state, row)
    for row in table.changes(since, upto).net().to_pylist():
        _carry_out(whole, row)
    assert state == whole == _files(table, upto)


#: What names a file, in inspection as among changes.
_KEY = ("content", "file_path", "referenced_data_file", "content_offset")
_Key = tuple[object, ...]


def _carry_out(state: set[_Key], row: dict[str, object]) -> None:
    key = tuple(row[name] for name in _KEY)
    if row["change"] == "added":
        assert key not in state
        state.add(key)
    else:
        state.remove(key)


def _files(table: Table, snapshot_id: int) -> set[_Key]:
    found = table.inspect.files(at=snapshot_id)
    return {tuple(row[name] for name in _KEY) for row in found.to_pylist()}
