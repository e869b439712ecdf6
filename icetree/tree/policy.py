"""When entries leave the root, how large leaves grow, how much a commit may tidy up."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Final

from icetree.spec.metadata.encryption import data_key_bytes
from icetree.spec.properties.values import whole_number

_PROPERTIES = {
    "root_target_bytes": "write.root.target-bytes",
    "root_max_data_entries": "write.root.max-data-entries",
    "root_max_delete_entries": "write.root.max-delete-entries",
    "leaf_target_bytes": "write.leaf.target-bytes",
    "leaf_max_entries": "write.leaf.max-entries",
    "inline_max_bytes": "write.manifest-dv.inline-max-bytes",
    "compact_max_entries": "write.commit.compact-max-entries",
    "compact_min_leaves": "write.commit.compact-min-leaves",
    "compact_removed_percent": "write.commit.compact-removed-percent",
    "affinity_min_entries": "write.flush.affinity-min-entries",
    "affinity_max_leaves": "write.flush.affinity-max-leaves",
}
#: The properties that a policy is read from.
NAMES: Final = tuple(_PROPERTIES.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The thresholds of the adaptive tree; every one is a table property."""

    root_target_bytes: int = 1024 * 1024
    #: Data files and deletes are counted apart: their footprint in the root differs.
    root_max_data_entries: int = 64
    root_max_delete_entries: int = 100
    leaf_target_bytes: int = 8 * 1024 * 1024
    leaf_max_entries: int = 50_000
    #: A larger manifest DV goes to a Puffin file.
    inline_max_bytes: int = 64 * 1024
    #: What one commit may rewrite of old leaves; the rest is left to maintenance. 0 for nothing.
    compact_max_entries: int = 20_000
    #: This many small leaves are worth merging.
    compact_min_leaves: int = 16
    #: A leaf with a larger share of its entries removed is worth rewriting.
    compact_removed_percent: int = 10
    #: Fewer deletes than this for one data manifest are not worth a delete manifest of their own.
    affinity_min_entries: int = 50
    #: Beyond this many leaves, the owner of a delete is not looked up.
    affinity_max_leaves: int = 100
    #: New files are encrypted with keys of this length; None for plain files.
    key_bytes: int | None = None

    def at_rest(self) -> Policy:
        """Return the policy of a commit that is to move no entries by itself."""
        most = sys.maxsize
        return replace(
            self,
            compact_max_entries=0,
            root_target_bytes=most,
            root_max_data_entries=most,
            root_max_delete_entries=most,
        )


def policy_of(properties: Mapping[str, str]) -> Policy:
    """Read a policy from table properties; a value that is no count is refused."""
    return Policy(
        **{
            each.name: whole_number(
                properties, _PROPERTIES[each.name], default=getattr(_DEFAULT, each.name)
            )
            for each in fields(Policy)
            if each.name in _PROPERTIES
        },
        key_bytes=data_key_bytes(properties),
    )


_DEFAULT = Policy()
