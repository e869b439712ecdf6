"""Links on the way to a place: names that lead to the same folder, or to the same file.

A listing has one name for a file, the one that begins as the listed folder does. What leads to that
file by links is the same file, so who needs it by either name needs the one that was listed. Hard
links are not looked at: of two names for the same bytes, the loss of one loses nothing.
"""

from __future__ import annotations

import os
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from icetree.spec.location import canonical, prefix_of
from icetree.store.places import folder_behind

_ON_DISK: Final = "file://"
#: The folder of a file, with its slash, and the file's name.
_PARTS: Final = r"(?s)^file://(?P<folder>/(?:.*/)?)(?P<name>[^/]*)$"


def comparable(folder: str, table_location: str) -> str:
    """Return a folder in the one spelling that is compared, with a slash."""
    return prefix_of(canonical(folder, table_location))


def seen_below(there: str, name: str, here: str) -> str | None:
    """Return what a place is called below a folder called `name`, where it lies below that one.

    `there` and `here` are what is behind the links on the way to both.
    """
    return name + there.removeprefix(here) if there.startswith(here) else None


def behind_links(names: pa.Array, folder: str) -> pa.Array:
    """Return, of files by canonical names, those that links lead to below a folder: by its name.

    Each folder that is named is asked of the disk once, and each file whether it is a link itself.
    """
    here = folder_behind(folder)
    on_disk = names.filter(pc.starts_with(names, _ON_DISK))
    if here is None or not len(on_disk):
        return pa.array([], pa.string())
    parts = pc.extract_regex(on_disk, _PARTS)
    folders = pc.struct_field(parts, "folder").dictionary_encode()
    real = [folder_behind(f"{_ON_DISK}{each}") for each in folders.dictionary.to_pylist()]
    inside = pa.array(real, pa.string()).take(folders.indices)
    there = pc.binary_join_element_wise(inside, pc.struct_field(parts, "name"), "")
    there = _files_behind(there)
    below = there.filter(pc.starts_with(there, here))
    found = pc.binary_join_element_wise(folder, pc.utf8_slice_codeunits(below, len(here)), "")
    return found.filter(pc.invert(pc.is_in(found, value_set=names)))


def _files_behind(paths: pa.Array) -> pa.Array:
    """Return the paths of files, where one is a link the path that it leads to."""
    links = pa.array(map(os.path.islink, paths.to_pylist()), pa.bool_())
    if not links.true_count:
        return paths
    real = [os.path.realpath(each) for each in paths.filter(links).to_pylist()]
    return pc.replace_with_mask(paths, links, pa.array(real, pa.string()))
