"""Verifying a table: every rule of the format, over every snapshot it still has."""

from __future__ import annotations

import copy
from collections.abc import Collection
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from icetree.errors import CorruptTable, InvalidInput, NotFound
from icetree.files.cache import Cache
from icetree.files.table_files import TableFiles, read_metadata
from icetree.rows.read.files import NAME_MAPPING, name_mapping
from icetree.spec.entry.entry import Content
from icetree.spec.location import stored_form
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.progress import Progress
from icetree.table.verify.data import DataCheck
from icetree.table.verify.exports import check_exports
from icetree.table.verify.files import check_files
from icetree.table.verify.findings import Gathering, Kind, Report
from icetree.table.verify.history import check_history
from icetree.table.verify.judged_store import JudgedStore
from icetree.table.verify.replaced import check_replacement, is_replacement
from icetree.table.verify.roots import Roots
from icetree.table.verify.row_ids import RowIds
from icetree.table.verify.standing import Standings
from icetree.table.verify.statistics import check_statistics
from icetree.table.verify.tellings import Tellings
from icetree.table.verify.trees import SharedReader, Trees

if TYPE_CHECKING:
    from icetree.table.table import Table

Which: TypeAlias = Literal["all", "current"]

#: Bytes of files that are kept at hand: decoded leaves are kept beside them.
_CACHE_BYTES: Final = 64 * 1024 * 1024
#: How often a table is looked at that others take files from meanwhile.
_LOOKS: Final = 5
#: What may be found because files went with what nobody has any more.
_MISSING: Final = frozenset(
    {Kind.MISSING_FILE, Kind.LOST_PAGE, Kind.LOST_STATISTICS, Kind.LOST_EXPORT}
)


def verify(
    table: Table,
    *,
    deep: bool = False,
    snapshots: Which = "all",
    progress: Progress | None = None,
) -> Report:
    """Return every broken rule of a table, as of the state that the handle has seen.

    Everything is read anew from the store. With `deep`, data files, deletes and statistics are read whole: rows,
    field ids, stats and checksums, whether any two live rows of a snapshot have one id, and whether replacements
    left the rows as they were. With "current", only the current snapshot's
    tree is looked at; history itself is checked either way. Where a file is missing and others have
    committed since, the newest state is looked at instead: the file may have gone by rights.
    """
    if snapshots not in ("all", "current"):
        raise InvalidInput(f"snapshots={snapshots!r}: allowed are 'all' and 'current'")
    return looked_at(copy.copy(table), deep=deep, snapshots=snapshots, progress=progress)


def looked_at(
    table: Table,
    *,
    deep: bool = False,
    snapshots: Which = "all",
    progress: Progress | None = None,
) -> Report:
    """Do what `verify` does, and have the handle see the state that the report is of."""
    tell = progress or (lambda *_: None)
    missed: frozenset[str] = frozenset()
    for _ in range(_LOOKS):
        seen = table.state
        report = _look(table, tell, deep=deep, snapshots=snapshots)
        missing = frozenset(each.file for each in report.findings if each.kind in _MISSING)
        # What was missing before a state was read that still names it has not gone by rights.
        if missing <= missed or table.refresh().state is seen:
            return report
        known, missed = missed, missing
    certain = (e for e in report.findings if e.kind not in _MISSING or e.file in known)
    return replace(report, findings=tuple(certain))


def _look(table: Table, tell: Progress, *, deep: bool, snapshots: Which) -> Report:
    found = Gathering()
    store = JudgedStore(table.files.store)
    files = replace(table.files, store=store, cache=Cache(_CACHE_BYTES))
    metadata, file = _stored_metadata(table, files, found)
    metadata = _with_sound_mapping(metadata, file, found)
    files.ring.learn(metadata.encryption_keys)
    every, pages = check_history(metadata, files, found, metadata_file=file)
    chosen = every
    if snapshots == "current":
        chosen = [each for each in every if each.snapshot_id == metadata.current_snapshot_id]
    counts = {"snapshots": len(chosen), "pages": pages}
    counts |= _check_trees(chosen, every, metadata, files, found, tell, deep=deep)
    check_exports(chosen, metadata, files, found)
    if deep:
        check_statistics(metadata, files, found)
    return Report(findings=found.sorted(), counts=counts)


