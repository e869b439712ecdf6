"""A client's commit to one table: its requirements hold, then its updates are one commit of ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import msgspec
from msgspec.structs import replace

from icetree.catalog.base import TableName
from icetree.errors import (
    AlreadyExists,
    CommitConflict,
    CommitExhausted,
    CommitUnknown,
    CorruptTable,
    IcetreeError,
    InvalidInput,
    NotFound,
    Unsupported,
)
from icetree.serve.call import Call, Grouped
from icetree.serve.commit.actions import AddSnapshot, AnyAction, RemoveSnapshots
from icetree.serve.commit.lasting import require_lasting
from icetree.serve.commit.new import staged
from icetree.serve.commit.requirements import AssertRef, Requirement, asks_for_new, require
from icetree.serve.commit.updates import NewSnapshot, Translated, translated
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.names import Identifier
from icetree.serve.protocol.request import Answer
from icetree.serve.showing.stock import stock_of
from icetree.serve.tables import as_clients_see, require_version, shown_after
from icetree.spec.edit.refs import recalled
from icetree.spec.edit.unused import unused
from icetree.spec.entry.entry import Entries
from icetree.spec.fields import FORMAT_VERSION
from icetree.spec.metadata.pages import history
from icetree.spec.metadata.snapshot import MAIN
from icetree.spec.metadata.update import (
    ExpireSnapshots,
    RemovePartitionSpecs,
    RemoveSchemas,
    SetSnapshotRef,
    Update,
)
from icetree.table.export.ahead import Ahead
from icetree.table.foreign import commit_foreign, foreign_ahead, rebases_appends
from icetree.table.group import GroupCommit, commit_group
from icetree.table.maintain.unused import facts_of_unused, names_of, used_by
from icetree.table.table import Table
from icetree.table.together import Aside, aside, discard, land, new_aside

T = TypeVar("T")

#: How many updates and requirements a request may have.
_MOST: Final = 10_000
#: How often a commit of several steps is made anew, when others were faster.
_TRIES: Final = 10
#: What is raised when a commit has not happened, for certain.
_REFUSED: Final = (
    AlreadyExists,
    CommitConflict,
    CorruptTable,
    InvalidInput,
    NotFound,
    Unsupported,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A table after a client's commit to it; None where its handle does not have that."""

    table: Table | None = None
    #: Whether others landed with the same swap.
    together: bool = False


class Commit(Body, frozen=True, kw_only=True):
    """What a client commits to a table."""

    identifier: Identifier | None = None
    requirements: list[Requirement] = msgspec.field(default_factory=list)
    updates: list[AnyAction] = msgspec.field(default_factory=list)


_commit = reads(Commit)


def commit_table(call: Call) -> Answer:
    """Change a table, or make one that was staged."""
    require_version(call)
    asked = _commit(call.request.body)
    check_size(asked)
    name = call.table_name
    if asked.identifier is not None and asked.identifier.table != name:
        raise InvalidInput(f"the body is about {asked.identifier.table}, the path about {name}")
    done = committed(call, name, asked)
    landed = bool(_added(asked))
    return shown_after(call, name, done.table, landed=landed, together=done.together)


def check_size(asked: Commit) -> None:
    """Refuse a request of more parts than anybody needs."""
    if len(asked.updates) > _MOST or len(asked.requirements) > _MOST:
        raise InvalidInput(f"a commit has {_MOST:,} updates and requirements at most")


def committed(call: Call, name: TableName, asked: Commit) -> Landed:
    """Return the table after a client's commit to it; nothing is read anew.

    What is raised says what became of the commit: once it has landed, nothing is.
    """
    return unless_made(call, [(name, asked)], lambda: _committed(call, name, asked)) or Landed()


def _committed(call: Call, name: TableName, asked: Commit) -> Landed:
    if asks_for_new(asked.requirements):
        land_all(call, [(name, asked)])
        return Landed()
    table = call.table(name)
    if was_made_before(table, asked):
        return Landed(table=table)
    _require_files_left(call, table, asked)
    work = translated(asked.updates, table.metadata)
    if _is_one_snapshot(work, table):
        if rebases_appends(table.metadata):
            # Who has its turn commits by its own handle, which knows no table that took the name since.
            key = (name, table.metadata.table_uuid)
            came_to = call.serving.groups.join(key, asked, partial(_together, table))
            table.state = came_to.state
            return Landed(table=table, together=came_to.together)
        _add_one(table, asked)
        return Landed(table=table)
    facts = _facts(asked.requirements, table)
    if not work.snapshots:
        _update(table, work.before, facts)
        return Landed(table=table)
    anew(lambda: land_all(call, [(name, asked)]))
    return Landed()


