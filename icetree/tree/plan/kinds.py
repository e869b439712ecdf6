"""Which kinds of files a snapshot has, told without reading what lies in its leaves if possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from icetree.spec.entry.entry import (
    POSITION,
    Content,
    Entries,
    is_content,
    is_data_dv,
    is_data_file,
    is_live,
    only,
)
from icetree.spec.short import short
from icetree.tree.live import is_live_in
from icetree.tree.manifest_dvs import read_manifest_dvs
from icetree.tree.reading import Leaf, Reader, leaves_in
from icetree.tree.summary import FILE_FORMATS

_COLUMNS: Final = frozenset(
    {"content_type", "file_format", "file_size_in_bytes", "status", POSITION}
)

_SPEC: Final = frozenset({"content_type", "partition_spec_id", "status", POSITION})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """What there may be in a snapshot; entries that manifest DVs remove may be among it."""

    #: Of data files.
    formats: frozenset[str]
    data_dvs: bool
    equality_deletes: bool
    #: Of position delete files of v2; 0 where there are none.
    position_delete_bytes: int

    __repr__ = short


def kinds(
    root: Entries,
    reader: Reader,
    summary: Mapping[str, str] | None,
    *,
    run: Callable[..., Iterable[Any]] = map,
) -> Kinds:
    """Return what kinds of files there are.

    Data leaves are read where the snapshot's summary does not tell the formats of their files, delete
    manifests where they are of no data manifest: the others hold data DVs alone.
    """
    live = only(root, is_live(root))
    leaves = leaves_in(live)
    free = [leaf for leaf in leaves if _may_hold_any_delete(leaf)]
    deletes = [live, *(_read(leaf, reader) for leaf in free)]
    affiliated = any(leaf.referenced_file is not None for leaf in leaves)
    told = (summary or {}).get(FILE_FORMATS)
    formats = _formats([live])
    if told is not None:
        formats |= frozenset(filter(None, told.split(",")))
    else:
        data = [leaf for leaf in leaves if leaf.content_type == Content.DATA_MANIFEST]
        formats |= _formats(run(lambda leaf: _read(leaf, reader), data))
    return Kinds(
        formats=formats,
        data_dvs=affiliated or any(pc.any(is_data_dv(each)).as_py() for each in deletes),
        equality_deletes=any(
            pc.any(is_content(each, Content.EQUALITY_DELETES)).as_py() for each in deletes
        ),
        position_delete_bytes=sum(map(_position_delete_bytes, deletes)),
    )


def spec_ids(
    root: Entries,
    reader: Reader,
    *,
    root_file: str = "root",
    run: Callable[..., Iterable[Any]] = map,
) -> frozenset[int]:
    """Return the partition specs that data files have; of every data leaf one column is read."""
    live = only(root, is_live(root))
    removed = read_manifest_dvs(root, reader, root_file=root_file)

    def within(leaf: Leaf) -> frozenset[int]:
        found = reader.leaf(leaf, columns=_SPEC)
        return _specs(only(found, is_live_in(leaf, found, removed.get(leaf.location))))

    leaves = [each for each in leaves_in(live) if each.content_type == Content.DATA_MANIFEST]
    return _specs(live).union(*run(within, leaves))


def _specs(files: Entries) -> frozenset[int]:
    return frozenset(pc.unique(files["partition_spec_id"].filter(is_data_file(files))).to_pylist())


def _position_delete_bytes(files: Entries) -> int:
    old = pc.and_not(is_content(files, Content.POSITION_DELETES), is_data_dv(files))
    found: int = pc.sum(files["file_size_in_bytes"].filter(old)).as_py() or 0
    return found


def _may_hold_any_delete(leaf: Leaf) -> bool:
    return leaf.content_type == Content.DELETE_MANIFEST and leaf.referenced_file is None


def _read(leaf: Leaf, reader: Reader) -> Entries:
    found = reader.leaf(leaf, columns=_COLUMNS)
    return only(found, is_live(found))


def _formats(files: Iterable[Entries]) -> frozenset[str]:
    found: set[str] = set()
    for each in files:
        formats = each["file_format"].filter(is_data_file(each))
        found |= set(pc.unique(formats).to_pylist())
    return frozenset(found)
