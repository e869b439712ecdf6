"""A table and its model, side by side: every commit goes to both, and both must agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from icetree.codec import manifest
from icetree.errors import CommitConflict
from icetree.spec.entry.entry import (
    MANIFESTS,
    ROOT,
    TRANSITIONS,
    Content,
    Entries,
    Entry,
    Status,
    from_table,
    to_table,
)
from icetree.tree.changes import REMOVED, Changes, Intent
from icetree.tree.diff.diff import diff
from icetree.tree.draft import Head
from icetree.tree.files import FileReader
from icetree.tree.live import LEAF, live_files
from tests.laws.model import DATA, EQUALITY, VECTOR, Key, Model, NotLive, key_of
from tests.laws.strategies import Op, data_file, equality_delete, vector
from tests.laws.table import CachingReader, Table

#: What of a live file is compared after every commit; all of it is compared at the end.
COMPARED = (
    "content_type",
    "location",
    "referenced_file",
    "sequence_number",
    "file_sequence_number",
    "first_row_id",
    "record_count",
    "snapshot_id",
    "dv_offset",
)
_LISTED = {*COMPARED, "dv_size_in_bytes", "file_size_in_bytes"}
#: A removal stamps a root entry with the removing snapshot, a leaf's entry it does not touch.
COMPARED_REMOVED = tuple(name for name in COMPARED if name != "snapshot_id")


def rows(files: Entries, columns: Iterable[str] = COMPARED) -> set[tuple[Any, ...]]:
    """Return the files as tuples; none of them may be there twice."""
    listed = list(zip(*(files[name].to_pylist() for name in columns), strict=True))
    found = set(listed)
    assert len(found) == len(listed)
    return found


def expected(files: Mapping[Key, Entry], columns: Iterable[str] = COMPARED) -> set[tuple[Any, ...]]:
    """Return what `rows` should be."""
    return {tuple(getattr(each, name) for name in columns) for each in files.values()}


@dataclass(slots=True)
class World:
    """A table, its model, and what was live after each commit."""

    table: Table
    model: Model = field(default_factory=Model)
    #: (leaf, position, record count, size) of each live file, after each commit.
    places: list[dict[Key, tuple[Any, ...]]] = field(default_factory=lambda: [{}])
    states: list[dict[Key, Entry]] = field(default_factory=lambda: [{}])
    #: Every name of a data file that ever was.
    made: int = 0
    gone: list[str] = field(default_factory=list)
    #: How often each kind of thing happened.
    tally: Counter[str] = field(default_factory=Counter)

    def change(self, op: Op) -> tuple[Changes, list[Entry], list[Key]]:
        """Return what the operation means now, to the table and to the model."""
        live = {content: self.model.names(content) for content in (DATA, VECTOR, EQUALITY)}
        swept = range(0, len(live[DATA]), op.sweep) if op.sweep else ()
        removed = [
            *_picked(live[DATA], (*op.remove, *swept), DATA),
            *_picked(live[VECTOR], op.remove_vectors, VECTOR),
            *_picked(live[EQUALITY], op.remove_equality, EQUALITY),
        ]
        age = None
        if op.keeps_age:
            old = [self.model.files[key].sequence_number or 0 for key in removed if key[0] == DATA]
            age = max(old, default=None)
        shape = self.table.shape
        names = [self._name("data") for _ in range(op.add)]
        names += [self.gone.pop(0) for _ in range(min(op.add_again, len(self.gone)))]
        added = [data_file(name, shape, op.salt + i, age=age) for i, name in enumerate(names)]
        again = names[op.add :]
        stays = [key for key in _picked(live[DATA], op.vectors, DATA) if key not in removed]
        owners = [self.model.files[key] for key in stays] + added[: op.vectors_of_new]
        puffin = self._name("dv")
        added += [vector(of, puffin, i, shape) for i, of in enumerate(owners)]
        added += [equality_delete(self._name("eq"), op.salt + i) for i in range(op.equality)]
        for what, does in (
            ("append", names),
            ("append again", again),
            ("remove data files", [key for key in removed if key[0] == DATA]),
            ("remove DVs", [key for key in removed if key[0] == VECTOR]),
            ("remove equality deletes", [key for key in removed if key[0] == EQUALITY]),
            ("add or replace DVs", owners),
            ("add equality deletes", range(op.equality)),
            ("nothing", () if added or removed else (None,)),
        ):
            self.tally[what] += bool(does)
            self.tally["operations"] += bool(does)
        changes = Changes(
            intent=op.intent,
            added=to_table(added, shape),
            removed=self._placed(removed, op),
            seen=self._placed(stays, op),
        )
        return changes, added, removed

    def _name(self, kind: str) -> str:
        self.made += 1
        return f"data/{kind}-{self.made:05}"

    def _placed(self, keys: list[Key], op: Op) -> pa.Table:
        """Name files, with hints where they are or were."""
        nowhere = (None, None, None, None)
        found = []
        for i, key in enumerate(keys):
            hint = ("none", "right", "stale")[i % 3] if op.hint == "mixed" else op.hint
            at = self.places[
                -1 if hint in ("right", "bare") else max(0, len(self.places) - op.back)
            ]
            place = nowhere if hint == "none" else at.get(key, nowhere)
            if hint == "bare":
                place = (*place[:2], None, None)
            if hint == "stale" and place[0] not in (None, self.places[-1].get(key, nowhere)[0]):
                self.tally["stale hints"] += 1
            found.append((*key, *place))
        columns = zip(*found, strict=True) if found else [()] * len(REMOVED)
        return pa.table(
            [pa.array(list(column), f.type) for column, f in zip(columns, REMOVED, strict=True)],
            schema=REMOVED,
        )

    def commit(self, op: Op) -> None:
        """Commit to both, and compare all that a reader can see."""
        changes, added, removed = self.change(op)
        self.table.commit(changes)
        self.settle(added, removed)

    def settle(self, added: list[Entry], removed: list[Key]) -> None:
        """Let the model follow a commit to the table, and compare the two."""
        before = self.table.heads[-2]
        drafted = self.table.drafted
        assert drafted is not None
        require_same_root(drafted.root, self.table.head.root)
        came, went = self.model.commit(added, removed)
        self.gone += [key for content, key in went if content == DATA]
        self._count(before, came, went)
        self.compare(came, went)
        require_legal(before.root, self.table.head.root)
        require_told_as_it_is(before.root, self.table.head.root)

    def refuse(self, op: Op) -> None:
        """Try to remove something that went before: a conflict, and nothing is changed."""
        live = self.model.files
        past = self.places[max(0, len(self.places) - op.back)]
        dead = sorted(key for key in past if key not in live)
        dead += [(int(DATA), name) for name in self.gone[-1:] if (int(DATA), name) not in dead]
        if not dead:
            return
        keys = [*_picked(self.model.names(DATA), op.remove, DATA), dead[op.salt % len(dead)]]
        head, files = self.table.head, dict(self.table.files)
        changes = Changes(intent=Intent.DELETE_FILES, removed=self._placed(keys, op))
        with pytest.raises(CommitConflict, match=keys[-1][1]):
            self.table.commit(changes)
        with pytest.raises(NotLive):
            self.model.commit([], keys)
        assert self.table.head is head
        assert self.table.files == files
        self.tally["conflicts"] += 1
        self.tally["operations"] += 1

    def compare(self, came: Mapping[Key, Entry], went: Mapping[Key, Entry]) -> None:
        """Require that the newest snapshot is what the model says, in every way of looking."""
        table, model = self.table, self.model
        live = live_files(table.head.root, table.reader, columns=_LISTED)
        listed = zip(*(live[n].to_pylist() for n in ("location", "first_row_id")), strict=True)
        first_row_ids = {
            name: first for name, first in listed if (DATA, name) in came and first is not None
        }
        model.number_rows(first_row_ids)
        assert rows(live) == expected(model.files)
        assert table.head.next_row_id == model.next_row_id

        found = diff(table.head.root, table.reader, root_file=table.head.root_file)
        came = {key: model.files[key] for key in came}
        assert rows(found.added) == expected(came)
        assert rows(found.removed, COMPARED_REMOVED) == expected(went, COMPARED_REMOVED)

        # What is broken seldom mends itself, so that some snapshots speak for all.
        if len(table.heads) % 3 == 0:
            self.check()
        summary = table.head.summary
        assert summary is not None
        told = {name: int(summary[name]) for name in model.totals()}
        assert told == model.totals()
        self.places.append(_places(live))
        self.states.append(dict(model.files))

    def check(self) -> None:
        """Require that the newest snapshot keeps every rule of the format."""
        assert [str(each) for each in self.table.findings()] == []

    def reread(self) -> None:
        """Require that snapshots still read as they did when they were new, from their bytes."""
        self.check()
        table = self.table
        reader = CachingReader(FileReader(fetch=table.files.__getitem__, shape=table.shape))
        # Files are written once, so that some snapshots speak for all.
        for head, state in list(zip(table.heads, self.states, strict=True))[1::3]:
            name = head.root_file
            root = manifest.decode(table.files[name], ROOT, table.shape, file=name)
            assert root.equals(head.root)
            assert rows(live_files(root, reader, root_file=name)) == expected(state)
        whole = live_files(table.head.root, reader)
        assert whole_files(whole) == {key: _plain(each) for key, each in self.model.files.items()}

    def _count(self, before: Head, came: Mapping[Key, Entry], went: Mapping[Key, Entry]) -> None:
        """Tally what the tree did, so that a test can tell whether it tested anything."""
        root, tally, places = self.table.head.root, self.tally, self.places[-1]
        tally["commits"] += 1
        old = set(before.root["location"].to_pylist())
        columns = ("content_type", "status", "location", "referenced_file")
        for content, status, location, refers in zip(
            *(root[name].to_pylist() for name in columns), strict=True
        ):
            if content in MANIFESTS and location not in old:
                tally[_MADE_BY[location.split("-")[-1][0]]] += 1
                tally["affiliated delete manifests"] += refers is not None
            if content == Content.MANIFEST_DV and status == Status.ADDED:
                tally["manifest DVs in Puffin" if location else "inline manifest DVs"] += 1
        tally["entries removed from leaves"] += sum(places[key][0] is not None for key in went)
        tally["data DVs replaced in leaves"] += sum(
            key[0] == VECTOR and places[key][0] is not None and key in came for key in went
        )
        tally["leaves dropped or rewritten"] += len(
            {leaf for leaf, *_ in places.values()} - {None, *root["location"].to_pylist()}
        )


#: The letter in a leaf's name -> who made it.
_MADE_BY = {"m": "leaves of new files", "f": "flushed leaves", "c": "compacted leaves"}


def _picked(names: list[str], picks: Iterable[int], content: Content) -> list[Key]:
    """Return the picked names, each once."""
    if not names:
        return []
    return list(dict.fromkeys((int(content), names[pick % len(names)]) for pick in picks))


def _places(live: Entries) -> dict[Key, tuple[Any, ...]]:
    columns = (LEAF, "position", "record_count")
    entries = zip(
        from_keys(live),
        *(live[name].to_pylist() for name in columns),
        live["dv_size_in_bytes"].to_pylist(),
        live["file_size_in_bytes"].to_pylist(),
        strict=True,
    )
    return {
        key: (leaf, position, count, size if dv_size is None else dv_size)
        for key, leaf, position, count, dv_size, size in entries
    }


def from_keys(live: Entries) -> list[Key]:
    """Return the name of each file."""
    columns = (live[name].to_pylist() for name in ("content_type", "location", "referenced_file"))
    return [
        (content, refers if content == VECTOR else location)
        for content, location, refers in zip(*columns, strict=True)
    ]


def _plain(entry: Entry) -> Entry:
    offsets, ids = entry.split_offsets, entry.equality_ids
    return replace(
        entry,
        status=Status.EXISTING,
        split_offsets=None if offsets is None else list(offsets),
        equality_ids=None if ids is None else list(ids),
        stats=dict(entry.stats),
    )


def whole_files(live: Entries) -> dict[Key, Entry]:
    """Return every column of every file, by name."""
    return {key_of(each): _plain(each) for each in from_table(live)}


def require_same_root(drafted: Entries, stored: Entries) -> None:
    """Require that a root reads from its bytes as it was: the next commit may grow from either."""
    for name in drafted.column_names:
        mine = drafted[name]
        if name in stored.column_names:
            assert mine.equals(stored[name]), name
        else:
            assert mine.null_count == len(mine), name
    assert set(stored.column_names) <= set(drafted.column_names)


def require_legal(before: Entries, after: Entries) -> None:
    """Require that no entry of a root took a step that the format does not know."""
    old, new = _statuses(before), _statuses(after)
    for name in old.keys() | new.keys():
        was, now = old.get(name), new.get(name)
        assert now in TRANSITIONS[was], f"{name} went from {was} to {now}"
        if was is None and now is Status.EXISTING:
            assert name[0] in MANIFESTS, f"{name} came as EXISTING"


def require_told_as_it_is(before: Entries, after: Entries) -> None:
    """Require that a new leaf is ADDED if it tells of a change, and EXISTING if it only rearranges.

    Whoever looks for changes reads the ADDED ones.
    """
    old = set(before["location"].to_pylist())
    columns = ("content_type", "location", "status", "added_files_count", "deleted_files_count")
    for content, location, status, came, went in zip(
        *(after[name].to_pylist() for name in columns), strict=True
    ):
        if content in MANIFESTS and location not in old:
            told = Status.ADDED if came or went else Status.EXISTING
            assert status == told, f"{location} came as {Status(status)}, with {came} new files"


def _statuses(root: Entries) -> dict[tuple[Any, ...], Status]:
    columns = ("content_type", "location", "referenced_file", "dv_offset", "status", "record_count")
    found: dict[tuple[Any, ...], Status] = {}
    for content, location, refers, offset, status, count in zip(
        *(root[name].to_pylist() for name in columns), strict=True
    ):
        if content == Content.MANIFEST_DV:
            # A later manifest DV on the same leaf is another one, and has more positions.
            name: tuple[Any, ...] = (content, refers, count)
        elif content in MANIFESTS:
            name = (content, location)
        else:
            name = (content, location, refers, offset)
        assert name not in found or Status.DELETED in (found[name], status)
        if name not in found or status != Status.DELETED:
            found[name] = Status(status)
    return found
