"""Sound examples of every kind of file, small: damage is likelier to hit what matters."""

from __future__ import annotations

import io
import struct
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import orc
from pyroaring import BitMap, BitMap64

from campaigns.fuzz.sound_lake import files, rows, table
from icetree.catalog.memory import MemoryCatalog
from icetree.codec import bitmap as bitmaps_codec
from icetree.codec import manifest, puffin
from icetree.codec import metadata as metadata_codec
from icetree.codec import view as view_codec
from icetree.codec.manifest.write import LEAF_ROW_GROUP
from icetree.rows.formats.avro import AVRO
from icetree.rows.formats.format import Format
from icetree.rows.formats.orc import ORC
from icetree.rows.write.fit import fitted
from icetree.spec.entry.entry import DATA, ROOT, Entries
from icetree.spec.fields import DELETE_FILE_PATH_FIELD, DELETE_POS_FIELD, FIELD_ID_KEY
from icetree.spec.metadata.snapshot import LogEntry, Page, Snapshot
from icetree.store.memory import MemoryStore
from icetree.table.lake import Lake
from icetree.tree.reading import leaves_in
from tests.codec import avro_manifests as avro

# --- metadata ------------------------------------------------------------------------------------


def metadata_json() -> list[bytes]:
    """Table metadata of v4, and of v1 to v3 as others write it."""
    newest = table().metadata
    return [metadata_codec.encode(newest, compress=False), *_OLD]


def metadata_gz() -> list[bytes]:
    """The same, packed."""
    return [metadata_codec.encode(table().metadata), metadata_codec.encode_page(_page())]


def pages() -> list[bytes]:
    """Pages of history, plain."""
    import gzip

    return [gzip.decompress(metadata_codec.encode_page(_page()))]


def views() -> list[bytes]:
    """Return the metadata of a view with a history."""
    lake = Lake(catalog=MemoryCatalog(), store=MemoryStore(), warehouse="memory://fuzz")
    lake.create_namespace("db")
    texts = {"spark": "SELECT id FROM t", "trino": "SELECT id FROM t"}
    view = lake.create_view("db.v", texts, "id long, at timestamptz", namespace="db")
    view.replace({**texts, "hive": "SELECT 1"}, "id list<int>", properties={"comment": "ids"})
    return [view_codec.encode(view.metadata), view_codec.encode(view.metadata, compress=True)]


def _page() -> Page:
    known = table().metadata
    extra = Snapshot(snapshot_id=5, sequence_number=1, timestamp_ms=9, root_manifest="m/r")
    return Page(
        snapshots=(extra, *known.snapshots),
        snapshot_log=(LogEntry(timestamp_ms=9, snapshot_id=5), *known.snapshot_log),
    )


_SCHEMA = (
    b'{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"},'
    b'{"id":2,"name":"m","required":false,"type":{"type":"map","key-id":3,"key":"string",'
    b'"value-id":4,"value-required":true,"value":"decimal(9, 2)"}},{"id":5,"name":"l","required":'
    b'false,"type":{"type":"list","element-id":6,"element":"timestamptz","element-required":true},'
    b'"initial-default":[],"write-default":null}]}'
)
_OLD = (
    b'{"format-version":1,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t",'
    b'"last-updated-ms":1602638573874,"last-column-id":6,"schema":'
    + _SCHEMA
    + b',"partition-spec":'
    b'[{"name":"id","transform":"bucket[4]","source-id":1,"field-id":1000}],"properties":{},'
    b'"current-snapshot-id":-1,"snapshots":[{"snapshot-id":1,"timestamp-ms":1602638573874,'
    b'"manifests":["s3://b/t/m.avro"]}]}',
    b'{"format-version":2,"table-uuid":"9c12d441-03fe-4693-9a96-a0705ddf69c1","location":"s3://b/t",'
    b'"last-sequence-number":34,"last-updated-ms":1602638573590,"last-column-id":6,'
    b'"current-schema-id":0,"schemas":['
    + _SCHEMA
    + b'],"default-spec-id":0,"partition-specs":[{"spec-id":0,"fields":[{"name":"x",'
    b'"transform":"truncate[3]","source-id":1,"field-id":1000}]}],"last-partition-id":1000,'
    b'"default-sort-order-id":3,"sort-orders":[{"order-id":3,"fields":[{"transform":"identity",'
    b'"source-id":1,"direction":"asc","null-order":"nulls-first"}]}],"properties":{"a":"b"},'
    b'"current-snapshot-id":30,"snapshots":[{"snapshot-id":30,"timestamp-ms":1515100955770,'
    b'"sequence-number":1,"summary":{"operation":"append"},"manifest-list":"s3://a/b/2.avro",'
    b'"schema-id":0}],"snapshot-log":[{"snapshot-id":30,"timestamp-ms":1515100955770}],'
    b'"metadata-log":[{"metadata-file":"s3://b/0.json","timestamp-ms":1515100}],'
    b'"refs":{"test":{"snapshot-id":30,"type":"tag","max-ref-age-ms":10000000}}}',
)


