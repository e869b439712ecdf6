"""What a change must be protected from: the conflict matrix, and the search for conflicts.

The matrix is data: for every intent and every check, when the check is made. It is printed in
the documentation by `as_markdown`. Isolation is the writer's promise to its reader: under
SNAPSHOT no other commit's deletes or files are lost; under SERIALIZABLE, besides, nothing that
the writer looked at has changed, so the result is that of one writer after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from icetree.spec.entry.entry import Entries
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes, Intent
from icetree.tree.conflict import checks
from icetree.tree.conflict.checks import Case, Lookup, OtherCommit

__all__ = [
    "CHECKS",
    "MATRIX",
    "OWN_CHECKS",
    "Check",
    "Conflict",
    "Isolation",
    "Lookup",
    "OtherCommit",
    "OwnCheck",
    "When",
    "as_markdown",
    "find_conflicts",
]


class Isolation(Enum):
    """How much of what others did meanwhile a change tolerates."""

    SNAPSHOT = "snapshot"
    SERIALIZABLE = "serializable"


class When(Enum):
    """When a check is made."""

    NEVER = "never"
    SERIALIZABLE = "serializable"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that may not happen, who asks for it, and how to say that it did."""

    name: str
    #: Culprits among what one other commit did, as labels of files.
    find: Callable[[Case, OtherCommit], pa.Array]
    #: The sentence; {snapshot} and {files} are filled in.
    says: str
    always: frozenset[Intent] = frozenset()
    serializable: frozenset[Intent] = frozenset()

    def when(self, intent: Intent) -> When:
        """Return when the check is made for a change of the intent."""
        if intent in self.always:
            return When.ALWAYS
        return When.SERIALIZABLE if intent in self.serializable else When.NEVER

    @property
    def doc(self) -> str:
        """What the check is for, as its function tells it."""
        return " ".join((self.find.__doc__ or "").split())


_ALL: Final = frozenset(Intent) - {Intent.APPEND}
_READERS: Final = frozenset({Intent.OVERWRITE_FILES, Intent.ROW_DELTA})
_BY_FILTER: Final = frozenset({Intent.OVERWRITE_BY_FILTER})
_PARTITIONS: Final = frozenset({Intent.REPLACE_PARTITIONS})
_AGAIN: Final = "read the table again and redo the change"

