"""Which deletes apply to which data files: equality deletes, data DVs, old position deletes.

Deletes are matched to files as columns: both sides get the number of their partition, deletes
are sorted by it and by age, each file finds its run of younger deletes by binary search, and the
pairs that come out are thinned by bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import CorruptTable
from icetree.spec.arrays import first_repeated
from icetree.spec.entry.entry import Entries
from icetree.spec.entry.equality import compared, unmatchable
from icetree.spec.entry.stats import column
from icetree.spec.fields import DELETE_FILE_PATH_FIELD
from icetree.spec.locations import absolute_array, canonical_array, canonical_range
from icetree.spec.schema.shape import Shape
from icetree.spec.schema.types import has_nans
from icetree.tree.partitions import STATS, Flags, Rows, partition_codes, unpartitioned

#: Row numbers of files and, beside them, of deletes.
_Block: TypeAlias = tuple[Rows, Rows]

#: Candidate pairs looked at at once: bounds memory, not the result.
_BLOCK: Final = 1 << 20

#: Columns that `data_dvs_of` returns.
DATA_DV: Final = pa.schema(
    [
        pa.field("dv_location", pa.string()),
        pa.field("dv_offset", pa.int64()),
        pa.field("dv_size_in_bytes", pa.int64()),
        pa.field("dv_cardinality", pa.int64()),
        pa.field("dv_file_size_in_bytes", pa.int64()),
        pa.field("dv_key_metadata", pa.binary()),
    ]
)
_DATA_DV_COLUMNS: Final = (
    *("location", "dv_offset", "dv_size_in_bytes", "record_count", "file_size_in_bytes"),
    "key_metadata",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Row numbers of files and of the deletes that apply to them, by file, then delete."""

    files: Rows
    deletes: Rows

    def lists(self, size: int, renumbered: Rows | None = None) -> pa.ListArray:
        """Return each of `size` files' deletes, under new numbers where these are given."""
        items = self.deletes if renumbered is None else renumbered[self.deletes]
        ends = np.searchsorted(self.files, np.arange(size + 1))
        return pa.ListArray.from_arrays(
            pa.array(ends.astype(np.int32)), pa.array(items.astype(np.int32))
        )


def columns_for(equality: Entries, positions: Entries, shape: Shape) -> frozenset[str]:
    """Return the stats columns of data files that matching these deletes looks at."""
    fields = set(compared(equality))
    for table in (equality, positions):
        for spec_id in table["partition_spec_id"].unique().to_pylist():
            # An unknown spec is for matching to report, which can name the file.
            fields |= set(shape.partition_fields(spec_id)) if spec_id in shape.specs else set()
    return frozenset(column(field_id, stat) for field_id in fields for stat in STATS)


def data_dvs_of(files: Entries, data_dvs: Entries, *, root_file: str) -> pa.Table:
    """Return the data DV of each file (`DATA_DV`), null for a file without.

    Two on one file, and one older than its file, are a `CorruptTable`.
    """
    targets = data_dvs["referenced_file"]
    if (twice := first_repeated(targets)) is not None:
        raise CorruptTable(root_file, f"data file {twice} has two deletion vectors")
    at = pc.index_in(files["location"], value_set=targets).combine_chunks()
    older = pc.less(data_dvs["sequence_number"].take(at), files["sequence_number"])
    if pc.any(older).as_py():
        bad = files["location"].filter(older)[0].as_py()
        raise CorruptTable(root_file, f"the deletion vector of data file {bad} is older than it")
    return data_dvs.select(list(_DATA_DV_COLUMNS)).take(at).rename_columns(DATA_DV.names)


def equality_pairs(files: Entries, deletes: Entries, shape: Shape) -> Pairs:
    """Match equality deletes to the data files they may delete rows of.

    A delete applies to older files of its own partition, or to all older files when its spec is
    unpartitioned; not to one whose values of some equality field it cannot equal. One that
    applies and compares what no row has, or what cannot be compared, is a `CorruptTable`.
    """
    if not files.num_rows or not deletes.num_rows:
        return _no_pairs()
    file_ages, delete_ages = _ages(files), _ages(deletes)
    is_global = unpartitioned(deletes, shape)
    with_rows = files["record_count"].to_numpy() > 0
    everywhere = np.zeros(files.num_rows, np.int64)
    candidates = _candidates(
        np.where(with_rows, everywhere, -1), file_ages, np.where(is_global, 0, -1), delete_ages
    )
    if not is_global.all():
        asked = with_rows & _reached(files, file_ages, deletes, delete_ages, ~is_global)
        codes = partition_codes((files, deletes), (asked, ~is_global), shape)
        candidates = chain(candidates, _candidates(codes[0], file_ages, codes[1], delete_ages))
    overlap = _Overlap(files, deletes, shape)
    found = _pairs(overlap.thin(*block) for block in candidates)
    for file, rule in unmatchable(deletes.take(pa.array(np.unique(found.deletes))), shape):
        raise CorruptTable(file, rule)
    return found


