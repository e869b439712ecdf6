"""Where exports lie: names that follow from what is exported, so that who exports again finds them.

Exports name files in full. A table that was copied elsewhere has another folder for them, so that
nobody there reads the files of the place before.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from icetree.codec.legacy.encode_manifest import Layout
from icetree.spec.location import canonical
from icetree.spec.snapshot import Snapshot
from icetree.spec.texts import json_bytes
from icetree.surroundings import new_uuid
from icetree.table.export.parts import Part, hashed

#: All exports of a table lie below.
EXPORTS: Final = "metadata/export/"
#: What a table can be exported as.
FORMAT_VERSIONS: Final = (3, 2)
#: Exports of before leaves had parts lie elsewhere: nobody takes them for what is there now.
_LAYOUT: Final = b"parts"


@lru_cache(maxsize=64)
def export_folder(table_location: str, format_version: int) -> str:
    """Return the folder of the exports of a table that is at a location, as stored."""
    place = canonical(table_location, table_location).rstrip("/")
    here = hashed(place.encode(), _LAYOUT)
    return f"{EXPORTS}{here}/v{format_version}/"


def export_of(snapshot: Snapshot) -> str:
    """Return what tells the export of a snapshot: its id, and the tree that it is of.

    Clients choose ids, and one that was forgotten may be given again; trees are made once.
    """
    tree = [snapshot.root_manifest or "", *(snapshot.manifests or ())]
    return f"{snapshot.snapshot_id}-{hashed(*(each.encode() for each in tree))}"


def manifest_list_at(folder: str, snapshot: Snapshot) -> str:
    """Return where the manifest list of an exported snapshot lies or would lie, as stored."""
    return f"{folder}snap-{export_of(snapshot)}.avro"


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


def metadata_at(folder: str, metadata_location: str, snapshot_id: int | None = None) -> str:
    """Return where metadata lies that shows a metadata file, and maybe a snapshot of the past."""
    name = metadata_location.rpartition("/")[2].removesuffix(".metadata.json").removesuffix(".gz")
    past = "" if snapshot_id is None else f"-{snapshot_id}"
    return f"{folder}{name}{past}.metadata.json"


def apart(stored: str) -> str:
    """Return a name for a file that nobody else writes: two that are encrypted have two keys."""
    start, dot, end = stored.rpartition("/")[2].partition(".")
    return f"{stored.removesuffix(start + dot + end)}{start}-{new_uuid()}{dot}{end}"


def read_name(stored: str, table_location: str) -> tuple[str, str] | Part | None:
    """Return what a file of an export is of: a part, ("snapshot", …) or ("metadata", …).

    None for what is no file of an export of the table where it is now.
    """
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
