"""Do data files hold what entries say: rows, field ids, row groups, stats, who their rows are.

Reads every row group of every file it is given, one at a time and a few files side by side: once
for all that any entry tells of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.table.name_mapping import NameMapping
from pyiceberg.types import GeographyType, NestedField, UnknownType

from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.rows.read.equality_files import lacking
from icetree.rows.read.files import DataFile, ReadRules, name_mapping, open_file
from icetree.rows.read.partition_values import partition_constants
from icetree.rows.write.partition import expression_values
from icetree.rows.write.sound import broken
from icetree.rows.write.stats import StatsGatherer
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Content, Entries, is_data_dv, is_data_file
from icetree.spec.entry.metrics import FULL
from icetree.spec.fields import ROW_ID_FIELD
from icetree.spec.location import absolute
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.metadata_columns import stored_lineage
from icetree.spec.schema.shape import Shape
from icetree.store.base import Store
from icetree.surroundings import new_pool
from icetree.table.verify.contradicted import (
    contradicted,
    fields_beyond,
    nothing_but_nulls,
    outside,
    over,
    told_by,
)
from icetree.table.verify.every_column import EveryColumn
from icetree.table.verify.findings import Gathering, Kind
from icetree.table.verify.footers import FooterStats
from icetree.table.verify.positions import broken_positions, lacks_a_column
from icetree.table.verify.stored_lineage import broken_lineage
from icetree.table.verify.tellings import SEEN_IN, by_file
from icetree.table.verify.vectors import broken_vectors

_AT_ONCE: Final = 4
_CHECKED: Final = ("lower", "upper", "values", "nulls", "nans")
#: (kind, file, rule, snapshot)
_Broken: TypeAlias = "tuple[Kind, str, str, int]"
_Stats: TypeAlias = "dict[str, pa.Scalar]"
_Expressions: TypeAlias = "tuple[tuple[int, Expression], ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """What the rows of a file come to."""

    #: By the name of the stats column: of columns, and of expressions in each row group.
    columns: _Stats
    expressions: list[_Stats]
    #: Sentences on values that are none of their type, and on what the file says of itself.
    broken: list[str]
    untrue: list[str]

    def stat(self, field_id: int, stat: str) -> pa.Scalar | None:
        """Return a stat of a column or an expression; None where nothing is known."""
        name = stats.column(field_id, stat)
        found = self.columns.get(name)
        return over([each.get(name) for each in self.expressions], stat) if found is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCheck:
    """What is the same for all files of a table."""

    store: Store
    metadata: TableMetadata
    shape: Shape
    mapping: NameMapping | None
    every: EveryColumn
    #: Data files that were found to hold row ids of their own.
    numbered: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, store: Store, metadata: TableMetadata, shape: Shape) -> DataCheck:
        """Return the check for a table."""
        return cls(
            store=store,
            metadata=metadata,
            shape=shape,
            mapping=name_mapping(metadata.properties),
            every=EveryColumn.of(metadata, shape),
        )

    def run(
        self,
        tellings: Entries,
        found: Gathering,
        *,
        progress: Callable[[str, int, int], None],
    ) -> dict[str, int]:
        """Check files and DVs by all `Tellings` of them; return how many rows and DVs were read."""
        data_dvs = tellings.filter(is_data_dv(tellings))
        files = by_file(tellings.filter(pc.invert(is_data_dv(tellings))))
        known = tellings.filter(is_data_file(tellings)).select(["location", "record_count"])
        with new_pool(_AT_ONCE, "icetree-verify") as pool:
            jobs = pool.map(lambda each: list(self._file(each, known)), files)
            for done, broken_rules in enumerate(jobs, start=1):
                progress("data files", done, len(files))
                for kind, file, rule, id in broken_rules:
                    found.add(kind, file, rule, snapshot_id=id)
        rows = sum(each["record_count"][0].as_py() or 0 for each in files)
        vectors = broken_vectors(data_dvs, self.store, self.metadata.location)
        for kind, file, rule, id in vectors:
            found.add(kind, file, rule, snapshot_id=id)
        return {"rows": rows, "data_dvs": data_dvs.num_rows}

    @property
    def _has_lineage(self) -> bool:
        """Whether the columns of lineage mean something: before version 3 they are like any others."""
        return self.metadata.next_row_id is not None

    def _file(self, tellings: Entries, known: pa.Table) -> Iterator[_Broken]:
        """Check a file by all that is told of it; `known` are data files with their rows."""
        name, seen_in = tellings["location"][0].as_py(), tellings[SEEN_IN][0].as_py()
        try:
            yield from self._rows(tellings, name, known)
        except CorruptTable as error:
            text = error.rule.lower()
            kind = Kind.CHECKSUM if "crc" in text or "checksum" in text else Kind.UNREADABLE
            yield kind, name, error.rule, seen_in
        except NotFound:
            yield Kind.MISSING_FILE, name, "is missing", seen_in
        except Unsupported:
            return  # a format that only engines read

    def _rows(self, tellings: Entries, name: str, known: pa.Table) -> Iterator[_Broken]:
        place = absolute(name, self.metadata.location)
        format = tellings["file_format"][0].as_py()
        content = tellings["content_type"][0].as_py()
        is_position = content == Content.POSITION_DELETES
        mapping = None if is_position else self.mapping
        key = tellings["key_metadata"][0].as_py()
        file = open_file(self.store, place, format, mapping=mapping, key=key)
        if content == Content.DATA and self._has_lineage and file.has(ROW_ID_FIELD):
            self.numbered.add(name)
        for rule, at in _told_as_two(tellings):
            yield Kind.TREE, name, rule, tellings[SEEN_IN][at].as_py()
        entries = [tellings.slice(at, 1) for at in range(tellings.num_rows)]
        rows = sum(group.rows for group in file.groups)
        for entry in entries:
            for kind, rule in self._facts(entry, file, rows):
                yield kind, name, rule, entry[SEEN_IN][0].as_py()
        if not is_position:
            yield from self._contents(entries, file, name, place)
        elif lacking := lacks_a_column(file):
            yield Kind.UNREADABLE, name, lacking, entries[0][SEEN_IN][0].as_py()
        else:
            for rule, at in broken_positions(file, entries, known, self.metadata.location):
                yield Kind.STATS, name, rule, entries[at][SEEN_IN][0].as_py()

    def _facts(self, entry: Entries, file: DataFile, rows: int) -> Iterator[tuple[Kind, str]]:
        """Yield what an entry says wrongly of a file as a whole, which has so many rows."""
        if entry["file_format"][0].as_py() == "parquet" and (rule := _stray_split(entry, file)):
            yield Kind.STATS, rule
        told = entry["record_count"][0].as_py()
        if rows != told:
            yield Kind.STATS, f"has {rows} rows, its entry says {told}"
        if entry["content_type"][0].as_py() == Content.EQUALITY_DELETES:
            ids = entry["equality_ids"][0].as_py() or ()
            if rule := lacking(file, ids, self.shape):
                yield Kind.UNREADABLE, rule

    # --- rows ------------------------------------------------------------------------------

    def _contents(
        self, entries: list[Entries], file: DataFile, name: str, place: str
    ) -> Iterator[_Broken]:
        """Yield a sentence for all that an entry says and its rows contradict."""
        fields, expressions = self._fields(entries, file), self._known(entries, file)
        read_with: dict[int, pa.Scalar] = {}
        rows: _Rows | None = None
        for entry in entries:
            seen_in = entry[SEEN_IN][0].as_py()
            [facts] = entry.select(["location", "partition_spec_id"]).to_pylist()
            constants = partition_constants(entry, facts, file, self.shape)
            if rows is None or constants != read_with:
                read_with = constants
                rules = ReadRules(location=place, constants=constants)
                rows = self._read(file, fields, expressions, rules)
                for rule in rows.broken:
                    yield Kind.UNREADABLE, name, rule, seen_in
                for rule in rows.untrue:
                    yield Kind.STATS, name, rule, seen_in
            for rule in self._contradictions(entry, rows):
                yield Kind.STATS, name, rule, seen_in
            if entry["content_type"][0].as_py() == Content.DATA:
                for rule in broken_lineage(entry, rows.stat, self.metadata.next_row_id):
                    yield Kind.ROW_LINEAGE, name, rule, seen_in

    def _fields(self, entries: list[Entries], file: DataFile) -> tuple[NestedField, ...]:
        """Return the columns of a file, by all that entries tell of it."""
        if entries[0]["content_type"][0].as_py() == Content.EQUALITY_DELETES:
            fields = self.every.in_deletes(file)
        else:
            fields = self.every.in_data(file, entries)
            lineage = stored_lineage(self.every.shape.schema) if self._has_lineage else ()
            fields += tuple(field for field in lineage if file.has(field.field_id))
        return tuple(each for each in fields if not isinstance(each.field_type, UnknownType))

    def _known(self, entries: list[Entries], file: DataFile) -> _Expressions:
        """Return the expressions that the rows of a file can tell of."""
        every = tuple(self.shape.expressions.items())
        if entries[0]["content_type"][0].as_py() != Content.EQUALITY_DELETES:
            return every
        return tuple((id, each) for id, each in every if all(map(file.has_below, each.source_ids)))

    def _read(
        self,
        file: DataFile,
        fields: tuple[NestedField, ...],
        known: _Expressions,
        rules: ReadRules,
    ) -> _Rows:
        gathered = StatsGatherer(fields, dict.fromkeys(self.shape.types, FULL))
        expressions: list[_Stats] = []
        said: list[str] = []
        untrue: list[str] = []
        footer = FooterStats.of(file, self.shape)
        for group in file.groups:
            batches = file.read(group, fields, rules)
            if not batches:
                continue
            rows = pa.Table.from_batches(batches)
            untrue += footer.contradictions(group, gathered.add(rows))
            expressions.append(self._expressions(rows, known))
            for each, column in zip(fields, rows.columns, strict=True):
                for at, kind, why in _no_values(column, each):
                    said.append(f"column {at} has values that are no {kind}: {why}")
        return _Rows(columns=gathered.stats(), expressions=expressions, broken=said, untrue=untrue)

    def _contradictions(self, entry: Entries, rows: _Rows) -> Iterator[str]:
        """Yield a sentence for each stat of the entry that its rows contradict."""
        told = told_by(entry)
        spec_id = entry["partition_spec_id"][0].as_py()
        parts = self.shape.partition_fields(spec_id) if spec_id in self.shape.specs else ()
        for column in dict.fromkeys(column for column, _ in told):
            real = {stat: rows.stat(column, stat) for stat in _CHECKED}
            if real["values"] is None:
                continue  # of a column that the file does not have
            mine = {stat: value for (id, stat), value in told.items() if id == column}
            label = self.shape.names.get(column, str(column))
            earth = isinstance(self.shape.types.get(column), GeographyType)
            yield from contradicted(label, mine, real)
            yield from outside(label, mine, real, earth)
            yield from fields_beyond(label, mine, real)
            if column in parts:
                yield from nothing_but_nulls(label, mine, real)

    def _expressions(self, rows: pa.Table, expressions: _Expressions) -> _Stats:
        """Return the stats of each expression whose column is there."""
        made: _Stats = {}
        for id, expression in expressions:
            if expression.is_identity or id not in self.shape.types:
                continue
            # Of a column that the file lacks, or that only engines transform, nothing is known.
            with suppress(InvalidInput, Unsupported):
                values = expression_values(rows, expression, self.every.shape)
                ends = pc.min_max(values)
                made |= {
                    stats.column(id, "values"): pa.scalar(len(values), pa.int64()),
                    stats.column(id, "nulls"): pa.scalar(values.null_count, pa.int64()),
                    stats.column(id, "lower"): ends["min"],
                    stats.column(id, "upper"): ends["max"],
                }
        return made


def _told_as_two(tellings: Entries) -> Iterator[tuple[str, int]]:
    """Yield what never changes of a file, and does, with the number of a telling that it does in.

    A file that left a table may come back as another's.
    """
    stays = tellings["file_sequence_number"].to_pylist()
    for column, is_ in (("partition_spec_id", "is"), ("equality_ids", "are")):
        newest: dict[int | None, object] = {}
        for at, (stay, value) in enumerate(zip(stays, tellings[column].to_pylist(), strict=True)):
            if newest.setdefault(stay, value) != value:
                told = f"its {column.replace('_', ' ')} {is_} {newest[stay]}"
                yield f"{told} in one snapshot, {value} in another", at
                break


def _stray_split(entry: Entries, file: DataFile) -> str | None:
    offsets = entry["split_offsets"][0].as_py()
    if not offsets:
        return None
    groups = file.reader.file.row_groups
    starts = {group.chunks[0].first_page for group in groups if group.chunks}
    stray = [offset for offset in offsets if offset not in starts]
    return f"split offset {stray[0]} is where no row group starts" if stray else None


def _no_values(values: pa.ChunkedArray, field: NestedField) -> Iterator[tuple[str, str, str]]:
    for chunk in values.chunks:
        yield from broken(chunk, field.field_type, field.name, whole=True)
