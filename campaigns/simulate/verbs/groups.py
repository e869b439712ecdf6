"""Groups: several commits to one table that land with one swap, each as it would by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from campaigns.simulate.finding import Finding
from campaigns.simulate.intent import Commit, commit_on
from campaigns.simulate.model import Part, State, head_of
from campaigns.simulate.verbs.files import some_files
from campaigns.simulate.verbs.tables import ROWS, a_branch, arrow, some_rows
from icetree.errors import IcetreeError
from icetree.table.group import commit_group
from icetree.tree.changes import Intent

if TYPE_CHECKING:
    from campaigns.simulate.turn import Turn
    from campaigns.simulate.world import Verb
    from icetree.table.table import Table


class _Stumbled(Exception):
    """What befalls one commit of a group after it was made."""


def commit_together(turn: Turn) -> None:
    """Append rows, several times, and at times remove files; one of them may fail in the end."""
    table = turn.table(ROWS)
    drawn = [_append(turn, table) for _ in range(turn.chance.choice((1, 2, 3)))]
    if turn.chance.random() < 0.4 and turn.state(table).files:
        drawn.insert(turn.chance.randrange(len(drawn) + 1), _removal(turn, table))
    stumbles = turn.chance.randrange(len(drawn)) if turn.chance.random() < 0.3 else None
    members = tuple(member for member, _ in drawn)
    commit = commit_on(
        table,
        f"do together: {'; '.join(f'{each.text} on {each.branch}' for each in members)}",
        branch=None,
        members=members,
        may_be_idle=True,
    )
    commits = [_made(turn, *each, stumbles=number == stumbles) for number, each in enumerate(drawn)]

    def do() -> None:
        refusals = commit_group(table, commits)
        stand = [each.stands for each in members]
        if [each is None for each in refusals] != stand:
            raise Finding("refusals are true", f"{commit.text}: {refusals}, but {stand} were made")
        if any(stand) and not commit.landed:
            raise Finding("lands once", f"{commit.text} is said to have landed")

    turn.commit(commit, do)


_Drawn = tuple[Commit, Callable[["Table"], object]]


def _append(turn: Turn, table: Table) -> _Drawn:
    branch, rows = a_branch(turn, table), some_rows(turn, table.schema)
    part = Part(intent=Intent.APPEND, added=rows)
    member = commit_on(table, f"append {len(rows)} rows", branch=branch, parts=(part,))
    return member, lambda side: side.append(arrow(side.schema, rows), branch=branch)


def _removal(turn: Turn, table: Table) -> _Drawn:
    names = some_files(turn, turn.state(table))
    part = Part(intent=Intent.DELETE_FILES, removed=names)
    member = commit_on(table, f"delete {len(names)} files", parts=(part,))
    return member, lambda side: side.delete_files(sorted(names))


def _made(
    turn: Turn, member: Commit, do: Callable[[Table], object], *, stumbles: bool
) -> Callable[[Table], object]:
    """Return what makes one commit of a group, and tells the judge whether it stands."""

    def make(side: Table) -> None:
        member.stands = False
        try:
            do(side)
        except IcetreeError as error:
            if not _may_refuse(turn, member, side):
                raise Finding("refusals are true", f"{member.text}: {error!r}") from error
            raise
        if stumbles:
            raise _Stumbled
        member.stands = True

    return make


def _may_refuse(turn: Turn, member: Commit, side: Table) -> bool:
    """Tell whether a commit has a reason not to be: its branch is gone, or a file, or it is old."""
    if side.metadata.format_version < 4 or turn.writer.line.fate.struck is not None:
        return True
    if member.branch != "main" and member.branch not in side.refs:
        return True
    removed = frozenset[str]().union(*(part.removed for part in member.parts))
    states: Mapping[int | None, State] = turn.world.history(ROWS).states
    there = states.get(head_of(side.metadata, member.branch))
    # What another of the group made of the branch only adds files.
    return bool(removed) and (there is None or not removed <= there.files.keys())


VERBS: Final[Mapping[str, tuple[Verb, int]]] = {"commit together": (commit_together, 5)}
