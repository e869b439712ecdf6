"""What every noun of table metadata shares: JSON names, and room for fields not known here."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

from icetree.spec.short import short

#: Whole numbers of the width Iceberg gives them.
Int: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Long: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class Noun(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A JSON object of table metadata: `snapshot_id` here is `snapshot-id` there."""

    #: JSON fields this version does not know: kept, written back.
    extra: dict[str, Any] = msgspec.field(default_factory=dict)

    __repr__ = short
