"""Does a Parquet file's own footer tell the truth of its row groups: scans leave some out by it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isnan

import pyarrow as pa

from icetree.rows.formats.parquet import ParquetReader
from icetree.rows.read.files import DataFile, Group
from icetree.rows.read.row_groups import flat_leaves, group_stats
from icetree.rows.write.stats import Portion
from icetree.spec.entry import stats
from icetree.spec.schema.shape import Shape
from icetree.table.verify.contradicted import contradicted

_TOLD = ("lower", "upper", "nulls")


@dataclass(frozen=True, slots=True, kw_only=True)
class FooterStats:
    """What a footer says of each row group, by field and stat; nothing of other formats."""

    told: Mapping[int, Mapping[str, pa.Array]]
    names: Mapping[int, str]

    @classmethod
    def of(cls, file: DataFile, shape: Shape) -> FooterStats:
        """Return what an open file says of its own."""
        told = {}
        if isinstance(file.reader, ParquetReader) and file.groups:
            for id, leaf in flat_leaves(file.nodes):
                found = group_stats(file, id, leaf, shape)
                told[id] = {
                    stat: found[name] for stat in _TOLD if (name := stats.column(id, stat)) in found
                }
        return cls(told=told, names=shape.names)

    def contradictions(self, group: Group, real: Mapping[int, Portion]) -> Iterator[str]:
        """Yield a sentence for all that is said of a row group and its rows contradict."""
        for id in self.told.keys() & real.keys():
            mine = {
                stat: values[group.ordinal]
                for stat, values in self.told[id].items()
                if _says(values[group.ordinal])
            }
            for rule in contradicted(self.names.get(id, str(id)), mine, _stats(real[id])):
                yield f"its footer says of row group {group.ordinal}: {rule}"


def _says(told: pa.Scalar) -> bool:
    """Tell whether a stat says anything: a bound that is NaN, as of Iceberg Java, says nothing."""
    return told.is_valid and not (pa.types.is_floating(told.type) and isnan(told.as_py()))


def _stats(real: Portion) -> dict[str, pa.Scalar | None]:
    ends = (None, None) if real.ends is None else real.ends
    return {
        "lower": ends[0],
        "upper": ends[1],
        "values": None,
        "nulls": pa.scalar(real.nulls, pa.int64()),
        "nans": None,
    }
