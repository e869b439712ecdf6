"""Read a V4 table with pyarrow alone, and hold it against what it should be.

    python vectors/check.py vectors/*/            # each folder against its expected.json
    python vectors/check.py --tell some/table     # print what a table's folder holds

This is a whole reader in one file and shares nothing with icetree: it follows the format reference
(docs/format), resolves every column by its field id, and is meant to be read beside it. It reads
Parquet manifests only: a table that was upgraded and still has Avro leaves is refused.
"""

from __future__ import annotations

import gzip
import json
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

DATA, DATA_DV, EQUALITY_DELETES, DATA_MANIFEST, DELETE_MANIFEST, MANIFEST_DV = range(6)
EXISTING, ADDED, DELETED = range(3)
KINDS = ("DATA", "POSITION_DELETES", "EQUALITY_DELETES")
MAY_HOLD = {"root": {0, 1, 2, 3, 4, 5}, "data": {0}, "delete": {1, 2}}

#: Field id -> the name that this script has for it. All else of a manifest is stats.
FIELDS = {
    134: "content", 100: "location", 101: "file_format", 148: "spec", 103: "records",
    104: "size", 143: "referenced", 135: "equality_ids",
    0: "status", 1: "snapshot", 3: "sequence", 4: "file_sequence", 142: "first_row_id",
    144: "offset", 145: "length", 146: "inline", 149: "just_added",
}  # fmt: skip
TRACKING, VECTOR, STATS = 5, 147, 10_000

Entry = dict[str, Any]


class Broken(Exception):
    """A rule of the format does not hold."""


def require(holds: object, rule: str) -> None:
    if not holds:
        raise Broken(rule)


# --- manifests -------------------------------------------------------------------------------


def field_id(field: pa.Field) -> int:
    return int((field.metadata or {}).get(b"PARQUET:field_id", b"-1"))


def manifest(path: Path, kind: str) -> list[Entry]:
    """Return the entries of a manifest, structs taken apart, stats by field id and offset."""
    file = pq.ParquetFile(path)
    told = {key.decode(): value.decode() for key, value in (file.metadata.metadata or {}).items()}
    require(told.get("format-version") == "4", f"{path}: format-version is not 4")
    require(told.get("content") == kind, f"{path}: content is not {kind}")
    table = file.read()
    entries: list[Entry] = [
        dict.fromkeys(FIELDS.values()) | {"stats": {}} for _ in range(table.num_rows)
    ]
    for field in table.schema:
        values = table[field.name].to_pylist()
        id = field_id(field)
        for entry, value in zip(entries, values, strict=True):
            if id in FIELDS:
                entry[FIELDS[id]] = value
            elif id in (TRACKING, VECTOR) and value is not None:
                for inner in field.type:
                    entry[FIELDS[field_id(inner)]] = value[inner.name]
            elif id == STATS and value is not None:
                for inner in field.type:
                    if value[inner.name] is not None:
                        about, found = (field_id(inner) - STATS) // 200, value[inner.name]
                        offsets = {field_id(each) % 200: found[each.name] for each in inner.type}
                        entry["stats"][about] = offsets
    for entry in entries:
        _require_sound(entry, kind, path)
    return entries


def _require_sound(entry: Entry, kind: str, path: Path) -> None:
    content = entry["content"]
    for name in ("content", "file_format", "status", "spec", "records"):
        require(entry[name] is not None, f"{path}: {name} is required")
    require(content in MAY_HOLD[kind], f"{path}: content {content} in a {kind} manifest")
    require(entry["status"] in (EXISTING, ADDED, DELETED), f"{path}: status {entry['status']}")
    inline = content == MANIFEST_DV and entry["inline"] is not None
    require(entry["location"] is not None or inline, f"{path}: an entry without location")
    require(
        (entry["referenced"] is not None) or content not in (DATA_DV, MANIFEST_DV),
        f"{path}: a deletion vector that references nothing",
    )
    require((entry["equality_ids"] is not None) == (content == 2), f"{path}: equality_ids")
    require(entry["just_added"] is None or entry["status"] == ADDED, f"{path}: added_positions")


