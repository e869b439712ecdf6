"""What holds for a tree whatever was done to it, and in whatever order."""

from __future__ import annotations

from tests.laws.histories import in_parallel, replay

#: Enough histories for 20,000 commits, and for what seldom happens to happen often.
HISTORIES = 1200
SEEN = {
    "commits": 20_000,
    "conflicts": 1000,
    "flushed leaves": 1000,
    "compacted leaves": 1000,
    "leaves of new files": 1000,
    "affiliated delete manifests": 500,
    "inline manifest DVs": 1000,
    "manifest DVs in Puffin": 1000,
    "entries removed from leaves": 5000,
    "data DVs replaced in leaves": 500,
    "leaves dropped or rewritten": 1000,
    "stale hints": 500,
}


def test_any_history_reads_like_a_dict_of_files() -> None:
    tally = in_parallel(replay, HISTORIES)
    assert {what: tally[what] for what, least in SEEN.items() if tally[what] < least} == {}
