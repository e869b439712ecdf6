"""Files by the names that callers give them: a location in any spelling, such as the one they are told."""

from __future__ import annotations

from icetree.errors import NotFound
from icetree.spec.entry.entry import Entries, is_live, is_named, only
from icetree.spec.location import absolute, is_relative, stored_form
from icetree.table.table import Table
from icetree.tree.reading import Leaf, leaves_in


def stored(table: Table, file_path: str) -> str:
    """Return the name that manifests have for a file; what is relative is taken as one of these."""
    return file_path if is_relative(file_path) else stored_form(file_path, table.location)


def told(table: Table, file_path: str) -> str:
    """Return the name under which people see a file, whichever they gave."""
    return absolute(stored(table, file_path), table.location)


def leaf_named(table: Table, root: Entries, leaf: str) -> Leaf:
    """Return a live leaf of a root; NotFound where it has none of that name."""
    named = only(root, is_named(root, stored(table, leaf)))
    found = leaves_in(only(named, is_live(named)))
    if not found:
        raise NotFound(f"{leaf} is no leaf of this snapshot")
    return found[0]
