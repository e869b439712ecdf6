"""Verbs that mark rows as deleted: data DVs and equality deletes, alone or with new rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyiceberg.schema import Schema

from campaigns.simulate.intent import commit_on
from campaigns.simulate.model import Equal, Part, Row, State, Values, Where, place_of, projected
from campaigns.simulate.verbs.tables import (
    ROWS,
    K,
    N,
    U,
    a_branch,
    an_isolation,
    arrow,
    moved,
    some_filter,
    some_rows,
)
from icetree.rows.write.deletes import write_data_vectors, write_equality_deletes
from icetree.rows.write.write import write_files
from icetree.table.scan.planning import planner
from icetree.tree.changes import Intent

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.table.commit.commit import Committed
    from icetree.table.table import Table
    from icetree.table.transaction import Transaction


def delete_rows(turn: Turn) -> None:
    """Mark rows that match a filter."""
    table = turn.table(ROWS)
    branch, isolation, where = a_branch(turn, table), an_isolation(turn), some_filter(turn)
    found = _matching(turn.state(table, branch), where)
    if not found:
        return
    _row_delta(turn, table, branch, isolation, where, found, ())


def update_rows(turn: Turn) -> None:
    """Mark rows that match a filter, and write them anew with another value: merge on read."""
    table = turn.table(ROWS)
    branch, isolation, where = a_branch(turn, table), an_isolation(turn), some_filter(turn)
    state = turn.state(table, branch)
    found = _matching(state, where)
    ids = [field.field_id for field in table.schema.fields]
    if not found or N not in ids:
        return
    rows = tuple(
        replace(
            row,
            values={
                **dict(zip(ids, projected(row.values, table.schema), strict=True)),
                N: turn.chance.randrange(1000),
            },
            updated=-1,
        )
        for name, positions in found.items()
        for row in (state.files[name].rows[at] for at in sorted(positions))
    )
    _row_delta(turn, table, branch, isolation, where, found, rows)


def _matching(state: State, where: Where) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for file, position, row in state.live():
        if where.matches(row.values):
            found.setdefault(file.name, set()).add(position)
    return {name: frozenset(positions) for name, positions in sorted(found.items())}


def _row_delta(
    turn: Turn,
    table: Table,
    branch: str,
    isolation: str,
    where: Where | None,
    vectors: Mapping[str, frozenset[int]],
    rows: tuple[Row, ...],
) -> None:
    hinted = turn.chance.random() < 0.5

    def do() -> Committed:
        with table.transaction(branch=branch, isolation=isolation) as tx:
            written, tasks = mark(tx, table, branch, vectors)
            if rows:
                new = tx.adopt(
                    write_files(
                        moved(table.schema, rows),
                        metadata=table.metadata,
                        store=table.files.store,
                        keep_lineage=True,
                    )
                )
                written = pa.concat_tables([written, new], promote_options="default")
            tx.row_delta(
                written, where=where.text if where else None, tasks=tasks if hinted else None
            )
            return tx.commit()

    part = Part(intent=Intent.ROW_DELTA, where=where, carried=rows, vectors=vectors)
    marked = sum(map(len, vectors.values()))
    turn.commit(
        commit_on(
            table,
            f"{'update' if rows else 'delete'} {marked} rows by DVs"
            f"{f' where {where.text!r}' if where else ''}",
            branch=branch,
            isolation=isolation,
            parts=(part,),
            relies_on=frozenset({"current_schema_id"} if where else ()),
        ),
        do,
    )


def mark(
    tx: Transaction, table: Table, branch: str, vectors: Mapping[str, frozenset[int]]
) -> tuple[pa.Table, pa.Table]:
    """Write DVs for rows of files as an engine does; return their entries and the plan's tasks."""
    ref = branch if branch in table.refs else None
    plan = planner(
        table.files, table.metadata, table.snapshot(at=ref), stats_columns=True, every_row=True
    ).whole()
    entries = write_data_vectors(
        {name: sorted(positions) for name, positions in vectors.items()},
        tasks=plan.tasks,
        metadata=table.metadata,
        store=table.files.store,
        deletes=plan.deletes,
    )
    return tx.adopt(entries), plan.tasks


def delete_equal(turn: Turn) -> None:
    """Delete all rows with some value, those that others bring meanwhile too."""
    table = turn.table(ROWS)
    _equality(turn, table, a_branch(turn, table), an_isolation(turn), ())


def upsert(turn: Turn) -> None:
    """Delete all rows with some value, and add new ones, in one commit of two operations."""
    table = turn.table(ROWS)
    branch, isolation = a_branch(turn, table), an_isolation(turn)
    _equality(turn, table, branch, isolation, some_rows(turn, table.schema))


def _equality(
    turn: Turn, table: Table, branch: str, isolation: str, rows: tuple[Values, ...]
) -> None:
    column = turn.chance.choice(("u", "k"))
    keys = _some_keys(turn, turn.state(table, branch))
    metadata = table.metadata
    spec_id = metadata.default_spec_id
    is_whole = not metadata.shape().spec(spec_id)
    equal = tuple(
        Equal(
            field_id=U if column == "u" else K,
            value=key[U if column == "u" else K],
            place=None if is_whole else place_of(key, metadata, spec_id),
        )
        for key in keys
    )
    # The values to compare, and those that tell the partition.
    spec = metadata.shape().spec(spec_id)
    told = {U if column == "u" else K, *(each.source_ids[0] for each in spec)}
    fields = [field for field in table.schema.fields if field.field_id in told]
    data = arrow(Schema(*fields), tuple(keys))

    def do() -> Committed:
        with table.transaction(branch=branch, isolation=isolation) as tx:
            deletes = write_equality_deletes(
                data, [column], metadata=metadata, store=table.files.store
            )
            tx.row_delta(tx.adopt(deletes))
            if rows:
                tx.append(arrow(table.schema, rows))
            return tx.commit()

    adding = (Part(intent=Intent.APPEND, added=rows),) if rows else ()
    turn.commit(
        commit_on(
            table,
            f"delete where {column} in {[each.value for each in equal]}, equally"
            f"{f', and add {len(rows)} rows' if rows else ''}",
            branch=branch,
            isolation=isolation,
            parts=(Part(intent=Intent.ROW_DELTA, equal=equal), *adding),
        ),
        do,
    )


def _some_keys(turn: Turn, state: State) -> list[Values]:
    """Return values of u and k to delete by: those of rows that are there, or of none."""
    live = [row.values for _, _, row in state.live()]
    count = turn.chance.choice((1, 2))
    keys = [turn.chance.choice(live) for _ in range(count)] if live else []
    return [*({U: key[U], K: key[K]} for key in keys), {U: -1, K: turn.chance.choice((0, 2, None))}]


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {
    "delete rows": (delete_rows, 8),
    "update rows": (update_rows, 8),
    "delete equal": (delete_equal, 5),
    "upsert": (upsert, 5),
}
