"""What the same commits write in a v3 table, by the rules and defaults of Iceberg's own writers.

A commit writes a manifest for new data files and one for new deletes, each manifest anew that
tracks a removed file, the manifest list and metadata.json. A stream appends without merging. Any
other commit merges the manifests of one kind and partition spec, once there are a hundred; those
of a spec that is not in use any more at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.explore.cost import Cost
from icetree.explore.v3_sizes import Sizes, sizes
from icetree.spec.entry.entry import Entries, is_data_file, keys_of
from icetree.table.table import Table
from icetree.tree.diff.diff import Diff

#: `commit.manifest.min-count-to-merge`
MERGE_AT: Final = 100

_TRACKED: Final = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("is_data", pa.bool_()),
        pa.field("spec", pa.int64()),
        pa.field("manifest", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest that a commit writes."""

    is_data: bool
    spec: int
    entries: int


@dataclass(slots=True, kw_only=True)
class V3:
    """The v3 table's manifests, as they would be by now."""

    tracked: pa.Table = field(default_factory=_TRACKED.empty_table)
    snapshots: int = 0
    _last: int | None = None
    _numbers: int = 0

    @property
    def opened(self) -> int:
        """Metadata files that planning a full scan opens, metadata.json left out."""
        return 1 + len(pc.unique(self.tracked["manifest"]))

    def follow(self, table: Table, *, commits: int, merges: bool) -> Cost:
        """Make the commits that the table saw since the last call; return what they would write.

        Those of them that made no snapshot write metadata.json only.
        """
        changed = list(table.changes(since=self._last).diffs()) if table.metadata.refs else []
        size = sizes(table)
        total = Cost()
        for snapshot, diff in changed:
            total += self.cost(diff, size, merges=merges)
            self._last = snapshot.snapshot_id
        others = commits - len(changed)
        return total + Cost(files=others, size_bytes=others * size.metadata(self.snapshots))

    def cost(self, diff: Diff, size: Sizes, *, merges: bool, versions: int = 1) -> Cost:
        """Make one commit; return what it writes: manifests, their list, and metadata.json.

        That of several commits may be one: `versions` is 0 for those that have none to themselves.
        """
        manifests = self.commit(diff, merges=merges)
        self.snapshots += 1
        return Cost(
            files=len(manifests) + 1 + versions,
            size_bytes=sum(size.manifest(m.is_data, m.entries) for m in manifests)
            + size.manifest_list(self.opened - 1)
            + versions * size.metadata(self.snapshots),
        )

    def commit(self, diff: Diff, *, merges: bool) -> list[Manifest]:
        """Make one commit; return the manifests it writes."""
        gone = pc.is_in(self.tracked["key"], value_set=_keys(diff.removed))
        rewritten = pc.unique(self.tracked.filter(gone)["manifest"])
        written = list(self._rewritten(rewritten))
        self.tracked = self.tracked.filter(pc.invert(gone))
        is_data = is_data_file(diff.added)
        for flag in (is_data, pc.invert(is_data)):
            added = diff.added.filter(flag)
            for spec in pc.unique(added["partition_spec_id"]).to_pylist():
                mine = added.filter(pc.equal(added["partition_spec_id"], spec))
                written.append(self._track(mine, is_data=flag is is_data, spec=spec))
        return list(self._merged(written)) if merges else written

    def _rewritten(self, manifests: pa.ChunkedArray) -> Iterator[Manifest]:
        """Yield manifests written anew: what went is still told in them."""
        held = self.tracked.filter(pc.is_in(self.tracked["manifest"], value_set=_array(manifests)))
        counts = held.group_by(["manifest", "is_data", "spec"]).aggregate([("key", "count")])
        for each in counts.to_pylist():
            yield Manifest(is_data=each["is_data"], spec=each["spec"], entries=each["key_count"])

    def _track(self, added: Entries, *, is_data: bool, spec: int) -> Manifest:
        self._numbers += 1
        facts = (is_data, spec, self._numbers)
        columns = [
            pa.repeat(pa.scalar(fact, each.type), added.num_rows)
            for fact, each in zip(facts, list(_TRACKED)[1:], strict=True)
        ]
        rows = pa.table([_keys(added), *columns], schema=_TRACKED)
        self.tracked = pa.concat_tables([self.tracked, rows]).combine_chunks()
        return Manifest(is_data=is_data, spec=spec, entries=added.num_rows)

    def _merged(self, written: list[Manifest]) -> Iterator[Manifest]:
        """Yield what is written when manifests may be merged; of those merged, only the result."""
        groups = self.tracked.group_by(["is_data", "spec"]).aggregate(
            [("manifest", "count_distinct"), ("manifest", "max"), ("key", "count")]
        )
        newest = groups.group_by("is_data").aggregate([("manifest_max", "max")])
        firsts = set(newest["manifest_max_max"].to_pylist())
        merged = set()
        for group in groups.to_pylist():
            # Where the newest manifest is not among them, two are enough.
            least = MERGE_AT if group["manifest_max"] in firsts else 2
            if group["manifest_count_distinct"] >= least:
                is_data, spec = group["is_data"], group["spec"]
                self._renumber(is_data=is_data, spec=spec)
                merged.add((is_data, spec))
                yield Manifest(is_data=is_data, spec=spec, entries=group["key_count"])
        yield from (each for each in written if (each.is_data, each.spec) not in merged)

    def _renumber(self, *, is_data: bool, spec: int) -> None:
        """Make one manifest of all of a kind and spec."""
        self._numbers += 1
        same = pc.and_(
            pc.equal(self.tracked["is_data"], is_data), pc.equal(self.tracked["spec"], spec)
        )
        numbers = pc.if_else(same, pa.scalar(self._numbers, pa.int64()), self.tracked["manifest"])
        self.tracked = self.tracked.set_column(3, _TRACKED.field("manifest"), numbers)


def _keys(entries: Entries) -> pa.Array:
    """Return what tells files apart; a deletion vector's key is that of its data file."""
    kind = pc.cast(entries["content_type"], pa.string())
    return _array(pc.binary_join_element_wise(kind, keys_of(entries), " "))


def _array(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
