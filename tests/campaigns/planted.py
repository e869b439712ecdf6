"""Faults to plant in icetree, each as a patch: a campaign that does not find them is no check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from icetree.catalog.base import Outcome, Swapped, Unknown
from icetree.errors import CommitUnknown, Unavailable
from icetree.spec.entry.entry import with_columns
from icetree.table import group
from icetree.table.commit import commit
from icetree.table.commit import swap as swapping
from icetree.table.maintain import deleting, expire, exports, reach
from icetree.table.maintain.compact import compact
from icetree.table.maintain.orphans import orphans
from icetree.tree import aggregate, changes
from icetree.tree.conflict import conflict
from icetree.tree.grow import grow
from icetree.tree.leaves import flush
from icetree.tree.plan import pointers

Patch = Callable[[pytest.MonkeyPatch], None]


def drop_a_dv_in_a_flush(patch: pytest.MonkeyPatch) -> None:
    by_owner = flush._by_owner

    def forgetful(*args: Any) -> Any:
        groups = [(owner, owned.slice(1)) for owner, owned in by_owner(*args)]
        return [each for each in groups if each[1].num_rows]

    patch.setattr(flush, "_by_owner", forgetful)


def skip_conflict_checks(*names: str) -> Patch:
    def skip(patch: pytest.MonkeyPatch) -> None:
        left = tuple(each for each in conflict.CHECKS if each.name not in names)
        assert len(left) == len(conflict.CHECKS) - len(names)
        patch.setattr(conflict, "CHECKS", left)

    return skip


def conflict_with_everybody(patch: pytest.MonkeyPatch) -> None:
    check = conflict.Check(
        name="alone",
        find=lambda _, other: pa.array([str(other.snapshot_id)]),
        says="{snapshot} {files}",
        always=frozenset(changes.Intent),
    )
    patch.setattr(conflict, "CHECKS", (*conflict.CHECKS, check))


def take_a_lost_race_for_won(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(swapping, "_whose", lambda *_: Swapped())


def take_a_won_race_for_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(swapping, "_whose", lambda stale, *_: stale)


def _ask_once(patch: pytest.MonkeyPatch, then: Callable[[Unknown], Outcome]) -> None:
    def swap(work: Any, catalog: Any, head: Any, attempt: Any, _: Any) -> Outcome:
        ours = attempt.state.metadata_location
        try:
            outcome = catalog.swap(work.base.name, expected=head.metadata_location, to=ours)
        except CommitUnknown as lost:
            outcome = Unknown(reason=str(lost))
        return then(outcome) if isinstance(outcome, Unknown) else outcome

    patch.setattr(commit, "swap", swap)


def ignore_a_lost_answer(patch: pytest.MonkeyPatch) -> None:
    _ask_once(patch, lambda _: Swapped())


def delete_files_in_doubt(patch: pytest.MonkeyPatch) -> None:
    def give_up(lost: Unknown) -> Outcome:
        raise Unavailable(lost.reason)

    _ask_once(patch, give_up)


def number_rows_wrongly(patch: pytest.MonkeyPatch) -> None:
    stamp_added = grow._stamp_added

    def from_one(*args: Any) -> Any:
        added, rows = stamp_added(*args)
        return with_columns(added, first_row_id=pc.add(added["first_row_id"], 1)), rows

    patch.setattr(grow, "_stamp_added", from_one)


def forget_keys(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(commit, "already_applied", lambda *_: None)


def overlook_equality_deletes(patch: pytest.MonkeyPatch) -> None:
    pairs = pointers.equality_pairs
    patch.setattr(
        pointers,
        "equality_pairs",
        lambda files, deletes, shape: pairs(files, deletes.slice(0, 0), shape),
    )


def delete_a_file_that_landed(patch: pytest.MonkeyPatch) -> None:
    swap = commit.swap

    def careless(work: Any, catalog: Any, head: Any, attempt: Any, files: Any) -> Outcome:
        outcome = swap(work, catalog, head, attempt, files)
        if isinstance(outcome, Swapped) and head.metadata.snapshots and attempt.snapshot:
            files.delete([attempt.snapshot.root_manifest])
        return outcome

    patch.setattr(commit, "swap", careless)


def flush_files_as_younger(patch: pytest.MonkeyPatch) -> None:
    make_leaf = flush.make_leaf

    def younger(entries: Any, *args: Any, **how: Any) -> Any:
        ages = pc.add(entries["sequence_number"], pa.scalar(1, pa.int64()))
        return make_leaf(with_columns(entries, sequence_number=ages), *args, **how)

    patch.setattr(flush, "make_leaf", younger)


def narrow_the_bounds_of_leaves(patch: pytest.MonkeyPatch) -> None:
    extreme = aggregate._extreme

    def least_of(bounds: Any, empty: Any, **_: bool) -> Any:
        return extreme(bounds, empty, least=True)

    patch.setattr(aggregate, "_extreme", least_of)


def expire_one_too_many(patch: pytest.MonkeyPatch) -> None:
    rules_of = expire.rules_of

    def stingy(*args: Any, **how: Any) -> Any:
        rules = rules_of(*args, **how)
        return replace(rules, keep_last=max(rules.keep_last - 1, 1))

    patch.setattr(expire, "rules_of", stingy)


def forget_what_a_snapshot_removed(patch: pytest.MonkeyPatch) -> None:
    """Keep what rows are read from, not what tells which went."""
    patch.setattr(reach, "added_positions", lambda *_, **__: {})


def leave_a_compacted_file(patch: pytest.MonkeyPatch) -> None:
    removal = compact.removal_of_tasks
    patch.setattr(compact, "removal_of_tasks", lambda old: removal(old.slice(1)))


def take_young_files_for_orphans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(orphans, "_THREE_DAYS_MS", -2 * orphans._THREE_DAYS_MS)


def take_exports_for_orphans(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(orphans, "less_exports", lambda found, *_: found)


def expire_twins_that_others_have(patch: pytest.MonkeyPatch) -> None:
    only_of = exports.exports_only_of
    patch.setattr(
        expire, "exports_only_of", lambda gone, _, files: only_of(gone, reach.Reach(), files)
    )


def delete_a_group_in_doubt(patch: pytest.MonkeyPatch) -> None:
    land = group.land

    def careless(*args: Any) -> None:
        try:
            land(*args)
        except CommitUnknown as lost:
            raise Unavailable(str(lost)) from lost

    patch.setattr(group, "land", careless)


def keep_what_a_group_refused(patch: pytest.MonkeyPatch) -> None:
    def add(self: Any, make: Callable[[Any], object]) -> Exception | None:
        try:
            make(self._side.table)
        except Exception as error:
            return error
        return None

    patch.setattr(group._Group, "add", add)


def expire_what_is_shared(patch: pytest.MonkeyPatch) -> None:
    for room in (expire, deleting):
        patch.setattr(room, "own_files", lambda _, found: found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A fault, the laws that it may break, and the verbs that show it soonest."""

    patch: Patch
    laws: set[str]
    verbs: tuple[str, ...]
    #: A seed that shows it, or one shortly before.
    first: int = 0