def _require_files_left(call: Call, table: Table, asked: Commit) -> None:
    """Refuse that snapshots expire for who may delete files after that: not all of a tree is shown.

    Iceberg Java looks whether it may when it loads a table, which may have been before an upgrade; others
    never look. Manifests that were there then are the tree's, and no export need name them.
    """
    is_tree = table.metadata.format_version >= FORMAT_VERSION
    expires = any(isinstance(each, RemoveSnapshots) for each in asked.updates)
    if is_tree and expires and not stock_of(call.request.headers).leaves_files:
        raise Unsupported(
            f"snapshots of table {table.name} are icetree's to expire, for who deletes files after that "
            f"does not see all that its tree needs: run `icetree expire {table.name}`, or "
            "table.maintenance.expire_snapshots()"
        )


def _add_one(table: Table, asked: Commit, ahead: Ahead | None = None) -> None:
    """Add the one snapshot that is asked for; CommitConflict where that is no longer all."""
    work = translated(asked.updates, table.metadata)
    if not _is_one_snapshot(work, table):
        raise CommitConflict(f"table {table.name} has changed: load it and make the change again")
    new = work.snapshots[0]
    facts = _facts(_of_rows(asked.requirements, new, table), table)
    add_snapshot(table, new, facts=facts, ahead=ahead)


def _together(table: Table, group: Sequence[Commit]) -> Sequence[Grouped | Exception]:
    """Add the snapshots of several requests with one swap; return what each comes to."""
    if len(group) == 1:
        _add_one(table, group[0])
        return [Grouped(state=table.state, together=False)]

    new = [each.snapshot for asked in group for each in _added(asked)]
    ahead = foreign_ahead(table, new)

    def look(table: Table) -> None:
        nonlocal ahead
        ahead = ahead.looked(table.metadata, table.files)

    def adding(asked: Commit) -> GroupCommit:
        return lambda side: None if was_made_before(side, asked) else _add_one(side, asked, ahead)

    refusals = commit_group(table, [adding(each) for each in group], look=look)
    landed = Grouped(state=table.state, together=True)
    return [landed if each is None else each for each in refusals]


def _added(asked: Commit) -> list[AddSnapshot]:
    return [each for each in asked.updates if isinstance(each, AddSnapshot)]


def was_made_before(table: Table, asked: Commit) -> bool:
    """Tell whether a commit that is sent again has happened already: its snapshots are there.

    A client gives them ids that nobody else does. Were it told of a conflict, it would add its rows
    once more, or delete their files.
    """
    new = [each.snapshot for each in _added(asked)]
    ids = {each.get("snapshot-id") for each in new}
    numbers = [each.get("sequence-number") for each in new]
    # Numbers only grow: one that was made of these has none below what its client saw.
    least = min((each for each in numbers if isinstance(each, int)), default=0)
    known = {*table.metadata.by_id}
    for page in table.metadata.snapshot_pages if ids - known else ():
        if page.last_sequence_number >= least:
            known |= {each.snapshot_id for each in table.files.page(page).snapshots}
    return bool(ids) and ids <= known


def made_before(call: Call, changes: Sequence[tuple[TableName, Commit]]) -> bool:
    """Tell whether changes that are sent again, and happen together, have happened already.

    Those alone tell it that add snapshots; of tables as they are now.
    """
    telling = [(name, asked) for name, asked in changes if _added(asked)]
    return bool(telling) and all(
        _is_there(call, name) and was_made_before(call.table(name), asked)
        for name, asked in telling
    )


def _is_there(call: Call, name: TableName) -> bool:
    try:
        call.lake.catalog.load(name)
    except NotFound:
        return False
    return True


def unless_made(
    call: Call, changes: Sequence[tuple[TableName, Commit]], attempt: Callable[[], T]
) -> T | None:
    """Make an attempt at changes; None where it is refused, and they were made meanwhile.

    A request that is slow to land is sent again, and whoever looked before it landed finds that the
    second one cannot be made. Were its client told so, it would delete the files of the first. Where
    it cannot be learnt which it is, CommitUnknown.
    """
    try:
        return attempt()
    except _REFUSED as error:
        try:
            made = made_before(call, changes)
        except IcetreeError as doubt:
            names = ", ".join(str(name) for name, _ in changes)
            raise CommitUnknown(
                f"{names}: refused ({error}), and it cannot be learnt whether the same change was "
                f"made before ({doubt}): load the tables and look"
            ) from error
        if made:
            return None
        raise


