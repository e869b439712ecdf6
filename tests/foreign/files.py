"""Files that another writer makes: data files, data DVs and equality deletes, with their stats."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from tests.foreign import blobs, stored
from tests.foreign.columns import WHOLE, Row, is_nan, put
from tests.foreign.drawn import draw_rows
from tests.foreign.dress import Dress, aside
from tests.foreign.layout import LINEAGE, Layout, Told
from tests.foreign.model import DATA, EQUALITY, VECTOR, File
from tests.foreign.tree import greatest, least
from tests.foreign.vague import vague

Stats = dict[int, dict[str, Any]]

#: Parts of names: nothing in them is an escape, a query, a value or another folder.
_ODD = (
    *("n=7/", "name=__HIVE_DEFAULT_PARTITION__/", "at=2024-02-29T00%3A00/", "%", "%2F", "%20", " "),
    *(
        "+",
        "#",
        "?",
        "a&b;",
        "=",
        "~",
        ":",
        "é",
        "e\u0301",
        "\u2028",
        "🜂/",
        "...",
        "'\"",
        "[*]{x}",
        "\\",
    ),
)

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
    #: Of files of rows: the usual one first.
    formats: tuple[str, ...] = ("parquet",)
    #: Whether what is strange, and legal, is made as well.
    strange: bool = False
    #: Whether a mapping of the table's tells which columns are those of the first schema, by name.
    mapped: bool = False

    def store(self, folder: str, end: str, content: bytes) -> str:
        """Keep bytes under a new name, inside the table or somewhere else; return it."""
        self.made += 1
        base = self.table
        if folder == "data" and self.rng.random() < 0.15:
            base = "memory://elsewhere/files"
        location = f"{base}/{folder}/{self._odd(folder)}{self.made}{end}"
        self.stored[location] = content
        return location

    def _odd(self, folder: str) -> str:
        """Return what stands before a name, and means nothing at all."""
        chance = aside(self.rng, "name")
        if not self.strange or folder != "data" or chance.random() < 0.4:
            return ""
        return "".join(chance.choice(_ODD) for _ in range(chance.randint(1, 3)))

    def new_data(self, spec_id: int | None = None) -> File:
        """Make a data file of rows that no other has."""
        rng = self.rng
        spec_id = rng.choice(list(self.layout.specs)) if spec_id is None else spec_id
        count = rng.randint(1, 5)
        rows = draw_rows(rng, self.next_id, count, self.layout, spec_id)
        self.next_id += count
        if self.strange and rng.random() < 0.04:
            return self.data([], spec_id, like=rows[0])
        return self.data(rows, spec_id)

    def data(
        self, rows: list[Row], spec_id: int, *, lineage: bool = False, like: Row | None = None
    ) -> File:
        """Make a data file of rows in one partition: that of a row, where there are none."""
        rng, like = self.rng, like or rows[0]
        columns, rows = list(self.layout.columns), [self.layout.kept(row) for row in rows]
        format = stored.draw_format(rng, self.formats)
        chance = aside(rng, "all columns")
        named = self.mapped and not lineage and len(self.layout.schemas) == 1
        dress = Dress(rng=rng, named=named and chance.random() < 0.6, strange=self.strange)
        told = self._told(spec_id, chance) if self.strange and not dress.named else frozenset()
        content = stored.data_file(rows, columns, dress, format=format, lineage=lineage, told=told)
        return File(
            content=DATA,
            location=self.store("data", f".{format}", content),
            format=format,
            spec_id=spec_id,
            partition=self.layout.tuple_of(spec_id, like),
            record_count=len(rows),
            size=len(content),
            stats=self._column_stats(rows, lineage) | self._partition_stats(like, rows, spec_id),
            sort_order_id=rng.choice((None, 0, 1, *((77,) if self.strange else ()))),
            split_offsets=rng.choice((None, stored.splits(content, format))) if rows else None,
            rows=rows,
            has_lineage=lineage,
            key_metadata=b"another's key" if self.strange and chance.random() < 0.1 else None,
        )

    def _told(self, spec_id: int, chance: Random) -> frozenset[str]:
        """Return columns that a file may leave to its partition to tell."""
        parts = self.layout.specs[spec_id]
        columns = {each.key for each in self.layout.columns}
        return frozenset(
            part.source
            for part in parts
            if part.transform == "identity" and part.source in columns and chance.random() < 0.3
        )

    def vectors(self, of: dict[int, tuple[File, frozenset[int]]]) -> list[File]:
        """Make data DVs, all in one Puffin file."""
        named = [(file.location, set(gone)) for file, gone in of.values()]
        content, places = blobs.puffin(named, self.rng if self.strange else None)
        location = self.store("data", ".puffin", content)
        is_keyed = self.strange and aside(self.rng, "vectors").random() < 0.1
        return [
            File(
                content=VECTOR,
                location=location,
                format="puffin",
                spec_id=file.spec_id,
                partition=file.partition,
                record_count=len(gone),
                size=len(content),
                stats=self._partition_stats(file.rows[0], file.rows, file.spec_id)
                if self.rng.random() < 0.6
                else {},
                target=file,
                positions=gone,
                key_metadata=b"another's key" if is_keyed else None,
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
        format = stored.draw_format(self.rng, self.formats)
        content = stored.position_file(
            named, Dress(rng=self.rng, strange=self.strange), format=format
        )
        return File(
            content=VECTOR,
            location=self.store("data", f"-positions.{format}", content),
            format=format,
            spec_id=like.spec_id,
            partition=like.partition,
            record_count=len(named),
            size=len(content),
            stats={},
            deleted=deleted,
            **told,
        )

    def equality(self, like: File, by: tuple[str, ...] | None = None) -> File:
        """Make an equality delete of some rows of a data file, for its partition or for all."""
        rng, layout = self.rng, self.layout
        may_be = {each.path: each for each in layout.schema.told() if is_key(each)}
        common = [path for path in ("id", "name", "n") if path in may_be]
        keys = by or tuple(
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
        format = stored.draw_format(rng, self.formats)
        content = stored.data_file(
            deleted, pruned, Dress(rng=rng, strange=self.strange), format=format, whole=True
        )
        stats: Stats = {}
        for column in columns:
            if column.has_stats and rng.random() < 0.5:
                stats[column.id] = self._stats(column, [column.value(row) for row in deleted])
        if scoped:
            stats |= self._partition_stats(rows[0], deleted, spec_id)
        return File(
            content=EQUALITY,
            location=self.store("data", f"-deletes.{format}", content),
            format=format,
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
                found[each.id] = self._stats(each, each.values(rows))
        for each in self.layout.schema.counted():
            if self.rng.random() < 0.5:
                found[each.id] = self._stats(each, each.values(rows))
        return found

    def _partition_stats(self, like: Row, rows: list[Row], spec_id: int) -> Stats:
        """Return stats that tell a file's partition, a row's: one value, or nothing but nulls."""
        found: Stats = {}
        for part in self.layout.specs[spec_id]:
            value = part.value(like)
            bound = None if is_nan(value) else value
            told = found[part.stats_id] = {
                "lower_bound": bound,
                "upper_bound": bound,
                "value_count": len(rows),
                "null_value_count": len(rows) if value is None else 0,
            }
            if isinstance(value, float):
                told["nan_value_count"] = len(rows) if is_nan(value) else 0
            if bound is not None and self.rng.random() < 0.5:
                told["tight_bounds"] = True
        return found

    def _stats(self, column: Told, values: list[Any]) -> dict[str, Any]:
        present = [each for each in values if each is not None and not is_nan(each)]
        found: dict[str, Any] = {"value_count": len(values)}
        if self.rng.random() < 0.9:
            found["null_value_count"] = sum(each is None for each in values)
        if column.type.name in ("double", "float") and self.rng.random() < 0.8:
            found["nan_value_count"] = sum(map(is_nan, values))
        if present and column.type != WHOLE and self.rng.random() < 0.9:
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
        return vague(found, column.type, self.rng) if self.strange else found


def is_key(each: Told) -> bool:
    return each.type.name not in ("float", "double")
