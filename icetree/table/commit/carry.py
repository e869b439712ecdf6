"""Changes that meet others' on the way: their rows are found again, by row ids, in other files.

A compaction writes rows into new files while others go on deleting them in the old ones. What was
deleted meanwhile is deleted in the new files as well, by DVs in the compaction's own commit. And
the other way round: rows that a change deletes, and that a compaction has carried elsewhere
meanwhile, are deleted there. A row that has the same id, and was not changed since the change
looked at it, is the same row. Whatever cannot be told so stays as it is, for the conflict checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue

from icetree.errors import NotFound, Unsupported
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.rows.read.deletes import VECTOR_COLUMNS, Rows, read_vector
from icetree.rows.read.find import ids_of, places_of
from icetree.rows.write.deletes import write_data_vectors
from icetree.spec.arrays import first_repeated, is_among, one_chunk, without
from icetree.spec.entry.entry import Entries, concat, is_data_dv, is_data_file, only
from icetree.spec.entry.stats import parse_column
from icetree.spec.locations import stored_form_array
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import MAIN, Snapshot
from icetree.table.state import State, Work
from icetree.tree.changes import Changes, Intent
from icetree.tree.conflict.conflict import OtherCommit
from icetree.tree.conflict.meanwhile import added_by_compactions, meanwhile
from icetree.tree.live import placed
from icetree.tree.plan.plan import Planner
from icetree.tree.plan.row_changes import added_tasks
from icetree.tree.plan.tasks import Metrics, Plan

#: Who deletes rows, by DVs or with their files, and may find them elsewhere.
_DELETERS: Final = frozenset({Intent.ROW_DELTA, Intent.DELETE_BY_FILTER, Intent.OVERWRITE_FILES})
#: More rows than that are not looked for: it would take more than to do the change again.
_MOST_ROWS: Final = 20_000_000


class Carrier:
    """Makes the changes of a commit fit whatever others committed since."""

    def __init__(self, work: Work, files: TableFiles, written: list[str]) -> None:
        self._work = work
        self._files = files
        #: Locations of all files that a commit has written, which go when it fails.
        self._written = written
        self._own: list[str] = []
        self._landing = work.changes
        self._after: int | None = None

    def landing(self, head: State, since: Sequence[OtherCommit]) -> tuple[Changes, ...]:
        """Return the changes as they are to land on a head, after these commits."""
        after = since[-1].snapshot_id if since else None
        if after != self._after:
            carried = tuple(self._carried(change, head, since) for change in self._work.changes)
            # Of two DVs for a data file the later one stands, without the other's rows.
            self._landing = self._work.changes if _share_data_dvs(carried) else carried
            self._after = after
        return self._landing

    def unused(self) -> list[str]:
        """Return files of DVs that the changes, as they landed last, do not name."""
        if not self._own:
            return []
        location = self._files.location
        named = pa.array(
            {name for each in self._landing for name in each.added["location"].to_pylist()},
            pa.string(),
        )
        made = stored_form_array(pa.array(self._work.written, pa.string()), location)
        given = [
            each.added["location"].filter(is_data_dv(each.added)) for each in self._work.changes
        ]
        replaced = [one_chunk(each.filter(is_among(each, made))) for each in given]
        mine = pa.array(self._own, pa.string())
        return list(dict.fromkeys(without(pa.concat_arrays([mine, *replaced]), named).to_pylist()))

    def _carried(self, change: Changes, head: State, since: Sequence[OtherCommit]) -> Changes:
        try:
            if change.intent is Intent.REWRITE:
                return self._rewrite(change, since)
            if change.intent in _DELETERS and not _takes_deletes_away(self._work.changes):
                return self._deletion(change, head, since)
        except (NotFound, Unsupported):
            # Of a file that has expired meanwhile, or cannot be read here, nothing can be told.
            return change
        return change

    def _rewrite(self, change: Changes, since: Sequence[OtherCommit]) -> Changes:
        """Delete in the new files what others deleted in the old ones."""
        removed = _removed(change)
        new = only(change.added, is_data_file(change.added))
        found = meanwhile(removed, since)
        gone, marked = found.removed, one_chunk(found.data_dvs["referenced_file"])
        marked = without(marked, gone)
        if (
            not len(gone) + len(marked)
            or len(gone) == len(removed)
            or len(found.compacted)
            or len(without(found.bare, gone))
            or new.num_rows < change.added.num_rows
        ):
            return change
        plan = self._in_base(pa.concat_arrays([gone, marked]))
        picked = _picked(plan, self._vectors(plan, found.data_dvs), gone, self._files)
        if picked is None:
            return change
        metadata, store = self._work.base.metadata, self._files.store
        ids = ids_of(plan, picked, metadata=metadata, store=store)
        into = _plan_of(new, metadata)
        places = None if ids is None else places_of(ids, into, metadata=metadata, store=store)
        if places is None:
            return change
        data_dvs = self._marked(places, into, metadata)
        stays = pc.invert(_is_named(change.removed, gone))
        return replace(
            change,
            added=concat([change.added, data_dvs]),
            removed=change.removed.filter(stays),
            carried=marked,
        )

    def _deletion(self, change: Changes, head: State, since: Sequence[OtherCommit]) -> Changes:
        """Delete rows where compactions have carried them."""
        own = only(change.added, is_data_dv(change.added))
        removed = _removed(change)
        targets = pa.concat_arrays([removed, one_chunk(own["referenced_file"])]).unique()
        found = meanwhile(targets, since)
        moved = found.compacted
        remade = without(without(found.remade, removed), moved)
        both = pa.concat_arrays([moved, remade])
        if not len(both) or len(found.removed.filter(is_among(found.removed, both))):
            return change
        plan = self._in_base(both)
        own = only(own, is_among(own["referenced_file"], both))
        whole = removed.filter(is_among(removed, moved))
        picked = _picked(plan, self._vectors(plan, own), whole, self._files)
        if picked is None:
            return change
        base, store = self._work.base.metadata, self._files.store
        ids = ids_of(plan, picked, metadata=base, store=store)
        if ids is None:
            return change
        there = pa.concat_arrays([added_by_compactions(since), remade]).unique()
        now = _only(self._planned(head), there)
        age = 0 if (start := self._snapshot(self._work.base)) is None else start.sequence_number
        places = places_of(ids, now, metadata=head.metadata, store=store, upto=age)
        if places is None:
            return change
        data_dvs = self._marked(places, now, head.metadata)
        stay = pc.invert(
            pc.and_(is_data_dv(change.added), is_among(change.added["referenced_file"], both))
        )
        return replace(
            change,
            added=concat([only(change.added, stay), data_dvs]),
            removed=change.removed.filter(pc.invert(_is_named(change.removed, whole))),
            carried=one_chunk(data_dvs["referenced_file"]),
        )

    # --- trees and files ---------------------------------------------------------------------

    def _snapshot(self, state: State) -> Snapshot | None:
        return state.head(self._work.branch or MAIN)

    @cached_property
    def _base_plan(self) -> Plan:
        """The plan of the base, which stays the same however often the commit is tried."""
        return self._planned(self._work.base)

    def _in_base(self, names: pa.Array) -> Plan:
        """Return the plan of data files of the base; NotFound where one was not there."""
        plan = _only(self._base_plan, names)
        if plan.tasks.num_rows < len(names):
            raise NotFound("a file that a change relies on was not in the table")
        return plan

    def _planned(self, state: State) -> Plan:
        metadata, snapshot = state.metadata, self._snapshot(state)
        shape = metadata.shape()
        return Planner(
            self._files.root(snapshot, shape, keep=True),
            self._files.reader(shape),
            shape,
            AlwaysTrue(),
            root_file=snapshot.root_file if snapshot else "root",
            table_location=metadata.location,
            stats_columns=True,
            run=in_order,
        ).whole()

    def _vectors(self, plan: Plan, data_dvs: Entries) -> Mapping[str, Rows]:
        """Return the rows that DVs delete, by data file."""
        counts = dict(
            zip(
                *(plan.tasks[name].to_pylist() for name in ("location", "record_count")),
                strict=True,
            )
        )
        facts = data_dvs.select(
            [
                *("referenced_file", "location", "dv_offset", "dv_size_in_bytes"),
                *("record_count", "key_metadata"),
            ]
        ).to_pylist()
        return {
            each["referenced_file"]: read_vector(
                self._files.store,
                {
                    "location": each["referenced_file"],
                    "record_count": counts[each["referenced_file"]],
                    "dv_location": each["location"],
                    "dv_offset": each["dv_offset"],
                    "dv_size_in_bytes": each["dv_size_in_bytes"],
                    "dv_cardinality": each["record_count"],
                    "dv_key_metadata": each["key_metadata"],
                },
                self._files.location,
            )
            for each in facts
            if each["referenced_file"] in counts
        }

    def _marked(self, places: Mapping[int, Rows], plan: Plan, metadata: TableMetadata) -> Entries:
        """Write DVs that delete rows of a plan's files, beside what is deleted already."""
        names = plan.tasks["location"]
        data_dvs = write_data_vectors(
            {names[number].as_py(): pa.array(rows) for number, rows in places.items()},
            tasks=plan.tasks,
            metadata=metadata,
            store=self._files.store,
            deletes=plan.deletes,
        )
        made = pc.unique(data_dvs["location"]).to_pylist()
        self._own += made
        self._written += made
        return data_dvs


