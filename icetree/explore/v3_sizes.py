"""How large v3's metadata files are, measured on encodings of a table's own files.

Manifests and lists are written by PyIceberg, in the layout of v2: v3 adds a few fields to each
entry. metadata.json is written by the codec of this package, as version 3, and gzipped, which is
not v3's default. What is not known for sure is left out, in favour of v3: beside Iceberg Java 1.11,
with these events, a commit of the stream is told about a quarter too small.
"""

from __future__ import annotations

import gzip
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from pyiceberg import manifest as legacy
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import parse_transform
from pyiceberg.typedef import Record
from pyiceberg.types import IntegerType, PrimitiveType
from pyiceberg.utils.datetime import date_to_days

from icetree.codec import metadata as metadata_codec
from icetree.spec.entry.entry import Entries, Entry, from_table, is_data_file
from icetree.spec.location import absolute
from icetree.spec.metadata import layout
from icetree.spec.metadata.snapshot import LogEntry
from icetree.spec.schema.shape import Shape
from icetree.table.table import Table
from icetree.tree.live import live_files

_CODEC: Final = "deflate"
_SNAPSHOT: Final = 4_611_686_018_427_387_904
#: Where v2 keeps which data file a delete file is for: a bound of the column `file_path`.
_FILE_PATH: Final = 2_147_483_546
#: Sizes are measured for so many entries, and lie on straight lines in between and beyond.
_POINTS: Final = (1, 10, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A size in bytes by a count, known at a few points."""

    counts: tuple[int, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, measure: Callable[[int], int], most: int) -> Curve:
        """Measure at some counts from 1 to `most`."""
        counts = tuple(sorted({min(each, most) for each in (*_POINTS, most)}))
        return cls(counts=counts, sizes=tuple(measure(each) for each in counts))

    def at(self, count: int) -> int:
        """Return the size for a count."""
        if count <= self.counts[-1]:
            return int(np.interp(count, self.counts, self.sizes))
        first, last = max(len(self.counts) - 2, 0), len(self.counts) - 1
        run = max(self.counts[last] - self.counts[first], 1)
        slope = (self.sizes[last] - self.sizes[first]) / run
        return int(self.sizes[last] + slope * (count - self.counts[last]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of v3's files for one table."""

    #: By whether it is a manifest of data files.
    manifests: Mapping[bool, Curve]
    lists: Curve
    versions: Curve

    def manifest(self, is_data: bool, entries: int) -> int:
        """Return a manifest's size; one of a kind that is all gone is taken for the other's."""
        curve = self.manifests.get(is_data) or self.manifests[not is_data]
        return curve.at(entries)

    def manifest_list(self, manifests: int) -> int:
        """Return the size of a list of so many manifests."""
        return self.lists.at(manifests)

    def metadata(self, snapshots: int) -> int:
        """Return the size of metadata.json with so many snapshots, all of which v3 keeps in it."""
        return self.versions.at(snapshots)


def sizes(table: Table) -> Sizes:
    """Measure on the files that a table has now."""
    shape = table.metadata.shape()
    current = table.metadata.current_snapshot()
    root = table.files.root(current, shape)
    live = live_files(root, table.files.reader(shape))
    is_data = is_data_file(live)
    found = {}
    with TemporaryDirectory() as folder:
        for kind, mask in ((True, is_data), (False, pc.invert(is_data))):
            files = _sample(live.filter(mask))
            if files.num_rows:
                writes = _manifests(files, shape, table.location, folder)
                found[kind] = Curve.of(writes, files.num_rows)
        lists = Curve.of(_lists(table, folder), 1000)
    every = sum(1 for _ in table.history())
    return Sizes(manifests=found, lists=lists, versions=Curve.of(_versions(table), max(every, 1)))


def _sample(entries: Entries) -> Entries:
    """Return some of the files, all of the partition spec that most are of."""
    if not entries.num_rows:
        return entries
    specs = entries["partition_spec_id"]
    chosen = entries.filter(pc.equal(specs, pc.mode(specs)[0]["mode"]))
    few = np.linspace(0, chosen.num_rows - 1, min(chosen.num_rows, _POINTS[-1])).astype(np.int64)
    return chosen.take(pa.array(few))


# --- manifests -----------------------------------------------------------------------------


def _manifests(files: Entries, shape: Shape, location: str, folder: str) -> Callable[[int], int]:
    spec_id = files["partition_spec_id"][0].as_py()
    spec = PartitionSpec(
        *(
            PartitionField(
                source_id=each.source_ids[0],
                field_id=each.partition_field_id or layout.FIRST_PARTITION_ID + at,
                transform=parse_transform(each.transform),
                name=each.name,
            )
            for at, each in enumerate(shape.spec(spec_id))
        ),
        spec_id=spec_id,
    )
    entries = [
        legacy.ManifestEntry.from_args(
            status=legacy.ManifestEntryStatus.ADDED,
            snapshot_id=_SNAPSHOT,
            data_file=_file(each, shape, location),
        )
        for each in from_table(files)
    ]

    def measure(count: int) -> int:
        output = PyArrowFileIO().new_output(f"{folder}/{uuid.uuid4()}-m0.avro")
        writer = legacy.write_manifest(2, spec, shape.schema, output, _SNAPSHOT, _CODEC)
        # In one block, as Iceberg Java does it: the writer's own way is a block an entry.
        with writer.new_writer() as blocks:
            blocks.write_block([writer.prepare_entry(each) for each in entries[:count]])
        return len(output)

    return measure


def _file(entry: Entry, shape: Shape, location: str) -> legacy.DataFile:
    known = {id: one for id, one in entry.stats.items() if id in shape.columns}
    values = {id: one.values for id, one in known.items() if one.values is not None}
    nulls = {id: one.nulls for id, one in known.items() if one.nulls is not None}
    bounds = [
        {
            id: to_bytes(_primitive(shape, id), getattr(one, side))
            for id, one in known.items()
            if getattr(one, side) is not None
        }
        for side in ("lower", "upper")
    ]
    if entry.referenced_file is not None:
        bounds[0][_FILE_PATH] = absolute(entry.referenced_file, location).encode()
    return legacy.DataFile.from_args(
        content=legacy.DataFileContent(entry.content_type),
        file_path=absolute(entry.location or "", location),
        file_format=legacy.FileFormat.PARQUET,
        partition=Record(*_partition(entry, shape)),
        record_count=entry.record_count,
        file_size_in_bytes=entry.file_size_in_bytes or 0,
        value_counts=values,
        null_value_counts=nulls,
        lower_bounds=bounds[0],
        upper_bounds=bounds[1],
        split_offsets=entry.split_offsets,
        sort_order_id=entry.sort_order_id,
    )


def _primitive(shape: Shape, id: int) -> PrimitiveType:
    found = shape.types[id]
    assert isinstance(found, PrimitiveType)  # nothing else has bounds
    return found


def _partition(entry: Entry, shape: Shape) -> list[Any]:
    values = [
        entry.stats[id].lower if id in entry.stats else None
        for id in shape.partition_fields(entry.partition_spec_id)
    ]
    return [date_to_days(each) if isinstance(each, date) else each for each in values]


# --- lists and metadata.json ---------------------------------------------------------------


def _lists(table: Table, folder: str) -> Callable[[int], int]:
    """Return what measures lists of manifests with one data file each, under names as Java's."""
    day = to_bytes(IntegerType(), 20_000)
    bounds = legacy.PartitionFieldSummary(False, None, day, day)

    def measure(count: int) -> int:
        manifests = [
            legacy.ManifestFile.from_args(
                manifest_path=f"{table.location}/metadata/{uuid.uuid4()}-m0.avro",
                manifest_length=7_000 + at % 50,
                partition_spec_id=1,
                content=legacy.ManifestContent.DATA,
                sequence_number=at + 1,
                min_sequence_number=at + 1,
                added_snapshot_id=uuid.uuid4().int >> 65,
                added_files_count=1,
                existing_files_count=0,
                deleted_files_count=0,
                added_rows_count=1_000,
                existing_rows_count=0,
                deleted_rows_count=0,
                partitions=[bounds],
                key_metadata=None,
            )
            for at in range(count)
        ]
        output = PyArrowFileIO().new_output(f"{folder}/snap-{uuid.uuid4()}.avro")
        with legacy.write_manifest_list(2, output, _SNAPSHOT, _SNAPSHOT, 1, _CODEC) as writer:
            writer.add_manifests(manifests)
        return len(output)

    return measure


def _versions(table: Table) -> Callable[[int], int]:
    now = table.metadata
    expressions = {each.expr_id: each for each in now.expressions}
    specs = tuple(
        replace(
            spec,
            fields=tuple(
                layout.PartitionField(
                    source_id=expressions[id].source_ids[0],
                    field_id=expressions[id].partition_field_id or layout.FIRST_PARTITION_ID,
                    name=expressions[id].name,
                    transform=expressions[id].transform,
                )
                for id in spec.expr_ids
            ),
        )
        for spec in now.partition_specs
    )
    snapshots = [
        replace(
            each,
            root_manifest=None,
            manifest_list=f"{now.location}/metadata/snap-{each.snapshot_id}-1-{uuid.uuid4()}.avro",
        )
        for each in reversed(list(table.history()))
    ]
    log = [
        LogEntry(timestamp_ms=each.timestamp_ms, snapshot_id=each.snapshot_id) for each in snapshots
    ]

    def measure(count: int) -> int:
        version = replace(
            now,
            format_version=3,
            expressions=(),
            partition_specs=specs,
            snapshots=tuple(snapshots[:count]),
            snapshot_log=tuple(log[:count]),
            snapshot_pages=(),
            metadata_log=now.metadata_log[-count:],
        )
        return len(gzip.compress(metadata_codec.encode(version, compress=False)))

    return measure