PLANTED: Final[Mapping[str, Planted]] = {
    "a DV is dropped in a flush": Planted(
        patch=drop_a_dv_in_a_flush,
        laws={"rows", "changes", "files"},
        verbs=("append", "delete rows", "scan"),
        first=28,
    ),
    "two DVs of a file are no conflict": Planted(
        patch=skip_conflict_checks("no second DV"),
        laws={"conflicts are seen"},
        verbs=("append", "delete rows"),
        first=7,
    ),
    "deletes of rows that move are no conflict": Planted(
        patch=skip_conflict_checks("no new deletes on replaced files"),
        laws={"conflicts are seen"},
        verbs=("append", "delete rows", "replace some"),
        first=7,
    ),
    "rows that were read may change": Planted(
        patch=skip_conflict_checks(
            "no new data in the filter",
            "no new deletes in the filter",
            "no removed data in the filter",
        ),
        laws={"conflicts are seen", "serializable"},
        verbs=("transfer",),
        first=21,
    ),
    "every other commit is a conflict": Planted(
        patch=conflict_with_everybody, laws={"conflicts are true"}, verbs=("append", "delete files")
    ),
    "a lost race is taken for won": Planted(
        patch=take_a_lost_race_for_won,
        laws={"lands once"},
        verbs=("append", "append files"),
        first=6,
    ),
    "a won race is taken for lost": Planted(
        patch=take_a_won_race_for_lost,
        laws={"lands once", "files stay"},
        verbs=("append", "append files"),
    ),
    "a lost answer is taken for a good one": Planted(
        patch=ignore_a_lost_answer, laws={"lands once"}, verbs=("append", "append files"), first=6
    ),
    "files are deleted while in doubt": Planted(
        patch=delete_files_in_doubt,
        laws={"lands once", "files stay"},
        verbs=("append", "append files"),
        first=17,
    ),
    "row ids start one too late": Planted(
        patch=number_rows_wrongly, laws={"row ids"}, verbs=("append", "delete rows", "move")
    ),
    "keys are forgotten": Planted(
        patch=forget_keys, laws={"a key once"}, verbs=("append", "append once")
    ),
    "equality deletes are overlooked": Planted(
        patch=overlook_equality_deletes,
        laws={"rows", "changes"},
        verbs=("append", "delete equal", "upsert", "scan"),
    ),
    "a file of the newest tree is deleted": Planted(
        patch=delete_a_file_that_landed, laws={"files stay"}, verbs=("append", "scan")
    ),
    "files are younger after a flush": Planted(
        patch=flush_files_as_younger, laws={"files"}, verbs=("append", "delete equal")
    ),
    "bounds of leaves are too narrow": Planted(
        patch=narrow_the_bounds_of_leaves,
        laws={"rows"},
        verbs=("append", "append files", "scan", "scan ref", "delete rows"),
        first=12,
    ),
    "a snapshot too many expires": Planted(
        patch=expire_one_too_many,
        laws={"history"},
        verbs=("append", "append files", "expire"),
        first=10,
    ),
    "what a snapshot removed is deleted before it goes": Planted(
        patch=forget_what_a_snapshot_removed,
        laws={"files stay"},
        verbs=("append", "append files", "delete files", "expire"),
        first=80,
    ),
    "a compacted file stays where it was": Planted(
        patch=leave_a_compacted_file,
        laws={"rows", "row ids"},
        verbs=("append", "append files", "rewrite data files"),
    ),
    "files of a commit under way are orphans": Planted(
        patch=take_young_files_for_orphans,
        laws={"files stay", "errors"},
        verbs=("append", "append files", "delete rows", "remove orphans"),
    ),
    "exports are orphans": Planted(
        patch=take_exports_for_orphans,
        laws={"files stay"},
        verbs=("append", "export", "remove orphans"),
    ),
    "what two exports share goes with the first": Planted(
        patch=expire_twins_that_others_have,
        laws={"files stay"},
        verbs=("append", "append files", "export", "expire"),
        first=100,
    ),
    "a group is deleted while in doubt": Planted(
        patch=delete_a_group_in_doubt,
        laws={"lands once", "files stay"},
        verbs=("append", "commit together"),
    ),
    "a copy expires files that it shares": Planted(
        patch=expire_what_is_shared, laws={"files stay"}, verbs=("append", "share")
    ),
    "what a group refused stays in it": Planted(
        patch=keep_what_a_group_refused,
        laws={"one snapshot", "row ids", "parent", "sequence numbers"},
        verbs=("append", "commit together"),
    ),
}
