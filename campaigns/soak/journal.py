"""What a writer began and what it finished, on disk, so that its next life picks up there."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from campaigns.soak.changes import Change


@dataclass(frozen=True, kw_only=True)
class Past:
    """What a journal tells."""

    mine: list[str]
    number: int
    #: The change that was begun and not noted done.
    begun: Change | None
    #: What went wrong on the way, by kind.
    met: Counter[str]


class Journal:
    """Lines that are there as soon as they are written."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def start(self, change: Change) -> None:
        self._note({"start": asdict(change)})

    def done(self, change: Change) -> None:
        self._note({"done": change.key})

    def met(self, error: Exception) -> None:
        self._note({"met": type(error).__name__})

    def _note(self, line: dict[str, object]) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()


def replay(journal: Path) -> Past:
    """Return what a writer has and where it stopped."""
    mine: list[str] = []
    number, begun = 0, None
    met: Counter[str] = Counter()
    for line in journal.read_text().splitlines() if journal.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # cut off by a kill: that change had not begun
        if "start" in entry:
            of = entry["start"]
            begun = Change(
                key=of["key"],
                kind=of["kind"],
                added=tuple(of["added"]),
                removed=tuple(of["removed"]),
            )
            number += 1
        elif "met" in entry:
            met[entry["met"]] += 1
        elif begun is not None:
            mine, begun = begun.after(mine), None
    return Past(mine=mine, number=number, begun=begun, met=met)
