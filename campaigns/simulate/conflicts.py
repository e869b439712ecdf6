"""The page on conflicts once more, in plain Python and from rows: what must, and what may, stop a commit.

Icetree decides by statistics, so it may see a conflict where rows show none. `must` looks at rows:
what it names may never be overlooked. `may` looks at least and greatest values: what it does not
name may never be called a conflict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from campaigns.simulate.carried import STATEMENTS
from campaigns.simulate.model import DataFile, Did, Equal, Part, Place, Row, State, Where
from icetree.tree.changes import Intent

_BY_FILTER = {Intent.DELETE_BY_FILTER, Intent.OVERWRITE_BY_FILTER}
_READS = {Intent.OVERWRITE_FILES, Intent.ROW_DELTA}


def must(
    parts: tuple[Part, ...],
    did: Did,
    base: State,
    *,
    serializable: bool,
    moved: frozenset[str] = frozenset(),
    gone: frozenset[str] = frozenset(),
) -> Iterator[str]:
    """Yield every reason for which a commit may not land after another one did that.

    `moved` are files that compactions took later: who finds its rows again marks them elsewhere. `gone`
    are files whose rows went with them: a compaction deletes those rows in its new files, whatever
    else would have taken them.
    """
    adds_rows = any(part.adds_rows for part in parts)
    for part in (_less(each, gone) for each in parts):
        if part.intent is Intent.APPEND:
            continue
        yield from _same_rows(part, did, moved)
        if did.is_rewrite:
            continue
        if adds_rows and part.removed & did.vectors.keys() and part.intent is not Intent.REWRITE:
            yield "no new deletes on replaced files: a DV"
        if adds_rows and _kills(_lost_on(part, did), _at_stake(part, base, moved)):
            yield "no new deletes on replaced files: an equality delete"
        if any(each.kills(row) for each, _, row in _caught(part, did, base)):
            yield "no new deletes on replaced files: an equality delete where rows go"
        yield from _must_by_rows(part, did, serializable=serializable)
        if part.intent is Intent.REPLACE_PARTITIONS:
            if serializable and _in_places(did.added.values(), part.places):
                yield "no new data in replaced partitions"
            if _in_places(did.removed.values(), part.places) or _equal_in(part.places, did):
                yield "no deletes in replaced partitions"


def _less(part: Part, gone: frozenset[str]) -> Part:
    return replace(part, removed=part.removed - gone) if part.intent is Intent.REWRITE else part


def may(parts: tuple[Part, ...], did: Did, base: State, *, serializable: bool) -> Iterator[str]:
    """Yield every reason that statistics could see for stopping a commit."""
    adds_rows = any(part.adds_rows for part in parts)
    for part in parts:
        if part.intent is Intent.APPEND:
            continue
        yield from _same_files(part, did)
        if did.is_rewrite:
            continue
        if adds_rows:
            if part.removed & did.vectors.keys():
                yield "no new deletes on replaced files: a DV"
            touched = _touched(part, base)
            if any(each.reaches(file) for each in _lost_on(part, did) for file in touched):
                yield "no new deletes on replaced files: an equality delete"
        if any(True for _ in _caught(part, did, base)):
            yield "no new deletes on replaced files: an equality delete where rows go"
        yield from _may_by_bounds(part, did, serializable=serializable)
        if part.intent is Intent.REPLACE_PARTITIONS:
            changed = [*did.added.values(), *did.removed.values()]
            if _in_places(changed, part.places) or _equal_in(part.places, did):
                yield "replaced partitions"


def _same_rows(part: Part, did: Did, moved: frozenset[str]) -> Iterator[str]:
    """Yield what stands in the way even of a change that finds its rows again."""
    finds = part.intent in STATEMENTS and did.is_rewrite
    if finds or part.intent is Intent.REWRITE:
        if part.lifted & did.lifted:
            yield "files still exist"
        return
    # Rows that a DV of another took are not found again, and the judge looks for each of them.
    yield from _same_files(part, did, moved if part.intent in STATEMENTS else frozenset())


def _same_files(part: Part, did: Did, moved: frozenset[str] = frozenset()) -> Iterator[str]:
    if (part.removed | part.vectors.keys()) & did.removed.keys() or part.lifted & did.lifted:
        yield "files still exist"
    if (part.vectors.keys() - moved) & did.vectors.keys():
        yield "no second DV"


def _lost_on(part: Part, did: Did) -> list[Equal]:
    """Return the equality deletes that do not reach the rows any more where they are carried to.

    A rewrite keeps their age, so that a delete finds them in their partition, if that is of the
    same spec.
    """
    if part.intent is not Intent.REWRITE:
        return [*did.equal]
    return [each for each in did.equal if each.place is not None and each.place[0] != part.spec]


def _caught(part: Part, did: Did, base: State) -> Iterator[tuple[Equal, DataFile, Row]]:
    """Yield the deletes that reach rows, as old as they stay, only in the spec they are carried to."""
    for each in did.equal:
        for file in _touched(part, base):
            if each.place is not None and file.place[0] != each.place[0]:
                for row in file.rows:
                    if part.into.get(row.row_id) == each.place:
                        yield each, file, row


def _touched(part: Part, base: State) -> list[DataFile]:
    names = (*part.removed, *part.vectors)
    return [base.files[name] for name in names if name in base.files]


def _at_stake(part: Part, base: State, moved: frozenset[str]) -> list[DataFile]:
    """Return the files that a change touches; of one whose rows it finds again, those rows alone."""
    found = moved & part.vectors.keys() if part.intent in STATEMENTS else frozenset[str]()
    return [
        replace(file, rows=tuple(file.rows[at] for at in sorted(part.vectors[file.name])))
        if file.name in found
        else file
        for file in _touched(part, base)
    ]


def _kills(equal: Iterable[Equal], files: list[DataFile]) -> bool:
    """Tell whether an equality delete takes rows that the change carries into new files."""
    return any(
        each.reaches(file) and any(each.kills(row) for row in file.rows)
        for each in equal
        for file in files
    )


def _checks_filter(part: Part, *, serializable: bool) -> tuple[bool, bool]:
    """Return whether new data within the filter matters, and whether what went from it does."""
    reads = part.intent in _READS and serializable
    new = reads or (part.intent in _BY_FILTER and serializable)
    return new, reads or part.intent is Intent.OVERWRITE_BY_FILTER


def _must_by_rows(part: Part, did: Did, *, serializable: bool) -> Iterator[str]:
    new, old = _checks_filter(part, serializable=serializable)
    if new and _any_row(part.where, did.added.values()):
        yield "no new data in the filter"
    went = [*did.erased, *(row for rows in did.vectors.values() for row in rows)]
    if old and any(part.where is None or part.where.matches(row.values) for row in went):
        yield "no new deletes in the filter"
    if old and _any_row(part.where, did.removed.values()):
        yield "no removed data in the filter"


def _may_by_bounds(part: Part, did: Did, *, serializable: bool) -> Iterator[str]:
    new, old = _checks_filter(part, serializable=serializable)
    where = part.where
    if new and any(where is None or where.may_match(file) for file in did.added.values()):
        yield "no new data in the filter"
    # Of a DV, only the partition of its file is known; of an equality delete, its own columns.
    if old and (did.vectors or did.equal):
        yield "no new deletes in the filter"
    if old and any(where is None or where.may_match(file) for file in did.removed.values()):
        yield "no removed data in the filter"


def _any_row(where: Where | None, files: Iterable[DataFile]) -> bool:
    rows: Iterator[Row] = (row for file in files for row in file.rows)
    return any(where is None or where.matches(row.values) for row in rows)


def _equal_in(places: frozenset[Place], did: Did) -> bool:
    """Tell whether equality deletes are in partitions; one of no partition is in all of them."""
    return any(each.place is None or _holds(places, each.place) for each in did.equal)


def _in_places(files: Iterable[DataFile], places: frozenset[Place]) -> bool:
    return any(_holds(places, file.place) for file in files)


def _holds(places: frozenset[Place], place: Place) -> bool:
    # An unpartitioned spec has one place, and that is everywhere.
    return place in places or any(not values for _, values in places)