# --- manifests -----------------------------------------------------------------------------------


def _root() -> Entries:
    t = table()
    return t.files.root(t.snapshot(), t.metadata.shape())


def roots() -> list[bytes]:
    """Roots with data files, leaves, data DVs and manifest DVs."""
    shape = table().metadata.shape()
    known = table().metadata.snapshots
    kept = [table().files.fetch(each.root_manifest) for each in known if each.root_manifest]
    return [*kept[-2:], manifest.encode(_root(), ROOT, shape)]


def leaves() -> list[bytes]:
    """Leaves of one row group."""
    return [table().files.fetch(leaf.location) for leaf in leaves_in(_root())][:3]


@cache
def wide_leaves() -> tuple[bytes, ...]:
    """A leaf of three row groups, of which statistics are asked."""
    shape = table().metadata.shape()
    one = table().files.reader(shape).leaf(leaves_in(_root())[0]).drop_columns(["position"])
    many = pa.concat_tables([one.slice(0, 1)] * (2 * LEAF_ROW_GROUP + 9))
    names = pa.array([f"data/{at}" for at in range(many.num_rows)])
    many = many.set_column(many.schema.names.index("location"), "location", names)
    return (manifest.encode(many, DATA, shape),)


def footers() -> list[bytes]:
    """Bare footers of Parquet files."""
    found = [*data_files(), *roots(), *leaves()]
    return [each[-8 - struct.unpack_from("<I", each, len(each) - 8)[0] : -8] for each in found]


_CODECS = ("null", "deflate", "bzip2", "xz")


def avro_manifests() -> list[bytes]:
    """Manifests of v1 to v3, packed and plain."""
    stats: dict[str, Any] = {
        "column_sizes": avro.pairs({1: 20}),
        "value_counts": avro.pairs({1: 10}),
        "null_value_counts": avro.pairs({1: 0}),
        "nan_value_counts": None,
        "lower_bounds": avro.pairs({1: struct.pack("<q", 5)}),
        "upper_bounds": avro.pairs({1: struct.pack("<q", 9)}),
    }
    partition = (avro.field(1000, "id_bucket", "int"),)
    made = []
    for version in (1, 2, 3):
        snapshot = {"snapshot_id": 7} if version == 1 else {}
        one = avro.entry("s3://b/t/a.parquet", partition={"id_bucket": 3}, **stats, **snapshot)
        other = avro.entry("s3://b/t/b.parquet", partition={"id_bucket": None}, **snapshot)
        how: Any = {"partition": partition, "spec_id": 1}
        made += [avro.manifest(version, one, other, codec=codec, **how) for codec in _CODECS]
    gone = avro.entry("s3://b/t/d.parquet", content=1, partition={"id_bucket": 3}, **stats)
    return [*made, avro.manifest(2, gone, content="deletes", codec="null", **how)]


def avro_lists() -> list[bytes]:
    """Manifest lists of v1 to v3."""
    bounds = {"contains_null": False, "lower_bound": b"\1\0\0\0", "upper_bound": b"\2\0\0\0"}
    told = {
        "manifest_path": "s3://b/t/m.avro",
        "added_snapshot_id": 7,
        "added_files_count": 1,
        "existing_files_count": 0,
        "deleted_files_count": 0,
        "added_rows_count": 10,
        "existing_rows_count": 0,
        "deleted_rows_count": 0,
        "partition_spec_id": 1,
        "partitions": [bounds],
    }
    return [avro.manifest_list(version, told, told | {"content": 1}) for version in (1, 2, 3)]


# --- deletes -------------------------------------------------------------------------------------


def bitmaps() -> list[bytes]:
    """Bitmaps of 32 bits with containers of every kind."""
    several = BitMap([0, 5, 70_000, *range(200_000, 210_000), *range(400_000, 408_196, 2)])
    return [bitmaps_codec.encode(each) for each in (BitMap(), BitMap([1, 7]), several)]


