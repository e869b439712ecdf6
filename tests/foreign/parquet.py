"""Parquet as anyone may write it: the format's columns by their ids, everything else as it falls."""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.foreign.columns import Json, with_id
from tests.foreign.dress import PLAIN, Dress, encodings
from tests.foreign.footers import rewritten
from tests.foreign.layout import LAST_UPDATED, ROW_ID, Layout

_INT, _LONG, _STRING, _BINARY = pa.int32(), pa.int64(), pa.string(), pa.binary()

#: The content entry, as the format's page has it: name, id, type; a list of members for a struct.
ENTRY: tuple[tuple[str, int, Any], ...] = (
    ("content_type", 134, _INT),
    ("location", 100, _STRING),
    ("file_format", 101, _STRING),
    (
        "tracking_info",
        5,
        (
            ("status", 0, _INT),
            ("snapshot_id", 1, _LONG),
            ("sequence_number", 3, _LONG),
            ("file_sequence_number", 4, _LONG),
            ("first_row_id", 142, _LONG),
        ),
    ),
    (
        "deletion_vector",
        147,
        (
            ("offset", 144, _LONG),
            ("size_in_bytes", 145, _LONG),
            ("inline_content", 146, _BINARY),
            ("added_positions", 149, _BINARY),
        ),
    ),
    ("partition_spec_id", 148, _INT),
    ("sort_order_id", 140, _INT),
    ("record_count", 103, _LONG),
    ("file_size_in_bytes", 104, _LONG),
    (
        "manifest_stats",
        521,
        (
            ("added_files_count", 504, _INT),
            ("existing_files_count", 505, _INT),
            ("deleted_files_count", 506, _INT),
            ("added_rows_count", 512, _LONG),
            ("existing_rows_count", 513, _LONG),
            ("deleted_rows_count", 514, _LONG),
            ("min_sequence_number", 516, _LONG),
        ),
    ),
    ("referenced_file", 143, _STRING),
    ("key_metadata", 131, _BINARY),
    ("split_offsets", 132, pa.list_(_LONG)),
    ("equality_ids", 135, pa.list_(_INT)),
)
REQUIRED = {134, 101, 0, 148, 103, 5}
STATS: tuple[tuple[str, int], ...] = (
    ("lower_bound", 1),
    ("upper_bound", 2),
    ("tight_bounds", 3),
    ("value_count", 4),
    ("null_value_count", 5),
    ("nan_value_count", 6),
    ("avg_value_size_in_bytes", 7),
    ("max_value_size_in_bytes", 8),
)
_STAT_TYPES = {
    "tight_bounds": pa.bool_(),
    "avg_value_size_in_bytes": _INT,
    "max_value_size_in_bytes": _INT,
}

#: Where stats of what rows say themselves of who they are begin.
_LINEAGE = {ROW_ID: 9200, LAST_UPDATED: 9000}
_CODECS = ("none", "snappy", "gzip", "zstd", "lz4", "brotli")


@dataclass(frozen=True, slots=True)
class Column:
    """A field that is written, with its values, and how the embedded Arrow schema has it."""

    field: pa.Field
    array: pa.Array
    worn: pa.Field
    #: Its usual type, where it is stored as another.
    usual: pa.DataType | None = None


def manifest(
    entries: list[Json],
    kind: str,
    layout: Layout,
    dress: Dress = PLAIN,
) -> bytes:
    """Return a manifest of entries: dicts by the names above, stats by field id within."""
    if (rng := dress.aside("places")) is not None and rng.random() < 0.3:
        entries = [_respelled(entry, rng) for entry in entries]
    columns = [
        column
        for name, id, type in ENTRY
        if id not in dress.without
        for column in _column(name, id, type, [entry.get(name) for entry in entries], dress)
    ]
    columns += _stats(entries, layout, dress)
    if dress.chance(0.5):
        columns.append(_unknown(len(entries), 8001, "made_by", dress))
    if dress.chance(0.2):
        columns.append(_unknown(len(entries), 8002, "status", dress))
    columns = dress.shuffled(columns)
    if dress.chance(0.3):
        columns = _renamed(columns)
    return write(
        columns, dress, key_values={"format-version": "4", "content": kind} | dress.key_values
    )