# --- bitmaps ---------------------------------------------------------------------------------


def roaring(data: bytes) -> set[int]:
    """Return the positions of a portable 32-bit Roaring bitmap."""
    return _roaring(data, 0)[0]


def _roaring(data: bytes, at: int) -> tuple[set[int], int]:
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    runs = b""
    if cookie & 0xFFFF == 12347:
        count = (cookie >> 16) + 1
        runs = data[at : at + (count + 7) // 8]
        at += len(runs)
    else:
        require(cookie == 12346, "not a Roaring bitmap")
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
    keys = [struct.unpack_from("<HH", data, at + 4 * i) for i in range(count)]
    at += 4 * count
    if not runs or count >= 4:
        at += 4 * count  # offsets, which follow from the rest
    found: set[int] = set()
    for i, (key, less_one) in enumerate(keys):
        high = key << 16
        if runs and runs[i // 8] >> (i % 8) & 1:
            (number,) = struct.unpack_from("<H", data, at)
            at += 2
            for _ in range(number):
                first, more = struct.unpack_from("<HH", data, at)
                found.update(range(high + first, high + first + more + 1))
                at += 4
        elif less_one < 4096:
            found.update(high + low for low in struct.unpack_from(f"<{less_one + 1}H", data, at))
            at += 2 * (less_one + 1)
        else:
            bits = int.from_bytes(data[at : at + 8192], "little")
            found.update(high + low for low in range(65536) if bits >> low & 1)
            at += 8192
    require(at <= len(data), "a bitmap that is cut off")
    return found, at


def vector(folder: Path, location: str, offset: int, length: int) -> set[int]:
    """Return the positions of a `deletion-vector-v1` blob: 64-bit Roaring, framed."""
    blob = (folder / location).read_bytes()[offset : offset + length]
    (size,) = struct.unpack_from(">I", blob, 0)
    body = blob[4 : 4 + size]
    require(body[:4] == bytes.fromhex("d1d33964"), f"{location}: no deletion vector")
    require(struct.unpack(">I", blob[4 + size :])[0] == zlib.crc32(body), f"{location}: CRC")
    (count,) = struct.unpack_from("<Q", body, 4)
    found, at = set(), 12
    for _ in range(count):
        (key,) = struct.unpack_from("<I", body, at)
        low, at = _roaring(body, at + 4)
        found.update((key << 32) + each for each in low)
    return found


# --- a snapshot ------------------------------------------------------------------------------


def tree(folder: Path, root: str) -> tuple[list[Entry], list[Entry], list[Entry]]:
    """Return the files that a snapshot has, those that came by it and those that went."""
    entries = manifest(folder / root, "root")
    dead, just_dead = manifest_dvs(folder, entries)
    live, came, went = [], [], []
    for each in entries:
        if each["content"] <= EQUALITY_DELETES:
            (went if each["status"] == DELETED else live).append(each)
            if each["status"] == ADDED:
                came.append(each)
        elif each["content"] != MANIFEST_DV and each["status"] != DELETED:
            for at, inner in enumerate(_leaf(folder, each)):
                is_gone = inner["status"] == DELETED or at in dead.get(each["location"], set())
                if not is_gone:
                    live.append(inner)
                if each["status"] == ADDED and inner["status"] == ADDED and not is_gone:
                    came.append(inner)
                is_new_tombstone = each["status"] == ADDED and inner["status"] == DELETED
                if is_new_tombstone or at in just_dead.get(each["location"], set()):
                    went.append(inner)
    names = [each["location"] for each in live if each["content"] != DATA_DV]
    require(len(names) == len(set(names)), "a file that is live twice")
    dvs = [each["referenced"] for each in live if each["content"] == DATA_DV]
    require(len(dvs) == len(set(dvs)), "a data file with two DVs")
    require(set(dvs) <= set(names), "a data DV without its data file")
    return live, came, went


def manifest_dvs(
    folder: Path, entries: list[Entry]
) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """Return the positions of each leaf that are gone, and those that this snapshot removed."""
    dead: dict[str, set[int]] = {}
    just_dead: dict[str, set[int]] = {}
    for each in entries:
        if each["content"] != MANIFEST_DV or each["status"] == DELETED:
            continue
        leaf = each["referenced"]
        require(leaf not in dead, "two manifest DVs on one leaf")
        if each["inline"] is not None:
            dead[leaf] = roaring(each["inline"])
        else:
            dead[leaf] = vector(folder, each["location"], each["offset"], each["length"])
        require(len(dead[leaf]) == each["records"], "a manifest DV's cardinality")
        if each["just_added"] is not None:
            just_dead[leaf] = roaring(each["just_added"])
    return dead, just_dead


def _leaf(folder: Path, parent: Entry) -> list[Entry]:
    require(parent["file_format"] == "parquet", f"{parent['location']}: an Avro leaf")
    kind = "data" if parent["content"] == DATA_MANIFEST else "delete"
    entries = manifest(folder / parent["location"], kind)
    next_row = parent["first_row_id"]
    for each in entries:
        # What an ADDED entry leaves out, it has from the entry of its leaf.
        for name in ("snapshot", "sequence", "file_sequence"):
            each[name] = parent[name] if each[name] is None else each[name]
        if each["content"] == DATA and each["first_row_id"] is None and next_row is not None:
            each["first_row_id"] = next_row
            next_row += each["records"]
    return entries


# --- rows ------------------------------------------------------------------------------------


def rows(folder: Path, live: list[Entry], metadata: Entry) -> list[Entry]:
    """Return the rows of a snapshot, with their ids, in the order of these."""
    columns = _columns(metadata)
    deletes = [each for each in live if each["content"] == EQUALITY_DELETES]
    found = []
    for each in live:
        if each["content"] != DATA:
            continue
        here = _by_id(folder / each["location"], columns)
        require(len(here) == each["records"], f"{each['location']}: record_count")
        gone: set[int] = set()
        for dv in live:
            if dv["content"] == DATA_DV and dv["referenced"] == each["location"]:
                gone |= vector(folder, dv["location"], dv["offset"], dv["length"])
        for delete in deletes:
            if _reaches(delete, each, metadata):
                names = [columns[id] for id in delete["equality_ids"]]
                keys = _by_id(folder / delete["location"], columns)
                marked = [[key[name] for name in names] for key in keys]
                gone |= {at for at, row in enumerate(here) if [row[n] for n in names] in marked}
        for at, row in enumerate(here):
            if at not in gone:
                known = row.pop("_row_id", None)
                found.append(
                    row | {"_row_id": each["first_row_id"] + at if known is None else known}
                )
    return sorted(found, key=lambda row: row["_row_id"])


def _columns(metadata: Entry) -> dict[int, str]:
    (schema,) = (
        each for each in metadata["schemas"] if each["schema-id"] == metadata["current-schema-id"]
    )
    return {each["id"]: each["name"] for each in schema["fields"]} | {2147483540: "_row_id"}


def _by_id(path: Path, columns: dict[int, str]) -> list[Entry]:
    table = pq.ParquetFile(path).read()
    there = {field_id(field): field.name for field in table.schema}
    made = {}
    for id, name in columns.items():
        if id in there:
            column = table[there[id]]
            if pa.types.is_temporal(column.type):
                column = pc.cast(column, pa.string())
            made[name] = column.to_pylist()
        elif name != "_row_id":
            made[name] = [None] * table.num_rows
    return [dict(zip(made, values, strict=True)) for values in zip(*made.values(), strict=True)]


def _reaches(delete: Entry, data: Entry, metadata: Entry) -> bool:
    """Tell whether an equality delete applies to a data file."""
    if data["sequence"] >= delete["sequence"]:
        return False
    tuples = [partition(each, metadata) for each in (delete, data)]
    return not tuples[0] or (delete["spec"] == data["spec"] and tuples[0] == tuples[1])


def partition(entry: Entry, metadata: Entry) -> dict[str, Any]:
    """Return a file's partition tuple, rebuilt from its stats."""
    (spec,) = (each for each in metadata["partition-specs"] if each["spec-id"] == entry["spec"])
    expressions = {each["expr-id"]: each["expr"] for each in metadata.get("expressions", [])}
    made = {}
    for field in spec["fields"]:
        expression = expressions[field["expr-id"]]
        is_identity = expression["transform"] == "identity"
        id = expression["source-id"] if is_identity else field["expr-id"]
        known = entry["stats"].get(id, {})
        require(known.get(1) == known.get(2), f"{entry['location']}: spans partitions")
        value = known.get(1)
        made[expression["name"]] = value.isoformat() if hasattr(value, "isoformat") else value
    return made


# --- a table ---------------------------------------------------------------------------------


def document(path: Path) -> Entry:
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)


def newest(folder: Path) -> Path:
    """Return a folder's newest metadata file, as its numbers have it."""
    found = [*folder.glob("metadata/*.metadata.json")]
    require(found, f"{folder}: no metadata file")
    return max(found, key=lambda path: path.name)


def tell(folder: Path) -> Entry:
    """Return what a table holds: each snapshot's files, changes and rows."""
    path = newest(folder)
    metadata = document(path)
    require(metadata["format-version"] == 4, f"{path}: not of v4")
    snapshots = list(metadata["snapshots"])
    for page in metadata.get("snapshot-pages", []):
        inner = document(folder / page["location"])["snapshots"]
        require(len(inner) == page["count"], f"{page['location']}: count")
        # One that a ref points to may be in both.
        known = {each["snapshot-id"] for each in snapshots}
        snapshots += [each for each in inner if each["snapshot-id"] not in known]
    told = []
    for each in sorted(snapshots, key=lambda each: each["sequence-number"]):
        live, came, went = tree(folder, each["root-manifest"])
        told.append(
            {
                "snapshot_id": each["snapshot-id"],
                "sequence_number": each["sequence-number"],
                "operation": each["summary"]["operation"],
                "root_manifest": each["root-manifest"],
                "live": sorted((_tell_file(f, metadata) for f in live), key=_place),
                "added": sorted(_name(f) for f in came),
                "removed": sorted(_name(f) for f in went),
                "rows": rows(folder, live, metadata),
            }
        )
    return {"metadata": f"metadata/{path.name}", "snapshots": told}


def _tell_file(entry: Entry, metadata: Entry) -> Entry:
    told = {
        "content": KINDS[entry["content"]],
        "file": _name(entry),
        "records": entry["records"],
        "sequence_number": entry["sequence"],
        "first_row_id": entry["first_row_id"],
        "applies_to": entry["referenced"],
        "partition": partition(entry, metadata),
    }
    return {name: value for name, value in told.items() if value not in (None, {})}


def _name(entry: Entry) -> str:
    """Return a name for a file; several DVs share one, each at its offset."""
    at = f"@{entry['offset']}" if entry["content"] == DATA_DV else ""
    return entry["location"] + at


def _place(told: Entry) -> tuple[str, str]:
    return told["content"], told["file"]


def main(arguments: list[str]) -> int:
    """Check the folders that are named: 1 where one is not as expected, 2 where none is named."""
    if not [each for each in arguments if each != "--tell"]:
        print("which folders? python vectors/check.py vectors/*/", file=sys.stderr)
        return 2
    if arguments[:1] == ["--tell"]:
        for name in arguments[1:]:
            print(json.dumps(tell(Path(name)), indent=1))
        return 0
    wrong = 0
    for name in arguments:
        folder = Path(name)
        try:
            expected = json.loads((folder / "expected.json").read_text())
            found = {"what": expected["what"], **tell(folder)}
            require(json.loads(json.dumps(found)) == expected, "not as expected.json says")
            print(f"{folder.name}: {len(found['snapshots'])} snapshots, as expected")
        except (Broken, OSError) as error:
            wrong += 1
            print(f"{folder.name}: {error}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
