"""Verbs on branches, tags and what is staged: make, move, remove, pick, publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from campaigns.simulate.intent import Commit, commit_on
from campaigns.simulate.model import History, Part, State
from campaigns.simulate.verbs.tables import ROWS, a_branch, arrow, some_rows, time_of
from icetree.tree.changes import Intent

if TYPE_CHECKING:
    from datetime import datetime

    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.table.table import Table

_BRANCHES: Final = ("a", "b")
_TAGS: Final = ("x", "y")


def create(turn: Turn) -> None:
    """Make a branch or a tag, at any snapshot."""
    table = turn.table(ROWS)
    name = turn.chance.choice((*_BRANCHES, *_TAGS))
    known = _known(turn, table)
    at = _any(turn, known)
    make = table.create_branch if name in _BRANCHES else table.create_tag
    commit = commit_on(
        table,
        f"create {name!r} at {_number(known, at)}",
        branch=None,
        refs={} if at is None else {name: at},
        needs=frozenset() if at is None else frozenset({at}),
        relies_on=frozenset({f"ref {name}"}),
        must_refuse=name in table.refs or at is None,
    )
    turn.commit(commit, lambda: make(name, at=at))


def remove(turn: Turn) -> None:
    """Remove a branch or a tag."""
    table = turn.table(ROWS)
    name = turn.chance.choice((*_BRANCHES, *_TAGS))
    go = table.remove_branch if name in _BRANCHES else table.remove_tag
    commit = commit_on(
        table,
        f"remove {name!r}",
        branch=None,
        refs={name: None},
        relies_on=frozenset({f"ref {name}"}),
        must_refuse=name not in table.refs,
    )
    turn.commit(commit, lambda: go(name))


def move(turn: Turn) -> None:
    """Move a branch: back, ahead, or anywhere."""
    table = turn.table(ROWS)
    branch, known = a_branch(turn, table), _known(turn, table)
    head = table.refs[branch].snapshot_id if branch in table.refs else None
    kind = turn.chance.choice(("roll back", "fast-forward", "set"))
    history = turn.world.history(ROWS)
    past = [state.id for state in history.told(head) if state.id is not None]
    to = turn.chance.choice(past) if kind == "roll back" and past else _any(turn, known)
    # Where the head that the handle saw has expired, it is others who decide what is an ancestor.
    if to is None or head is None or (kind == "roll back" and not past):
        return
    ahead = {state.id for state in history.ancestors(to)}
    by_time = kind == "roll back" and to in past and turn.chance.random() < 0.5
    point: int | datetime = to
    if by_time:
        made = {each.snapshot_id: each.timestamp_ms for each in table.history()}
        at_ms = made[to]
        to = next(id for id in past if made[id] <= at_ms)
        point = time_of(at_ms)
    go = {
        "roll back": lambda: table.rollback(point, branch=branch),
        "fast-forward": lambda: table.fast_forward(branch, to),
        "set": lambda: table.set_current(to, branch=branch),
    }[kind]
    commit = commit_on(
        table,
        f"{kind} {branch!r} to {_number(known, to)}",
        branch=None,
        refs={branch: to},
        needs=frozenset({to}),
        relies_on=frozenset({f"ref {branch}"}),
        must_refuse=kind == "fast-forward" and head not in ahead,
        may_be_idle=to == head,
    )
    turn.commit(commit, go)


def cherry_pick(turn: Turn) -> None:
    """Apply a snapshot's changes to a branch."""
    table = turn.table(ROWS)
    branch, known = a_branch(turn, table), _known(turn, table)
    picked = _any(turn, known)
    if picked is None:
        return
    commit = _pick(turn, table, branch, known[picked])
    wap = next(
        (each.summary or {}).get("wap.id") for each in table.history() if each.snapshot_id == picked
    )
    commit = replace(commit, must_refuse=commit.must_refuse or _is_published(table, wap))
    turn.commit(commit, lambda: table.cherry_pick(picked, branch=branch))


def stage(turn: Turn) -> None:
    """Append rows that no branch shows, to be published under an id."""
    table = turn.table(ROWS)
    rows = some_rows(turn, table.schema)
    part = Part(intent=Intent.APPEND, added=rows)
    commit = commit_on(table, f"stage {len(rows)} rows", branch=None, parts=(part,))
    turn.commit(
        commit,
        lambda: table.append(
            arrow(table.schema, rows), branch=None, summary={"wap.id": f"w{turn.step.number}"}
        ),
    )


