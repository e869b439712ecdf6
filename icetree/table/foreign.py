"""Committing a snapshot that a stock client made: as a change of the tree, under the client's id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap64

from icetree.errors import CommitConflict, CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.rows.read.deletes import Deletes, by_file, open_vector
from icetree.rows.read.files import open_file, position_deletes
from icetree.rows.write.deletes import as_vector, write_data_vectors
from icetree.spec.arrays import every, is_among, one_chunk, without
from icetree.spec.edit.refs import ancestors
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    Content,
    Entries,
    concat,
    has_format,
    is_content,
    is_data_dv,
    is_data_file,
    only,
)
from icetree.spec.fields import (
    DELETE_FILE_PATH_FIELD,
    DELETE_POS_FIELD,
    LAST_UPDATED_SEQUENCE_NUMBER_FIELD,
    ROW_ID_FIELD,
)
from icetree.spec.location import absolute
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import find_snapshot
from icetree.spec.metadata.snapshot import MAIN, Snapshot
from icetree.spec.properties.names import REBASE_APPENDS
from icetree.spec.properties.values import flag
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import of_clients
from icetree.table.commit.removing import removal_of
from icetree.table.export.ahead import Ahead, read_ahead
from icetree.table.export.foreign import Foreign, alone, read_foreign, snapshot_of
from icetree.table.export.stand_ins import VECTOR_WORDS, as_vectors, is_stand_in
from icetree.table.scan.planning import planner
from icetree.table.table import Table
from icetree.table.transaction import Transaction
from icetree.tree.changes import Changes, Intent, Operation
from icetree.tree.live import placed
from icetree.tree.plan.tasks import Plan


def commit_foreign(
    table: Table,
    snapshot: Mapping[str, Any],
    *,
    branch: str | None = MAIN,
    before: MutableMapping[int, Entries] | None = None,
    facts: Iterable[str] = (),
    ahead: Ahead | None = None,
) -> Committed:
    """Commit a client's snapshot to a branch; to none, it is staged.

    `snapshot` is what its `add-snapshot` says, `before` the manifests of those that the client made a
    moment ago, by their ids: its parent may be among them, and it joins them. `facts` of the table as
    this handle has it, named as in `table.state`, must hold to the end. The snapshot must be based on
    the branch as it is now, or is a `CommitConflict`; where the table asks for it, new data files also
    land on what others appended meanwhile. The client's own manifests are of no use afterwards: nothing
    names them. What was read of them `ahead` is not read again.
    """
    _require_plain(table)
    asked = snapshot_of(snapshot)
    _require_new(table, asked)
    parent = _parent(table, asked)
    before = {} if before is None else before
    based_on = None if parent is None else before.get(parent.snapshot_id)
    foreign = read_foreign(
        asked, parent, table.metadata, table.files, based_on=based_on, ahead=ahead
    )
    if asked.operation == Operation.REPLACE.value:
        _require_ages(foreign)
    is_free = foreign.is_append and (branch is None or _is_rebased(table, asked, branch))
    if not is_free:
        _require_head(table, asked, branch)
    _require_there(foreign.added, table, frozenset() if ahead is None else ahead.there)
    told = of_clients(asked.summary or {})
    with table.transaction(branch=branch, summary=told, create_branch=branch is not None) as tx:
        tx.identify(asked.snapshot_id)
        tx.rely_on(*facts)
        if not is_free:
            tx.rely_on(f"ref {branch or MAIN}")
        _require_kept(foreign, parent, tx)
        added, removed = _with_vectors(foreign, parent, tx)
        is_replaced = asked.operation == Operation.REPLACE.value
        age = parent.sequence_number if parent and is_replaced else None
        tx.apply(
            Changes(
                intent=_intent(foreign),
                added=tx.entries_of(added, sequence_number=age),
                removed=removal_of(placed(removed, leaf=None)),
            )
        )
        done = tx.commit()
    before[asked.snapshot_id] = foreign.manifests
    return done


def foreign_ahead(table: Table, snapshots: Iterable[Mapping[str, Any]]) -> Ahead:
    """Read of clients' snapshots what their commits will need, of all of them together."""
    asked: list[Snapshot] = []
    for each in snapshots:
        # What is none is refused when its commit is made.
        with suppress(InvalidInput):
            asked.append(snapshot_of(each))
    return read_ahead(asked, table.metadata, table.files)


def _require_plain(table: Table) -> None:
    if is_encrypted(table.metadata):
        raise Unsupported(
            f"table {table.name} is encrypted: no client that commits manifests of its own knows "
            "its keys; write to it with icetree"
        )


def _require_new(table: Table, asked: Snapshot) -> None:
    with suppress(NotFound):
        find_snapshot(table.metadata, asked.snapshot_id, table.files.page)
        raise InvalidInput(f"table {table.name} has a snapshot {asked.snapshot_id} already")


