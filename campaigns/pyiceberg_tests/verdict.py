"""Whether tests passed and failed as is expected of them, and how many did for which reason."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a test, and the first line of what it says where it failed."""

    told: str
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is not as expected, a sentence each, and how many tests there were of each kind."""

    passed: int
    #: How many failed, as they are known to, by the reason.
    differ: Counter[str]
    left_out: Counter[str]
    wrong: tuple[str, ...]


def pattern(entries: Collection[str]) -> str:
    """Return a regular expression of tests: entries are ends of their ids, and `*` is anything."""
    anything = [re.escape(each).replace(r"\*", ".*") for each in entries]
    return "|".join(f"(?:/{each}$)" for each in anything) or "(?!)"


def outcomes(file: Path) -> dict[str, Outcome]:
    """Return what became of each test; what failed in any of its parts failed."""
    found: dict[str, Outcome] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        test, told, error = json.loads(line)
        if test not in found or told == "failed":
            found[test] = Outcome(told=told, error=error)
    return found


def judged(
    found: Mapping[str, Outcome], differ: Mapping[str, str], left_out: Mapping[str, str]
) -> Verdict:
    """Compare what became of tests with the lists of those that differ, and that do not apply.

    A failure that is not listed is wrong, and so are a listed test that passes, one that is skipped,
    and an entry of the lists that names no test of the files that ran: so the lists stay true.
    """
    failed = {test: each for test, each in found.items() if each.told == "failed"}
    passed = [test for test, each in found.items() if each.told == "passed"]
    skipped = [test for test, each in found.items() if each.told == "skipped"]
    apart = [test for test, each in found.items() if each.told == "left out"]
    why = {test: _reason(test, differ) for test in found}
    return Verdict(
        passed=len(passed),
        differ=Counter(reason for test in failed if (reason := why[test])),
        left_out=Counter(_reason(test, left_out) or "for no reason" for test in apart),
        wrong=(
            *(f"{test} failed: {each.error}" for test, each in failed.items() if not why[test]),
            *(f"{test} passes, but is listed: {why[test]}" for test in passed if why[test]),
            *(f"{test} was skipped: leave it out, and say why" for test in skipped),
            *_stale([*found], [*differ, *left_out]),
        ),
    )


def _reason(test: str, reasons: Mapping[str, str]) -> str | None:
    return next((why for each, why in reasons.items() if re.search(pattern([each]), test)), None)


def _stale(tests: list[str], entries: list[str]) -> list[str]:
    """Return a sentence for each entry that names no test, unless none of its file ran."""
    files = {test.partition("::")[0].rpartition("/")[2] for test in tests}
    return [
        f"there is no test {each}: take it off the list"
        for each in entries
        if each.partition("::")[0] in files
        and not any(re.search(pattern([each]), test) for test in tests)
    ]
