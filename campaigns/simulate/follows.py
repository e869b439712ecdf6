"""The state that follows from a snapshot: from what was meant by it, or for maintenance from its tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from campaigns.simulate.carried import Carried
from campaigns.simulate.intent import Commit
from campaigns.simulate.model import DataFile, Did, Row, State, projected
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot


def meant_by(
    commit: Commit,
    moved: Carried,
    parent: State,
    made: Snapshot,
    fresh: Mapping[str, DataFile],
    equality: set[str],
) -> State:
    """Return the state that follows from what was meant and the files that were written."""
    removed = {name for part in commit.parts for name in part.removed}
    lifted = frozenset(name for part in commit.parts for name in part.lifted)
    files = {name: file for name, file in parent.files.items() if name not in removed}
    gone = {name: dead for name, dead in parent.gone.items() if name in files}
    erased = {name: dead for name, dead in parent.erased.items() if name in files}
    marked: dict[str, tuple[Row, ...]] = {}
    for part in commit.parts:
        for name, positions in part.vectors.items():
            more = positions - gone.get(name, frozenset())
            if more:
                marked[name] = tuple(files[name].rows[at] for at in sorted(more))
                gone[name] = gone.get(name, frozenset()) | positions
    equal = tuple(each for part in commit.parts for each in part.equal)
    killed = []
    for name, file in files.items():
        hit = frozenset(at for at, row in enumerate(file.rows) if _killed(row, file, equal))
        killed += [file.rows[at] for at in hit]
        if hit:
            erased[name] = erased.get(name, frozenset()) | hit
    # What others took of rows that were being carried to new files.
    gone |= _of(moved.marked, fresh)
    erased |= _of(moved.erased, fresh)
    return State(
        id=made.snapshot_id,
        parent=parent.id,
        sequence=made.sequence_number,
        files={**files, **fresh},
        gone=gone,
        erased=erased,
        equality=(parent.equality - lifted) | equality,
        did=Did(
            is_rewrite=made.operation == "replace",
            added=fresh,
            removed={name: file for name, file in parent.files.items() if name in removed},
            lifted=lifted,
            vectors=marked,
            equal=equal,
            erased=tuple(killed),
        ),
        parts=commit.parts,
        source=commit.source,
    )


def _killed(row: Row, file: DataFile, equal: tuple[Any, ...]) -> bool:
    return any(each.reaches(file) and each.kills(row) for each in equal)


def _of(row_ids: frozenset[int], files: Mapping[str, DataFile]) -> dict[str, frozenset[int]]:
    """Return where rows stand in files, by file."""
    found = {
        file.name: frozenset(at for at, row in enumerate(file.rows) if row.row_id in row_ids)
        for file in files.values()
    }
    return {name: at for name, at in found.items() if at}


def kept_by(
    parent: State,
    made: Snapshot,
    *,
    fresh: Mapping[str, DataFile],
    removed: set[str],
    equality: set[str],
    marked: Mapping[str, frozenset[int]],
) -> State:
    """Return the state after maintenance, by the files and DVs there are: rows are held against it."""
    files = {name: file for name, file in parent.files.items() if name not in removed}
    lived = {row.row_id for name in removed for _, row in parent.live_in(name)}
    erased = {name: dead for name, dead in parent.erased.items() if name in files}
    for file in fresh.values():
        # Rows that were dead where they were carried from: a DV marks them, or a delete by value
        # still takes them, which reading will show.
        dead = frozenset(at for at, row in enumerate(file.rows) if row.row_id not in lived)
        if dead - marked.get(file.name, frozenset()):
            erased[file.name] = dead
    return State(
        id=made.snapshot_id,
        parent=parent.id,
        sequence=made.sequence_number,
        files={**files, **fresh},
        gone=dict(marked),
        erased=erased,
        equality=frozenset(equality),
        did=Did(
            is_rewrite=True,
            added=fresh,
            removed={name: file for name, file in parent.files.items() if name in removed},
            lifted=parent.equality - equality,
        ),
    )


def as_of(
    before: TableMetadata, after: TableMetadata, made: Sequence[Snapshot], branch: str | None
) -> TableMetadata:
    """Return what metadata was after the first of some snapshots, all of which came with one swap."""
    first, *later = made
    if not later:
        return after
    name = branch or "main"
    ref = structs.replace(after.refs[name], snapshot_id=first.snapshot_id)
    return structs.replace(
        after,
        refs={**before.refs, name: ref},
        current_snapshot_id=first.snapshot_id if name == "main" else before.current_snapshot_id,
        last_sequence_number=first.sequence_number,
        next_row_id=later[0].first_row_id,
    )


def rows_of(state: State, metadata: TableMetadata) -> Counter[Any]:
    """Return the rows that are there, each with its lineage."""
    schema = metadata.schema()
    return Counter(
        (projected(row.values, schema), row.row_id, row.updated) for _, _, row in state.live()
    )
