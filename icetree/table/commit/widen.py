"""Changes that were worked out before a column was widened, made to fit the column as it is."""

from __future__ import annotations

import dataclasses

from icetree.spec.entry import stats
from icetree.spec.entry.entry import Entries, with_columns
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes
from icetree.tree.draft import Prepared
from icetree.tree.leaves.rewritten import Rewritten


def widen_changes(changes: Changes, shape: Shape) -> Changes:
    """Return the changes with the bounds of new files in the types that the table has now."""
    return dataclasses.replace(changes, added=_widened(changes.added, shape))


def widen_prepared(prepared: Prepared, shape: Shape) -> Prepared:
    """Do `widen_changes` for prepared ones; leaves that are stored stay, since readers widen."""
    return Prepared(
        changes=widen_changes(prepared.changes, shape),
        in_root=_widened(prepared.in_root, shape),
        leaves=tuple(
            dataclasses.replace(leaf, entry=_widened(leaf.entry, shape)) for leaf in prepared.leaves
        ),
    )


def widen_rewritten(rewritten: Rewritten, shape: Shape) -> Rewritten:
    """Do the same for leaves that were made to take the place of others."""
    return dataclasses.replace(
        rewritten, entries=tuple(_widened(each, shape) for each in rewritten.entries)
    )


def _widened(entries: Entries, shape: Shape) -> Entries:
    bounds = [stats.column(id, stat) for id in stats.fields_in(entries) for stat in _BOUNDS]
    wider = {}
    for name in bounds:
        if name not in entries.column_names:
            continue
        type = shape.bounds_type(int(name.partition(":")[0]))
        if type is not None and entries[name].type != type:
            wider[name] = stats.widened(entries[name], type)
    return with_columns(entries, **wider) if wider else entries


_BOUNDS = ("lower", "upper")
