"""A table whose files are a dict: real bytes, real codecs, no disk, no catalog."""

from __future__ import annotations

from dataclasses import dataclass, field

from icetree.codec import manifest
from icetree.spec.entry.entry import ROOT, Entries
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes
from icetree.tree.check.check import Finding, check
from icetree.tree.draft import NO_HEAD, Draft, Head, Stamp
from icetree.tree.files import FileReader
from icetree.tree.grow.grow import grow, prepare
from icetree.tree.live import live_files
from icetree.tree.policy import Policy


@dataclass(slots=True)
class MemoryTable:
    """Commits one change after the other; snapshot ids and sequence numbers count from 1."""

    shape: Shape
    policy: Policy = field(default_factory=Policy)
    files: dict[str, bytes] = field(default_factory=dict)
    #: The head after each commit; the first is that of an empty table.
    heads: list[Head] = field(default_factory=lambda: [NO_HEAD])

    @property
    def head(self) -> Head:
        return self.heads[-1]

    @property
    def reader(self) -> FileReader:
        return FileReader(fetch=self.files.__getitem__, shape=self.shape)

    def draft(self, changes: Changes) -> Draft:
        """Store what a commit needs, short of making it the head."""
        number = len(self.heads)
        stamp = Stamp(snapshot_id=number, sequence_number=number, commit_id=f"c{number}")
        prepared = prepare(changes, self.shape, self.policy, commit_id=stamp.commit_id)
        self.files |= {leaf.file.location: leaf.file.content for leaf in prepared.leaves}
        draft = grow(self.head, prepared, stamp, self.shape, self.policy, self.reader)
        self.files |= {file.location: file.content for file in draft.files}
        return draft

    def commit(self, changes: Changes) -> Head:
        """Apply a change, through the bytes of its root."""
        draft = self.draft(changes)
        name = f"metadata/root-{len(self.heads)}.parquet"
        self.files[name] = draft.root_bytes
        head = Head(
            root=manifest.decode(draft.root_bytes, ROOT, self.shape, file=name),
            next_row_id=draft.next_row_id,
            summary=draft.summary,
            root_file=name,
        )
        self.heads.append(head)
        return head

    def live(self, number: int = -1) -> Entries:
        """Return the live files of a snapshot, the newest unless told."""
        return live_files(self.heads[number].root, self.reader)

    def findings(self, number: int = -1) -> list[Finding]:
        """Return what `check` finds in a snapshot."""
        at = range(len(self.heads))[number]
        head = self.heads[at]
        return check(
            head.root,
            self.reader,
            self.shape,
            root_file=head.root_file,
            snapshot_id=at,
            sequence_number=at,
            next_row_id=head.next_row_id,
        )