def bitmaps64() -> list[bytes]:
    """Bitmaps of 64 bits."""
    sets = (BitMap64(), BitMap64([3]), BitMap64([1, 2**32 + 5, *range(2**33, 2**33 + 5000)]))
    return [bitmaps_codec.encode64(each) for each in sets]


def vectors() -> list[bytes]:
    """Blobs of deletion vectors; the reader is given them with a checksum that fits."""
    return bitmaps64()


def puffins() -> list[bytes]:
    """Puffin files of none, one and two vectors."""
    blobs = [puffin.dv_blob(BitMap([1, 2]), referenced_data_file=f"data/{at}") for at in range(2)]
    return [puffin.write(blobs[:many]).data for many in range(3)]


def position_deletes() -> list[bytes]:
    """Position delete files of v2."""
    schema = pa.schema(
        [
            pa.field(
                "file_path", pa.string(), metadata={FIELD_ID_KEY: str(DELETE_FILE_PATH_FIELD)}
            ),
            pa.field("pos", pa.int64(), metadata={FIELD_ID_KEY: str(DELETE_POS_FIELD)}),
        ]
    )
    held = pa.table([["data/a", "data/a", "data/b"], [1, 5, 0]], schema=schema)
    return [_parquet(held, compression=codec) for codec in ("none", "zstd")]


# --- rows ----------------------------------------------------------------------------------------


def data_files() -> list[bytes]:
    """Data files as icetree writes them, and with the freedoms of others."""
    own = next(data for name, data in files().items() if "/data/" in name and name[-1] == "t")
    held = pq.read_table(pa.BufferReader(own))
    return [
        own,
        _parquet(held, compression="none", use_dictionary=False),
        _parquet(held, compression="none", row_group_size=2, write_page_checksum=False),
        _parquet(held, compression="snappy", data_page_version="2.0"),
        _parquet(held, compression="gzip", store_schema=True, write_page_index=True),
        _parquet(held, compression="lz4", use_byte_stream_split=["x"], use_dictionary=False),
        *(
            _parquet(
                held,
                compression="none",
                use_dictionary=False,
                write_page_checksum=False,
                column_encoding={"country": encoding},
            )
            for encoding in ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
        ),
    ]


def _parquet(held: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(held, out, **{"store_schema": False, **options})
    return out.getvalue()


def orc_files() -> list[bytes]:
    """Data files in ORC as icetree writes them, packed in each way, and one without ids."""
    out = io.BytesIO()
    orc.write_table(rows(0).select(["id", "country", "x", "day"]), out, compression="zstd")
    return [*(written(ORC, codec) for codec in ("none", "zstd", "zlib", "lz4")), out.getvalue()]


def avro_files() -> list[bytes]:
    """Data files in Avro, packed in each way."""
    return [written(AVRO, codec) for codec in ("uncompressed", "gzip", "snappy", "zstd")]


def written(format: Format, codec: str) -> bytes:
    """Rows of the table as a file of a format."""
    fields = table().metadata.schema().fields
    sink = pa.BufferOutputStream()
    writer = format.begin(sink, fields, {f"write.{format.name}.compression-codec": codec})
    writer.write(pa.Table.from_batches(list(fitted(rows(0, 30), fields, table="db.t"))))
    writer.close()
    found: bytes = sink.getvalue().to_pybytes()
    return found


# --- texts ---------------------------------------------------------------------------------------


def filters() -> list[bytes]:
    """Filters with all that the grammar has."""
    return [
        b"id = 3 and not (country in ('DE', 'it''s') or x is nan)",
        b"ts >= '2026-01-01T00:00:00+00:00' and day between '2026-01-01' and '2026-02-01'",
        b"bucket(16, id) = 3 or truncate(4, country) = 'view' or country like 'a%'",
        b"price > 1.25e3 and is_new = true and place.lat is not null and starts_with(country, 'v')",
        b"\"id\" <> -9223372036854775808 or `x` <= 1e-300 or x'00ff' = place.name",
    ]


def name_mappings() -> list[bytes]:
    """Name mappings as properties hold them."""
    whole = (
        b'[{"field-id":1,"names":["id","record_id"]},{"field-id":2,"names":["m"],"fields":'
        b'[{"field-id":3,"names":["key"]},{"names":["value"]}]}]'
    )
    return [whole]


def table_files() -> list[bytes]:
    """Each file of the table but former metadata, its name before it."""
    newest = table().state.metadata_location
    return [
        name.encode() + b"\n" + data
        for name, data in files().items()
        if not name.endswith(".metadata.json") or name == newest
    ]