def position_pairs(
    files: Entries,
    deletes: Entries,
    shape: Shape,
    *,
    has_data_dv: Flags,
    table_location: str | None = None,
) -> Pairs:
    """Match position delete files (of v2) to the data files they may delete rows of.

    A delete applies to files of its partition that are not younger. A file with a DV needs none:
    the DV has their positions. Paths inside delete files are absolute, in a spelling of their
    own, so their bounds count only where `table_location` says what stored locations stand for.
    """
    if not files.num_rows or not deletes.num_rows:
        return _no_pairs()
    file_ages, delete_ages = _ages(files), _ages(deletes)
    open_files = (files["record_count"].to_numpy() > 0) & ~has_data_dv
    named = pc.is_valid(deletes["referenced_file"]).to_numpy()
    at = pc.index_in(deletes["referenced_file"], value_set=files["location"])
    hits = np.flatnonzero(pc.is_valid(at).to_numpy())
    targets = pc.fill_null(at, 0).to_numpy().astype(np.int64)[hits]
    fits = open_files[targets] & (delete_ages[hits] >= file_ages[targets])
    blocks: list[_Block] = [(targets[fits], hits[fits])]
    if named.all():
        return _pairs(blocks)
    # A position delete reaches files of its own age, hence the younger age that is asked about.
    younger = delete_ages + 1
    asked = unpartitioned(files, shape) | _reached(files, file_ages, deletes, younger, ~named)
    codes = partition_codes((files, deletes), (open_files & asked, ~named), shape)
    paths = _Paths(files, deletes, table_location)
    candidates = _candidates(codes[0], file_ages, codes[1], younger)
    return _pairs(chain(blocks, (paths.thin(*block) for block in candidates)))


def _no_pairs() -> Pairs:
    return Pairs(files=np.zeros(0, np.int64), deletes=np.zeros(0, np.int64))


def _pairs(blocks: Iterable[_Block]) -> Pairs:
    found = list(blocks)
    files = np.concatenate([np.zeros(0, np.int64), *(files for files, _ in found)])
    deletes = np.concatenate([np.zeros(0, np.int64), *(deletes for _, deletes in found)])
    order = np.lexsort((deletes, files))
    return Pairs(files=files[order], deletes=deletes[order])


def _ages(entries: Entries) -> Rows:
    ages = entries["sequence_number"]
    if ages.null_count:
        bad = entries["location"].filter(pc.is_null(ages))[0].as_py()
        raise CorruptTable(bad, "its entry has no sequence number, so no delete can be dated to it")
    found: Rows = ages.to_numpy()
    return found


def _reached(
    files: Entries, file_ages: Rows, deletes: Entries, delete_ages: Rows, which: Flags
) -> Flags:
    """Tell which files share a spec with one of those deletes that is younger."""
    file_specs = files["partition_spec_id"].to_numpy()
    delete_specs = deletes["partition_spec_id"].to_numpy()
    reached = np.zeros(files.num_rows, np.bool_)
    for spec_id in np.unique(delete_specs[which]).tolist():
        newest = delete_ages[which & (delete_specs == spec_id)].max()
        reached |= (file_specs == spec_id) & (file_ages < newest)
    return reached


def _candidates(
    file_codes: Rows, file_ages: Rows, delete_codes: Rows, delete_ages: Rows
) -> Iterator[_Block]:
    """Yield pairs of equal code where the delete is younger, a block at a time; -1 has none."""
    rows = np.flatnonzero(delete_codes >= 0)
    if not len(rows):
        return
    ages = np.unique(delete_ages[rows])
    # One number orders by code, then age: a file's deletes are then one run of it.
    stride = len(ages) + 1
    keys = delete_codes[rows] * stride + np.searchsorted(ages, delete_ages[rows])
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    starts = np.searchsorted(
        keys, file_codes * stride + np.searchsorted(ages, file_ages, side="right")
    )
    counts = np.searchsorted(keys, (file_codes + 1) * stride) - starts
    counts[file_codes < 0] = 0
    files = np.flatnonzero(counts)
    starts, counts = starts[files], counts[files]
    ends = np.cumsum(counts)
    at = 0
    while at < len(files):
        done = ends[at] - counts[at]
        upto = max(at + 1, int(np.searchsorted(ends, done + _BLOCK, side="right")))
        part = counts[at:upto]
        # Within each run, count up from where the run starts.
        steps = np.arange(part.sum()) - np.repeat(ends[at:upto] - part - done, part)
        yield np.repeat(files[at:upto], part), rows[np.repeat(starts[at:upto], part) + steps]
        at = upto


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What one field's stats say of the files on one side, one row a file."""

    lower: pa.Array | None
    upper: pa.Array | None
    may_have_values: Flags
    may_have_nulls: Flags
    may_have_nans: Flags


