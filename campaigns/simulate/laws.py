"""Laws of reading, and of the table as a whole, against what the judge knows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from campaigns.simulate.finding import Finding, few
from campaigns.simulate.model import State, Where, projected

if TYPE_CHECKING:
    import random
    from datetime import datetime

    from campaigns.simulate.world import World
    from icetree.table.table import Table

_LINEAGE = ("_row_id", "_last_updated_sequence_number")

#: Shares of seeds at whose end all is done of what is dear; `docs/reliability.md` tells them.
_READS_ALL, _VERIFIES, _VERIFIES_DEEP = 0.25, 0.5, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """What is done at the end of a seed beyond what is always done."""

    #: Whether every snapshot is read, and changes over all of history.
    reads_all: bool
    verifies: bool
    #: Whether rows are read for that, too.
    deep: bool


def looks_of(chance: random.Random) -> Looks:
    """Draw what is done at the end of a seed."""
    reads, verifies = chance.random(), chance.random()
    return Looks(
        reads_all=reads < _READS_ALL,
        verifies=verifies < _VERIFIES,
        deep=verifies < _VERIFIES_DEEP,
    )


def require_rows(
    table: Table, state: State, where: Where | None = None, *, at: str | datetime | None = None
) -> None:
    """Require that a scan of a snapshot gives its rows, each with its lineage.

    It is asked for by its id, unless by a ref or a time.
    """
    point = state.id if at is None else at
    past = None if state.id is None else table.snapshot(state.id)
    ref = table.refs.get(at) if isinstance(at, str) else None
    follows = ref is not None and ref.type == "branch"
    schema = table.metadata.schema(None if past is None or follows else past.schema_id)
    names = [field.name for field in schema.fields]
    scan = table.scan(where.text if where else None, at=point, columns=[*names, *_LINEAGE])
    found = Counter(tuple(row.values()) for row in scan.to_arrow().to_pylist())
    meant = Counter(
        (*projected(row.values, schema), row.row_id, row.updated)
        for _, _, row in state.live()
        if where is None or where.matches(row.values)
    )
    if found != meant:
        raise Finding("rows", f"#{state.sequence} has {few(meant, found)}")
    ids = Counter(row.row_id for _, _, row in state.live())
    if any(count > 1 for count in ids.values()):
        raise Finding("row ids", f"#{state.sequence} has rows of one id: {ids.most_common(3)}")
    if where is not None:
        count = table.scan(where.text, at=point).count()
        if count != meant.total():
            raise Finding("rows", f"#{state.sequence} counts {count} rows, not {meant.total()}")


def require_changes(table: Table, since: State, upto: State, *, net: bool) -> None:
    """Require that changes, carried out on the old state, give the new one."""
    schema = table.schema
    names = [field.name for field in schema.fields]
    state = Counter(projected(row.values, schema) for _, _, row in since.live())
    goal = Counter(projected(row.values, schema) for _, _, row in upto.live())
    changes = table.changes(since.id, upto.id).to_arrow(net=net)
    for row in changes.to_pylist():
        values = tuple(row[name] for name in names)
        if row["_change_type"] in ("INSERT", "UPDATE_AFTER"):
            state[values] += 1
        elif state[values] > 0:
            state[values] -= 1
        else:
            raise Finding(
                "changes", f"#{since.sequence} to #{upto.sequence} delete {values}, not there"
            )
    if +state != goal:
        raise Finding(
            "changes", f"#{since.sequence} to #{upto.sequence} lead to {few(goal, +state)}"
        )


def require_all(world: World, chance: random.Random, looks: Looks) -> None:
    """Require the laws of every table: rows of snapshots, changes over ranges, nothing to find.

    Every tree was held against the model when it landed, and no file of one was deleted since. So
    what is dear is done for some worlds only: reading all snapshots, changes over all of history,
    and `verify`.
    """
    for name, history in world.judge.histories.items():
        table = world.lake.table(str(name))
        states = history.retained()
        known = sorted(each.snapshot_id for each in table.history())
        if known != sorted(states):
            raise Finding("history", f"{name} has {len(known)} snapshots, not {len(states)}")
        heads = {ref.snapshot_id for ref in table.refs.values()}
        some = heads | set(chance.sample(known, min(1, len(known))))
        for id in known if looks.reads_all else sorted(some):
            require_rows(table, states[id])
        for head in sorted(heads):
            lineage = history.told(head)[::-1]
            if len(lineage) < 2:
                continue
            first, last = sorted(chance.sample(range(len(lineage)), 2))
            if not looks.reads_all:
                last = min(last, first + chance.choice((1, 2, 4)))
            require_changes(table, lineage[first], lineage[last], net=chance.random() < 0.5)
        if looks.verifies:
            report = table.verify(deep=looks.deep)
            if not report.is_clean:
                raise Finding("verify is clean", "; ".join(map(str, report.findings[:3])))
