"""A bank: money is moved between accounts by reading balances and writing others.

What is moved depends on a third account too, so only a serial order explains what lands.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from campaigns.simulate.finding import Finding
from campaigns.simulate.intent import commit_on
from campaigns.simulate.model import Part, Row, State, Where
from campaigns.simulate.verbs.deletes import mark
from campaigns.simulate.verbs.files import compaction
from campaigns.simulate.verbs.tables import ACCOUNTS, BALANCE, BANK, K, N, moved
from icetree.rows.write.write import write_files
from icetree.tree.changes import Intent

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.table.commit.commit import Committed
    from icetree.table.table import Table


def transfer(turn: Turn) -> None:
    """Move money from one account to another; how much, a third one's balance says."""
    table = turn.table(BANK)
    state = turn.state(table)
    source, to, third = turn.chance.sample(range(ACCOUNTS), 3)
    where = Where(
        text=f"k in ({source}, {to}, {third})", field_id=K, kind="in", literals=(source, to, third)
    )
    read = _read(table, where)
    balances = {account: read[account][1] for account in read}
    if balances != {
        account: row.values[N]
        for account, (_, _, row) in _accounts(state).items()
        if account in read
    }:
        raise Finding("rows", f"the bank's accounts were read as {balances}")
    amount = _amount(balances, third)
    after = {source: balances[source] - amount, to: balances[to] + amount}
    accounts = _accounts(state)
    rows = tuple(
        replace(accounts[each][2], values={**accounts[each][2].values, N: after[each]}, updated=-1)
        for each in (source, to)
    )
    by_files = turn.chance.random() < 0.4
    part = _copying(state, where, after, rows) if by_files else _marking(state, where, after, rows)

    def law(before: State, now: State) -> str | None:
        there = {account: row.values[N] for account, (_, _, row) in _accounts(before).items()}
        meant = {
            **there,
            source: there[source] - _amount(there, third),
            to: there[to] + _amount(there, third),
        }
        found = {account: row.values[N] for account, (_, _, row) in _accounts(now).items()}
        return None if found == meant else f"accounts are {found}, not {meant}"

    def do() -> Committed:
        with table.transaction() as tx:
            new = tx.adopt(
                write_files(
                    moved(table.schema, part.carried),
                    metadata=table.metadata,
                    store=table.files.store,
                    keep_lineage=True,
                )
            )
            if part.removed:
                tx.overwrite_files(sorted(part.removed), new, where=where.text)
            else:
                written, tasks = mark(tx, table, "main", part.vectors)
                both = pa.concat_tables([written, new], promote_options="default")
                tx.row_delta(both, where=where.text, tasks=tasks)
            return tx.commit()

    turn.commit(
        commit_on(
            table,
            f"move {amount} from account {source} to {to}, as {third} says,"
            f" {'writing files anew' if by_files else 'by DVs'}",
            parts=(part,),
            row_law=law,
            relies_on=frozenset({"current_schema_id"}),
        ),
        do,
    )


def _amount(balances: Mapping[int, int], third: int) -> int:
    return balances[third] % 7 + 1


def _read(table: Table, where: Where) -> dict[int, tuple[int, int]]:
    """Return what a scan tells of accounts: the row's id and the balance."""
    found = table.scan(where.text, columns=["k", "n", "_row_id"]).to_arrow().to_pylist()
    read = {row["k"]: (row["_row_id"], row["n"]) for row in found}
    if len(read) != len(found) or len(read) != len(where.literals):
        raise Finding("rows", f"the bank's accounts were read as {found}")
    return read


def _accounts(state: State) -> dict[int, tuple[str, int, Row]]:
    """Return where each account stands; every one must be there, once, and nothing be lost."""
    live = list(state.live())
    found = {row.values[K]: (file.name, position, row) for file, position, row in live}
    total = sum(row.values[N] for _, _, row in live)
    if len(live) != ACCOUNTS or len(found) != ACCOUNTS or total != ACCOUNTS * BALANCE:
        raise Finding("serializable", f"the bank has {total} in {len(live)} accounts")
    return found


def _marking(state: State, where: Where, after: Mapping[int, int], rows: tuple[Row, ...]) -> Part:
    vectors: dict[str, frozenset[int]] = {}
    accounts = _accounts(state)
    for account in after:
        name, position, _ = accounts[account]
        vectors[name] = vectors.get(name, frozenset()) | {position}
    return Part(intent=Intent.ROW_DELTA, where=where, carried=rows, vectors=vectors)


def _copying(state: State, where: Where, after: Mapping[int, int], rows: tuple[Row, ...]) -> Part:
    accounts = _accounts(state)
    names = frozenset(accounts[account][0] for account in after)
    changed = {row.row_id for row in rows}
    others = tuple(
        row for name in sorted(names) for _, row in state.live_in(name) if row.row_id not in changed
    )
    return Part(intent=Intent.OVERWRITE_FILES, where=where, carried=(*rows, *others), removed=names)


def compact(turn: Turn) -> None:
    """Compact the bank's files."""
    table = turn.table(BANK)
    turn.commit(*compaction(turn, table, "main"))


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {
    "transfer": (transfer, 14),
    "compact the bank": (compact, 3),
}