def land_all(call: Call, changes: Sequence[tuple[TableName, Commit]]) -> None:
    """Make clients' commits aside, for nobody to see, and then visible all at once, or not at all.

    What is refused can be asked for again: the place of a table that was to be made is free then.
    """
    sides: list[Aside] = []
    try:
        for name, asked in changes:
            if asks_for_new(asked.requirements):
                sides.append(new_aside(staged(call, name, asked.updates)))
            else:
                table = call.table(name)
                _require_files_left(call, table, asked)
                sides.append(aside(table))
            _fill(sides[-1], asked)
        land(call.lake.catalog, sides)
    except _REFUSED:
        discard(call.lake.catalog, sides)
        raise


def _fill(side: Aside, asked: Commit) -> None:
    """Carry out a client's commit on a table aside."""
    table = side.table
    facts = () if side.start is None else _facts(asked.requirements, table)
    work = translated(asked.updates, table.metadata)
    if work.before:
        _update(table, work.before, facts)
    before: dict[int, Entries] = {}
    for each in work.snapshots:
        add_snapshot(table, each, before=before)
    if work.after:
        _update(table, work.after, ())


def anew(attempt: Callable[[], None]) -> None:
    """Make an attempt, again while others are faster."""
    for _ in range(_TRIES - 1):
        with suppress(CommitExhausted):
            return attempt()
    return attempt()


def add_snapshot(
    table: Table,
    asked: NewSnapshot,
    *,
    before: dict[int, Entries] | None = None,
    facts: Sequence[str] = (),
    ahead: Ahead | None = None,
) -> None:
    """Commit a snapshot that a client has made, in the format that it was shown.

    `before` are the manifests of snapshots that came with the same request; `facts` are what the client
    requires, `ahead` is what was read of its manifests already.
    """
    commit_foreign(
        table, asked.snapshot, branch=asked.branch, before=before, facts=facts, ahead=ahead
    )


def _facts(requirements: Sequence[Requirement], table: Table) -> tuple[str, ...]:
    """Return the facts that a client requires, all of which hold; CommitConflict."""
    if not requirements:
        return ()
    seen = as_clients_see(table.metadata)
    return tuple(require(each, seen) for each in requirements)


def _of_rows(
    requirements: Sequence[Requirement], new: NewSnapshot, table: Table
) -> Sequence[Requirement]:
    """Return what is required of a table for a client's snapshot to be added.

    Where appends are rebased, how its branch may have moved is for the commit to tell.
    """
    if not rebases_appends(table.metadata):
        return requirements
    parent = new.snapshot.get("parent-snapshot-id")
    head = AssertRef(ref=new.branch or MAIN, snapshot_id=parent)
    return [each for each in requirements if each != head]


def _is_one_snapshot(work: Translated, table: Table) -> bool:
    """Tell whether there is but one snapshot to add, to a branch that stays as it is otherwise."""
    if work.before or len(work.snapshots) != 1:
        return False
    branch = work.snapshots[0].branch
    if branch is None:
        return not work.after
    ref = table.refs.get(branch)
    match work.after:
        case (SetSnapshotRef(ref=moved),) if ref is not None:
            return replace(moved, snapshot_id=ref.snapshot_id) == ref
    return False


def _update(table: Table, updates: tuple[Update, ...], facts: Sequence[str]) -> None:
    """Commit updates of metadata, or look whether the facts hold where there are none."""
    wanted = recalled(table.metadata, updates, table.files.page)
    require_lasting(table.metadata, wanted)
    transaction = table.transaction()
    transaction.update_metadata(*wanted)
    transaction.rely_on(*facts, *_unused_facts(table, updates))
    transaction.commit()


def _unused_facts(table: Table, updates: tuple[Update, ...]) -> tuple[str, ...]:
    """Return what taking away schemas and specs relies on: that nothing uses them; InvalidInput."""
    going = [each for each in updates if isinstance(each, RemoveSchemas | RemovePartitionSpecs)]
    if not going:
        return ()
    expired = [
        id for each in updates if isinstance(each, ExpireSnapshots) for id in each.snapshot_ids
    ]
    every = history(table.metadata, table.files.page)
    kept = [each for each in every if each.snapshot_id not in expired]
    free = names_of(unused(table.metadata, used_by(table, kept)))
    for name in names_of(going):
        if name not in free:
            raise InvalidInput(f"{name} cannot go: it is the current one, or files are of it")
    return facts_of_unused(table)
