"""The zoo: tables of every kind that peers make, read by their makers before an upgrade and by all after.

For each the same rows are found, in the current snapshot and former ones, by filters too; then once
more after rows and manifests were changed on our side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from icetree.table.moving.downgrade import downgrade
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.peers.conftest import Animal
from tests.peers.filters import Filter, matches, random_filters, to_json
from tests.peers.pyiceberg_tables import PYICEBERG_ZOO
from tests.peers.readers import Question, Reader
from tests.peers.values import JAVA_ZOO, pools

FILTERS = 15 * EFFORT
#: How many of the filters are asked of each former snapshot.
_FORMER = 3


def shown(rows: Sequence[Any], columns: Sequence[str] | None = None) -> list[str]:
    """Return rows that compare equal where the rows do, in some columns or in all."""
    return [repr([row[name] for name in columns or row]) for row in rows]


def names_in(filter: Filter) -> Iterator[str]:
    """Yield the columns that a filter names."""
    if "term" in filter:
        yield filter["term"].partition(".")[0]
    for side in ("left", "right", "child"):
        yield from names_in(filter[side]) if side in filter else ()


def blanks_of(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns of a row that are null or NaN, or hold such."""
    for name, value in row.items():
        inner = [*value.values()] if isinstance(value, dict) else [value]
        if any(each is None or each != each for each in inner):
            yield name


def require_rows(
    readers: Mapping[str, Reader],
    table: Table,
    want: Mapping[int | None, Sequence[Any]],
    filters: Sequence[Filter],
    *,
    former: Sequence[int] = (),
) -> None:
    """Require that every reader finds these rows, by snapshot; of the current one by each filter.

    Of `former` ones, which have the columns that filters name, by a few.
    """
    questions = [Question(at=at) for at in want]
    questions += [Question(filter=each) for each in filters]
    questions += [Question(at=at, filter=each) for at in former for each in filters[:_FORMER]]
    for name, reader in readers.items():
        some = questions if name == "icetree" else _few(questions)
        for asked, answer in zip(some, reader(table, some), strict=True):
            if answer is None:
                # Only filters, and equality deletes with PyIceberg, may be beyond a peer.
                assert name.startswith("PyIceberg") or asked.filter is not None, name
                continue
            rows = want[asked.at]
            if asked.filter is not None:
                rows = [row for row in rows if matches(asked.filter, row)]
            told = to_json(asked.filter) if asked.filter else "all rows"
            found = Counter(shown(answer.to_pylist(), answer.column_names))
            wanted = Counter(shown(rows, answer.column_names))
            assert not wanted - found, f"{name} at {asked.at} misses rows: {told}"
            unsure: Sequence[Any] = []
            if asked.filter is not None and name != "icetree":
                # Others let a null or NaN through some comparisons.
                named = {*names_in(asked.filter)}
                unsure = [row for row in want[asked.at] if named & {*blanks_of(row)}]
            extra = found - wanted - Counter(shown(unsure, answer.column_names))
            assert not extra, f"{name} at {asked.at} finds more: {told}"


def _few(questions: Sequence[Question]) -> list[Question]:
    """Return what peers, who are slow to answer, are asked: of each kind one, more in `make laws`."""
    kinds = [(each.at is None, each.filter is None) for each in questions]
    first = {kind: kinds.index(kind) for kind in reversed(kinds)}
    chosen = {at + more for at in first.values() for more in range(4 if EFFORT > 1 else 1)}
    return [each for at, each in enumerate(questions) if at in chosen]


@pytest.mark.law
@pytest.mark.parametrize("name", JAVA_ZOO)
def test_all_read_the_rows_that_java_read_before_the_upgrade(
    java_zoo: Mapping[str, Animal], readers: Mapping[str, Reader], name: str
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
    former = [at for at, rows in animal.rows.items() if _has_columns(rows, asked)]
    require_rows(readers, table, {None: want[current], **want}, filters, former=former)
    assert animal.refs.items() <= {n: ref.snapshot_id for n, ref in table.refs.items()}.items()
    now = _changed(table, want[current])
    require_rows(readers, table, {None: now}, filters[:10])
    require_rows({"icetree": readers["icetree"]}, table, want, [])
    assert table.verify(deep=True).findings == ()
    _go_back(readers, table, now, filters[:10])


@pytest.mark.law
@pytest.mark.parametrize("name", PYICEBERG_ZOO)
def test_all_read_the_rows_that_pyiceberg_read_before_the_upgrade(
    theirs: SqlCatalog, readers: Mapping[str, Reader], name: str
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
        require_rows(readers, table, {None: want[current], **want}, filters)
        now = _changed(table, want[current])
        require_rows(readers, table, {None: now}, [])
        require_rows({"icetree": readers["icetree"]}, table, want, [])
        assert table.verify(deep=True).findings == ()


def _go_back(
    readers: Mapping[str, Reader], table: Table, rows: Sequence[Any], filters: Sequence[Filter]
) -> None:
    """Require the same rows, with the same numbers, of the table as v3."""
    lineage = ["id", "_row_id", "_last_updated_sequence_number"]
    numbers = sorted(shown(table.scan(columns=lineage).to_arrow().to_pylist()))
    downgrade(table, dry_run=False)
    assert table.metadata.format_version == 3
    require_rows(readers, table, {None: rows}, filters)
    assert sorted(shown(table.scan(columns=lineage).to_arrow().to_pylist())) == numbers
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
