"""Maintenance: it changes no row, and what it takes away is what nobody needs any more.

The judge is told which snapshots go; from then on their files may be deleted, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from campaigns.simulate.finding import Finding
from campaigns.simulate.intent import commit_on
from campaigns.simulate.laws import require_rows
from campaigns.simulate.verbs.tables import BANK, ROWS, a_branch, time_of
from icetree.catalog.memory import MemoryCatalog
from icetree.errors import CommitExhausted, InvalidInput
from icetree.table.lake import Lake

if TYPE_CHECKING:
    from campaigns.simulate.model import History
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.spec.metadata.metadata import TableMetadata
    from icetree.table.table import Table

#: Younger snapshots are not due, by the rules that tables have of themselves: after five days, by the
#: clock of a writer that may be a day ahead, and at the end of what may take an hour.
_NOT_DUE_MS: Final = (4 * 24 - 1) * 3_600_000
#: The version of tables whose files are named as they are copied.
_OURS: Final = 4


def repair(turn: Turn) -> None:
    """Repair a table that has nothing wrong with it, however long ago its handle looked."""
    table = turn.table(ROWS)
    turn.told("repair")
    found = table.repair(dry_run=False)
    if found.actions or found.left:
        raise Finding("verify is clean", found.text())


def expire(turn: Turn) -> None:
    """Forget snapshots by their age, but for some of each branch."""
    name = turn.chance.choice((ROWS, ROWS, ROWS, BANK))
    table, history = turn.table(name), turn.world.history(name)
    times = sorted(each.timestamp_ms for each in table.history())
    if not times:
        return
    older_than_ms = turn.chance.choice(times) + turn.chance.choice((0, 1))
    retain_last = turn.chance.choice((1, 1, 2, 3, 10))
    commit = commit_on(
        table,
        f"expire all of {name} but {retain_last} of each branch",
        branch=None,
        expires=lambda before: _to_go(before, history, older_than_ms, retain_last),
        may_be_idle=True,
    )

    def do() -> None:
        table.maintenance.expire_snapshots(
            older_than=time_of(older_than_ms), retain_last=retain_last
        )

    turn.commit(commit, do)


def rewrite_data_files(turn: Turn) -> None:
    """Write data files anew: all or those that are due, packed, sorted or in z-order."""
    options = {
        "min-input-files": turn.chance.choice((1, 2, 3)),
        "rewrite-all": turn.chance.random() < 0.5,
        "partial-progress.enabled": turn.chance.random() < 0.3,
        "use-starting-sequence-number": turn.chance.random() < 0.8,
    }
    order = turn.chance.choice((None, None, "k desc, u", "zorder(k, u)"))
    _maintain(
        turn,
        f"rewrite data files by {order}, {options}",
        lambda table, branch: table.maintenance.rewrite_data_files(
            options=options, order_by=order, branch=branch
        ),
    )


def rewrite_deletes(turn: Turn) -> None:
    """Bring deletes together; those by value, too, at times."""
    by_value = turn.chance.random() < 0.5
    _maintain(
        turn,
        f"rewrite deletes{', by value too' if by_value else ''}",
        lambda table, branch: table.maintenance.rewrite_position_delete_files(
            rewrite_equality_deletes=by_value, branch=branch
        ),
    )


def rewrite_manifests(turn: Turn) -> None:
    """Put leaves in order."""
    by = turn.chance.choice((None, "u", "k"))
    _maintain(
        turn,
        f"rewrite manifests by {by}",
        lambda table, branch: table.maintenance.rewrite_manifests(by=by, branch=branch),
    )


def remove_orphans(turn: Turn) -> None:
    """Delete what nothing names, after days in which nobody wrote; or beside writers, what is old."""
    days = turn.chance.choice((0, 4)) if turn.is_alone else 0
    turn.told(f"remove orphans{f', {days} days later' if days else ''}")
    turn.world.let_days_pass(days)
    turn.table(turn.chance.choice((ROWS, ROWS, BANK))).maintenance.remove_orphan_files()


def optimize(turn: Turn) -> None:
    """Do what is worth it, at times within a budget; no snapshot is so old that it would expire."""
    made = [at for name in (ROWS, BANK) for at in turn.world.history(name).made_ms.values()]
    if any(each < turn.world.clock.ms - _NOT_DUE_MS for each in made):
        return
    max_bytes = turn.chance.choice((None, None, 2_000, 20_000))
    _maintain(
        turn,
        f"optimize{f' within {max_bytes} bytes' if max_bytes else ''}",
        lambda table, branch: table.maintenance.optimize(max_bytes=max_bytes, branch=branch),
    )


def statistics(turn: Turn) -> None:
    """Compute statistics of what a handle has seen: of its columns, or of its partitions."""
    table = turn.table(turn.chance.choice((ROWS, ROWS, BANK)))
    of_columns, seen = turn.chance.random() < 0.5, table.metadata.current_snapshot_id
    commit = commit_on(
        table,
        f"statistics of {'columns' if of_columns else 'partitions'}",
        branch=None,
        needs=frozenset(() if seen is None else (seen,)),
        may_be_idle=True,
        may_refuse=not of_columns and not table.spec,
    )

    def do() -> None:
        of = table.maintenance
        (of.compute_table_stats if of_columns else of.compute_partition_stats)(at=seen)

    turn.commit(commit, do)


def backup(turn: Turn) -> None:
    """Copy a table elsewhere while others write: the copy is the table of one moment."""
    name = turn.chance.choice((ROWS, ROWS, BANK))
    place = f"memory://backup/{name}-{turn.chance.choice((0, 1, turn.step.number))}"
    turn.told(f"back up {name} to {place}")
    try:
        at = turn.writer.lake.backup_table(name, place)
    except (InvalidInput, CommitExhausted) as error:
        # Of a table from before v4 some files are named in full.
        if isinstance(error, InvalidInput) and turn.world.script.settings.born_as >= _OURS:
            raise
        turn.told(f"    refused: {error}")
        return
    catalog = MemoryCatalog("copied")
    catalog.create_namespace(("db",), {})
    readers = Lake(catalog=catalog, store=turn.world.store, warehouse="memory://lake")
    copied = readers.register_table(name, at)
    head = copied.metadata.current_snapshot_id
    require_rows(copied, turn.world.history(name).states[head])
    report = copied.verify(deep=True)
    if not report.is_clean:
        raise Finding("verify is clean", f"of a backup: {report}")


def _maintain(turn: Turn, text: str, do: Callable[[Table, str], object]) -> None:
    table = turn.table(turn.chance.choice((ROWS, ROWS, ROWS, BANK)))
    branch = a_branch(turn, table) if str(table.name) == ROWS else "main"
    gone = branch not in table.refs
    commit = commit_on(table, text, branch=branch, maintains=True, may_refuse=gone)

    def carry_out() -> None:
        do(table, branch)

    turn.commit(commit, carry_out)


def _to_go(
    before: TableMetadata, history: History, older_than_ms: int, retain_last: int
) -> frozenset[int]:
    """Return what the rules let go of, from a history as the judge knows it."""
    last = before.last_sequence_number
    there = {id: each for id, each in history.retained().items() if each.sequence <= last}
    stay, reached = set[int](), set[int]()
    for ref in before.refs.values():
        line = [each.id for each in history.told(ref.snapshot_id) if each.id is not None]
        # A tag has no say in what was before its snapshot: age alone decides.
        line = line[:1] if ref.type == "tag" else line
        reached.update(line)
        for number, id in enumerate(line):
            if number >= retain_last and history.made_ms[id] < older_than_ms:
                break
            stay.add(id)
    stay |= {id for id in there.keys() - reached if history.made_ms[id] >= older_than_ms}
    return frozenset(there.keys() - stay)


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {
    "repair": (repair, 1),
    "expire": (expire, 5),
    "rewrite data files": (rewrite_data_files, 6),
    "rewrite deletes": (rewrite_deletes, 3),
    "rewrite manifests": (rewrite_manifests, 3),
    "remove orphans": (remove_orphans, 2),
    "optimize": (optimize, 2),
    "statistics": (statistics, 2),
    "backup": (backup, 1),
}
