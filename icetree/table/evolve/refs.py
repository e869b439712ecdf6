"""Branches and tags: make, move and remove them, and publish what was staged."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import pyarrow.compute as pc
from typing_extensions import Self

from icetree.errors import CommitConflict, CorruptTable, InvalidInput, NotFound
from icetree.files.table_files import TableFiles
from icetree.spec.edit import refs
from icetree.spec.edit.refs import Retention
from icetree.spec.metadata.pages import find_snapshot, history
from icetree.spec.metadata.snapshot import MAIN, Snapshot
from icetree.spec.metadata.update import Update
from icetree.spec.spelled import spelled
from icetree.spec.texts import text
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import PUBLISHED_WAP_ID
from icetree.table.point import Point, resolve, snapshot_at
from icetree.table.state import Requirement, fact_of
from icetree.tree.changes import Changes
from icetree.tree.grow.cherry_pick import SOURCE_SNAPSHOT, picked_changes
from icetree.tree.live import live_files

if TYPE_CHECKING:
    from collections.abc import Mapping

    from icetree.catalog.base import TableName
    from icetree.spec.metadata.metadata import TableMetadata
    from icetree.table.transaction import Transaction
    from icetree.tree.conflict.conflict import Isolation

#: Iceberg's summary key of what is staged for an audit.
WAP_ID = "wap.id"

_Handle = TypeVar("_Handle", bound="References")
_P = ParamSpec("_P")
_Verb = Callable[Concatenate[_Handle, _P], Committed]


#: What verbs call a point in history that they go by; None stands for the current snapshot.
_POINTS: Final = ("at", "to")


def _where_history_is(moves: str) -> Callable[[_Verb[_Handle, _P]], _Verb[_Handle, _P]]:
    """Have a verb look at the newest state where files of what its handle has seen are gone.

    An expiry writes pages of history anew and deletes the old ones: a snapshot that stays is then
    found by the newest metadata alone. `moves` is the parameter that names the branch or tag; this one,
    and the one that the verb goes by, must still be where the handle saw them.
    """

    def wrap(verb: _Verb[_Handle, _P]) -> _Verb[_Handle, _P]:
        parameters = signature(verb)

        @wraps(verb)
        def looking(self: _Handle, /, *args: _P.args, **how: _P.kwargs) -> Committed:
            try:
                return verb(self, *args, **how)
            except (CorruptTable, NotFound):
                newer = self._newer()
                if newer is None:
                    raise
            given = parameters.bind(self, *args, **how)
            given.apply_defaults()
            points = [given.arguments[each] for each in _POINTS if each in given.arguments]
            for ref in (
                given.arguments[moves],
                *(MAIN if each is None else each for each in points),
            ):
                fact = f"ref {ref}"
                seen = Requirement(fact=fact, value=fact_of(self.metadata, fact))
                seen.require(newer.metadata, self.name)
            done = looking(newer, *args, **how)
            self._follow(newer)
            return done

        return looking

    return wrap


@spelled
class References:
    """The ref verbs of a table; each is one commit."""

    files: TableFiles

    if TYPE_CHECKING:

        @property
        def name(self) -> TableName: ...

        @property
        def metadata(self) -> TableMetadata: ...

        def _newer(self) -> Self | None: ...

        def _follow(self, newer: Self) -> None: ...

        def update_metadata(self, *updates: Update) -> Committed: ...

        def transaction(
            self,
            *,
            branch: str | None = ...,
            isolation: Isolation | str = ...,
            key: str | None = ...,
            summary: Mapping[str, str] | None = ...,
            create_branch: bool = ...,
        ) -> Transaction: ...

    @_where_history_is(moves="name")
    def create_branch(
        self, name: str, *, at: Point | None = None, retention: Retention | None = None
    ) -> Committed:
        """Make a branch, at a snapshot, ref or time, or else at the current snapshot."""
        at = None if at is None else self._id(at, what="at")
        return self._refs(refs.create_branch, name, at=at, retention=retention)

    @_where_history_is(moves="name")
    def create_tag(
        self, name: str, *, at: Point | None = None, max_ref_age_ms: int | None = None
    ) -> Committed:
        """Make a tag, at a snapshot, ref or time, or else at the current snapshot."""
        at = None if at is None else self._id(at, what="at")
        return self._refs(refs.create_tag, name, at=at, max_ref_age_ms=max_ref_age_ms)

    def remove_branch(self, name: str) -> Committed:
        """Remove a branch; its snapshots stay until they expire."""
        return self.update_metadata(*refs.remove_branch(self.metadata, name))

    def remove_tag(self, name: str) -> Committed:
        """Remove a tag."""
        return self.update_metadata(*refs.remove_tag(self.metadata, name))

    def set_retention(self, name: str, retention: Retention) -> Committed:
        """Change how long a branch or tag, and what it reaches, is kept."""
        return self.update_metadata(*refs.set_retention(self.metadata, name, retention))

    @_where_history_is(moves="branch")
    def fast_forward(self, branch: str, to: Point) -> Committed:
        """Move a branch ahead to a snapshot, ref or time that descends from its head."""
        return self._refs(refs.fast_forward, branch, self._id(to, what="to"))

    @_where_history_is(moves="branch")
    def rollback(self, to: Point, *, branch: str = MAIN) -> Committed:
        """Move a branch back, to a snapshot of its past or to what it was at a time."""
        found = resolve(self.metadata, to, what="to")
        if found.at_ms is not None:
            return self._refs(refs.rollback_to_time, found.at_ms, branch=branch)
        return self._refs(refs.rollback_to, found.snapshot_id, branch=branch)

    @_where_history_is(moves="branch")
    def set_current(self, to: Point, *, branch: str = MAIN) -> Committed:
        """Point a branch at any snapshot the table has."""
        return self._refs(refs.set_current, self._id(to, what="to"), branch=branch)

    @_where_history_is(moves="branch")
    def cherry_pick(self, at: Point, *, branch: str = MAIN) -> Committed:
        """Apply a snapshot's changes to a branch: by moving there, or by committing them again."""
        picked = snapshot_at(self.metadata, self.files, at)
        snapshot_id = picked.snapshot_id
        head = self.metadata.refs.get(text(branch, what="branch"))
        if head is not None:
            self._require_unpicked(picked, head.snapshot_id, branch)
        wap = (picked.summary or {}).get(WAP_ID)
        if wap is not None:
            self._require_unpublished(wap)
        if head is not None and picked.parent_snapshot_id == head.snapshot_id:
            return self.fast_forward(branch, snapshot_id)
        changed = self.files.changed(picked, self.metadata.shape())
        changes = picked_changes(picked, changed)
        if head is not None:
            self._require_there(changes, picked, head.snapshot_id, branch)
        transaction = self.transaction(branch=branch)
        transaction.apply(changes)
        transaction.pick(snapshot_id)
        transaction.note(SOURCE_SNAPSHOT, str(snapshot_id))
        if wap is not None:
            transaction.note(PUBLISHED_WAP_ID, wap)
        # Were the branch to move, it might be by another pick of the same.
        transaction.rely_on(f"ref {branch}")
        return transaction.commit()

    @_where_history_is(moves="branch")
    def publish(self, wap_id: str, *, branch: str = MAIN) -> Committed:
        """Make what was staged under a write-audit-publish id part of a branch."""
        text(wap_id, what="wap_id")
        return self.cherry_pick(self._staged(wap_id).snapshot_id, branch=branch)

    def _staged(self, wap_id: str) -> Snapshot:
        found = [
            snapshot
            for snapshot in history(self.metadata, self.files.page)
            if (snapshot.summary or {}).get(WAP_ID) == wap_id
        ]
        if not found:
            raise NotFound(f"no snapshot was staged under the id {wap_id!r}")
        if len(found) > 1:
            ids = ", ".join(str(each.snapshot_id) for each in reversed(found))
            raise InvalidInput(
                f"{len(found)} snapshots were staged under the id {wap_id!r}, and one can be "
                f"published: cherry_pick the one that counts, of {ids}"
            )
        return found[0]

    def _require_unpicked(self, picked: Snapshot, head: int, branch: str) -> None:
        """Refuse a second time: files would be in the table twice."""
        for each in refs.ancestors(self.metadata, head, self.files.page):
            if each.sequence_number < picked.sequence_number:
                return
            source = (each.summary or {}).get(SOURCE_SNAPSHOT)
            if each.snapshot_id == picked.snapshot_id or source == str(picked.snapshot_id):
                raise InvalidInput(
                    f"snapshot {picked.snapshot_id} is part of branch {branch!r} already, "
                    f"by snapshot {each.snapshot_id}"
                )

    def _require_there(self, changes: Changes, picked: Snapshot, head: int, branch: str) -> None:
        """Refuse a replacement of files that the branch has no longer."""
        if not changes.removed.num_rows:
            return
        shape = self.metadata.shape()
        root = self.files.root(find_snapshot(self.metadata, head, self.files.page), shape)
        live = live_files(root, self.files.reader(shape), columns={"location"})["location"]
        keys = changes.removed["key"]
        gone = keys.filter(pc.invert(pc.is_in(keys, value_set=live.combine_chunks())))
        if len(gone):
            raise CommitConflict(
                f"snapshot {picked.snapshot_id} replaced {gone[0]}, which branch {branch!r} has no "
                "longer: the partition has changed since, so write what is to be there now, with "
                "replace_partitions on the branch"
            )

    def _require_unpublished(self, wap_id: str) -> None:
        for snapshot in history(self.metadata, self.files.page):
            if (snapshot.summary or {}).get(PUBLISHED_WAP_ID) == wap_id:
                raise InvalidInput(
                    f"what was staged as {wap_id!r} is published already, "
                    f"by snapshot {snapshot.snapshot_id}"
                )

    def _id(self, point: Point, *, what: str) -> int:
        return snapshot_at(self.metadata, self.files, point, what=what).snapshot_id

    def _refs(self, make: Any, *args: object, **how: object) -> Committed:
        return self.update_metadata(*make(self.metadata, self.files.page, *args, **how))
