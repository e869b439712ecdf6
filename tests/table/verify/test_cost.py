"""What verification of many snapshots costs follows what is distinct in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from icetree.codec import manifest
from icetree.table.table import Table
from icetree.table.verify import roots
from icetree.table.verify.standing import Standing, Standings
from icetree.tree.check import check
from tests.rows.lake import new_table

_LEAVES = {"write.root.max-data-entries": "8", "write.root.max-delete-entries": "8"}


def _table(snapshots: int) -> Table:
    """Return a table of small commits: some rows come, some change, some go; leaves are flushed."""
    table = new_table([("id", "long"), ("n", "long")], properties=_LEAVES)
    rows = pa.table({"id": range(6), "n": range(6)})
    for at in range(snapshots):
        if at % 3 == 1:
            table.update({"n": "n + 1"}, where=f"id = {at % 6}")
        elif at % 7 == 5:
            table.delete(f"id = 3 and n < {at}")
        else:
            table.append(rows)
    return table


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[Any]]:
    """Count by name: manifests decoded, leaves looked at, data files read for ids of their rows."""
    found: dict[str, Counter[Any]] = {"decoded": Counter(), "looked": Counter(), "rows": Counter()}
    decode, rows, look = manifest.decode_again, Standings.rows, check._broken_in_leaf

    def decoding(*given: Any, file: str, **how: Any) -> Any:
        found["decoded"][file] += 1
        return decode(*given, file=file, **how)

    def looking(leaf: Any, *given: Any) -> Any:
        found["looked"][leaf.location] += 1
        return look(leaf, *given)

    def reading(
        self: Standings, standing: Standing, numbers: list[int], *given: Any, **how: Any
    ) -> Iterator[Any]:
        found["rows"].update(standing.keys[number].as_py() for number in numbers)
        return rows(self, standing, numbers, *given, **how)

    monkeypatch.setattr(manifest, "decode_again", decoding)
    monkeypatch.setattr(check, "_broken_in_leaf", looking)
    monkeypatch.setattr(Standings, "rows", reading)
    return found


def test_each_root_each_leaf_and_each_file_is_looked_at_once(
    counts: dict[str, Counter[Any]],
) -> None:
    table = _table(45)
    for each in counts.values():
        each.clear()
    report = table.verify(deep=True)
    assert report.is_clean
    decoded, looked, rows = (counts[name] for name in ("decoded", "looked", "rows"))
    assert report.counts["leaves"] > 3
    assert len(decoded) == report.counts["snapshots"] + report.counts["leaves"]
    assert {*decoded.values()} == {1}
    # Once as it comes to the tree, and once as it stays there.
    assert max(looked.values()) <= 2
    assert report.counts["data_dvs"] > 10
    assert len(rows) <= report.counts["data_files"] + report.counts["data_dvs"]
    assert {*rows.values()} == {1}


def test_files_of_branches_that_grow_side_by_side_are_read_once(
    counts: dict[str, Counter[Any]],
) -> None:
    table = _table(3)
    table.create_branch("other")
    for at in range(8):
        for branch in ("main", "other"):
            table.update({"n": "n + 1"}, where=f"id = {at % 6}", branch=branch)
    counts["rows"].clear()
    assert table.refresh().verify(deep=True).is_clean
    assert {*counts["rows"].values()} == {1}


def test_roots_that_have_no_room_are_decoded_again(
    counts: dict[str, Counter[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _table(12)
    monkeypatch.setattr(roots, "_KEPT_BYTES", 0)
    counts["decoded"].clear()
    assert table.verify(deep=True).is_clean
    assert max(counts["decoded"].values()) == 2
