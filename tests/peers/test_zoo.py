"""The zoo: tables of every kind that peers make, read by their makers before an upgrade and by all after.

For each the same rows are found, in the current snapshot and former ones, by filters too; then once
more after rows and manifests were changed on our side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.peers.conftest import Animal
from tests.peers.filters import Filter, matches, random_filters, to_json
from tests.peers.pyiceberg_tables import PYICEBERG_ZOO
from tests.peers.readers import READERS, Question
from tests.peers.values import JAVA_ZOO, pools

FILTERS = 15 * EFFORT
#: How many of the filters are asked of each former snapshot.
_FORMER = 3


def shown(rows: Sequence[Any]) -> list[str]:
    """Return rows that compare equal where the rows do, in any order."""
    return sorted(map(repr, rows))


def require_rows(
    table: Table, want: Mapping[int | None, Sequence[Any]], filters: Sequence[Filter]
) -> None:
    """Require that every reader finds these rows, by snapshot, whole and by each filter."""
    questions = [Question(at=at) for at in want]
    questions += [Question(filter=each) for each in filters]
    questions += [Question(at=at, filter=each) for at in want for each in filters[:_FORMER]]
    for name, reader in READERS.items():
        answers = reader(table, questions)
        for asked, answer in zip(questions, answers, strict=True):
            rows = want[asked.at]
            if asked.filter is not None:
                rows = [row for row in rows if matches(asked.filter, row)]
            told = to_json(asked.filter) if asked.filter else "all rows"
            assert shown(answer.to_pylist()) == shown(rows), f"{name} at {asked.at}: {told}"


@pytest.mark.law
@pytest.mark.parametrize("name", JAVA_ZOO)
def test_all_read_the_rows_that_java_read_before_the_upgrade(
    java_zoo: Mapping[str, Animal], name: str
) -> None:
    animal = java_zoo[name]
    table = animal.opened()
    want = {at: rows.to_pylist() for at, rows in animal.rows.items()}
    current = table.metadata.current_snapshot_id
    assert current in want
    columns = {*table.scan().to_arrow().column_names}
    asked = {key: each for key, each in pools(name).items() if key.partition(".")[0] in columns}
    filters = random_filters(SEED + JAVA_ZOO.index(name), FILTERS, asked)
    table.upgrade()
    former = {at: rows for at, rows in want.items() if _has_columns(animal.rows[at], asked)}
    require_rows(table, {None: want[current], **want}, [])
    require_rows(table, {None: want[current], **former}, filters)
    assert animal.refs.items() <= {n: ref.snapshot_id for n, ref in table.refs.items()}.items()
    now = _changed(table, want[current])
    require_rows(table, {None: now, **want}, filters[:10])
    assert table.verify(deep=True).findings == ()


@pytest.mark.law
@pytest.mark.parametrize("name", PYICEBERG_ZOO)
def test_all_read_the_rows_that_pyiceberg_read_before_the_upgrade(
    theirs: SqlCatalog, name: str
) -> None:
    PYICEBERG_ZOO[name](theirs, name)
    peer = theirs.load_table(name)
    want = {
        each.snapshot_id: peer.scan(snapshot_id=each.snapshot_id).to_arrow().to_pylist()
        for each in peer.snapshots()
    }
    current = peer.metadata.current_snapshot_id
    assert current is not None
    with icetree.connect(theirs.properties["uri"], properties={"name": theirs.name}) as lake:
        table = lake.table(name)
        columns = {*table.scan().to_arrow().column_names}
        asked = {key: each for key, each in pools(name).items() if key.partition(".")[0] in columns}
        filters = random_filters(SEED, FILTERS, asked)
        table.upgrade()
        require_rows(table, {None: want[current], **want}, [])
        require_rows(table, {None: want[current]}, filters)
        now = _changed(table, want[current])
        require_rows(table, {None: now, **want}, [])
        assert table.verify(deep=True).findings == ()


def _has_columns(rows: pa.Table, asked: Mapping[str, Any]) -> bool:
    return {key.partition(".")[0] for key in asked} <= {*rows.column_names}


def _changed(table: Table, rows: Sequence[Any]) -> list[Any]:
    """Delete, merge, append and rewrite manifests; return the rows that there must be then."""
    before = table.scan().to_arrow()
    gone = (1, 6, 16, 51, 101, 121)
    table.delete(f"id in {gone}")
    rows = [row for row in rows if row["id"] not in gone]
    # Some that are there get another number, some are new: the key must be one row's alone.
    some = before.filter(pc.is_in(before["id"], pa.array([2, 7, 52, 102, 122], pa.int64())))
    at = some.column_names.index("n")
    changed = some.set_column(at, some.schema.field(at), pa.nulls(some.num_rows, some.schema.field(at).type))  # fmt: skip
    new = changed.set_column(
        changed.column_names.index("id"),
        changed.schema.field("id"),
        pc.add(changed["id"], 10_000),
    )
    if len({*changed["id"].to_pylist()}) == changed.num_rows:
        table.upsert(pa.concat_tables([changed, new]), on=["id"])
        ids = {*changed["id"].to_pylist()}
        rows = [row for row in rows if row["id"] not in ids]
        rows += [*changed.to_pylist(), *new.to_pylist()]
    table.append(new)
    rows += new.to_pylist()
    table.maintenance.rewrite_manifests()
    return rows
