"""A table in memory that reads quickly and never writes a name twice."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import Self

from icetree.codec import manifest
from icetree.spec.entry.entry import ROOT, Entries
from icetree.tree.changes import Changes
from icetree.tree.draft import Draft, Head
from icetree.tree.files import FileReader
from icetree.tree.reading import Keep, Leaf
from tests.memory import MemoryTable


@dataclass(slots=True)
class CachingReader:
    """Leaves never change, so each is decoded once for each way that a root tells of it."""

    files: FileReader
    seen: dict[tuple[Leaf, frozenset[str] | None], Entries] = field(default_factory=dict)

    def leaf(
        self,
        leaf: Leaf,
        *,
        columns: Collection[str] | None = None,
        keep: Keep | None = None,
    ) -> Entries:
        """Return the leaf's entries with their position."""
        assert keep is None, "no tree code under test skips row groups"
        key = (leaf, None if columns is None else frozenset(columns))
        if key not in self.seen:
            self.seen[key] = self.files.leaf(leaf, columns=columns)
        return self.seen[key]

    def blob(
        self, location: str, *, offset: int, size_bytes: int, key: bytes | None = None
    ) -> bytes:
        """Return a range of a file."""
        return self.files.blob(location, offset=offset, size_bytes=size_bytes, key=key)


class WriteOnce(dict[str, bytes]):
    """Files by name; none is ever written twice."""

    def __ior__(self, more: Any) -> Self:  # type: ignore[override,misc]
        for name, content in more.items():
            self[name] = content
        return self

    def __setitem__(self, name: str, content: bytes) -> None:
        assert name not in self, f"{name} is written a second time"
        super().__setitem__(name, content)


class Table(MemoryTable):
    """A table in memory that reads quickly and never writes a name twice."""

    def __init__(self, **given: Any) -> None:
        super().__init__(files=WriteOnce(), **given)
        self.drafted: Draft | None = None
        self._reader = CachingReader(
            FileReader(fetch=lambda name: self.files[name], shape=self.shape)
        )

    @property
    def reader(self) -> CachingReader:  # type: ignore[override]
        return self._reader

    def draft(self, changes: Changes) -> Draft:
        """Store what a commit needs, and remember what it will become."""
        self.drafted = super().draft(changes)
        return self.drafted

    def adopt(self, draft: Draft) -> None:
        """Make a draft, whose files are stored, the head."""
        name = f"metadata/root-{len(self.heads)}.parquet"
        self.files[name], self.drafted = draft.root_bytes, draft
        root = manifest.decode(draft.root_bytes, ROOT, self.shape, file=name)
        next_row_id, summary = draft.next_row_id, draft.summary
        self.heads.append(Head(root=root, next_row_id=next_row_id, summary=summary, root_file=name))
