"""Do data files hold what their entries say: rows, field ids, row groups, stats; and DVs too.

Reads every row group of every file it is given, one at a time and a few files side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import GeographyType, NestedField, UnknownType

from icetree.codec import puffin
from icetree.codec.variant.bounds import decode
from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.files.sealed import read_part, size_of
from icetree.rows.read.equality_files import lacking
from icetree.rows.read.files import DataFile, ReadRules, name_mapping, open_file
from icetree.rows.read.partition_values import partition_constants
from icetree.rows.write.partition import expression_values
from icetree.rows.write.sound import broken
from icetree.rows.write.stats import StatsGatherer
from icetree.spec import stats
from icetree.spec.entry import Content, Entries, is_data_dv
from icetree.spec.fields import DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD, GEO_AXES
from icetree.spec.geo import Corners, Numbers, within
from icetree.spec.location import absolute
from icetree.spec.metadata import TableMetadata
from icetree.spec.metadata_columns import stored_lineage
from icetree.spec.metrics import FULL
from icetree.spec.shape import Shape
from icetree.spec.types import GEO_BOUND, VARIANT_BOUND
from icetree.store.base import Store
from icetree.surroundings import new_pool
from icetree.table.verify.findings import Gathering, Kind

_AT_ONCE: Final = 4
#: Added to entries: the rows of the data file that a data DV is for.
TARGET_ROWS: Final = "target_rows"
_DATA_DV: Final = [
    "location",
    "dv_offset",
    "dv_size_in_bytes",
    "key_metadata",
    "record_count",
    "referenced_file",
    TARGET_ROWS,
]
_CHECKED: Final = ("lower", "upper", "values", "nulls", "nans")
#: (kind, file, rule)
_Broken: TypeAlias = "tuple[Kind, str, str]"
_Stats: TypeAlias = "dict[str, pa.Scalar]"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCheck:
    """What is the same for all files of a table."""

    store: Store
    metadata: TableMetadata
    shape: Shape
    mapping: NameMapping | None

    @classmethod
    def of(cls, store: Store, metadata: TableMetadata, shape: Shape) -> DataCheck:
        """Return the check for a table."""
        return cls(
            store=store,
            metadata=metadata,
            shape=shape,
            mapping=name_mapping(metadata.properties),
        )

    def run(
        self,
        live: Entries,
        snapshot_id: int,
        found: Gathering,
        *,
        progress: Callable[[str, int, int], None],
    ) -> dict[str, int]:
        """Check files and DVs, which have `TARGET_ROWS`; return how many rows and DVs were read."""
        data_dvs = live.filter(is_data_dv(live))
        files = live.filter(pc.invert(is_data_dv(live)))
        with new_pool(_AT_ONCE, "icetree-verify") as pool:
            numbers = range(files.num_rows)
            jobs = pool.map(lambda at: list(self._file(files.slice(at, 1))), numbers)
            for done, broken in enumerate(jobs, start=1):
                progress("data files", done, files.num_rows)
                for kind, file, rule in broken:
                    found.add(kind, file, rule, snapshot_id=snapshot_id)
        rows = pc.sum(files["record_count"]).as_py() or 0
        for kind, file, rule in self._data_dvs(data_dvs):
            found.add(kind, file, rule, snapshot_id=snapshot_id)
        return {"rows": rows, "data_dvs": data_dvs.num_rows}

    # --- files of rows ---------------------------------------------------------------------

    def _file(self, entry: Entries) -> Iterator[_Broken]:
        name = entry["location"][0].as_py()
        try:
            yield from self._rows(entry, name)
        except CorruptTable as error:
            text = error.rule.lower()
            kind = Kind.CHECKSUM if "crc" in text or "checksum" in text else Kind.UNREADABLE
            yield kind, name, error.rule
        except NotFound:
            yield Kind.MISSING_FILE, name, "is missing"
        except Unsupported:
            return  # a format that only engines read

    def _rows(self, entry: Entries, name: str) -> Iterator[_Broken]:
        place = absolute(name, self.metadata.location)
        format = entry["file_format"][0].as_py()
        content = entry["content_type"][0].as_py()
        is_position = content == Content.POSITION_DELETES
        mapping = None if is_position else self.mapping
        key = entry["key_metadata"][0].as_py()
        file = open_file(self.store, place, format, mapping=mapping, key=key)
        if format == "parquet":
            yield from self._splits(entry, file, name)
        told = entry["record_count"][0].as_py()
        rows = sum(group.rows for group in file.groups)
        if rows != told:
            yield Kind.STATS, name, f"has {rows} rows, its entry says {told}"
        if is_position:
            for id in (DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD):
                if not file.has(id):
                    yield Kind.UNREADABLE, name, f"a position delete file lacks column {id}"
            return
        if content == Content.EQUALITY_DELETES:
            rule = lacking(file, entry["equality_ids"][0].as_py() or (), self.shape)
            if rule is not None:
                yield Kind.UNREADABLE, name, rule
        yield from self._stats(entry, file, name, place)

    def _splits(self, entry: Entries, file: DataFile, name: str) -> Iterator[_Broken]:
        offsets = entry["split_offsets"][0].as_py()
        if not offsets:
            return
        groups = file.reader.file.row_groups
        starts = {group.chunks[0].first_page for group in groups if group.chunks}
        stray = [offset for offset in offsets if offset not in starts]
        if stray:
            yield Kind.STATS, name, f"split offset {stray[0]} is where no row group starts"

    def _stats(self, entry: Entries, file: DataFile, name: str, place: str) -> Iterator[_Broken]:
        """Yield a sentence for each stat of the entry that its rows contradict."""
        fields = tuple(
            field
            for field in self.shape.schema.fields
            if not isinstance(field.field_type, UnknownType)
        )
        [facts] = entry.select(["location", "partition_spec_id"]).to_pylist()
        constants = partition_constants(entry, facts, file, self.shape)
        rules = ReadRules(location=place, constants=constants)
        if entry["content_type"][0].as_py() == Content.EQUALITY_DELETES:
            # It has the columns it compares, whatever the table requires of its own rows.
            fields = tuple(_optional(field) for field in fields if file.has(field.field_id))
        else:
            lineage = stored_lineage(self.shape.schema)
            fields += tuple(field for field in lineage if file.has(field.field_id))
        modes = dict.fromkeys(self.shape.types, FULL)
        gathered = StatsGatherer(fields, modes)
        parts: list[_Stats] = []
        for group in file.groups:
            batches = file.read(group, fields, rules)
            if not batches:
                continue
            rows = pa.Table.from_batches(batches)
            gathered.add(rows)
            parts.append(self._expressions(rows))
            for field, column in zip(fields, rows.columns, strict=True):
                for at, kind, why in _broken(column, field):
                    yield Kind.UNREADABLE, name, f"column {at} has values that are no {kind}: {why}"
        told, of_columns = _told(entry), gathered.stats()
        for column in dict.fromkeys(column for column, _ in told):
            named = {stat: stats.column(column, stat) for stat in _CHECKED}
            real = {
                stat: of_columns.get(each) or _over([part.get(each) for part in parts], stat)
                for stat, each in named.items()
            }
            if real["values"] is None:
                continue  # of a column that has gone
            mine = {stat: value for (id, stat), value in told.items() if id == column}
            label = self.shape.names.get(column, str(column))
            earth = isinstance(self.shape.types.get(column), GeographyType)
            for rule in (
                *_contradicted(label, mine, real),
                *_outside(label, mine, real, earth),
                *_fields_beyond(label, mine, real),
            ):
                yield Kind.STATS, name, rule

    def _expressions(self, rows: pa.Table) -> _Stats:
        """Return the stats of each expression whose column is there."""
        made: _Stats = {}
        for id, expression in self.shape.expressions.items():
            if expression.is_identity or id not in self.shape.types:
                continue
            # Of a column that the file lacks, or that only engines transform, nothing is known.
            with suppress(InvalidInput, Unsupported):
                values = expression_values(rows, expression, self.shape)
                ends = pc.min_max(values)
                made |= {
                    stats.column(id, "values"): pa.scalar(len(values), pa.int64()),
                    stats.column(id, "nulls"): pa.scalar(values.null_count, pa.int64()),
                    stats.column(id, "lower"): ends["min"],
                    stats.column(id, "upper"): ends["max"],
                }
        return made

    # --- deletion vectors ------------------------------------------------------------------

    def _data_dvs(self, data_dvs: Entries) -> Iterator[_Broken]:
        footers: dict[str, set[tuple[int, int]]] = {}
        for one in data_dvs.select(_DATA_DV).to_pylist():
            name = one["location"]
            try:
                if name not in footers:
                    footers[name] = self._blobs(name, one["key_metadata"])
                yield from self._data_dv(one, footers[name])
            except puffin.WrongChecksum as error:
                yield Kind.CHECKSUM, name, error.rule
            except CorruptTable as error:
                yield Kind.UNREADABLE, name, error.rule
            except NotFound:
                yield Kind.MISSING_FILE, name, "is missing"

    def _blobs(self, name: str, key: bytes | None) -> set[tuple[int, int]]:
        place = absolute(name, self.metadata.location)
        footer = puffin.read_footer(
            lambda offset, length: read_part(self.store, place, key, offset=offset, length=length),
            size_of(self.store, place, key),
            file=name,
        )
        return {(blob.offset, blob.length) for blob in footer.blobs}

    def _data_dv(self, one: Mapping[str, Any], blobs: set[tuple[int, int]]) -> Iterator[_Broken]:
        name, target, rows = one["location"], one["referenced_file"], one[TARGET_ROWS]
        offset, length = one["dv_offset"], one["dv_size_in_bytes"]
        if (offset, length) not in blobs:
            yield Kind.UNREADABLE, name, f"its footer names no blob at {offset} of {length} bytes"
        place = absolute(name, self.metadata.location)
        blob = read_part(self.store, place, one["key_metadata"], offset=offset, length=length)
        positions = puffin.decode_dv(blob, file=name)
        if len(positions) != one["record_count"]:
            rule = f"the DV of {target} has {len(positions)} rows, its entry says"
            yield Kind.STATS, name, f"{rule} {one['record_count']}"
        if positions and rows is not None and positions.max() >= rows:
            rule = f"the DV of {target} removes row {positions.max()} of {rows}"
            yield Kind.STATS, name, rule


def _optional(field: NestedField) -> NestedField:
    return NestedField(field.field_id, field.name, field.field_type, required=False)


def _told(entry: Entries) -> dict[tuple[int, str], pa.Scalar]:
    """Return the stats that an entry has, by field and stat."""
    found = {}
    for name in entry.schema.names:
        parsed = stats.parse_column(name)
        if parsed is not None and entry[name][0].is_valid:
            found[parsed] = entry[name][0]
    return found


def _over(parts: list[pa.Scalar | None], stat: str) -> pa.Scalar | None:
    """Combine a stat of row groups: the least, the greatest, the sum."""
    known = [_ordered(part) for part in parts if part is not None and part.is_valid]
    if not known:
        return None
    values = pa.array(known, known[0].type)
    if stat == "lower":
        return pc.min(values)
    return pc.max(values) if stat == "upper" else pc.sum(values)


def _ordered(value: pa.Scalar) -> pa.Scalar:
    """Return a value in a type that Arrow compares."""
    return value.cast(pa.binary()) if pa.types.is_fixed_size_binary(value.type) else value


def _contradicted(
    label: str, told: Mapping[str, pa.Scalar], real: Mapping[str, pa.Scalar | None]
) -> Iterator[str]:
    tight = "tight" in told and told["tight"].as_py()
    for stat, holds in (("lower", pc.less_equal), ("upper", pc.greater_equal)):
        mine, actual = told.get(stat), real[stat]
        if mine is None or actual is None or mine.type in (GEO_BOUND, VARIANT_BOUND):
            continue
        mine, actual = _ordered(mine), _ordered(actual)
        try:
            fits = holds(mine, actual).as_py()
            exact = pc.equal(mine, actual).as_py()
        except pa.ArrowException:
            continue  # of another type since: nothing can be said
        if not fits:
            yield f"{stat} bound of {label} is {_text(mine)}, but it has {_text(actual)}"
        elif tight and not exact:
            yield f"{stat} bound of {label} is tight at {_text(mine)}, but it is {_text(actual)}"
    for stat in ("values", "nulls", "nans"):
        mine, actual = told.get(stat), real[stat]
        if mine is not None and actual is not None and mine.as_py() != actual.as_py():
            yield f"{stat} of {label} is {mine}, but there are {actual}"


def _broken(values: pa.ChunkedArray, field: NestedField) -> Iterator[tuple[str, str, str]]:
    for chunk in values.chunks:
        yield from broken(chunk, field.field_type, field.name, whole=True)


def _outside(
    label: str, told: Mapping[str, pa.Scalar], real: Mapping[str, pa.Scalar | None], earth: bool
) -> Iterator[str]:
    """Yield a sentence where geometries lie outside the box that is told."""
    mine, actual = (_corners(ends.get("lower"), ends.get("upper")) for ends in (told, real))
    if mine is not None and actual is not None and not within(actual, mine, earth=earth):
        yield f"box of {label} is {_box_text(mine)}, but it has {_box_text(actual)}"


def _fields_beyond(
    label: str, told: Mapping[str, pa.Scalar], real: Mapping[str, pa.Scalar | None]
) -> Iterator[str]:
    """Yield a sentence for each field of variants whose values its bounds do not hold."""
    ends = [each.get(stat) for each in (told, real) for stat in ("lower", "upper")]
    if any(end is None or end.type != VARIANT_BOUND for end in ends):
        return
    low, high, least, most = (decode(end.as_py()) for end in ends if end is not None)
    # Of arrays others tell bounds of elements, of which nothing is gathered here.
    for path in sorted(low.keys() & high.keys() & least.keys()):
        if not (
            low[path].kind == least[path].kind
            and low[path].value <= least[path].value
            and most[path].value <= high[path].value
        ):
            found = f"{least[path].value!r} to {most[path].value!r}"
            yield f"bounds of {label} {path} do not hold what it has, {found}"


def _corners(lower: pa.Scalar | None, upper: pa.Scalar | None) -> Corners | None:
    ends = [each for each in (lower, upper) if isinstance(each, pa.StructScalar) and each.is_valid]
    if len(ends) < 2:
        return None
    low, high = (np.array([end[axis].as_py() for axis in GEO_AXES], np.float64) for end in ends)
    return low, high


def _box_text(corners: Corners) -> str:
    return "({}, {})".format(
        *(" ".join(f"{each:g}" for each in _cut(corner)) for corner in corners)
    )


def _cut(corner: Numbers) -> Numbers:
    """Return a corner without what it lacks at its end."""
    told = np.flatnonzero(~np.isnan(corner))
    return corner[: max(2, told[-1] + 1 if len(told) else 0)]


def _text(value: pa.Scalar) -> str:
    if not pa.types.is_string(value.type):
        return str(value)
    # A bound that is cut, or damaged, need not be text.
    return repr(value.as_buffer().to_pybytes().decode(errors="backslashreplace"))