class _Overlap:
    """Drops pairs of a file and an equality delete that have no value in common."""

    def __init__(self, files: Entries, deletes: Entries, shape: Shape) -> None:
        self._fields: list[tuple[Flags, _Side, _Side]] = [
            (uses, _side(files, field_id, shape), _side(deletes, field_id, shape))
            for field_id, uses in compared(deletes).items()
        ]

    def thin(self, files: Rows, deletes: Rows) -> _Block:
        for uses, file_side, delete_side in self._fields:
            fits = ~uses[deletes] | _can_share(file_side, files, delete_side, deletes)
            files, deletes = files[fits], deletes[fits]
        return files, deletes


def _side(table: Entries, field_id: int, shape: Shape) -> _Side:
    def stat(name: str) -> pa.Array | None:
        return _known(table, column(field_id, name))

    def number(name: str) -> Rows:
        found = stat(name)
        unknown = np.full(table.num_rows, -1, np.int64)
        return unknown if found is None else pc.fill_null(found, -1).to_numpy()

    type = shape.types.get(field_id)
    values, nulls = number("values"), number("nulls")
    can_be_nan = type is None or has_nans(type)
    nans = number("nans") if can_be_nan else np.zeros(table.num_rows, np.int64)
    # Where every value is null, how many are NaN need not be known.
    none_left = (values > 0) & ((nulls == values) | ((nulls >= 0) & (nulls + nans == values)))
    return _Side(
        lower=stat("lower"),
        upper=stat("upper"),
        may_have_values=~none_left,
        may_have_nulls=nulls != 0,
        may_have_nans=nans != 0,
    )


def _known(table: Entries, name: str) -> pa.Array | None:
    """Return a stats column, None where it tells nothing that could be compared."""
    if name not in table.schema.names:
        return None
    found = table[name]
    if found.null_count == len(found) or pa.types.is_struct(found.type):
        return None
    return found.combine_chunks()


def _can_share(one: _Side, ones: Rows, other: _Side, others: Rows) -> Flags:
    apart = _is_below(one.upper, ones, other.lower, others)
    apart |= _is_below(other.upper, others, one.lower, ones)
    values = one.may_have_values[ones] & other.may_have_values[others] & ~apart
    nulls = one.may_have_nulls[ones] & other.may_have_nulls[others]
    nans = one.may_have_nans[ones] & other.may_have_nans[others]
    shared: Flags = values | nulls | nans
    return shared


def _is_below(upper: pa.Array | None, uppers: Rows, lower: pa.Array | None, lowers: Rows) -> Flags:
    if upper is None or lower is None:
        return np.zeros(len(uppers), np.bool_)
    below = pc.less(upper.take(pa.array(uppers)), lower.take(pa.array(lowers)))
    known: Flags = pc.fill_null(below, False).to_numpy(zero_copy_only=False)
    return known


class _Paths:
    """Drops pairs of a file and a position delete whose path bounds leave the file out."""

    def __init__(self, files: Entries, deletes: Entries, table_location: str | None) -> None:
        self._lower = _known(deletes, column(DELETE_FILE_PATH_FIELD, "lower"))
        self._upper = _known(deletes, column(DELETE_FILE_PATH_FIELD, "upper"))
        self._paths: pa.Array | None = None
        if table_location is not None and self._lower is not None and self._upper is not None:
            full = absolute_array(files["location"], table_location)
            self._paths = canonical_array(full, table_location)
            self._lower, self._upper = canonical_range(self._lower, self._upper, table_location)

    def thin(self, files: Rows, deletes: Rows) -> _Block:
        fits = ~_is_below(self._paths, files, self._lower, deletes)
        fits &= ~_is_below(self._upper, deletes, self._paths, files)
        return files[fits], deletes[fits]