def _removed(change: Changes) -> pa.Array:
    removed = change.removed
    return one_chunk(removed["key"].filter(is_data_file(removed)))


def _takes_deletes_away(changes: Sequence[Changes]) -> bool:
    """Tell whether some change removes deletes of other files than those that go or get a DV.

    Rows that those delete may be in other files by now, where nothing else would delete them.
    """
    known = [_removed(each) for each in changes] + [
        one_chunk(each.added["referenced_file"].filter(is_data_dv(each.added))) for each in changes
    ]
    going = [each.removed.filter(pc.invert(is_data_file(each.removed))) for each in changes]
    keys = pa.concat_arrays([one_chunk(each["key"]) for each in going])
    return len(without(keys, pa.concat_arrays(known))) > 0


def _share_data_dvs(changes: Sequence[Changes]) -> bool:
    """Tell whether one of several changes has carried a DV to a data file that another marks too."""
    if len(changes) == 1 or not any(len(each.carried) for each in changes):
        return False
    marked = [
        one_chunk(each.added["referenced_file"].filter(is_data_dv(each.added))) for each in changes
    ]
    return first_repeated(pa.concat_arrays(marked)) is not None


def _is_named(removed: pa.Table, names: pa.Array) -> pa.ChunkedArray:
    return pc.and_(is_data_file(removed), is_among(removed["key"], names))


