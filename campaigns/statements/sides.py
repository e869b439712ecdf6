"""Both that carry statements out, and what they tell of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from icetree.errors import IcetreeError
from icetree.spark import SparkLake, local

#: What Spark is told of Iceberg's own catalog, beside where it is.
_CATALOG: Final = "spark.sql.catalog.theirs"
NAMESPACE: Final = "db"
_SET: Final[Mapping[str, str]] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.sources.partitionOverwriteMode": "static",
    "spark.sql.shuffle.partitions": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What came of a statement: rows as texts with their columns, or what was wrong."""

    columns: str = ""
    rows: Counter[str] = field(default_factory=Counter)
    wrong: str | None = None
    #: Whether what is wrong was meant to be told.
    is_meant: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One that carries statements out."""

    run: Callable[[str], DataFrame]

    def told(self, text: str) -> Told:
        """Carry out a statement."""
        try:
            found = self.run(text)
            return Told(columns=found.schema.simpleString(), rows=counted(found.toArrow()))
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            is_meant = isinstance(error, IcetreeError | PySparkException)
            return Told(wrong=said, is_meant=is_meant and "INTERNAL_ERROR" not in said)

    def columns(self, table: str) -> t.StructType:
        """Return the columns of a table."""
        return self.run(f"SELECT * FROM {table}").schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    ours: Side
    theirs: Side
    lake: SparkLake


@contextmanager
def sides(spark: SparkSession, folder: Path) -> Iterator[Sides]:
    """Give each side a catalog of its own below a folder, and a session on the same Spark."""
    ours, theirs = spark.newSession(), spark.newSession()
    for name, value in _SET.items():
        ours.conf.set(name, value)
        theirs.conf.set(name, value)
    settings = {
        _CATALOG: "org.apache.iceberg.spark.SparkCatalog",
        f"{_CATALOG}.type": "hadoop",
        f"{_CATALOG}.warehouse": str(folder / "theirs"),
        f"{_CATALOG}.cache-enabled": "false",
        # Where tables have DVs, row ids and defaults, as ours do.
        f"{_CATALOG}.table-default.format-version": "3",
    }
    for name, value in settings.items():
        theirs.conf.set(name, value)
    theirs.sql(f"CREATE NAMESPACE theirs.{NAMESPACE}")
    theirs.sql(f"USE theirs.{NAMESPACE}")
    lake = local(folder / "ours", spark=ours)
    try:
        lake.create_namespace(NAMESPACE)
        lake.namespace = NAMESPACE
        yield Sides(ours=Side(run=lake.sql), theirs=Side(run=theirs.sql), lake=lake)
    finally:
        lake.close()


def counted(rows: pa.Table) -> Counter[str]:
    """Return how often each row is there, as a text."""
    columns = [_plain(each.combine_chunks()) for each in rows.columns]
    return Counter(map(repr, zip(*columns, strict=True))) if columns else Counter()


def _plain(values: Any) -> list[Any]:
    """Return values that are the same only where they are so to the last bit; NaNs are all one."""
    if isinstance(values, pa.ChunkedArray):
        return [value for chunk in values.chunks for value in _plain(chunk)]
    kind, is_null = values.type, values.is_null().to_pylist()
    if pa.types.is_struct(kind):
        parts = [_plain(values.field(at)) for at in range(kind.num_fields)]
        made: list[Any] = [*zip(*parts, strict=True)] if parts else [()] * len(values)
    elif pa.types.is_map(kind):
        pairs = _within(values, [*zip(_plain(values.keys), _plain(values.items), strict=True)])
        made = [sorted(each, key=repr) for each in pairs]
    elif pa.types.is_list(kind):
        made = _within(values, _plain(values.values))
    elif pa.types.is_timestamp(kind):
        made = values.cast(pa.int64()).to_pylist()
    elif pa.types.is_date32(kind):
        made = values.cast(pa.int32()).to_pylist()
    elif pa.types.is_floating(kind):
        made = [None if each is None else repr(each) for each in values.to_pylist()]
    else:
        made = values.to_pylist()
    return [None if gone else each for gone, each in zip(is_null, made, strict=True)]


def _within(values: Any, parts: list[Any]) -> list[Any]:
    """Return the parts of each list."""
    ends = values.offsets.to_pylist()
    return [parts[start:end] for start, end in pairwise(ends)]
