"""One entry as a row of a picture: its short name, where it belongs, what it holds."""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from icetree.picture.model import Row
from icetree.picture.words import counted, short_name
from icetree.spec.entry import stats
from icetree.spec.entry.entry import Content, Entries, Status
from icetree.spec.schema.expressions import Expression, transform_of
from icetree.spec.schema.shape import Shape

#: What an entry tracks, as one calls one and several of it.
CONTENT_WORDS: Final = {
    Content.DATA: ("data file", "data files"),
    Content.POSITION_DELETES: ("data DV", "data DVs"),
    Content.EQUALITY_DELETES: ("equality delete", "equality deletes"),
    Content.DATA_MANIFEST: ("data manifest", "data manifests"),
    Content.DELETE_MANIFEST: ("delete manifest", "delete manifests"),
    Content.MANIFEST_DV: ("manifest DV", "manifest DVs"),
}


class Names:
    """Short names: files by their location, manifest DVs numbered in the order of the root."""

    def __init__(self, root: Entries, vectors: npt.NDArray[np.int64]) -> None:
        shown = root.select(["referenced_file", "status"]).take(vectors)
        leaves, gone = shown["referenced_file"].to_pylist(), shown["status"].to_pylist()
        self._vectors = {
            (leaf, status == Status.DELETED): number
            for number, (leaf, status) in enumerate(zip(leaves, gone, strict=True), 1)
        }

    def of(self, location: str) -> str:
        """Return the short name of a file."""
        return short_name(location)

    def vector(self, leaf: str, *, is_deleted: bool = False) -> str:
        """Return the name of a leaf's manifest DV; one whose leaf has no box is not numbered."""
        return f"MDV{self._vectors.get((leaf, is_deleted), '')}"


def stats_columns(shape: Shape) -> list[str]:
    """Return the columns that say which partition an entry is in."""
    fields = dict.fromkeys(id for spec in shape.specs for id in shape.partition_fields(spec))
    return [stats.column(id, stat) for id in fields for stat in ("lower", "upper")]


def row_of(entry: dict[str, Any], shape: Shape, names: Names) -> Row:
    """Return the row of an entry, given as its columns."""
    content = Content(entry["content_type"])
    return Row(
        name=_name(entry, content, names),
        status=Status(entry["status"]),
        content=content,
        partition=partition_words(entry, shape),
        note=_note(entry, content, shape, names),
        title=entry["location"] or "",
    )


def _name(entry: dict[str, Any], content: Content, names: Names) -> str:
    if content == Content.MANIFEST_DV:
        return names.vector(entry["referenced_file"], is_deleted=entry["status"] == Status.DELETED)
    return names.of(entry["location"])


def _note(entry: dict[str, Any], content: Content, shape: Shape, names: Names) -> str:
    count, refers = entry["record_count"], entry["referenced_file"]
    match content:
        case Content.DATA:
            return counted(count, "row")
        case Content.POSITION_DELETES:
            return f"{counted(count, 'row')} of {names.of(refers) if refers else 'several files'}"
        case Content.EQUALITY_DELETES:
            fields = [shape.names.get(id, str(id)) for id in entry["equality_ids"] or ()]
            return f"{counted(count, 'row')} by {', '.join(fields)}"
        case Content.DATA_MANIFEST:
            return counted(count, "file")
        case Content.DELETE_MANIFEST:
            return counted(count, "delete") + (f" for {names.of(refers)}" if refers else "")
        case Content.MANIFEST_DV:
            return f"{counted(count, 'entry', 'entries')} of {names.of(refers)}"


def partition_words(entry: dict[str, Any], shape: Shape) -> str:
    """Return the entry's partition, or the span of a manifest's; empty where it is not known."""
    if (
        entry["content_type"] == Content.MANIFEST_DV
        or entry["partition_spec_id"] not in shape.specs
    ):
        return ""
    parts = []
    for expression in shape.spec(entry["partition_spec_id"]):
        low, high = (
            entry.get(stats.column(expression.stats_field, stat)) for stat in ("lower", "upper")
        )
        if low is not None and high is not None:
            first, last = in_words(expression, low, shape), in_words(expression, high, shape)
            parts.append(first if first == last else f"{first} … {last}")
    return " / ".join(parts)


def in_words(expression: Expression, value: Any, shape: Shape) -> str:
    """Return a value of a partition expression as people read it."""
    transform = transform_of(expression)
    source = shape.types.get(expression.source_ids[0])
    if isinstance(value, int) and source is not None:
        return transform.to_human_string(source, value)
    return value.isoformat() if isinstance(value, date) else str(value)
