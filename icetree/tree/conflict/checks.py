"""The checks behind the conflict matrix: each names the files that are in a change's way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import index_by_id

from icetree.spec.arrays import is_among, one_chunk, without
from icetree.spec.entry.entry import Content, Entries, is_content, is_data_dv, is_data_file, only
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes, Intent, Operation
from icetree.tree.diff.diff import Diff
from icetree.tree.partitions import partition_codes, unpartitioned
from icetree.tree.plan.delete_stats import judged
from icetree.tree.plan.deletes import equality_pairs
from icetree.tree.prune import prune

#: Returns the entries of live data files, given their locations.
Lookup: TypeAlias = Callable[[pa.Array], Entries]


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherCommit:
    """A commit that landed after the base of a change."""

    snapshot_id: int
    operation: Operation
    diff: Diff

    @property
    def changes_rows(self) -> bool:
        """A compaction swaps files and leaves every row as it was."""
        return self.operation is not Operation.REPLACE


class Case:
    """A change under examination; what several checks ask of it is worked out once."""

    def __init__(
        self,
        changes: Changes,
        shape: Shape,
        lookup: Lookup | None,
        beside: Entries | None = None,
        *,
        since: Sequence[OtherCommit] = (),
    ) -> None:
        self.changes = changes
        self.shape = shape
        self._lookup = lookup
        self._beside = beside
        self._since = since

    @cached_property
    def has_missed_equality_deletes(self) -> bool:
        """Whether an equality delete came since the base of this change, and has gone again."""
        came, went = (
            pa.concat_arrays([pa.array([], pa.string()), *map(_equality_deletes, parts)])
            for parts in (
                [each.diff.added for each in self._since],
                [each.diff.removed for each in self._since],
            )
        )
        return bool(pc.any(is_among(went, came)).as_py())

    @cached_property
    def added_data(self) -> Entries:
        """Data files this change adds."""
        return _data(self.changes.added)

    @cached_property
    def data_dv_targets(self) -> pa.Array:
        """Data files this change adds a DV to, its own new files left out."""
        added = self.changes.added
        targets = added["referenced_file"].filter(is_data_dv(added))
        return without(targets, self.added_data["location"]).combine_chunks()

    @cached_property
    def removed_data(self) -> pa.Array:
        """Data files this change removes."""
        return self.removed(Content.DATA)

    def removed(self, content: Content) -> pa.Array:
        """Return the keys of removed files of one content."""
        removed = self.changes.removed
        return removed["key"].filter(is_content(removed, content)).combine_chunks()

    @cached_property
    def touched(self) -> Entries | None:
        """The entries of data files that this change removes or adds a DV to, where known."""
        if self._lookup is None:
            return None
        return self._lookup(pa.concat_arrays([self.removed_data, self.data_dv_targets]).unique())

    @cached_property
    def heirs(self) -> Entries:
        """Data files that rows of the files this change touches may have been carried into.

        A rewrite tells which: its own. Otherwise it may be any that the transaction adds.
        """
        if self._beside is None or self.changes.intent is Intent.REWRITE:
            return self.added_data
        return _data(self._beside)

    def reach_heirs(self, deletes: Entries) -> pa.BooleanArray:
        """Tell which equality deletes reach the rows wherever this change carries them.

        They must be younger than every heir, and of its spec: then a row is in the partition
        that it was in before. One of an unpartitioned spec reaches all partitions. And by columns
        that the table has: new files may lack what it dropped.
        """
        heirs = self.heirs
        if heirs["sequence_number"].null_count:  # as young as the commit
            return pa.repeat(pa.scalar(False), deletes.num_rows)
        younger = pc.greater(deletes["sequence_number"], pc.max(heirs["sequence_number"]))
        specs = pc.unique(heirs["partition_spec_id"])
        alike = pc.is_in(deletes["partition_spec_id"], specs if len(specs) == 1 else specs[:0])
        wide = pa.array(unpartitioned(deletes, self.shape))
        held = _by_columns_of(deletes, self.shape)
        return one_chunk(pc.and_(held, pc.and_(younger, pc.or_(alike, wide))))

    @cached_property
    def _bound(self) -> prune.Predicate | None:
        filter = self.changes.filter
        return None if filter is None else prune.bind(filter, self.shape)

    def in_filter(self, entries: Entries) -> Entries:
        """Return the entries whose rows may match; without a filter, all of them."""
        if self._bound is None or entries.num_rows == 0:
            return entries
        return entries.filter(prune.may_match(judged(entries, self.shape), self._bound))

    def outside_filter(self, entries: Entries) -> Entries:
        """Return the entries that may have rows which do not match; without a filter, none."""
        if self._bound is None or entries.num_rows == 0:
            return entries.slice(0, 0)
        return entries.filter(pc.invert(prune.must_match(entries, self._bound)))

    def in_partitions(self, entries: Entries) -> Entries:
        """Return the entries in partitions that the added data files belong to."""
        own = self.added_data
        if own.num_rows == 0 or entries.num_rows == 0:
            return entries.slice(0, 0)
        if unpartitioned(own, self.shape).any():
            return entries
        # Two specs never share a partition.
        specs = pc.unique(own["partition_spec_id"])
        asked = [pc.is_in(table["partition_spec_id"], specs).to_numpy() for table in (own, entries)]
        own_codes, codes = partition_codes([own, entries], asked, self.shape)
        wide = pc.and_(
            pa.array(unpartitioned(entries, self.shape)),
            is_content(entries, Content.EQUALITY_DELETES),
        )
        return entries.filter(pc.or_(wide, pa.array(np.isin(codes, own_codes))))


# --- against one other commit ------------------------------------------------------------------


def missing_files(case: Case, other: OtherCommit) -> pa.Array:
    """Files that the change removes, and data files that it adds DVs to, must still be there.

    A compaction counts: it takes files away like any other commit. A DV goes with its data
    file, so one that was replaced does not matter when the data file goes too.
    """
    removed = other.diff.removed
    data_dvs = without(case.removed(Content.POSITION_DELETES), case.removed_data)
    needed = pa.concat_arrays([case.removed_data, case.data_dv_targets])
    gone = pc.or_(
        pc.and_(is_data_file(removed), is_among(removed["location"], needed)),
        pc.or_(
            pc.and_(is_data_dv(removed), is_among(removed["referenced_file"], data_dvs)),
            pc.and_(
                is_content(removed, Content.EQUALITY_DELETES),
                is_among(removed["location"], case.removed(Content.EQUALITY_DELETES)),
            ),
        ),
    )
    return _labels(only(removed, gone))


def deletes_on_replaced(case: Case, other: OtherCommit) -> pa.Array:
    """Data files whose rows the change carries into new files must have no deletes it did not see.

    That is a DV on a removed data file, unless its rows were found again in the new files and
    deleted there, or an equality delete that reaches a removed data file or one that gets a DV. Only a transaction that adds data, by this change or another, can
    bring a row back. An equality delete newer than every added data file still applies to them
    within its spec, so a rewrite that keeps the data's sequence numbers and spec is safe from it,
    unless it deletes by a column that the table has dropped.
    """
    if case.heirs.num_rows == 0:
        return _none()
    added = other.diff.added if other.changes_rows else _marking_more(case, other.diff)
    replaced = without(case.removed_data, case.changes.carried)
    data_dvs = added.filter(
        pc.and_(is_data_dv(added), is_among(added["referenced_file"], replaced))
    )
    deletes = only(added, is_content(added, Content.EQUALITY_DELETES))
    escaped = _reaching(case, deletes.filter(pc.invert(case.reach_heirs(deletes))))
    return pa.concat_arrays([_labels(each) for each in (data_dvs, escaped)])


def _marking_more(case: Case, diff: Diff) -> Entries:
    """Return the DVs of a compaction that delete more rows than those they replace.

    By itself it changes no row: what they delete more was deleted by value before. The change has
    seen that, or the equality delete still stands and is judged by itself, unless it came and went.
    """
    added, removed = diff.added, diff.removed
    if not case.has_missed_equality_deletes:
        return added.slice(0, 0)
    before = only(removed, is_data_dv(removed))
    counts = before["record_count"].take(
        pc.index_in(added["referenced_file"], value_set=one_chunk(before["referenced_file"]))
    )
    alike = pc.fill_null(pc.equal(added["record_count"], counts), False)
    return only(added, pc.and_not(is_data_dv(added), alike))


def rows_back(case: Case, other: OtherCommit) -> pa.Array:
    """Data files that the change removes, or adds a DV to, must have lost no DV it saw.

    Rows that this brought back are not in the new files, and the new DV would delete them again.
    One with fewer rows in its place counts as lost. Who removes files by name, and carries no
    rows on, wants all of theirs gone.
    """
    if not other.changes_rows:
        return _none()
    by_name = case.changes.intent is Intent.DELETE_FILES and not case.heirs.num_rows
    chosen = _none() if by_name else case.removed_data
    relied_on = pa.concat_arrays([chosen, case.data_dv_targets])
    added, removed = other.diff.added, other.diff.removed
    lost = only(removed, is_data_dv(removed))
    lost = only(lost, is_among(lost["referenced_file"], relied_on))
    # A DV goes with its data file, which is a matter of another check.
    gone = is_among(lost["referenced_file"], removed["location"].filter(is_data_file(removed)))
    new = only(added, is_data_dv(added))
    counts = new["record_count"].take(
        pc.index_in(lost["referenced_file"], value_set=one_chunk(new["referenced_file"]))
    )
    replaced = pc.fill_null(pc.greater_equal(counts, lost["record_count"]), False)
    return _labels(only(lost, pc.invert(pc.or_(gone, replaced))))


def deletes_on_carried(case: Case, other: OtherCommit) -> pa.Array:
    """Rows that the change carries into another spec must not come within reach of new deletes.

    An equality delete of a partition, which spared them where they were, would delete them there.
    """
    if not other.changes_rows or case.heirs.num_rows == 0:
        return _none()
    added = other.diff.added
    return _labels(_catching(case, added.filter(is_content(added, Content.EQUALITY_DELETES))))


def _reaching(case: Case, deletes: Entries) -> Entries:
    touched = len(case.removed_data) + len(case.data_dv_targets)
    if deletes.num_rows == 0 or touched == 0:
        return deletes.slice(0, 0)
    files = case.touched
    if files is None:
        return deletes
    return deletes.take(np.unique(equality_pairs(files, deletes, case.shape).deletes))


def _by_columns_of(deletes: Entries, shape: Shape) -> pa.BooleanArray:
    """Tell which equality deletes compare columns of the current schema alone."""
    lists = one_chunk(deletes["equality_ids"])
    current = pa.array(list(index_by_id(shape.schema)), pa.int64())
    known = pc.is_in(pc.list_flatten(lists).cast(pa.int64()), value_set=current)
    held = np.ones(deletes.num_rows, np.bool_)
    held[pc.list_parent_indices(lists).filter(pc.invert(known)).to_numpy()] = False
    return pa.array(held)


def _catching(case: Case, deletes: Entries) -> Entries:
    """Return the deletes that reach rows only where the change carries them: in another spec."""
    heirs = case.heirs
    if deletes.num_rows == 0 or heirs["sequence_number"].null_count:  # as young as the commit
        return deletes.slice(0, 0)
    wide = pa.array(unpartitioned(deletes, case.shape))
    deletes = deletes.filter(pc.invert(wide))
    if case.touched is not None:
        before = pc.unique(case.touched["partition_spec_id"])
        alike = before if len(before) == 1 else before[:0]
        deletes = deletes.filter(pc.invert(pc.is_in(deletes["partition_spec_id"], alike)))
    return deletes.take(np.unique(equality_pairs(heirs, deletes, case.shape).deletes))


def second_data_dvs(case: Case, other: OtherCommit) -> pa.Array:
    """A data file that the change adds a DV to must have got none from another commit.

    A compaction counts: a data file never has two DVs. One that the change's own DV has taken in
    does not.
    """
    added = other.diff.added
    targets = without(case.data_dv_targets, case.changes.carried)
    both = pc.and_(is_data_dv(added), is_among(added["referenced_file"], targets))
    return _labels(only(added, both))


def data_in_filter(case: Case, other: OtherCommit) -> pa.Array:
    """No data files were added whose rows may match the filter; without a filter, none at all.

    A compaction adds no rows and does not count.
    """
    if not other.changes_rows:
        return _none()
    return _labels(case.in_filter(_data(other.diff.added)))


def deletes_in_filter(case: Case, other: OtherCommit) -> pa.Array:
    """No DVs or equality deletes were added that may delete rows matching the filter."""
    if not other.changes_rows:
        return _none()
    return _labels(case.in_filter(_deletes(other.diff.added)))


def removed_in_filter(case: Case, other: OtherCommit) -> pa.Array:
    """No data files were removed whose rows may match the filter."""
    if not other.changes_rows:
        return _none()
    return _labels(case.in_filter(_data(other.diff.removed)))


def data_in_partitions(case: Case, other: OtherCommit) -> pa.Array:
    """No data files were added to a partition being replaced: one that an added file is in.

    An unpartitioned table is one partition. Partitions are compared within a spec.
    """
    if not other.changes_rows:
        return _none()
    return _labels(case.in_partitions(_data(other.diff.added)))


def deletes_in_partitions(case: Case, other: OtherCommit) -> pa.Array:
    """No data files were removed from a partition being replaced, and none of its rows deleted.

    A DV counts where its data file is being replaced. An equality delete of an unpartitioned
    spec is in every partition.
    """
    if not other.changes_rows:
        return _none()
    added = other.diff.added
    data_dvs = added.filter(
        pc.and_(is_data_dv(added), is_among(added["referenced_file"], case.removed_data))
    )
    equality = only(added, is_content(added, Content.EQUALITY_DELETES))
    deletes = [_labels(data_dvs), _labels(case.in_partitions(equality))]
    removed = case.in_partitions(_data(other.diff.removed))
    return pa.concat_arrays([*deletes, _labels(removed)])


# --- of the change by itself -------------------------------------------------------------------


def outside_filter(case: Case) -> pa.Array:
    """Every row of the files that a strict overwrite by filter adds must match the filter."""
    return _labels(case.outside_filter(case.added_data)) if case.changes.strict else _none()


def data_dvs_on_removed(case: Case) -> pa.Array:
    """A data file that goes gets no DV in the same change."""
    added = case.changes.added
    both = pc.and_(is_data_dv(added), is_among(added["referenced_file"], case.removed_data))
    return _labels(only(added, both))


def _data(entries: Entries) -> Entries:
    return only(entries, is_data_file(entries))


def _deletes(entries: Entries) -> Entries:
    return only(entries, pc.invert(is_data_file(entries)))


def _equality_deletes(entries: Entries) -> pa.Array:
    return one_chunk(entries["location"].filter(is_content(entries, Content.EQUALITY_DELETES)))


def _none() -> pa.Array:
    return pa.array([], pa.string())


def _labels(entries: Entries) -> pa.Array:
    """Name files as a reader of a message would: a DV by its data file."""
    named = pc.binary_join_element_wise("the DV of ", entries["referenced_file"], "")
    found = pc.if_else(is_data_dv(entries), named, entries["location"])
    return found.combine_chunks()
