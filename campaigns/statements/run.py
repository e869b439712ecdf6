"""Play what a seed draws on both sides, until they differ; then leave out what that does not need."""

from __future__ import annotations

import ast
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from campaigns.statements.compare import allowed, difference
from campaigns.statements.sides import NAMESPACE, Side, Sides, Told, sides
from campaigns.statements.statements import Drawn
from campaigns.statements.tables import BRANCH, OTHER, TABLE

_ASKING: Final = ("SELECT", "WITH")
_ROWS: Final = ("INSERT", "DELETE", "UPDATE", "MERGE")
#: The snapshot that a table had before its last one.
_PARENT: Final = (
    "SELECT s.parent_id FROM {name}.snapshots s JOIN {name}.refs r "
    "ON s.snapshot_id = r.snapshot_id WHERE r.name = 'main'"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Where both sides differ: all that was changed until then and the statement itself, and how."""

    statements: Sequence[str]
    how: str


@dataclass(slots=True)
class Tally:
    """What was tried."""

    statements: int = 0
    refused: int = 0
    #: By reason, how often both differed as they may.
    allowed: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What came of a statement: whether both did it, how they differ, and whether tables do from now on."""

    is_done: bool = False
    how: str | None = None
    is_over: bool = False


class Run:
    """Both sides, each statement, and what is there after it."""

    def __init__(self, both: Sides, tally: Tally) -> None:
        self.both, self.tally = both, tally
        self._sizes: dict[str, int] = {}

    def step(self, text: str) -> Step:
        """Have both sides carry out a statement, and look at what is there then."""
        changes = is_change(text)
        ours, theirs = self.both.ours.told(text), self.both.theirs.told(text)
        self.tally.statements += 1
        self.tally.refused += bool(ours.wrong and theirs.wrong)
        how = difference(text, ours, theirs) or (self._led_to(text, ours) if changes else None)
        if how is None:
            return Step(is_done=not ours.wrong)
        meant = allowed(text, how)
        if meant is None:
            return Step(how=how, is_over=changes)
        self.tally.allowed[meant.why] += 1
        done = [
            side
            for side, told in ((self.both.ours, ours), (self.both.theirs, theirs))
            if not told.wrong
        ]
        return Step(is_over=changes and not self._undone(text, done))

    def _led_to(self, text: str, changed: Told) -> str | None:
        """Return how tables differ after a change, or what it left undone."""
        if text.startswith("SET"):
            return None
        if text.startswith("DELETE") and not changed.wrong and "(SELECT" not in text:
            left = self.both.ours.told(text.replace("DELETE", "SELECT *", 1))
            if left.wrong or left.rows:
                return f"ours leaves rows that match: {left}"
        found = (self._then(name, changed) for name in _named(text))
        return next((each for each in found if each is not None), None)

    def _undone(self, text: str, sides: Sequence[Side]) -> bool:
        """Go back to before a change of rows, and tell whether both sides are the same again."""
        name = _named(text)[0]
        if not text.startswith(_ROWS) or len(_named(text)) > 1:
            return False
        whole = f"{NAMESPACE}.{name}"
        for side in sides:
            found = side.run(_PARENT.format(name=whole)).collect()
            if found and found[0][0]:
                side.run(f"CALL system.rollback_to_snapshot('{whole}', {found[0][0]})")
        return self._then(name, Told()) is None

    def _then(self, name: str, changed: Told) -> str | None:
        """Return how a table differs now, or the numbers that were told of its change from what it has."""
        text = f"SELECT * FROM {name}"
        ours, theirs = self.both.ours.told(text), self.both.theirs.told(text)
        counts = next(iter(changed.rows)) if "num_affected_rows" in changed.columns else None
        how = difference(text, ours, theirs)
        if how:
            return f"then of {name}, of which {counts} are told, {how}"
        was, self._sizes[name] = self._sizes.get(name), ours.rows.total()
        if was is not None and counts is not None:
            _, _, gone, came = ast.literal_eval(counts)
            if gone is not None and came - gone != self._sizes[name] - was:
                return f"{name} had {was} rows and has {self._sizes[name]}, told were {counts}"
        return None

    def unsound(self) -> str | None:
        """Return what `verify` finds wrong with our tables."""
        for name in (TABLE, OTHER):
            findings = self.both.lake.table(f"{NAMESPACE}.{name}").verify(deep=True).findings
            if findings:
                return f"{name} is not sound: {findings}"
        return None


def is_change(text: str) -> bool:
    """Tell whether what follows depends on a statement."""
    return not text.startswith(_ASKING)


def _named(text: str) -> list[str]:
    """Return the tables that a statement may change; one that fails leaves all of them as they are."""
    words = text.split()
    changed = next(each for each in words if each.partition(".")[0] in (TABLE, OTHER))
    made = [f"{TABLE}.branch_{BRANCH}"] if f"branch_{BRANCH}" in changed else []
    return [changed.partition(".")[0], *made]


@contextmanager
def begun(spark: SparkSession, tally: Tally) -> Iterator[Run]:
    """Have both sides begin anew, in a folder that goes afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="statements-"))
    try:
        with sides(spark, folder) as both:
            yield Run(both, tally)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def played(spark: SparkSession, seed: int, length: int, tally: Tally) -> Iterator[Finding]:
    """Find where both sides differ: in what queries tell, or at last in what a change leads to."""
    drawn, said = Drawn(seed), list[str]()
    with begun(spark, tally) as run:
        for number in range(length):
            text = drawn.statement(number, run.both.theirs.columns)
            step = run.step(text)
            if step.how:
                yield Finding(statements=[*said, text], how=step.how)
            if step.is_over:
                return
            if step.is_done:
                drawn.shape.note(text)
            said += [text] if is_change(text) else []
        how = run.unsound()
        if how:
            yield Finding(statements=said, how=how)


def replayed(spark: SparkSession, statements: Sequence[str]) -> str | None:
    """Return how both sides differ after the last of some statements, and at none before it."""
    with begun(spark, Tally()) as run:
        for text in statements[:-1]:
            if run.step(text).is_over:
                return None
        return run.step(statements[-1]).how


def shrunk(spark: SparkSession, finding: Finding) -> Finding:
    """Leave out statements for as long as the last one still shows a difference of the same kind."""
    kind = finding.how[:24]
    for at in reversed(range(len(finding.statements) - 1)):
        fewer = [*finding.statements[:at], *finding.statements[at + 1 :]]
        how = replayed(spark, fewer)
        if how is not None and how[:24] == kind:
            finding = Finding(statements=fewer, how=how)
    return finding
