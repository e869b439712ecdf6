"""A table's columns and partitions: schemas and specs, which may have changed.

Nothing here, and in the other modules that make bytes, is icetree's: what it reads of these
tables it cannot have written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.foreign import transforms
from tests.foreign.columns import (
    WHOLE,
    Field,
    Json,
    Plain,
    Row,
    Struct,
    below,
    dig,
    kept,
    named,
    plain,
    within,
)

#: The last column whose stats have ids within 32 bits.
LAST_WITH_STATS = 10_737_368
ROW_ID, LAST_UPDATED = 2147483540, 2147483539
DELETED_PATH, DELETED_ROW = 2147483546, 2147483545
LARGEST_COLUMN = 2147483447


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What can have stats: a column of single values, one within structs, or an expression."""

    id: int
    #: Keys that lead to a column; the name of an expression.
    path: str
    type: Plain
    #: Of a row; where it is within a list or a map, all that the row has of it, in a list.
    value: Callable[[Row], Any]
    many: bool = False

    def values(self, rows: Iterable[Row]) -> list[Any]:
        """Return what rows have of it."""
        found = [self.value(row) for row in rows]
        return [value for each in found for value in each] if self.many else found

    @property
    def has_stats(self) -> bool:
        return self.id <= LAST_WITH_STATS or self.id in (ROW_ID, LAST_UPDATED)