def _parent(table: Table, asked: Snapshot) -> Snapshot | None:
    """Return the snapshot that a client started from; CommitConflict where it is gone."""
    if asked.parent_snapshot_id is None:
        return None
    try:
        return find_snapshot(table.metadata, asked.parent_snapshot_id, table.files.page)
    except NotFound:
        raise CommitConflict(
            f"table {table.name} has no snapshot {asked.parent_snapshot_id}, which this commit is "
            "based on: load the table and make the change again"
        ) from None


def _require_head(table: Table, asked: Snapshot, branch: str | None) -> None:
    head = table.state.head(branch or MAIN)
    now = None if head is None else head.snapshot_id
    if now != asked.parent_snapshot_id:
        raise CommitConflict(
            f"table {table.name}: this commit is based on snapshot {asked.parent_snapshot_id}, and "
            f"{branch or MAIN!r} is at {now} now: load the table and make the change again"
        )


def rebases_appends(metadata: TableMetadata) -> bool:
    """Tell whether a table takes new data files of clients that saw it before others appended."""
    return flag(metadata.properties, REBASE_APPENDS, default=False)


def _is_rebased(table: Table, asked: Snapshot, branch: str) -> bool:
    """Tell whether new data files may land on a branch that is not where their client saw it.

    All that came in between is known, and only appended. So an append that is sent again when its
    own snapshot is forgotten finds no way there, and does not bring back what was deleted since.
    """
    ref = table.refs.get(branch)
    if not rebases_appends(table.metadata) or asked.parent_snapshot_id is None or ref is None:
        return False
    for each in ancestors(table.metadata, ref.snapshot_id, table.files.page):
        if each.snapshot_id == asked.parent_snapshot_id:
            return True
        if each.operation != "append":
            return False
    return False


def _require_there(added: Entries, table: Table, known: frozenset[str]) -> None:
    """Refuse files that are not there: those of a client that was told of a conflict are deleted."""
    names = [
        each for each in added["location"].drop_null().unique().to_pylist() if each not in known
    ]
    places = [absolute(name, table.location) for name in names]
    for name, is_there in zip(names, in_order(table.files.store.exists, places), strict=True):
        if not is_there:
            raise InvalidInput(f"{name} cannot be added: it does not exist")


def _require_ages(foreign: Foreign) -> None:
    """Refuse to replace files by such as know which rows they hold, but not when these were last updated.

    No file of a plan says of which commit it is: whose scan the server plans cannot carry it on.
    """
    added = foreign.added
    row_ids, ages = (
        stats.column(id, "nulls") for id in (ROW_ID_FIELD, LAST_UPDATED_SEQUENCE_NUMBER_FIELD)
    )
    if not {row_ids, ages} <= {*added.schema.names}:
        return
    if pc.any(pc.greater(added[ages], added[row_ids])).as_py():
        raise InvalidInput(
            f"snapshot {foreign.snapshot.snapshot_id} cannot be added: it replaces files, and does not say "
            "of their rows when they were last updated, which no scan tells that the server has planned: "
            "run `icetree rewrite-data-files`, or set scan-planning-mode to client for this"
        )


def _intent(foreign: Foreign) -> Intent:
    if foreign.snapshot.operation == Operation.REPLACE.value:
        return Intent.REWRITE
    if foreign.is_append:
        return Intent.APPEND
    if not every(is_data_file(foreign.added)):
        return Intent.ROW_DELTA
    return Intent.OVERWRITE_FILES if foreign.added.num_rows else Intent.DELETE_FILES


# --- deletion vectors --------------------------------------------------------------------------


def _require_kept(foreign: Foreign, parent: Snapshot | None, tx: Transaction) -> None:
    """Refuse DVs by which deleted rows come back: no reader looks at other deletes by position.

    One takes the place of another that goes, and has all of its rows; so with position deletes of v2.
    """
    new = only(foreign.added, is_data_dv(foreign.added))
    names = one_chunk(new["referenced_file"])
    if not len(names):
        return
    plans = planner(tx.table_files, tx.metadata, parent, every_row=True)
    old = only(plans.data_dvs, is_among(plans.data_dvs["referenced_file"], names))
    gone = only(foreign.removed, is_data_dv(foreign.removed))["referenced_file"]
    for name in without(one_chunk(old["referenced_file"]), gone)[:1].to_pylist():
        raise InvalidInput(
            f"{name} has a deletion vector, which this commit neither removes nor replaces: a data "
            "file has one, so remove that with the commit that adds another"
        )
    before = dict(_vectors(old, tx))
    if plans.position_deletes.num_rows:
        before |= _marked(plans.whole(), names, tx)
    try:
        after = dict(_vectors(only(new, is_among(names, pa.array(before, pa.string()))), tx))
    except (CorruptTable, NotFound) as error:
        raise InvalidInput(f"a new deletion vector cannot be read: {error}") from None
    for name, rows in before.items():
        if not rows <= after[name]:
            raise InvalidInput(
                f"the new deletion vector of {name} leaves out rows that were deleted before: "
                "delete these rows too"
            )


