"""Does a snapshot that says it replaces files leave the rows as they were.

Whoever reads changes passes over it, and never hears of a row that it changed. The tree shows how
many rows are live before and after; to read the files that came and went shows all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import IcebergType, ListType, MapType, StructType, UnknownType
from pyroaring import BitMap64

from icetree.errors import CorruptTable, NotFound, Unsupported
from icetree.spec.entry.entry import Content, Entries, is_content, is_data_dv, is_data_file
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.schema.metadata_columns import METADATA_COLUMNS, stored_lineage
from icetree.spec.schema.types import VariantType
from icetree.table.verify.findings import Gathering, Kind
from icetree.table.verify.row_texts import row_texts
from icetree.table.verify.standing import Standing, Standings
from icetree.tree.changes import Operation
from icetree.tree.diff.diff import Diff

_POS: Final = METADATA_COLUMNS["_pos"]
_Words: TypeAlias = npt.NDArray[np.uint64]


def is_replacement(snapshot: Snapshot) -> bool:
    """Tell whether a snapshot says that it changes no rows."""
    return snapshot.operation == Operation.REPLACE.value


def unbalanced(live: Entries, changed: Diff) -> Iterator[str]:
    """Yield a sentence where a replacement leaves more rows, or fewer, than it found.

    Where deletes other than DVs are about, entries do not tell how many rows those take.
    """
    if any(map(_has_other_deletes, (live, changed.removed))):
        return
    came, went = _live_rows(changed.added), _live_rows(changed.removed)
    if came != went:
        yield f"is a replacement, but puts {came} live rows in the place of {went}"


def _has_other_deletes(entries: Entries) -> bool:
    deletes = is_content(entries, Content.POSITION_DELETES, Content.EQUALITY_DELETES)
    return bool(pc.any(pc.and_not(deletes, is_data_dv(entries))).as_py())


def _live_rows(entries: Entries) -> int:
    """Return the rows of data files less those that DVs take."""
    sums = [
        pc.sum(entries["record_count"].filter(which(entries))).as_py() or 0
        for which in (is_data_file, is_data_dv)
    ]
    return sums[0] - sums[1]


def check_replacement(
    snapshot: Snapshot,
    parent: Snapshot,
    standings: Standings,
    numbered: Collection[str],
    found: Gathering,
) -> None:
    """Report a replacement that changed rows, by reading the files that it changed.

    Writers should keep row ids, and need not: where files came that do not hold any, which the
    `numbered` do, rows may be others.
    """
    before, after = standings.of(parent), standings.of(snapshot)
    if before is None or after is None:
        return
    gone, came = before.not_in(after).tolist(), after.not_in(before).tolist()
    schema = _schema_of(snapshot, standings.metadata)
    try:
        gone, came = _less_those_alike(before, gone, after, came, standings, schema)
        old = _sum_of(before, gone, standings, schema)
        new = _sum_of(after, came, standings, schema)
        if not _new_names(before, after, came) <= {*numbered}:
            new.nameless += new.rows
    except (CorruptTable, NotFound, Unsupported):
        return  # of a file that was told of where it was read, or that only engines read
    for rule in _differences(old, new):
        file, id = snapshot.root_file, snapshot.snapshot_id
        found.add(Kind.TREE, file, f"is a replacement, but {rule}", snapshot_id=id)


def _schema_of(snapshot: Snapshot, metadata: TableMetadata) -> Schema:
    known = {each["schema-id"] for each in metadata.schemas}
    return metadata.schema(snapshot.schema_id if snapshot.schema_id in known else None)


def _less_those_alike(
    before: Standing,
    gone: list[int],
    after: Standing,
    came: list[int],
    standings: Standings,
    schema: Schema,
) -> tuple[list[int], list[int]]:
    """Leave out data files that stay, with other deletes that take the same rows."""
    old, new = _names(before, gone), _names(after, came)
    both = old.keys() & new.keys()
    was = _positions(before, [old[name] for name in both], standings, schema)
    now = _positions(after, [new[name] for name in both], standings, schema)
    alike = {name for name in both if was[old[name]] == now[new[name]]}
    return (
        [number for name, number in old.items() if name not in alike],
        [number for name, number in new.items() if name not in alike],
    )


def _new_names(before: Standing, after: Standing, came: list[int]) -> set[str]:
    """Return the files that came, of those whose rows did."""
    names = after.column("location").take(pa.array(came, pa.int64()))
    return {*names.to_pylist()} - {*before.column("location").to_pylist()}


def _names(standing: Standing, numbers: list[int]) -> dict[tuple[object, ...], int]:
    """Return files by what makes their rows the same, deletes aside."""
    told = [
        standing.column(name).take(pa.array(numbers, pa.int64())).to_pylist()
        for name in ("location", "first_row_id", "sequence_number", "partition_spec_id")
    ]
    return dict(zip(zip(*told, strict=True), numbers, strict=True))


def _positions(
    standing: Standing, numbers: list[int], standings: Standings, schema: Schema
) -> Mapping[int, BitMap64]:
    found = {number: BitMap64() for number in numbers}
    for number, batch in standings.rows(standing, numbers, _POS, schema=schema):
        found[number] |= BitMap64(batch.column(0).to_pylist())
    return found


@dataclass(slots=True, kw_only=True)
class _Sum:
    """What rows come to, in whatever order: sums of hashes, which tell one changed value."""

    rows: int = 0
    values: int = 0
    #: With who the rows are, and how old.
    ids: int = 0
    ages: int = 0
    #: Rows that have no id, for they are from before there were any.
    nameless: int = 0


def _sum_of(standing: Standing, numbers: list[int], standings: Standings, schema: Schema) -> _Sum:
    total = _Sum()
    if not numbers:
        return total
    fields = tuple(each for each in schema.fields if _has_one_form(each.field_type))
    lineage = stored_lineage(schema)
    for _, batch in standings.rows(standing, numbers, *fields, *lineage, schema=schema):
        *columns, ids, ages = batch.columns
        total.rows += batch.num_rows
        total.nameless += ids.null_count
        texts = row_texts([*columns, pa.nulls(batch.num_rows)]).to_pylist()
        values = np.fromiter(map(hash, texts), np.int64, len(texts)).view(np.uint64)
        total.values += int(values.sum())
        if not total.nameless:
            names, moments = (_mixed(_words(each)) for each in (ids, ages))
            total.ids += int(_mixed(values ^ names).sum())
            total.ages += int(_mixed(names + _mixed(moments)).sum())
    return total


def _words(numbers: pa.Array) -> _Words:
    words: _Words = pc.fill_null(numbers, -1).to_numpy().view(np.uint64)
    return words


def _mixed(words: _Words) -> _Words:
    """Return words with every bit spread over all others, as the last step of a hash does."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(31))


def _has_one_form(type: IcebergType) -> bool:
    """Tell whether equal values of a type are equal bytes; a variant may be told in several."""
    match type:
        case VariantType() | UnknownType():
            return False
        case StructType():
            return all(_has_one_form(each.field_type) for each in type.fields)
        case ListType():
            return _has_one_form(type.element_type)
        case MapType():
            return _has_one_form(type.key_type) and _has_one_form(type.value_type)
    return True


def _differences(old: _Sum, new: _Sum) -> Iterator[str]:
    if old.rows != new.rows:
        yield f"puts {new.rows} live rows in the place of {old.rows}"
    elif _differ(old.values, new.values):
        yield "changes values of rows"
    elif old.nameless or new.nameless:
        return
    elif _differ(old.ids, new.ids):
        yield "changes ids of rows"
    elif _differ(old.ages, new.ages):
        yield "changes when rows were last updated"


def _differ(one: int, other: int) -> bool:
    """Tell whether sums differ; each was taken in parts, and each part is one of 64 bits."""
    return (one - other) % (1 << 64) != 0
