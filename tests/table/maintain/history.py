"""A table with a past: random commits on branches, and all that can be read of it, as plain values."""

from __future__ import annotations

import random
from collections.abc import Collection
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import islice

import pyarrow as pa

from icetree.spec.edit.refs import Retention, ancestors
from icetree.spec.entry.entry import is_live
from icetree.spec.location import absolute
from icetree.surroundings import InTurn, Machine, within
from icetree.table.table import Table
from icetree.tree.reading import leaves_in
from tests.rows.lake import rows
from tests.table.changing import LEAFY, changing_table, some

#: Small enough that every commit flushes, marks or compacts something, and history has pages.
TINY = {
    **LEAFY,
    "write.leaf.max-entries": "12",
    "write.metadata.inline-snapshots": "3",
    "write.metadata.previous-versions-max": "2",
}
SECOND = 1_000
#: What is there before anything else happens, in files of a few rows.
_FIRST_ROWS = 20
START = 1_800_000_000_000


class Clock(Machine):
    """Surroundings whose time of day is moved by hand."""

    def __init__(self) -> None:
        self.at_ms = START

    def now_ms(self) -> int:
        return self.at_ms

    def pool(self, workers: int, name: str) -> Executor:  # noqa: ARG002
        # Threads would have the machine's time.
        return InTurn()

    def tick(self) -> None:
        self.at_ms += SECOND


class Past:
    """A table and its commits, one a second, as a seed decides."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        self.clock = Clock()
        self.table = changing_table(properties=self._properties())
        self.next_id = 0
        self.marks = 0

    def _properties(self) -> dict[str, str]:
        """Leaves are worn by manifest DVs, inline or in files, or rewritten soon."""
        return {
            **TINY,
            "write.commit.compact-removed-percent": self.choose.choice(["10", "99", "99"]),
            "write.commit.compact-min-leaves": self.choose.choice(["3", "100"]),
            "write.manifest-dv.inline-max-bytes": self.choose.choice(["0", "65536"]),
        }

    def live(self, steps: int) -> None:
        """Make so many commits."""
        with within(self.clock):
            for _ in range(steps):
                self.clock.tick()
                self._step()

    def _step(self) -> None:
        choose, table = self.choose, self.table
        branches = [name for name, ref in table.refs.items() if ref.type == "branch"]
        branch = choose.choice(branches) if branches else "main"
        kind = choose.choices(
            [
                *("append", "delete", "update", "upsert", "branch", "tag", "drop"),
                *("pick", "stage", "rollback"),
            ],
            [25, 30, 6, 6, 4, 4, 2, 3, 3, 3],
        )[0]
        if self.next_id < _FIRST_ROWS or kind == "append":
            table.append(self._rows(), branch=branch if branches else "main")
        elif kind == "delete":
            first = choose.randrange(self.next_id + 1)
            table.delete(f"id >= {first} and id < {first + 5}", branch=branch)
        elif kind == "update":
            table.update(
                {"v": "'new'"}, where=f"id >= {choose.randrange(self.next_id + 1)}", branch=branch
            )
        elif kind == "upsert":
            table.upsert(some((choose.randrange(self.next_id + 1), "up")), branch=branch)
        elif kind in ("branch", "tag"):
            self._mark(kind)
        elif kind == "drop":
            others = [name for name in table.refs if name != "main"]
            if others:
                name = choose.choice(others)
                drop = table.remove_tag if table.refs[name].type == "tag" else table.remove_branch
                drop(name)
        elif kind == "rollback":
            table.rollback(choose.choice(self._newest()))
        else:
            table.append(self._rows(), branch=None)
            if kind == "pick":
                newest = max(table.history(), key=lambda each: each.sequence_number)
                table.cherry_pick(newest.snapshot_id)

    def _mark(self, kind: str) -> None:
        self.marks += 1
        choose, table = self.choose, self.table
        at = choose.choice([each.snapshot_id for each in table.history()])
        if kind == "tag":
            table.create_tag(f"t{self.marks}", at=at)
            return
        kept = choose.choice(
            [None, Retention(min_snapshots_to_keep=2), Retention(max_ref_age_ms=5 * SECOND)]
        )
        table.create_branch(f"b{self.marks}", at=at, retention=kept)

    def _newest(self) -> list[int]:
        """Return a few snapshots of the main branch."""
        head = self.table.metadata.current_snapshot_id
        assert head is not None
        line = ancestors(self.table.metadata, head, self.table.files.page)
        return [each.snapshot_id for each in islice(line, 4)]

    def ids(self) -> set[int]:
        """Return the snapshots that there are."""
        return {each.snapshot_id for each in self.table.history()}

    def _rows(self) -> pa.Table:
        count = self.choose.randint(1, 4)
        found = some(*((self.next_id + at, "v") for at in range(count)))
        self.next_id += count
        return found


@dataclass(frozen=True)
class Told:
    """What can be read of one snapshot."""

    rows: list[str]
    files: list[str]
    #: None where the snapshot before is gone, so that removed rows cannot be told.
    changed: list[str] | None


def told(table: Table, ids: Collection[int]) -> dict[int, Told]:
    """Return, by snapshot, its rows with their ids, and what its commit changed."""
    columns = ["id", "v", "_row_id", "_last_updated_sequence_number"]
    every = {each.snapshot_id: each.parent_snapshot_id for each in table.history()}
    found = {}
    for id, parent in every.items():
        if id in ids:
            changes = table.changes(since=parent, upto=id)
            whole = parent is None or parent in every
            found[id] = Told(
                rows(table.scan(at=id, columns=columns).to_arrow()),
                rows(changes.files()),
                rows(changes.to_arrow()) if whole else None,
            )
    return found


def changed_files(table: Table) -> set[str]:
    """Return every file that a commit which can still be told added or removed."""
    found: set[str] = set()
    for each in table.history():
        files = table.changes(since=each.parent_snapshot_id, upto=each.snapshot_id).files()
        found |= {*files["file_path"].to_pylist()}
    return {absolute(each, table.location) for each in found}


def stored(table: Table) -> set[str]:
    """Return every file under the table."""
    return {each.location for each in table.files.store.list(table.location)}


def named(table: Table) -> set[str]:
    """Return every file that the table's metadata, or a tree of it, names in any way."""
    metadata, shape = table.metadata, table.metadata.shape()
    reader = table.files.reader(shape)
    found = {table.state.metadata_location}
    found |= {each.metadata_file for each in metadata.metadata_log}
    found |= {each.location for each in metadata.snapshot_pages}
    found |= {each.statistics_path for each in metadata.statistics}
    for snapshot in table.history():
        found.add(snapshot.root_file)
        root = table.files.root(snapshot, shape)
        found |= {each for each in root["location"].to_pylist() if each}
        for leaf in leaves_in(root.filter(is_live(root))):
            found |= {each for each in reader.leaf(leaf)["location"].to_pylist() if each}
    return {absolute(each, metadata.location) for each in found}
