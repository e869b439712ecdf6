"""What a lake on Spark keeps between calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from icetree.spark.cache import Cache

if TYPE_CHECKING:
    from icetree.spark.sql.views.temporary import TemporaryView


@dataclass(slots=True, kw_only=True)
class Kept:
    """What a lake and its moments keep in common."""

    #: What opens the same catalog elsewhere, such as on an executor; none where it was given open.
    address: str | None = None
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)
    namespace: str | None = None
    #: Temporary views over the lake's tables, by their marks in Spark's catalog.
    views: dict[str, TemporaryView] = field(default_factory=dict)
    cache: Cache = field(default_factory=Cache)