def _respelled(entry: Json, rng: Random) -> Json:
    """Return an entry whose locations in full have no scheme, or one in capitals."""
    found = dict(entry)
    for name in ("location", "referenced_file"):
        place = found.get(name)
        if place is not None and place.startswith(_HERE):
            rest = place.removeprefix(_HERE)
            found[name] = rng.choice(("", "memory://foreign", "Memory://foreign")) + rest
    return found


#: Where paths without a scheme are, as is the table.
_HERE = "memory://foreign"


def _column(name: str, id: int, type: Any, values: list[Any], dress: Dress) -> list[Column]:
    required = id in REQUIRED
    if all(value is None for value in values) and not required and not dress.chance(0.3):
        return []
    if not isinstance(type, tuple):
        return [_leaf(name, id, type, values, dress, required=required)]
    members = [
        column
        for name, id, type in type
        if id not in dress.without
        for column in _column(name, id, type, [v and v.get(name) for v in values], dress)
    ]
    if not members:
        return []
    if dress.chance(0.15):
        members.append(_unknown(len(values), 8003, "extra", dress))
    return [_struct(name, id, dress.shuffled(members), [v is None for v in values])]


def _leaf(
    name: str,
    id: int,
    type: pa.DataType,
    values: list[Any],
    dress: Dress,
    *,
    required: bool = False,
) -> Column:
    array = pa.array(values, type)
    if id in dress.retyped:
        array = array.cast(dress.retyped[id])
    nullable = array.null_count > 0 or not required or dress.chance(0.3)
    worn = _field(name, dress.type(array.type), id, nullable=nullable)
    return Column(_field(name, array.type, id, nullable=nullable), array, worn)


def _field(name: str, type: pa.DataType, id: int, *, nullable: bool = True) -> pa.Field:
    for is_kind, make in (
        (pa.types.is_list, pa.list_),
        (pa.types.is_large_list, pa.large_list),
        (pa.types.is_list_view, pa.list_view),
    ):
        if is_kind(type):
            item = pa.field("element", type.value_type, nullable=False, metadata=with_id(id + 1))
            type = make(item)
            break
    return pa.field(name, type, nullable=nullable, metadata=with_id(id))


def _struct(name: str, id: int, members: list[Column], absent: list[bool]) -> Column:
    array = pa.StructArray.from_arrays(
        [_as(member.array, member.field.type) for member in members],
        fields=[member.field for member in members],
        mask=pa.array(absent) if any(absent) else None,
    )
    worn = pa.struct([member.worn for member in members])
    return Column(
        pa.field(name, array.type, nullable=any(absent), metadata=with_id(id)),
        array,
        pa.field(name, worn, nullable=any(absent), metadata=with_id(id)),
    )


def _as(array: pa.Array, type: pa.DataType) -> pa.Array:
    return array if array.type == type else array.cast(type)


def _unknown(size: int, id: int, name: str, dress: Dress) -> Column:
    assert dress.rng is not None
    values: pa.Array = dress.rng.choice(
        (
            pa.array([f"other {at}" for at in range(size)]),
            pa.array([{"a": at, "b": [at]} for at in range(size)], _ODD),
            pa.array([None] * size, pa.float64()),
        )
    )
    field = pa.field(name, values.type, metadata=with_id(id))
    return Column(field, values, field)


_ODD = pa.struct(
    [
        pa.field("a", pa.int64(), metadata=with_id(8010)),
        pa.field(
            "b", pa.list_(pa.field("element", _INT, metadata=with_id(8012))), metadata=with_id(8011)
        ),
    ]
)


def _stats(entries: list[Json], layout: Layout, dress: Dress) -> list[Column]:
    every = [entry.get("content_stats") or {} for entry in entries]
    structs = []
    fields = [each for each in layout.stats_fields if any(each.id in told for told in every)]
    for each in dress.shuffled(fields):
        base = _LINEAGE.get(each.id, 10_000 + 200 * each.id)
        members = []
        for name, offset in dress.shuffled(list(STATS)):
            values = [told.get(each.id, {}).get(name) for told in every]
            if all(value is None for value in values):
                continue
            type = each.type.arrow if offset <= 2 else _STAT_TYPES.get(name, _LONG)
            members.append(_leaf(name, base + offset, type, values, dress))
        if members:
            name = each.path if not dress.chance(0.2) else f"stats of {each.id}"
            structs.append(_struct(name, base, members, [each.id not in told for told in every]))
    if structs and dress.chance(0.1):
        # Of a column that no schema has.
        values = [None if entry["content_type"] else 1 for entry in entries]
        base = 10_000 + 200 * 8005
        known = [_leaf("lower_bound", base + 1, _LONG, values, dress)]
        structs.append(_struct("of another", base, known, [each is None for each in values]))
    if not structs:
        return []
    # Where nothing is told, there is no struct, or one of nulls.
    absent = [not told for told in every] if not dress.chance(0.3) else [False] * len(entries)
    return [_struct("content_stats", 10_000, structs, absent)]


