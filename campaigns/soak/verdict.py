"""What the journals say against what the table holds."""

from __future__ import annotations

import random
from collections import Counter
from typing import Final

import pyarrow.compute as pc

from campaigns.entries import place_of
from campaigns.soak.changes import carry_out
from campaigns.soak.journal import Journal, replay
from campaigns.soak.place import TABLE, Place
from icetree.spec.entry.entry import is_data_dv
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.table import Table
from icetree.table.verify.findings import Kind
from icetree.tree.check.check import check
from icetree.tree.live import live_files

#: Up to so many snapshots, `verify` looks at all of them; of more, some are looked at here.
_VERIFIED: Final = 3_000
_LARGEST_METADATA_BYTES: Final = 64 * 1024


def settle(place: Place) -> Counter[str]:
    """Finish what the last process left begun, so that journals are whole; tell what was met."""
    met: Counter[str] = Counter()
    for path in place.journals():
        past = replay(path)
        met += past.met
        if past.begun is not None:
            with place.open() as lake:
                carry_out(lake.table(TABLE), past.begun)
            with path.open("a") as file:
                Journal(file).done(past.begun)
    return met


def verdict(place: Place) -> tuple[int, list[str]]:
    """Return how many snapshots the table has and what is wrong with it."""
    with place.open() as lake:
        table = lake.table(TABLE)
        history = list(table.history())
        size = lake.store.size(table.state.metadata_location)
        print(
            f"metadata.json {size:,} B, {len(table.metadata.snapshot_pages)} pages "
            f"for {len(history):,} snapshots"
        )
        wrong = [f"metadata.json is {size:,} B"] if size > _LARGEST_METADATA_BYTES else []
        wrong += _history(history) + _files(table, place)
        wrong += _verified(table) if len(history) <= _VERIFIED else _sampled(table, history)
    return len(history), wrong


def _history(history: list[Snapshot]) -> list[str]:
    numbers = sorted(each.sequence_number for each in history)
    wrong = []
    if numbers != list(range(1, len(numbers) + 1)):
        wrong.append("sequence numbers are not 1, 2, 3 and so on")
    keys = Counter((each.summary or {}).get("icetree.commit-key") for each in history)
    return [*wrong, *(f"{key} was committed {n} times" for key, n in keys.items() if n != 1)]


def _files(table: Table, place: Place) -> list[str]:
    """Every file that a journal speaks of is live, once, and no other."""
    meant = [place_of(name) for path in place.journals() for name in replay(path).mine]
    shape = table.metadata.shape()
    root = table.files.root(table.metadata.current_snapshot(), shape)
    live = live_files(root, table.files.reader(shape))
    data = live.filter(pc.invert(is_data_dv(live)))["location"].to_pylist()
    if sorted(data) == sorted(meant):
        return []
    return [f"{len(data)} files are live, {len(meant)} should be, or others"]


def _verified(table: Table) -> list[str]:
    """What `verify` finds; that made-up data files are missing is no news."""
    report = table.verify()
    return [
        f"verify: {each}"
        for each in report.findings
        if not (each.kind is Kind.MISSING_FILE and "data/" in each.file)
    ]


def _sampled(table: Table, history: list[Snapshot]) -> list[str]:
    shape, files = table.metadata.shape(), table.files
    wrong = []
    chosen = random.Random(1).sample(history, 200)
    for snapshot in [*history[:20], *chosen, *history[-5:]]:
        found = check(
            files.root(snapshot, shape),
            files.reader(shape),
            shape,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            next_row_id=table.metadata.next_row_id,
        )
        wrong += [f"snapshot {snapshot.sequence_number}: {each}" for each in found]
    for snapshot in history:
        if not files.store.exists(f"{table.location}/{snapshot.root_manifest}"):
            wrong.append(f"the root of snapshot {snapshot.sequence_number} is gone")
    return wrong