CHECKS: Final = (
    Check(
        name="files still exist",
        find=checks.missing_files,
        says=f"snapshot {{snapshot}} removed {{files}}, which this change relies on: {_AGAIN}",
        always=_ALL,
    ),
    Check(
        name="no new deletes on replaced files",
        find=checks.deletes_on_replaced,
        says="snapshot {snapshot} added {files}, deleting rows that this change would bring back: "
        + _AGAIN,
        always=_ALL,
    ),
    Check(
        name="no rows back",
        find=checks.rows_back,
        says="snapshot {snapshot} brought rows back by removing {files}, and this change would lose "
        "them again: " + _AGAIN,
        always=_ALL,
    ),
    Check(
        name="no new deletes on carried rows",
        find=checks.deletes_on_carried,
        says="snapshot {snapshot} added {files}, which would delete rows where this change carries "
        "them, and did not where they are: " + _AGAIN,
        always=_ALL,
    ),
    Check(
        name="no second DV",
        find=checks.second_data_dvs,
        says="snapshot {snapshot} added {files}, and this change has a DV for the same data: "
        "merge with the new DV and commit again",
        always=_ALL,
    ),
    Check(
        name="no new data in the filter",
        find=checks.data_in_filter,
        says=f"snapshot {{snapshot}} added {{files}}, where rows may match the filter: {_AGAIN}",
        serializable=_READERS | _BY_FILTER | {Intent.DELETE_BY_FILTER},
    ),
    Check(
        name="no new deletes in the filter",
        find=checks.deletes_in_filter,
        says="snapshot {snapshot} added {files}, where deleted rows may match the filter: "
        + _AGAIN,
        always=_BY_FILTER,
        serializable=_READERS,
    ),
    Check(
        name="no removed data in the filter",
        find=checks.removed_in_filter,
        says=f"snapshot {{snapshot}} removed {{files}}, where rows may match the filter: {_AGAIN}",
        always=_BY_FILTER,
        serializable=_READERS,
    ),
    Check(
        name="no new data in replaced partitions",
        find=checks.data_in_partitions,
        says=f"snapshot {{snapshot}} added {{files}} to a partition being replaced: {_AGAIN}",
        serializable=_PARTITIONS,
    ),
    Check(
        name="no deletes in replaced partitions",
        find=checks.deletes_in_partitions,
        says="snapshot {snapshot} deleted rows of a partition being replaced, with {files}: "
        + _AGAIN,
        always=_PARTITIONS,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCheck:
    """One thing that a change may not do by itself, whoever else commits."""

    name: str
    find: Callable[[Case], pa.Array]
    says: str
    always: frozenset[Intent]

    def when(self, intent: Intent) -> When:
        """Return when the check is made for a change of the intent."""
        return When.ALWAYS if intent in self.always else When.NEVER

    @property
    def doc(self) -> str:
        """What the check is for, as its function tells it."""
        return " ".join((self.find.__doc__ or "").split())


OWN_CHECKS: Final = (
    OwnCheck(
        name="added files inside the filter",
        find=checks.outside_filter,
        says="{files} may hold rows outside the overwrite filter: widen the filter or split the files",
        always=_BY_FILTER,
    ),
    OwnCheck(
        name="no DV on a removed file",
        find=checks.data_dvs_on_removed,
        says="this change adds {files} and removes that data file too: do one or the other",
        always=_ALL,
    ),
)

MATRIX: Final[Mapping[tuple[Intent, str], When]] = MappingProxyType(
    {
        (intent, check.name): check.when(intent)
        for intent in Intent
        for check in (*CHECKS, *OWN_CHECKS)
    }
)

_FEW: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Why a change may not land as it is."""

    check: str
    #: The commit in the way; None where the change contradicts itself.
    snapshot_id: int | None
    #: A few of the culprits.
    files: tuple[str, ...]
    message: str


def find_conflicts(
    changes: Changes,
    *,
    isolation: Isolation,
    since: Sequence[OtherCommit],
    shape: Shape,
    lookup: Lookup | None = None,
    beside: Entries | None = None,
) -> list[Conflict]:
    """Return why `changes` may not land on top of the commits made since its base.

    `beside` is what the whole transaction adds, where these are not all of its changes.

    `lookup` returns the entries of live data files, given their locations. It is asked at most
    once, and only when another commit added equality deletes; without it every one of those is
    taken to reach the files of this change.
    """
    case = Case(changes, shape, lookup, beside, since=since)
    found = []
    for own in OWN_CHECKS:
        if own.when(changes.intent) is When.ALWAYS:
            found += _conflicts(own.name, own.says, None, own.find(case))
    for check in CHECKS:
        when = check.when(changes.intent)
        if when is When.ALWAYS or (
            when is When.SERIALIZABLE and isolation is Isolation.SERIALIZABLE
        ):
            for other in since:
                culprits = check.find(case, other)
                found += _conflicts(check.name, check.says, other.snapshot_id, culprits)
    return found


def _conflicts(
    check: str, says: str, snapshot_id: int | None, culprits: pa.Array
) -> list[Conflict]:
    if len(culprits) == 0:
        return []
    few = tuple(culprits[:_FEW].to_pylist())
    files = ", ".join(few)
    if len(culprits) > _FEW:
        files += f" and {len(culprits) - _FEW} more"
    message = says.format(snapshot=snapshot_id, files=files)
    return [Conflict(check=check, snapshot_id=snapshot_id, files=few, message=message)]


_PAGE: Final = """# Conflicts

What a commit is checked against when others committed since it read the table.
`icetree.tree.conflict.conflict` holds this matrix as data; this page is printed from it.

*always*: under every isolation. *serializable*: only there. Empty: never. An append conflicts
with nothing but a column that became required, where its files may have nulls. Every change conflicts
with the removal of its branch, unless it may make one (`create_branch`).

{matrix}

{checks}

## Beside Iceberg's Java library

The checks are those of its snapshot producers. These differ on purpose:

- Compactions change no rows, so they never count as removed data or new deletes.
- A compaction and a change of rows that meet do not stop each other, as long as rows have ids. What
  was deleted or removed meanwhile is deleted in the compaction's new files too, by DVs in the same
  commit. Rows that a row delta, a delete by filter or an overwrite of files deletes, and that were
  carried elsewhere meanwhile, are deleted there, if nobody changed them. Only what cannot be found
  so is held against the checks.
- A row delta under snapshot isolation minds deletes on the files it touches, not on others that
  match its filter: DVs are per file, so those cannot lose a delete. Java's update and merge
  refuse both, its delete neither.
- Under serializable isolation, overwrites of files and row deltas also mind data removed and rows
  deleted within their filter: they read it.
- Deletes on replaced files matter to every transaction that adds data, and to none that does not.
- Files that a delete names must still exist, whoever took them.
"""


def as_markdown() -> str:
    """Return the page of the documentation that shows the matrix and explains each check."""
    every = (*CHECKS, *OWN_CHECKS)
    rows = [["check", *(intent.value for intent in Intent)], ["---"] * (len(Intent) + 1)]
    for check in every:
        cells = (check.when(intent) for intent in Intent)
        rows.append([check.name, *("" if c is When.NEVER else c.value for c in cells)])
    return _PAGE.format(
        matrix="\n".join(f"| {' | '.join(row)} |" for row in rows),
        checks="\n".join(f"- **{check.name}**. {check.doc}" for check in every),
    )
