"""What an update of metadata relies on, which nobody may have changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.update import (
    AddExpression,
    AddPartitionSpec,
    AddSchema,
    AddSortOrder,
    RemoveSnapshotRef,
    RenameExpressions,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
)

#: Facts of the base that each kind of update relies on.
_RELIES_ON: Mapping[type[Update], tuple[str, ...]] = {
    AddSchema: ("current schema", "last column id", "default partition spec"),
    SetCurrentSchema: ("current schema",),
    AddExpression: ("last column id", "default partition spec", "current schema"),
    RenameExpressions: ("last column id", "default partition spec", "current schema"),
    AddPartitionSpec: ("last column id", "default partition spec", "current schema"),
    SetDefaultSpec: ("default partition spec",),
    AddSortOrder: ("default sort order", "current schema"),
    SetDefaultSortOrder: ("default sort order",),
    UpgradeFormatVersion: ("format version",),
}


def facts_for(update: Update) -> Iterable[str]:
    """Return the facts of the base that an update relies on."""
    match update:
        case SetSnapshotRef(ref_name=name):
            return (f"ref {name}", f"retention of {name}")
        case RemoveSnapshotRef(ref_name=name):
            return (f"ref {name}",)
    return _RELIES_ON.get(type(update), ())


def is_idle(update: Update, metadata: TableMetadata) -> bool:
    """Tell whether an update points a ref to where it is: worth a look, but not a commit."""
    return isinstance(update, SetSnapshotRef) and metadata.refs.get(update.ref_name) == update.ref
