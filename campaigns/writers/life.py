"""One writer: a process that commits changes of every kind and notes each that landed."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import icetree
from campaigns.entries import data_file, merged, place_of, vector
from icetree.errors import CommitConflict, CommitExhausted
from icetree.table.commit.commit import Committed
from icetree.table.table import Table

TABLE = "db.t"
#: Files that all writers put DVs on: who comes second has a true conflict.
SHARED = tuple(f"shared-{number}" for number in range(40))
#: How often each kind is chosen. Only the last two can meet a change of another's.
KINDS = {
    "append": 30,
    "delete": 10,
    "overwrite": 10,
    "row delta": 15,
    "rewrite": 10,
    "properties": 8,
    "tag": 5,
    "shared row delta": 8,
    "schema": 4,
}
MAY_CONFLICT = frozenset({"shared row delta", "schema"})
_MOST_FILES = 40


@dataclass
class Life:
    """What a writer has and what it did."""

    name: str
    choose: random.Random
    mine: list[str] = field(default_factory=list)
    column: bool = False

    def next_kind(self) -> str:
        kind = self.choose.choices([*KINDS], [*KINDS.values()])[0]
        if kind in {"delete", "overwrite", "row delta", "rewrite"} and len(self.mine) < 4:
            return "append"
        return "delete" if kind == "append" and len(self.mine) > _MOST_FILES else kind

    def change(self, table: Table, kind: str, key: str) -> tuple[Committed, Note]:
        """Carry out one change; the note says what it meant."""
        how: dict[str, Any] = {"isolation": "snapshot", "key": key}
        one = self.choose.choice(self.mine) if self.mine else ""
        match kind:
            case "append":
                names = [f"{key}-{part}" for part in range(self.choose.randint(1, 3))]
                done = table.append_files([data_file(name) for name in names], **how)
                return done, Note(added=names)
            case "delete":
                gone = self.choose.sample(self.mine, min(len(self.mine), 3))
                done = table.delete_files([place_of(name) for name in gone], **how)
                return done, Note(removed=gone)
            case "overwrite":
                done = table.overwrite_files([place_of(one)], [data_file(key)], **how)
                return done, Note(added=[key], removed=[one])
            case "rewrite":
                pair = self.choose.sample(self.mine, 2)
                one_file = merged(table, pair, into=key)
                done = table.rewrite([place_of(each) for each in pair], [one_file], **how)
                return done, Note(added=[key], removed=pair)
            case "row delta":
                done = table.row_delta([vector(key, of=one), data_file(key)], **how)
                return done, Note(added=[key], marked=one)
            case "shared row delta":
                one = self.choose.choice(SHARED)
                return table.row_delta([vector(key, of=one)], **how), Note(marked=one)
            case "properties":
                return table.set_properties({f"note.{self.name}": key}), Note()
            case "tag":
                return table.create_tag(f"tag-{key}"), Note(tag=f"tag-{key}")
        return self._edit_schema(table), Note(column=not self.column)

    def _edit_schema(self, table: Table) -> Any:
        with table.edit_schema() as edit:
            if self.column:
                edit.drop(f"c_{self.name}")
            else:
                edit.add(f"c_{self.name}", "long")
        return None

    def landed(self, note: Note) -> None:
        self.mine = [each for each in self.mine if each not in note.removed] + note.added
        self.column = self.column if note.column is None else note.column


@dataclass(frozen=True, kw_only=True)
class Note:
    """What a change did, for the journal."""

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    marked: str | None = None
    tag: str | None = None
    column: bool | None = None


def live(uri: str, warehouse: str, folder: str, number: int, commits: int) -> None:
    """Commit so many changes, each until it lands or truly conflicts; errors end in the journal."""
    life = Life(name=f"w{number}", choose=random.Random(number))
    with (
        icetree.connect(uri, warehouse=warehouse) as lake,
        Path(folder, f"{life.name}.journal").open("w") as journal,
    ):
        table = lake.table(TABLE)

        def note(line: dict[str, object]) -> None:
            journal.write(json.dumps(line) + "\n")
            journal.flush()

        for turn in range(commits):
            _one(table, life, f"{life.name}-{turn}", note)


def _one(table: Table, life: Life, key: str, note: Callable[[dict[str, object]], None]) -> None:
    kind = life.next_kind()
    started = time.monotonic()
    line: dict[str, object] = {"key": key, "kind": kind}
    try:
        done, meant = life.change(table, kind, key)
    except CommitExhausted as error:
        note({**line, "error": f"{type(error).__name__}: {error}"})
        table.refresh()
    except CommitConflict as error:
        note({**line, "conflict": str(error)})
        table.refresh()
    except Exception as error:
        note({**line, "error": f"{type(error).__name__}: {error}"})
        table.refresh()
    else:
        life.landed(meant)
        took = {"seconds": time.monotonic() - started}
        if isinstance(done, Committed):
            took["attempts"] = done.report.attempts
            line["snapshot"] = done.snapshot.snapshot_id if done.snapshot else None
        note({**line, **took, **vars(meant)})
