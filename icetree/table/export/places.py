"""Where exports lie: names that follow from what is exported, so that who exports again finds them."""

from __future__ import annotations

from typing import Final

#: Everything of an export, relative to the table.
FOLDER: Final = "metadata/export/v{version}/"


def manifest_list_at(snapshot_id: int, format_version: int) -> str:
    """Return where the manifest list of an exported snapshot lies or would lie, as stored."""
    return f"{FOLDER.format(version=format_version)}snap-{snapshot_id}.avro"
