"""Where exports lie: names that follow from what is exported, so that who exports again finds them.

Exports name files in full. A table that was copied elsewhere has another folder for them, so that
nobody there reads the files of the place before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from icetree.codec.legacy.encode_manifest import Layout
from icetree.spec.location import canonical
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.texts import json_bytes
from icetree.surroundings import new_uuid
from icetree.table.export.parts import Part, hashed

#: All metadata of a table lies below, that of clients too, and their statistics.
METADATA: Final = "metadata/"
#: All exports of a table lie below.
EXPORTS: Final = f"{METADATA}export/"
#: What a table can be exported as.
FORMAT_VERSIONS: Final = (3, 2)
#: Exports of before leaves had parts lie elsewhere: nobody takes them for what is there now.
_LAYOUT: Final = b"parts"


@lru_cache(maxsize=64)
def _folder(table_location: str) -> str:
    place = canonical(table_location, table_location).rstrip("/")
    return f"{EXPORTS}{hashed(place.encode(), _LAYOUT)}/"


def export_folder(table_location: str, format_version: int) -> str:
    """Return the folder of the exports of a table that is at a location, as stored."""
    return f"{_folder(table_location)}v{format_version}/"


def stand_in_folder(table_location: str) -> str:
    """Return the folder of what stands for data DVs where a version has none, as stored."""
    return f"{_folder(table_location)}rows/"


def stand_in_at(folder: str, vector_file: str, offset: int, data_file: str) -> str:
    """Return where the rows of a data DV lie: told by the file it is in, its place there and its owner."""
    which = hashed(str(offset).encode(), data_file.encode())
    return f"{folder}{vectors_in(vector_file)}-{which}.parquet"


@lru_cache(maxsize=4096)
def vectors_in(vector_file: str) -> str:
    """Return what tells the file of some data DVs, in the names of what stands for them."""
    return hashed(vector_file.encode())


def export_of(snapshot: Snapshot) -> str:
    """Return what tells the export of a snapshot: its id, and the tree that it is of.

    Clients choose ids, and one that was forgotten may be given again; trees are made once.
    """
    top = snapshot.root_manifest or snapshot.manifest_list or ""
    tree = [top, *(snapshot.manifests or ())]
    return f"{snapshot.snapshot_id}-{hashed(*(each.encode() for each in tree))}"


def manifest_list_at(folder: str, snapshot: Snapshot) -> str:
    """Return where the manifest list of an exported snapshot lies or would lie, as stored."""
    return f"{folder}snap-{export_of(snapshot)}.avro"


def list_shown(snapshot: Snapshot, table_location: str, format_version: int) -> str:
    """Return where the manifest list lies that clients of a version are shown, or would lie.

    One of before the upgrade is its own, unless it is of v3 and may tell of what v2 does not have.
    """
    is_of_v3 = snapshot.first_row_id is not None
    if snapshot.manifest_list is None or (is_of_v3 and format_version < 3):
        return manifest_list_at(export_folder(table_location, format_version), snapshot)
    return snapshot.manifest_list


def is_list(name: str) -> bool:
    """Tell by its name within its folder whether a file is the manifest list of an export."""
    match name.removesuffix(".avro").split("-"):
        case ["snap", _, _]:
            return True
    return False


def own_manifest_at(folder: str, snapshot: Snapshot, ordinal: int) -> str:
    """Return where a manifest of what a snapshot's root holds itself lies."""
    return f"{folder}snap-{export_of(snapshot)}-{ordinal}.avro"


def twin_at(folder: str, part: Part, spec_id: int, told: str, *, numbered: bool) -> str:
    """Return where a twin of a part lies: of one spec, and with or without row ids.

    What else decides on its bytes is in its name too: what `told_by` a layout its header says.
    """
    return f"{folder}part-{part}-{spec_id}{'r' if numbered else ''}-{told}.avro"


def told_by(layout: Layout, content: str) -> str:
    """Return what tells schema and spec of a manifest, as its header says them."""
    return hashed(json_bytes(layout.header(content)))[:8]


def part_of(name: str) -> Part | None:
    """Return which part a twin is of, by its name within its folder; None for what is no twin."""
    match name.split("-"):
        case ["part", leaf, rest, _, _, *_]:
            return Part.told(leaf, rest)
    return None


def metadata_at(folder: str, metadata_location: str, more: str | None = None) -> str:
    """Return where metadata lies that shows a metadata file, and maybe more: what is its name."""
    name = metadata_location.rpartition("/")[2].removesuffix(".metadata.json").removesuffix(".gz")
    past = "" if more is None else f"-{more}"
    return f"{folder}{name}{past}.metadata.json"


def apart(stored: str) -> str:
    """Return a name for a file that nobody else writes: two that are encrypted have two keys."""
    start, dot, end = stored.rpartition("/")[2].partition(".")
    return f"{stored.removesuffix(start + dot + end)}{start}-{new_uuid()}{dot}{end}"


def read_name(stored: str, table_location: str) -> tuple[str, str] | Part | None:
    """Return what a file of an export is of: a part, ("snapshot", …), ("metadata", …), ("rows", …).

    The last is of the data DVs in a file. None for what is no file of an export of the table where
    it is now.
    """
    rows = stored.removeprefix(stand_in_folder(table_location))
    if rows != stored:
        return "rows", rows.partition("-")[0]
    for version in FORMAT_VERSIONS:
        folder = export_folder(table_location, version)
        name = stored.removeprefix(folder)
        if name == stored or "/" in name:
            continue
        if name.endswith(".metadata.json"):
            return "metadata", name.removesuffix(".metadata.json")
        match name.removesuffix(".avro").split("-"):
            case ["snap", id, tree, *_]:
                return "snapshot", f"{id}-{tree}"
        return part_of(name)
    return None