#: What rows say themselves of who they are.
LINEAGE = tuple(
    Told(id=id, path=name, type=plain("long"), value=lambda row, name=name: row.get(name))  # type: ignore[misc]
    for id, name in ((ROW_ID, "_row_id"), (LAST_UPDATED, "_last_updated_sequence_number"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One field of a partition spec."""

    expr_id: int
    partition_field_id: int
    source_id: int
    #: Keys that lead to its column.
    source: str
    transform: str
    name: str
    #: More columns, of a transform of several: the id of each, and the keys that lead to it.
    others: tuple[tuple[int, str], ...] = ()

    @property
    def source_ids(self) -> tuple[int, ...]:
        return (self.source_id, *(id for id, _ in self.others))

    @property
    def sources(self) -> tuple[str, ...]:
        return (self.source, *(path for _, path in self.others))

    def value(self, row: Row) -> Any:
        return transforms.apply(self.transform, *(dig(row, path) for path in self.sources))

    @property
    def stats_id(self) -> int:
        """What its stats stand under: the column itself for identity."""
        return self.source_id if self.transform == "identity" else self.expr_id


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns that a table has at a time."""

    id: int
    columns: tuple[Field, ...]

    def told(self) -> Iterator[Told]:
        """Yield what of it can have stats."""
        for each in self.columns:
            yield from _told(each, each.key)

    def counted(self) -> Iterator[Told]:
        """Yield what stats may tell of, and no filter asks for: lists and maps, and all in them."""
        for each in self.columns:
            yield from _counted(each, each.key)

    def fields(self) -> Iterator[Field]:
        for each in self.columns:
            yield from each.walk()

    def spelled(self, where: str) -> str | None:
        """Return a filter, whose columns stand in braces, by their names; None if one is not there."""
        names = {path: self._name(path) for path in re.findall(r"\{([\w.]+)\}", where)}
        if not all(names.values()):
            return None
        return re.sub(r"\{([\w.]+)\}", lambda found: str(names[found[1]]), where)

    def _name(self, path: str) -> str | None:
        names, among = [], self.columns
        for key in path.split("."):
            field = next((each for each in among if each.key == key), None)
            if field is None:
                return None
            names.append(field.name)
            among = field.parts()
        return ".".join(names)

    def name(self, path: str) -> str:
        found = self._name(path)
        assert found is not None, f"no column {path}"
        return found

    def named(self, row: Row) -> Row:
        """Return a row of the model by the names of today."""
        return {each.name: named(each.type, row.get(each.key)) for each in self.columns}

    def json(self) -> Json:
        fields = [each.json() for each in self.columns]
        return {"type": "struct", "schema-id": self.id, "fields": fields}


def _told(field: Field, path: str) -> Iterator[Told]:
    if isinstance(field.type, Plain):
        yield Told(id=field.id, path=path, type=field.type, value=lambda row: dig(row, path))
    elif isinstance(field.type, Struct):
        for member in field.type.members:
            yield from _told(member, f"{path}.{member.key}")


def _counted(field: Field, path: str) -> Iterator[Told]:
    if isinstance(field.type, Plain):
        return
    yield Told(id=field.id, path=path, type=WHOLE, value=lambda row: dig(row, path))
    if isinstance(field.type, Struct):
        for member in field.type.members:
            yield from _counted(member, f"{path}.{member.key}")
        return
    for at, steps in below(field):
        type = at.type if isinstance(at.type, Plain) else WHOLE
        yield Told(
            id=at.id,
            path=f"{path}.{'.'.join(part.key for part in steps)}",
            type=type,
            value=lambda row, steps=steps: list(within(field, dig(row, path), steps)),  # type: ignore[misc]
            many=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """What every file of a table must know."""

    #: The last one is that of today.
    schemas: tuple[Schema, ...]
    #: By spec id; 0 is unpartitioned.
    specs: dict[int, tuple[Partition, ...]]
    default_spec_id: int
    #: Ids that no field has had.
    free: tuple[int, ...] = ()

    @property
    def schema(self) -> Schema:
        return self.schemas[-1]

    @property
    def columns(self) -> tuple[Field, ...]:
        return self.schema.columns

    def column(self, name: str) -> Field:
        return next(each for each in self.columns if each.key == name)

    @property
    def partitions(self) -> dict[int, Partition]:
        return {each.expr_id: each for spec in self.specs.values() for each in spec}

    def told(self, path: str) -> Told:
        return next(each for each in self.schema.told() if each.path == path)

    @property
    def stats_fields(self) -> tuple[Told, ...]:
        """Every field of any schema that can have stats, by id once, as it is now."""
        found = {
            each.id: each for schema in self.schemas for each in (*schema.told(), *schema.counted())
        }
        found |= {each.id: each for each in LINEAGE}
        for each in self.partitions.values():
            if each.stats_id == each.expr_id:
                type = transforms.result(each.transform, found[each.source_id].type)
                found[each.expr_id] = Told(
                    id=each.expr_id, path=each.name, type=type, value=each.value
                )
        return tuple(each for each in found.values() if each.has_stats)

    def is_unpartitioned(self, spec_id: int) -> bool:
        """Tell whether nothing sets files of a spec apart."""
        return all(each.transform == "void" for each in self.specs[spec_id])

    def tuple_of(self, spec_id: int, row: Row) -> tuple[Any, ...]:
        return tuple(each.value(row) for each in self.specs[spec_id])

    def kept(self, row: Row) -> Row:
        """Return what a row has left in a file that is written now."""
        own = {each.key: kept(each.type, row.get(each.key)) for each in self.columns}
        return own | {each.path: row[each.path] for each in LINEAGE if each.path in row}

    def filled(self, row: Row) -> Row:
        """Return a row with what later columns give to those of before."""
        found = {
            each.key: each.default
            for schema in self.schemas
            for each in schema.columns
            if each.default is not None
        }
        return found | row

    def pruned(self, paths: tuple[str, ...]) -> list[Field]:
        """Return columns with nothing in them but what is named."""
        return list(_pruned(self.columns, paths))

    def metadata_json(self) -> Json:
        """The parts of table metadata that say how rows are laid out."""
        ids = [each.id for schema in self.schemas for each in schema.fields()]
        return {
            "last-column-id": max(*ids, *self.partitions, 0),
            "schemas": [schema.json() for schema in self.schemas],
            "current-schema-id": self.schema.id,
            "expressions": [
                {
                    "expr-id": each.expr_id,
                    "expr": {
                        **_source(each),
                        "transform": each.transform,
                        "name": each.name,
                    },
                    "partition-field-id": each.partition_field_id,
                }
                for each in self.partitions.values()
            ],
            "partition-specs": [
                {"spec-id": id, "fields": [{"expr-id": each.expr_id} for each in spec]}
                for id, spec in self.specs.items()
            ],
            "default-spec-id": self.default_spec_id,
            "last-partition-id": max(
                (each.partition_field_id for each in self.partitions.values()), default=999
            ),
        }


def _source(part: Partition) -> Json:
    return {"source-ids": list(part.source_ids)} if part.others else {"source-id": part.source_id}


def _pruned(fields: tuple[Field, ...], paths: tuple[str, ...]) -> tuple[Field, ...]:
    found = []
    for each in fields:
        below = tuple(
            rest for key, _, rest in (path.partition(".") for path in paths) if key == each.key
        )
        if below:
            found.append(each.with_parts(_pruned(each.parts(), below)) if all(below) else each)
    return tuple(found)
