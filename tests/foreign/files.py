"""Files that another writer makes: data files, data DVs and equality deletes, with their stats."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.foreign import blobs, parquet
from tests.foreign.columns import Row, is_nan, put
from tests.foreign.drawn import draw_rows
from tests.foreign.dress import Dress
from tests.foreign.layout import LINEAGE, Layout, Told
from tests.foreign.model import DATA, EQUALITY, VECTOR, File
from tests.foreign.tree import greatest, least

Stats = dict[int, dict[str, Any]]

#: What is above all that a cut bound of a type may have been.
_LONG: dict[str, Any] = {"string": "\U0010ffff", "binary": b"\xff"}


@dataclass(slots=True, kw_only=True)
class Shop:
    """Makes files of rows and puts their bytes under new names."""

    table: str
    layout: Layout
    rng: Random
    #: By location in full.
    stored: dict[str, bytes]
    next_id: int = 1
    made: int = 0

    def store(self, folder: str, end: str, content: bytes) -> str:
        """Keep bytes under a new name, inside the table or somewhere else; return it."""
        self.made += 1
        base = self.table
        if folder == "data" and self.rng.random() < 0.15:
            base = "memory://elsewhere/files"
        location = f"{base}/{folder}/{self.made}{end}"
        self.stored[location] = content
        return location

    def new_data(self, spec_id: int | None = None) -> File:
        """Make a data file of rows that no other has."""
        rng = self.rng
        spec_id = rng.choice(list(self.layout.specs)) if spec_id is None else spec_id
        count = rng.randint(1, 5)
        rows = draw_rows(rng, self.next_id, count, self.layout, spec_id)
        self.next_id += count
        return self.data(rows, spec_id)

    def data(self, rows: list[Row], spec_id: int, *, lineage: bool = False) -> File:
        """Make a data file of rows in one partition."""
        rng = self.rng
        columns, rows = list(self.layout.columns), [self.layout.kept(row) for row in rows]
        content = parquet.data_file(rows, columns, Dress(rng=rng), lineage)
        return File(
            content=DATA,
            location=self.store("data", ".parquet", content),
            format="parquet",
            spec_id=spec_id,
            partition=self.layout.tuple_of(spec_id, rows[0]),
            record_count=len(rows),
            size=len(content),
            stats=self._column_stats(rows, lineage) | self._partition_stats(rows, spec_id),
            sort_order_id=rng.choice((None, 0, 1)),
            # Row groups start where their first column does.
            split_offsets=rng.choice((None, [4])),
            rows=rows,
            has_lineage=lineage,
        )

    def vectors(self, of: dict[int, tuple[File, frozenset[int]]]) -> list[File]:
        """Make data DVs, all in one Puffin file."""
        content, places = blobs.puffin([(file.location, set(gone)) for file, gone in of.values()])
        location = self.store("data", ".puffin", content)
        return [
            File(
                content=VECTOR,
                location=location,
                format="puffin",
                spec_id=file.spec_id,
                partition=file.partition,
                record_count=len(gone),
                size=len(content),
                stats=self._partition_stats(file.rows, file.spec_id)
                if self.rng.random() < 0.6
                else {},
                target=file,
                positions=gone,
                offset=offset,
                length=length,
            )
            for (file, gone), (offset, length) in zip(of.values(), places, strict=True)
        ]

    def positions(self, of: File) -> File:
        """Make a position delete file of v2, of some rows of one data file."""
        rng, path = self.rng, of.location
        gone = frozenset(rng.sample(range(of.record_count), rng.randint(1, of.record_count)))
        told: dict[str, Any] = rng.choice(
            ({}, {"path_bounds": (path, path)}, {"only_of": of}, {"path_bounds": ("a", "z")})
        )
        return self.position_file(of, [(path, row) for row in sorted(gone)], ((of, gone),), **told)

    def position_file(
        self,
        like: File,
        named: list[tuple[str | None, int | None]],
        deleted: tuple[tuple[File, frozenset[int]], ...] = (),
        **told: Any,
    ) -> File:
        """Make a position delete file of these rows, in the partition of a data file."""
        content = parquet.position_file(named, Dress(rng=self.rng))
        return File(
            content=VECTOR,
            location=self.store("data", "-positions.parquet", content),
            format="parquet",
            spec_id=like.spec_id,
            partition=like.partition,
            record_count=len(named),
            size=len(content),
            stats={},
            deleted=deleted,
            **told,
        )

    def equality(self, like: File) -> File:
        """Make an equality delete of some rows of a data file, for its partition or for all."""
        rng, layout = self.rng, self.layout
        may_be = {each.path: each for each in layout.schema.told() if is_key(each)}
        common = [path for path in ("id", "name", "n") if path in may_be]
        keys = tuple(
            rng.sample(common if rng.random() < 0.6 else sorted(may_be), rng.randint(1, 2))
        )
        rows = rng.sample(like.rows, rng.randint(1, min(2, len(like.rows))))
        scoped = not layout.is_unpartitioned(like.spec_id) and rng.random() < 0.5
        spec_id = like.spec_id if scoped else 0
        columns = [may_be[path] for path in keys]
        values = frozenset(tuple(each.value(row) for each in columns) for row in rows)
        deleted: list[Row] = [{} for _ in values]
        for row, one in zip(deleted, values, strict=True):
            for path, value in zip(keys, one, strict=True):
                put(row, path, value)
        pruned = layout.pruned(keys)
        content = parquet.data_file(deleted, pruned, Dress(rng=rng), lineage=False, whole=True)
        stats: Stats = {}
        for column in columns:
            if column.has_stats and rng.random() < 0.5:
                stats[column.id] = self._stats(column, [column.value(row) for row in deleted])
        if scoped:
            stats |= self._partition_stats(rows[:1] * len(deleted), spec_id)
        return File(
            content=EQUALITY,
            location=self.store("data", "-deletes.parquet", content),
            format="parquet",
            spec_id=spec_id,
            partition=like.partition if scoped else (),
            record_count=len(deleted),
            size=len(content),
            stats=stats,
            keys=keys,
            values=values,
            equality_ids=[column.id for column in columns],
        )

    # --- stats -----------------------------------------------------------------------------

    def _column_stats(self, rows: list[Row], lineage: bool) -> Stats:
        found: Stats = {}
        if self.rng.random() < 0.15:
            return found
        for each in (*self.layout.schema.told(), *(LINEAGE if lineage else ())):
            if each.has_stats and self.rng.random() < 0.85:
                found[each.id] = self._stats(each, [each.value(row) for row in rows])
        return found

    def _partition_stats(self, rows: list[Row], spec_id: int) -> Stats:
        """Return stats that tell a file's partition: one value, or nothing but nulls."""
        found: Stats = {}
        for part in self.layout.specs[spec_id]:
            value = part.value(rows[0])
            found[part.stats_id] = {
                "lower_bound": value,
                "upper_bound": value,
                "value_count": len(rows),
                "null_value_count": len(rows) if value is None else 0,
            }
            if value is not None and self.rng.random() < 0.5:
                found[part.stats_id]["tight_bounds"] = True
        return found

    def _stats(self, column: Told, values: list[Any]) -> dict[str, Any]:
        present = [each for each in values if each is not None and not is_nan(each)]
        found: dict[str, Any] = {"value_count": len(values)}
        if self.rng.random() < 0.9:
            found["null_value_count"] = sum(each is None for each in values)
        if column.type.name in ("double", "float") and self.rng.random() < 0.8:
            found["nan_value_count"] = sum(map(is_nan, values))
        if present and self.rng.random() < 0.9:
            lower, upper, tight = least(present), greatest(present), True
            if column.type.name in _LONG and max(map(len, (lower, upper))) > 4:
                lower, upper, tight = lower[:4], upper[:4] + _LONG[column.type.name], False
            found |= {"lower_bound": lower, "upper_bound": upper}
            if not tight or self.rng.random() < 0.6:
                found["tight_bounds"] = tight
        if present and column.type.name in _LONG and self.rng.random() < 0.5:
            sizes = [len(each.encode() if isinstance(each, str) else each) for each in present]
            found["avg_value_size_in_bytes"] = round(sum(sizes) / len(sizes))
            found["max_value_size_in_bytes"] = max(sizes)
        return found


def is_key(each: Told) -> bool:
    return each.type.name not in ("float", "double")