def unreadable(error: CorruptTable | NotFound, *, file: str) -> Report:
    """Return the report on a table whose newest metadata file itself cannot be read."""
    found = Gathering()
    if isinstance(error, CorruptTable):
        found.add(Kind.METADATA, error.file, error.rule)
    else:
        found.add(Kind.MISSING_FILE, file, "the table's newest metadata file is missing")
    return Report(findings=found.sorted())


def _stored_metadata(
    table: Table, files: TableFiles, found: Gathering
) -> tuple[TableMetadata, str]:
    """Return the metadata as it is stored; what the handle holds where that is damaged."""
    at = table.state.metadata_location
    file = stored_form(at, table.location)
    try:
        return read_metadata(files.store, at), file
    except CorruptTable as error:
        found.add(Kind.METADATA, file, error.rule)
    except NotFound:
        found.add(Kind.MISSING_FILE, file, "the table's newest metadata file is missing")
    return table.metadata, file


def _with_sound_mapping(metadata: TableMetadata, file: str, found: Gathering) -> TableMetadata:
    """Return metadata whose name mapping is one, or which has none."""
    try:
        name_mapping(metadata.properties)
    except InvalidInput as error:
        found.add(Kind.METADATA, file, str(error))
        kept = {name: v for name, v in metadata.properties.items() if name != NAME_MAPPING}
        return structs.replace(metadata, properties=kept)
    return metadata


def _check_trees(
    snapshots: list[Snapshot],
    every: list[Snapshot],
    metadata: TableMetadata,
    files: TableFiles,
    found: Gathering,
    tell: Progress,
    *,
    deep: bool,
) -> dict[str, int]:
    shape = metadata.shape()
    reader = SharedReader(files.reader(shape))
    roots = Roots(files, shape)
    trees = Trees(metadata=metadata, roots=roots, found=found, reader=reader)
    tellings = Tellings()
    for done, snapshot in enumerate(snapshots, start=1):
        seen = trees.check(snapshot)
        if deep and seen is not None:
            tellings.add(*seen, snapshot.snapshot_id)
        tell("snapshots", done, len(snapshots))
    named = trees.referenced.table()
    check_files(named, files.store, metadata.location, found, progress=tell)
    kinds = named["content_type"]
    counts = {"leaves": len(reader.read), "files": pc.count_distinct(named["location"]).as_py()}
    counts["data_files"] = pc.sum(pc.equal(kinds, int(Content.DATA))).as_py() or 0
    if deep:
        gone = pa.array(sorted(found.files(Kind.MISSING_FILE)), pa.string())
        told = tellings.table()
        check = DataCheck.of(files.store, metadata, shape)
        there = told.filter(pc.invert(pc.is_in(told["location"], value_set=gone)))
        counts |= check.run(there, found, progress=tell)
        standings = Standings(roots=roots, metadata=metadata, reader=reader)
        _check_rows(snapshots, every, standings, check.numbered, found, tell)
    return counts


def _check_rows(
    snapshots: list[Snapshot],
    every: list[Snapshot],
    standings: Standings,
    numbered: Collection[str],
    found: Gathering,
    tell: Progress,
) -> None:
    """Check what only rows of several files show together; `numbered` hold row ids themselves."""
    row_ids = RowIds(standings, numbered, found)
    known = {each.snapshot_id: each for each in every}
    for done, snapshot in enumerate(snapshots, start=1):
        if numbered:
            row_ids.check(snapshot)
        parent = known.get(snapshot.parent_snapshot_id or 0)
        if parent is not None and is_replacement(snapshot):
            check_replacement(snapshot, parent, standings, numbered, found)
        tell("snapshots' rows", done, len(snapshots))
