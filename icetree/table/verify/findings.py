"""What verifying a table finds: one broken rule a line, and how much was looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from icetree.spec.short import short
from icetree.visible import visible


class Severity(Enum):
    """How bad a finding is."""

    #: Some read of the table fails, or gives wrong rows.
    ERROR = "error"
    #: Every row reads right, but something beside the rows is wrong or lost.
    WARNING = "warning"


class Kind(Enum):
    """What sort of rule is broken."""

    METADATA = "metadata"
    HISTORY = "history"
    LOST_PAGE = "lost page"
    LOST_STATISTICS = "lost statistics"
    LOST_EXPORT = "lost export"
    MISSING_FILE = "missing file"
    WRONG_SIZE = "wrong size"
    UNREADABLE = "unreadable"
    TREE = "tree"
    DANGLING_DATA_DV = "dangling data DV"
    ROW_LINEAGE = "row lineage"
    SUMMARY = "summary"
    STATS = "stats"
    CHECKSUM = "checksum"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One broken rule: how bad, in which file, seen from which snapshot."""

    severity: Severity
    kind: Kind
    file: str
    rule: str
    #: The newest snapshot that it was found in; None where it is about the table as a whole.
    snapshot_id: int | None = None
    #: How many snapshots share it.
    snapshots: int = 0

    __repr__ = short

    def __str__(self) -> str:
        where = "" if self.snapshot_id is None else f" [snapshot {self.snapshot_id}"
        if where:
            where += f" and {self.snapshots - 1} more]" if self.snapshots > 1 else "]"
        return visible(f"{self.severity.name} {self.kind.value}: {self.file}: {self.rule}{where}")

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {
            "severity": self.severity.value,
            "kind": self.kind.value,
            "file": self.file,
            "rule": self.rule,
            "snapshot_id": self.snapshot_id,
            "snapshots": self.snapshots,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All findings, the worst first, and how much was looked at."""

    findings: tuple[Finding, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def exit_status(self) -> int:
        """What a command should exit with: 0 for a clean table, 1 for findings."""
        return 0 if self.is_clean else 1

    def __repr__(self) -> str:
        found = "clean" if self.is_clean else f"{len(self.findings)} findings"
        return f"Report({found}: {self._counted()})"

    def __str__(self) -> str:
        return self.text()

    def text(self) -> str:
        """Return a line for each finding, and a last one with the counts."""
        verdict = "clean" if self.is_clean else f"{len(self.findings)} findings"
        return "\n".join([*map(str, self.findings), f"{verdict}: {self._counted()}"])

    def _counted(self) -> str:
        words = {what: what.replace("_", " ").replace("dvs", "DVs") for what in self.counts}
        return ", ".join(f"{count:,} {words[what]}" for what, count in self.counts.items())


class Gathering:
    """Findings while they come in: what several snapshots share becomes one finding."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Finding] = {}
        #: Where each was found.
        self._in: dict[tuple[str, str], set[int]] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(
        self,
        kind: Kind,
        file: str,
        rule: str,
        *,
        snapshot_id: int | None = None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Take in a finding; snapshots are to come newest first."""
        key = (file, rule)
        before = self._found.get(key)
        if before is None:
            before = Finding(
                severity=severity, kind=kind, file=file, rule=rule, snapshot_id=snapshot_id
            )
        found_in = self._in.setdefault(key, set())
        found_in |= set() if snapshot_id is None else {snapshot_id}
        self._found[key] = replace(before, snapshots=len(found_in))

    def files(self, *kinds: Kind) -> frozenset[str]:
        """Return the files that have a finding of one of the kinds."""
        return frozenset(each.file for each in self._found.values() if each.kind in kinds)

    def sorted(self) -> tuple[Finding, ...]:
        """Return the findings, errors first, otherwise as they came."""
        order = list(Severity)
        return tuple(sorted(self._found.values(), key=lambda each: order.index(each.severity)))
