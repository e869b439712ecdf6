"""Laws of what a snapshot added and removed: files, rows, ids and lineage, as its commit meant them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from campaigns.simulate import by_hand
from campaigns.simulate.by_hand import Tracked, Tree
from campaigns.simulate.finding import few, require
from campaigns.simulate.intent import Commit
from campaigns.simulate.model import DataFile, Row, State, projected
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot


def require_ids(
    made: Snapshot,
    before: TableMetadata,
    after: TableMetadata,
    added: list[Tracked],
) -> None:
    """Require that new files share out the snapshot's row ids, without gap or overlap."""
    next_id = before.next_row_id or 0
    require(made.first_row_id == next_id, "row ids", f"start at {made.first_row_id}")
    for first, rows in sorted((each.first_row_id or 0, each.rows) for each in added):
        require(first == next_id, "row ids", f"a file starts at {first}, not {next_id}")
        next_id += rows
    require(after.next_row_id == next_id, "row ids", f"next is {after.next_row_id}")


def require_new_rows(
    commit: Commit, made: Snapshot, fresh: Mapping[str, DataFile], after: TableMetadata
) -> None:
    """Require that new files hold the rows that were meant, each once and with its lineage."""
    schema = after.schema()
    found: Counter[Any] = Counter()
    for file in fresh.values():
        found.update((projected(row.values, schema), row.row_id) for row in file.rows)
    meant: Counter[Any] = Counter()
    kept = set()
    for part in commit.parts:
        for row in part.carried:
            kept.add(row.row_id)
            meant[projected(row.values, schema), row.row_id] += 1
            _lineage(row, made, fresh)
    plain = Counter(projected(values, schema) for part in commit.parts for values in part.added)
    new = Counter({key: count for key, count in found.items() if key[1] not in kept})
    carried = found - new
    require(carried == meant, "rows", f"{commit.text}: moved {few(meant, carried)}")
    values = Counter(key[0] for key in new.elements())
    require(values == plain, "rows", f"{commit.text}: added {few(plain, values)}")


def require_files(
    commit: Commit, tree: Tree, marked: Mapping[str, frozenset[int]], state: State
) -> None:
    """Require that those files went, and those rows are marked, that were meant."""
    went = names(tree.removed, by_hand.DATA)
    meant = {name for part in commit.parts for name in part.removed}
    require(went == meant, "files", f"{commit.text}: removed {sorted(went ^ meant)}")
    lifted = names(tree.removed, by_hand.EQUALITY_DELETES)
    require(
        lifted == {name for part in commit.parts for name in part.lifted},
        "files",
        f"{commit.text}: equality deletes {lifted} went",
    )
    there = names(tree.live, by_hand.DATA)
    require(
        there == state.files.keys(),
        "files",
        f"{commit.text}: {apart(there, state.files.keys())}",
    )
    require(marked == state.gone, "files", f"{commit.text}: DVs {marked}, not {state.gone}")


def _lineage(row: Row, made: Snapshot, fresh: Mapping[str, DataFile]) -> None:
    age = made.sequence_number if row.updated < 0 else row.updated
    ages = {
        each.updated for file in fresh.values() for each in file.rows if each.row_id == row.row_id
    }
    require(ages == {age}, "lineage", f"row {row.row_id} is of {ages}, not of {age}")


def names(files: Iterable[Tracked], content: int) -> set[str]:
    """Return where files of one content are."""
    return {each.location for each in files if each.content == content}


def apart(there: Iterable[Any], meant: Iterable[Any]) -> str:
    """Return some of what is there and was not meant, and the other way round."""
    found, wanted = set(there), set(meant)
    return f"{list(found - wanted)[:3]} too many, {list(wanted - found)[:3]} missing"