def _vectors(data_dvs: Entries, tx: Transaction) -> Iterator[tuple[str, BitMap64]]:
    """Yield the rows that DVs delete, by the stored location of their file."""
    facts = pa.table({word: data_dvs[name] for word, name in VECTOR_WORDS.items()})
    for fact in facts.to_pylist():
        yield fact["location"], open_vector(tx.table_files.store, fact, tx.metadata.location)


def _marked(plan: Plan, names: pa.Array, tx: Transaction) -> dict[str, BitMap64]:
    """Return the rows of some data files that are deleted by position, of those of which any are."""
    known = Deletes(
        files=plan.deletes.to_pylist(),
        store=tx.table_files.store,
        metadata=tx.metadata,
        schema=tx.metadata.schema(),
        mapping=None,
    )
    tasks = plan.tasks.filter(is_among(plan.tasks["location"], names))
    found: dict[str, BitMap64] = {}
    for fact in tasks.to_pylist():
        rows = known.removed_rows(fact, absolute(fact["location"], tx.metadata.location))
        if len(rows):
            found[fact["location"]] = as_vector(pa.array(rows))
    return found


# --- deletes of v2 -----------------------------------------------------------------------------


def _with_vectors(
    foreign: Foreign, parent: Snapshot | None, tx: Transaction
) -> tuple[Entries, Entries]:
    """Return what comes and what goes with DVs in place of position delete files, as v4 has them.

    Those that come join the DV that their data file has. One that goes and stands for a DV is that
    DV: it goes, unless others come for the same data file, which must have its rows then.
    """
    added, metadata, files = foreign.added, tx.metadata, tx.table_files
    by_position = pc.and_not(
        is_content(added, Content.POSITION_DELETES), has_format(added, "puffin")
    )
    deletes = only(added, by_position)
    stands = only(foreign.removed, is_stand_in(foreign.removed, metadata.location))
    if not deletes.num_rows and not stands.num_rows:
        return added, alone(foreign.removed, added)
    gone = _rows_deleted(deletes, metadata, files)
    plan = planner(files, metadata, parent, stats_columns=True, every_row=True).whole()
    there = set(plan.tasks["location"].to_pylist())
    for name in gone.keys() - there:
        raise CommitConflict(
            f"{name}: a position delete names it, but it is no live data file of the table; it may "
            "have been removed meanwhile: load the table and make the change again"
        )
    removed = as_vectors(foreign.removed, plan.tasks, metadata.location)
    replaced = pc.and_(
        is_data_dv(removed), is_among(removed["referenced_file"], pa.array(gone, pa.string()))
    )
    _require_covered(only(removed, replaced)["referenced_file"], gone, plan.tasks, tx)
    vectors = write_data_vectors(
        gone, tasks=plan.tasks, metadata=metadata, store=files.store, deletes=plan.deletes
    )
    added = concat([only(added, pc.invert(by_position)), tx.adopt(vectors)])
    return added, alone(only(removed, pc.invert(replaced)), added)


def _require_covered(
    names: pa.ChunkedArray, gone: Mapping[str, BitMap64], tasks: pa.Table, tx: Transaction
) -> None:
    """Refuse position deletes in the place of a DV that are without some of its rows.

    What else may have deleted these, before there was the DV, is known no more.
    """
    for fact in (
        tasks.filter(is_among(tasks["location"], names)).select([*VECTOR_WORDS]).to_pylist()
    ):
        before = open_vector(tx.table_files.store, fact, tx.metadata.location)
        if not before <= gone[fact["location"]]:
            raise InvalidInput(
                f"new position deletes of {fact['location']} leave out rows that were deleted by "
                "what they replace: remove that alone, or delete these rows too"
            )


def _rows_deleted(
    deletes: Entries, metadata: TableMetadata, files: TableFiles
) -> dict[str, BitMap64]:
    """Return the rows that position delete files name, by the stored location of their file."""
    found: dict[str, BitMap64] = {}
    opened = ("location", "file_format", "key_metadata")
    for name, format, key in zip(*(deletes[each].to_pylist() for each in opened), strict=True):
        location = absolute(name, metadata.location)
        file = open_file(files.store, location, format, mapping=None, key=key)
        rows = position_deletes(file, DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD)
        for data_file, some in by_file(rows, metadata.location, delete_file=location).items():
            found[data_file] = found.get(data_file, BitMap64()) | as_vector(pa.array(some))
    return found