def _renamed(columns: list[Column]) -> list[Column]:
    """Give columns other names, known ones among them: readers go by ids."""
    names = [column.field.name for column in columns]
    turned = names[1:] + names[:1]
    return [
        Column(column.field.with_name(name), column.array, column.worn.with_name(name))
        for column, name in zip(columns, turned, strict=True)
    ]


def write(
    columns: list[Column],
    dress: Dress,
    *,
    key_values: dict[str, str] | None = None,
    decimals: dict[str, tuple[int, int]] | None = None,
    **more: Any,
) -> bytes:
    """Return a Parquet file in one of the many ways there are.

    `decimals` are stored as bytes; `more` are options of the writer.
    """
    schema = pa.schema([column.field for column in columns])
    table = pa.Table.from_arrays([column.array for column in columns], schema=schema)
    options: dict[str, Any] = {}
    told = dict(key_values or {})
    size = None
    if (rng := dress.rng) is not None:
        if rng.random() < 0.6:
            worn = pa.schema([column.worn for column in columns])
            told["ARROW:schema"] = base64.b64encode(worn.serialize().to_pybytes()).decode()
        options = {
            "compression": rng.choice(_CODECS),
            "use_dictionary": rng.random() < 0.5,
            "write_statistics": rng.random() < 0.6,
            "data_page_version": rng.choice(("1.0", "2.0")),
            "version": rng.choice(("2.4", "2.6")),
            "write_page_index": rng.random() < 0.3,
            "data_page_size": rng.choice((64, 1 << 20)),
            "write_page_checksum": rng.random() < 0.3,
            "store_decimal_as_integer": rng.random() < 0.3,
            "use_compliant_nested_type": rng.random() < 0.8,
        }
        if not options["use_dictionary"] and rng.random() < 0.6:
            options["column_encoding"] = _encodings(columns, rng, options["data_page_version"])
            if "use_deprecated_int96_timestamps" in more:
                options["column_encoding"] = dict.fromkeys(options["column_encoding"], "PLAIN")
        size = rng.choice((1, 2, 3, 1000))
    out = io.BytesIO()
    with pq.ParquetWriter(out, schema, store_schema=False, **options, **more) as writer:
        writer.add_key_value_metadata(told)
        for part in _parts(table, dress):
            writer.write_table(part, row_group_size=size)
    other = dress.aside("footer")
    if other is None or (other.random() < 0.5 and not dress.named and not decimals):
        return out.getvalue()
    # One chunk has the values of a column, however it is worn.
    texts = {
        column.field.name: column.array.to_pylist()
        for column in columns
        if _is_bytes(column.array.type)
    }
    return rewritten(
        out.getvalue(),
        other,
        texts=texts,
        decimals=decimals or {},
        named=dress.named,
        is_manifest=decimals is None,
    )


def _encodings(columns: list[Column], rng: Random, page: str) -> dict[str, str]:
    usual = [c.field.with_type(c.usual) if c.usual else c.field for c in columns]
    chosen = encodings(pa.schema(usual), rng, page)
    return chosen | {c.field.name: "PLAIN" for c in columns if c.usual and c.field.name in chosen}


def _is_bytes(type: pa.DataType) -> bool:
    kinds = (pa.types.is_string, pa.types.is_binary, pa.types.is_fixed_size_binary)
    return any(holds(type) for holds in kinds)


def _parts(table: pa.Table, dress: Dress) -> list[pa.Table]:
    """Return a table in parts, some of which may have no rows: each is a row group at least."""
    rng = dress.aside("parts")
    if rng is None or rng.random() < 0.7:
        return [table]
    at = rng.randint(0, table.num_rows)
    if not table.num_rows:
        # No row group at all, or several.
        return [table] * rng.choice((0, 2))
    return [table.slice(0, at), *[table.slice(0, 0)] * rng.randint(0, 2), table.slice(at)]
