"""A table of v2 with a manifest for each of its data files, which are told of and not there.

Manifests are written by the Avro schemas of the specification, their stats from rows in the mind; from
the same rows a plain model tells which files a filter leaves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import fastavro
from pyiceberg.conversions import to_bytes
from pyiceberg.types import DateType, DoubleType, IntegerType, LongType, PrimitiveType, StringType

from tests.codec.avro_manifests import entry, field, list_schema, manifest_schema, pairs, write
from tests.peers.filters import Filter, Pools, Row
from tests.peers.values import row

#: Columns by name: field id, type, and how metadata says the type.
_COLUMNS: Mapping[str, tuple[int, PrimitiveType, str]] = {
    "id": (1, LongType(), "long"),
    "n": (2, IntegerType(), "int"),
    "country": (3, StringType(), "string"),
    "price": (4, DoubleType(), "double"),
    "d": (5, DateType(), "date"),
}
_COUNTRY = field(1000, "country", "string")
_SNAPSHOT = 4711
_UUID = "8a7f1d5e-54a7-4a0c-9f13-2f3b2a9b1c4d"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imagined:
    """A data file and the rows that its stats are of."""

    location: str
    rows: Sequence[Row]
    #: By country, or not partitioned.
    spec_id: int
    is_deleted: bool


def imagined(folder: Path, count: int) -> list[Imagined]:
    """Return files of three rows each, of one country; one in 50 has been removed again."""
    return [
        Imagined(
            location=f"file://{folder}/data/{at:05}.parquet",
            rows=_rows(at),
            spec_id=at % 2,
            is_deleted=at % 50 == 7,
        )
        for at in range(count)
    ]


def _rows(at: int) -> list[Row]:
    """Return rows of a country; in some files a column is null, or NaN, as a whole."""
    found = [row(at + more) for more in (0, 3, 6)]
    blank = {"n": None} if at % 31 == 0 else {"price": math.nan} if at % 37 == 0 else {}
    return [{**each, "country": found[0]["country"], **blank} for each in found]


def pools_of(count: int) -> Pools:
    """Return what filters compare the columns of so many files with."""
    return {
        "id": [-1, 0, *(count * part // 9 for part in range(1, 9)), count + 6, 10**12],
        "n": [-5, 0, 1, 5, 13, 33, 49, 50],
        "country": ["DE", "FR", "US", "A", "FRA", "Z"],
        "price": [-1000.5, -20.0, 0.0, 5.25, count / 9, count / 5, 1e9],
        "d": [date(2024, 1, 1) + timedelta(count // 20 * part // 6) for part in range(-1, 8)],
    }


def write_table(folder: Path, files: Sequence[Imagined]) -> str:
    """Write metadata, a manifest list and a manifest for each file; return where the metadata is."""
    place = folder / "metadata"
    place.mkdir(parents=True)
    schemas = [fastavro.parse_schema(manifest_schema(2, by)) for by in ((), (_COUNTRY,))]
    listed = []
    for at, file in enumerate(files):
        path = place / f"{at:05}-m0.avro"
        spec: dict[str, str] = {"partition_spec_id": str(file.spec_id), "content": "data"}
        content = write(
            schemas[file.spec_id], [_entry(file)], codec="null", format_version="2", **spec
        )
        path.write_bytes(content)
        listed.append(_listed(file, f"file://{path}", len(content)))
    top = place / "snap-1.avro"
    top.write_bytes(write(list_schema(2), listed, format_version="2"))
    newest = place / "00001-many.metadata.json"
    newest.write_text(json.dumps(_metadata(folder, f"file://{top}")))
    return f"file://{newest}"


def _entry(file: Imagined) -> Any:
    values = {name: [each[name] for each in file.rows] for name in _COLUMNS}
    ids = {name: id for name, (id, _, _) in _COLUMNS.items()}
    bounds = {name: found for name in _COLUMNS if (found := _bounds(file.rows, name))}

    def said(name: str, end: int) -> bytes:
        return to_bytes(_COLUMNS[name][1], bounds[name][end])

    return entry(
        file.location,
        status=2 if file.is_deleted else 1,
        rows=len(file.rows),
        snapshot_id=_SNAPSHOT,
        sequence_number=1,
        file_sequence_number=1,
        partition={"country": file.rows[0]["country"]} if file.spec_id else {},
        value_counts=pairs({id: len(file.rows) for id in ids.values()}),
        null_value_counts=pairs({ids[name]: values[name].count(None) for name in ids}),
        nan_value_counts=pairs({ids["price"]: sum(map(_is_nan, values["price"]))}),
        lower_bounds=pairs({ids[name]: said(name, 0) for name in bounds}),
        upper_bounds=pairs({ids[name]: said(name, 1) for name in bounds}),
    )


def _listed(file: Imagined, location: str, size: int) -> dict[str, Any]:
    country = file.rows[0]["country"]
    bound = None if country is None else country.encode()
    summary = {"contains_null": bound is None, "contains_nan": False}
    summaries = [{**summary, "lower_bound": bound, "upper_bound": bound}]
    return {
        "manifest_path": location,
        "manifest_length": size,
        "partition_spec_id": file.spec_id,
        "added_snapshot_id": _SNAPSHOT,
        "added_files_count": 0 if file.is_deleted else 1,
        "existing_files_count": 0,
        "deleted_files_count": 1 if file.is_deleted else 0,
        "added_rows_count": 0 if file.is_deleted else len(file.rows),
        "existing_rows_count": 0,
        "deleted_rows_count": len(file.rows) if file.is_deleted else 0,
        "partitions": summaries if file.spec_id else [],
        "content": 0,
        "sequence_number": 1,
        "min_sequence_number": 1,
    }


def _metadata(folder: Path, manifest_list: str) -> dict[str, Any]:
    fields = [
        {"id": id, "name": name, "required": False, "type": said}
        for name, (id, _, said) in _COLUMNS.items()
    ]
    by = {"name": "country", "transform": "identity", "source-id": 3, "field-id": 1000}
    snapshot = {
        "snapshot-id": _SNAPSHOT,
        "sequence-number": 1,
        "timestamp-ms": 1_700_000_000_000,
        "manifest-list": manifest_list,
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    return {
        "format-version": 2,
        "table-uuid": _UUID,
        "location": f"file://{folder}",
        "last-sequence-number": 1,
        "last-updated-ms": 1_700_000_000_000,
        "last-column-id": len(fields),
        "current-schema-id": 0,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": fields}],
        "default-spec-id": 1,
        "partition-specs": [{"spec-id": 0, "fields": []}, {"spec-id": 1, "fields": [by]}],
        "last-partition-id": 1000,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": _SNAPSHOT,
        "snapshots": [snapshot],
        "snapshot-log": [],
        "metadata-log": [],
        "refs": {"main": {"snapshot-id": _SNAPSHOT, "type": "branch"}},
    }


def may_match(filter: Filter, rows: Sequence[Row], *, negated: bool = False) -> bool:
    """Tell whether a file with the stats of these rows may have one that a filter lets through.

    Stats are bounds and counts of nulls and NaNs, each column's by itself. What is unequal to a value may be
    a null too, as engines differ in that.
    """
    kind = filter["type"]
    if kind == "not":
        return may_match(filter["child"], rows, negated=not negated)
    if kind in ("and", "or"):
        both = (may_match(filter[side], rows, negated=negated) for side in ("left", "right"))
        return all(both) if (kind == "and") is not negated else any(both)
    return _may(_OPPOSITE[kind] if negated else kind, filter, rows)


_PAIRS = {
    "lt": "gt-eq",
    "gt": "lt-eq",
    "eq": "not-eq",
    "in": "not-in",
    "starts-with": "not-starts-with",
    "is-null": "not-null",
    "is-nan": "not-nan",
}
_OPPOSITE = _PAIRS | {no: yes for yes, no in _PAIRS.items()}


def _may(kind: str, filter: Filter, rows: Sequence[Row]) -> bool:
    values = [each[filter["term"]] for each in rows]
    match kind:
        case "is-null":
            return None in values
        case "not-null":
            return any(each is not None for each in values)
        case "is-nan":
            return any(map(_is_nan, values))
        case "not-nan":
            return not all(map(_is_nan, values))
    bounds = _bounds(rows, filter["term"])
    if kind.startswith("not-"):
        if bounds is None or any(each is None or _is_nan(each) for each in values):
            return True
        return not _is_all(kind.removeprefix("not-"), filter, *bounds)
    return bounds is not None and _is_between(kind, filter, *bounds)


def _is_between(kind: str, filter: Filter, low: Any, high: Any) -> bool:
    """Tell whether one value between two can be what is asked for."""
    value = filter.get("value")
    match kind:
        case "lt":
            return bool(low < value)
        case "lt-eq":
            return bool(low <= value)
        case "gt":
            return bool(high > value)
        case "gt-eq":
            return bool(high >= value)
        case "starts-with":
            assert isinstance(value, str)
            return bool(low[: len(value)] <= value <= high[: len(value)])
    asked = filter["values"] if kind == "in" else [value]
    return any(low <= each <= high for each in asked)


def _is_all(kind: str, filter: Filter, low: Any, high: Any) -> bool:
    """Tell whether all values between two are what is asked for."""
    if kind == "starts-with":
        return bool(low.startswith(filter["value"]) and high.startswith(filter["value"]))
    return low == high and low in (filter["values"] if kind == "in" else [filter["value"]])


def _bounds(rows: Sequence[Row], name: str) -> tuple[Any, Any] | None:
    known = [each[name] for each in rows if each[name] is not None and not _is_nan(each[name])]
    return (min(known), max(known)) if known else None


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
