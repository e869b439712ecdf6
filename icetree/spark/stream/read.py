"""Reading a table as a stream, through `format("icetree")`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from icetree.spark.source import register
from icetree.spark.source.options import Face, options, options_of
from icetree.table.arguments import texts
from icetree.table.point import Point

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake


def read_stream(
    lake: SparkLake,
    name: str,
    since: Point | None = None,
    *,
    changes: bool = False,
    images: bool = False,
    columns: Iterable[str] | None = None,
    skip: Iterable[str] = (),
    branch: str | None = None,
    max_snapshots_per_trigger: int | None = None,
) -> DataFrame:
    """Return a stream of the rows appended after `since`: a snapshot id, a branch or tag, or a time.

    With `changes`, of all rows that changed, as `changes` tells them, with or without `images`. Else a snapshot that is no
    append ends the stream, unless `skip` names its kind: "overwrite" or "delete". With the trigger
    "available-now" a run takes no more than `max_snapshots_per_trigger` snapshots in all.
    """
    register(lake.spark)
    given: dict[str, Any] = {
        **options_of(lake, name),
        "since": since.isoformat() if isinstance(since, datetime) else since,
        "changes": str(changes).lower(),
        "images": "true" if images else None,
        "columns": None if columns is None else ",".join(texts(columns, what="columns")),
        "skip": ",".join(texts(skip, what="skip")) or None,
        "branch": branch,
        "max-snapshots-per-trigger": max_snapshots_per_trigger,
    }
    known = {key: str(value) for key, value in given.items() if value is not None}
    options(known, Face.CHANGE_STREAM if changes else Face.STREAM)
    path = known.pop("path")
    return lake.spark.readStream.format("icetree").options(**known).load(path)
