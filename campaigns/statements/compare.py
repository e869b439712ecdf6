"""Whether both sides tell the same of a statement, and the differences that are meant."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from campaigns.statements.sides import Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A difference that is meant: what it says, and of which statements."""

    why: str
    how: str
    statement: str = ""

    def allows(self, text: str, how: str) -> bool:
        """Tell whether a difference is this one."""
        return bool(re.search(self.how, how, re.DOTALL) and re.search(self.statement, text))


#: Each with its reason. What refuses is named first; of rows, who has more.
ALLOWED: Final = (
    Allowed(
        why="icetree replaces rows, Iceberg Java whole files alone",
        statement="REPLACE WHERE",
        how="^only theirs refuses: .*(Cannot delete file where some|Cannot overwrite|Cannot convert)",
    ),
    Allowed(
        why="Iceberg Java takes no condition with NaN to files",
        how="^only theirs refuses: .*Cannot create expression literal from NaN",
    ),
    Allowed(
        # That none of ours matches is looked at for each DELETE.
        why="Iceberg Java deletes rows for which a condition is null, where it deletes whole files",
        statement=r"^DELETE(?!.*\(SELECT)",
        how="rows differ:.* theirs [0-9]+ rows, 0 of them alone",
    ),
    Allowed(
        why="Iceberg Java overwrites nothing in dynamic mode where no row comes",
        statement="^INSERT OVERWRITE",
        how=r"of which \(\d+, 0, \d+, 0\) are told, rows differ:\s+ours +\d+ rows, 0 of them alone",
    ),
    Allowed(
        why="Iceberg Java gives a table that has no snapshot an empty one, for a branch to point to",
        statement="CREATE BRANCH",
        how="^only ours refuses: .*the table has no snapshot",
    ),
    Allowed(
        why="what truncate makes of a decimal may have more digits than its type: icetree refuses it",
        statement="truncate",
        how="^only ours refuses: .*cannot be represented as Decimal",
    ),
)


#: What takes one of equal values, of which -0.0 and 0.0 are two.
_ZEROS: Final = re.compile(r"\b(min|max|DISTINCT|GROUP|LIMIT|UNION|INTERSECT|EXCEPT)\b")


def difference(text: str, ours: Told, theirs: Told) -> str | None:
    """Say how what they tell of a statement differs, if it does."""
    if ours.wrong and not ours.is_meant:
        return f"ours broke: {ours.wrong[:600]}"
    if ours.wrong and theirs.wrong:
        return None
    if ours.wrong:
        return f"only ours refuses: {ours.wrong[:600]}"
    if theirs.wrong:
        return f"only theirs refuses: {theirs.wrong[:600]}"
    if text.split(maxsplit=1)[0] not in ("SELECT", "WITH"):
        return None
    if ours.columns != theirs.columns:
        return f"columns differ:\n  ours   {ours.columns}\n  theirs {theirs.columns}"
    if _ZEROS.search(text):
        ours, theirs = _with_one_zero(ours), _with_one_zero(theirs)
    if ours.rows != theirs.rows:
        return f"rows differ:\n  ours   {_some(ours, theirs)}\n  theirs {_some(theirs, ours)}"
    return None


def _with_one_zero(told: Told) -> Told:
    rows = Counter[str]()
    for row, times in told.rows.items():
        rows[row.replace("'-0.0'", "'0.0'")] += times
    return replace(told, rows=rows)


def allowed(text: str, how: str) -> Allowed | None:
    """Return which of the differences that are meant it is."""
    return next((each for each in ALLOWED if each.allows(text, how)), None)


def _some(one: Told, other: Told) -> str:
    """Return the rows that only one of both has."""
    alone = one.rows - other.rows
    return f"{one.rows.total()} rows, {alone.total()} of them alone: {' '.join(sorted(alone)[:4])[:1500]}"