def publish(turn: Turn) -> None:
    """Publish what was staged."""
    table = turn.table(ROWS)
    branch = a_branch(turn, table)
    known = _known(turn, table)
    staged = {
        wap: snapshot.snapshot_id
        for snapshot in reversed(list(table.history()))
        if (wap := (snapshot.summary or {}).get("wap.id"))
    }
    if not staged:
        return
    wap = turn.chance.choice(sorted(staged))
    commit = _pick(turn, table, branch, known[staged[wap]])
    commit = replace(commit, must_refuse=commit.must_refuse or _is_published(table, wap))
    turn.commit(commit, lambda: table.publish(wap, branch=branch))


def _is_published(table: Table, wap: str | None) -> bool:
    """Tell whether what was staged under an id is part of a branch already, of whichever."""
    summaries = [each.summary or {} for each in table.history()]
    return wap is not None and any(each.get("published-wap-id") == wap for each in summaries)


def _pick(turn: Turn, table: Table, branch: str, picked: State) -> Commit:
    """Return the commit that a cherry-pick comes to."""
    history = turn.world.history(ROWS)
    head = table.refs[branch].snapshot_id if branch in table.refs else None
    base = turn.state(table, branch)
    text = f"pick #{picked.sequence} into {branch!r}"
    relies_on = frozenset({f"ref {branch}"})
    needs = frozenset[int]() if picked.id is None else frozenset({picked.id})
    # Behind what has expired nobody can tell what a branch was made of.
    seen = table.state.metadata_location
    past = takewhile(lambda each: history.knows(seen, each.id), history.ancestors(head))
    twice = any(state.id == picked.id or state.source == picked.id for state in past)
    if head is not None and picked.parent == head:
        return commit_on(
            table, text, branch=branch, refs={branch: picked.id}, relies_on=relies_on,
            must_refuse=twice, needs=needs,
        )  # fmt: skip
    part = _again(picked)
    there = set(picked.did.added) & set(base.files)
    return commit_on(
        table,
        text,
        branch=branch,
        parts=() if part is None else (part,),
        relies_on=relies_on,
        source=picked.id,
        needs=needs,
        must_refuse=twice or part is None or bool(there),
        # What it would remove may not be there.
        may_refuse=part is not None and not part.removed <= base.files.keys(),
    )


def _again(picked: State) -> Part | None:
    """Return what a snapshot did as something to do again, where that can be."""
    if _is_idle(picked):
        # A change that came to nothing is told as an append, and may be one again.
        return Part(intent=Intent.APPEND)
    if len({part.intent for part in picked.parts}) != 1:
        return None
    intent, did = picked.parts[0].intent, picked.did
    if did.added and not (did.removed or did.lifted or did.vectors or did.equal):
        intent = Intent.APPEND
    if intent not in (Intent.APPEND, Intent.REPLACE_PARTITIONS):
        return None
    return Part(
        intent=intent,
        added=tuple(row.values for file in did.added.values() for row in file.rows),
        removed=frozenset(did.removed),
        places=frozenset(file.place for file in did.added.values())
        if intent is Intent.REPLACE_PARTITIONS
        else frozenset(),
    )


def _is_idle(picked: State) -> bool:
    did = picked.did
    changed = did.added or did.removed or did.lifted or did.equal or did.is_rewrite
    return not changed and not any(part.vectors for part in picked.parts)


def _known(turn: Turn, table: Table) -> dict[int, State]:
    """Return the snapshots that a handle knows of."""
    history: History = turn.world.history(ROWS)
    last = table.metadata.last_sequence_number
    return {
        id: state
        for id, state in history.states.items()
        if id is not None
        and state.sequence <= last
        and history.knows(table.state.metadata_location, id)
    }


def _any(turn: Turn, known: Mapping[int, State]) -> int | None:
    if not known:
        return None
    # Newer ones are more telling.
    return turn.chance.choice(sorted(known, key=lambda id: known[id].sequence)[-8:])


def _number(known: Mapping[int, State], id: int | None) -> str:
    return "nothing" if id is None else f"#{known[id].sequence}"


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {
    "create ref": (create, 4),
    "remove ref": (remove, 1),
    "move": (move, 3),
    "cherry-pick": (cherry_pick, 5),
    "stage": (stage, 2),
    "publish": (publish, 2),
}