def _picked(
    plan: Plan, vectors: Mapping[str, Rows], whole: pa.Array, files: TableFiles
) -> dict[int, Rows] | None:
    """Return the rows of each file that new DVs delete, or all, as numbers by task.

    None where there are too many, or rows came back that an older DV had deleted.
    """
    every = set(whole.to_pylist())
    facts = plan.tasks.select(["location", "record_count", *VECTOR_COLUMNS]).to_pylist()
    if sum(each["record_count"] for each in facts if each["location"] in every) > _MOST_ROWS:
        return None
    picked: dict[int, Rows] = {}
    for number, task in enumerate(facts):
        if task["location"] in every:
            picked[number] = np.arange(task["record_count"])
            continue
        now = vectors[task["location"]]
        if task["dv_location"] is not None:
            before = read_vector(files.store, task, files.location)
            if not np.isin(before, now, assume_unique=True).all():
                return None
            now = np.setdiff1d(now, before, assume_unique=True)
        picked[number] = now
    return picked


def _only(plan: Plan, names: pa.Array) -> Plan:
    """Return the plan of those data files alone that have one of the names."""
    return replace(plan, tasks=plan.tasks.filter(is_among(plan.tasks["location"], names)))


def _plan_of(new: Entries, metadata: TableMetadata) -> Plan:
    """Return the plan of new data files, in which nothing is deleted yet."""
    found = added_tasks(placed(new, leaf=None), metadata.shape())
    tasks = found.tasks
    for name in filter(parse_column, new.column_names):
        if name not in tasks.column_names:
            tasks = tasks.append_column(name, new[name])
    return Plan(tasks=tasks, deletes=found.deletes, residuals=[AlwaysTrue()], metrics=Metrics())
