"""What the journals say against what the table holds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.entries import place_of
from campaigns.writers.life import MAY_CONFLICT, SHARED
from icetree.spec.entry.entry import is_data_dv
from icetree.table.table import Table
from icetree.tree.check.check import check
from icetree.tree.live import live_files


@dataclass(frozen=True, kw_only=True)
class Journal:
    """The lines that one writer wrote."""

    name: str
    lines: list[dict[str, Any]]

    def landed(self) -> list[dict[str, Any]]:
        return [line for line in self.lines if "seconds" in line]


def journals(folder: Path) -> list[Journal]:
    """Return what every writer wrote."""
    return [
        Journal(name=path.stem, lines=[json.loads(line) for line in path.read_text().splitlines()])
        for path in sorted(folder.glob("*.journal"))
    ]


def wrong_with(table: Table, told: Iterable[Journal]) -> list[str]:
    """Return everything that is lost, doubled, or was an error without need."""
    told = [*told]
    return [*_needless(told), *_history(table, told), *_state(table, told), *_tree(table)]


def _needless(told: list[Journal]) -> list[str]:
    lines = [line for journal in told for line in journal.lines]
    errors = [
        f"{line['key']}, {line['kind']}: {line['error']}" for line in lines if "error" in line
    ]
    conflicts = [line for line in lines if "conflict" in line and line["kind"] not in MAY_CONFLICT]
    return [*errors, *(f"{each['key']} conflicts with nobody: {each}" for each in conflicts)]


def _history(table: Table, told: list[Journal]) -> list[str]:
    """Every snapshot is one that a writer noted, once; sequence numbers have no gap."""
    history = [*table.history()]
    numbers = sorted(each.sequence_number for each in history)
    wrong = [] if numbers == [*range(1, len(numbers) + 1)] else ["sequence numbers have gaps"]
    # The first snapshot is that of the shared files.
    have = Counter(each.snapshot_id for each in history if each.sequence_number > 1)
    noted = Counter(
        line["snapshot"] for each in told for line in each.landed() if line.get("snapshot")
    )
    wrong += [f"snapshot {each} was told and is lost" for each in (noted - have)]
    wrong += [f"snapshot {each} is there and was not told" for each in (have - noted)]
    return wrong


def _state(table: Table, told: list[Journal]) -> list[str]:
    live, marked = set(map(place_of, SHARED)), set()
    for journal in told:
        for line in journal.landed():
            live |= set(map(place_of, line["added"]))
            live -= set(map(place_of, line["removed"]))
            marked |= {place_of(line["marked"])} if line["marked"] else set()
    shape = table.metadata.shape()
    files = live_files(
        table.files.root(table.metadata.current_snapshot(), shape), table.files.reader(shape)
    )
    vectors = is_data_dv(files)
    referenced = files["referenced_file"].filter(vectors).to_pylist()
    locations = [
        where
        for where, is_vector in zip(files["location"].to_pylist(), vectors.to_pylist(), strict=True)
        if not is_vector
    ]
    wrong = _differ("live files", locations, live)
    wrong += _differ("data DVs", referenced, marked & live)
    tags = {name for name, ref in table.refs.items() if ref.type == "tag"}
    meant = {line["tag"] for each in told for line in each.landed() if line["tag"]}
    wrong += _differ("tags", [*tags], meant)
    for journal in told:
        notes = [line["key"] for line in journal.landed() if line["kind"] == "properties"]
        kept = table.properties.get(f"note.{journal.name}")
        if notes and kept != notes[-1]:
            wrong.append(f"property note.{journal.name} is {kept}, not {notes[-1]}")
        columns = [line["column"] for line in journal.landed() if line["column"] is not None]
        has = f"c_{journal.name}" in table.schema.column_names
        if columns and has is not columns[-1]:
            wrong.append(f"column c_{journal.name} is {'there' if has else 'gone'}")
    return wrong


def _differ(what: str, found: list[str], meant: set[str]) -> list[str]:
    twice = [each for each, count in Counter(found).items() if count > 1]
    lost, more = sorted(meant - set(found)), sorted(set(found) - meant)
    return [
        f"{what}: {len(names)} {how}, such as {names[0]}"
        for how, names in (("twice", twice), ("lost", lost), ("too many", more))
        if names
    ]


def _tree(table: Table) -> list[str]:
    shape = table.metadata.shape()
    wrong: list[str] = []
    history = [*table.history()]
    for snapshot in {each.snapshot_id: each for each in (*history[::50], history[0])}.values():
        found = check(
            table.files.root(snapshot, shape),
            table.files.reader(shape),
            shape,
            snapshot_id=snapshot.snapshot_id,
            sequence_number=snapshot.sequence_number,
            next_row_id=table.metadata.next_row_id,
        )
        wrong += [f"snapshot {snapshot.sequence_number}: {each}" for each in found]
    return wrong


def figures(told: Iterable[Journal], took_s: float) -> str:
    """Return how it went, in a few lines for people."""
    told = [*told]
    lines = [line for each in told for line in each.lines]
    landed = [line for each in told for line in each.landed()]
    attempts = [line["attempts"] for line in landed if "attempts" in line]
    longest = max((line["seconds"] for line in landed), default=0.0)
    kinds = Counter(line["kind"] for line in landed)
    conflicts = sum("conflict" in line for line in lines)
    made = f"{len(landed):,} commits of {len(told)} writers in {took_s:,.0f} s"
    tries = f"{sum(attempts) / max(len(attempts), 1):.2f} tries each, {max(attempts, default=0)}"
    share = ", ".join(f"{n:,} {kind}" for kind, n in kinds.items())
    return (
        f"{made}: {len(landed) / took_s:.1f}/s\n"
        f"{tries} at most; the longest took {longest:.1f} s\n"
        f"{conflicts} true conflicts; {share}"
    )
