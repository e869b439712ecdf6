"""Tables and rows at random: columns of many types, ids of any size, partitions of every kind."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from tests.foreign import transforms
from tests.foreign.columns import Field, List, Map, Row, Struct, dig, draw, plain, put
from tests.foreign.layout import (
    LARGEST_COLUMN,
    LAST_WITH_STATS,
    Layout,
    Partition,
    Schema,
    Told,
)
from tests.foreign.transforms import UNKNOWN

#: The columns that every table has.
_TYPES = {
    "id": "long",
    "name": "string",
    "n": "int",
    "at": "timestamp",
    "price": "double",
    "flag": "boolean",
    "note": "string",
}
#: Those that some have.
_MORE = {
    "tz": "timestamptz",
    "d": "date",
    "t": "time",
    "dec": "decimal(9, 2)",
    "big": "decimal(38, 2)",
    "u": "uuid",
    "fix": "fixed[3]",
    "bin": "binary",
    "f": "float",
}
_NESTED = ("s", "l", "m")
#: What changes within a partition.
_CHANGE = ("id", "note")


def draw_layout(rng: Random) -> Layout:
    """Draw columns with ids small and large, and up to four specs over those with small ids."""
    ids = rng.sample(range(1, 200), 60)
    more = {name: _MORE[name] for name in rng.sample(sorted(_MORE), rng.choice((0, 2, 4)))}
    columns = [
        Field(id=ids.pop(), key=name, name=name, type=plain(type), required=name == "id")
        for name, type in (_TYPES | more).items()
    ]
    columns += [_nested(name, ids) for name in _NESTED if rng.random() < 0.4]
    columns = [_far(each, rng) if each.key in _FAR else each for each in columns]
    if len({each.id for each in columns}) < len(columns):
        columns = [replace(each, id=ids.pop()) if each.key in _FAR else each for each in columns]
    rng.shuffle(columns)
    schema = Schema(0, tuple(columns))
    parts = _partitions(schema, ids, rng)
    specs: dict[int, tuple[Partition, ...]] = {0: ()}
    for number in range(1, rng.randint(1, 4)):
        specs[number] = tuple(
            _of_other_columns(rng.sample(parts, rng.randint(1, min(3, len(parts)))))
        )
    if len({tuple(each.expr_id for each in spec) for spec in specs.values()}) < len(specs):
        specs = {0: (), 1: (parts[0],)}
    # Nobody else writes by a transform that only this writer knows.
    usual = [id for id, spec in specs.items() if not any(p.transform == UNKNOWN for p in spec)]
    return Layout(
        schemas=(schema,), specs=specs, default_spec_id=rng.choice(usual), free=tuple(ids)
    )


_FAR = ("price", "flag", "note", "n", "at")


def _far(field: Field, rng: Random) -> Field:
    """Give a column an id at the end of those with stats, or after it, now and then."""
    if rng.random() >= 0.15:
        return field
    beyond = rng.randrange(LAST_WITH_STATS, LARGEST_COLUMN)
    return replace(field, id=rng.choice((LAST_WITH_STATS, LAST_WITH_STATS + 1, beyond)))


def _nested(name: str, ids: list[int]) -> Field:
    def field(key: str, type: Any, *, required: bool = False) -> Field:
        type = plain(type) if isinstance(type, str) else type
        return Field(id=ids.pop(), key=key, name=key, type=type, required=required)

    match name:
        case "s":
            inner = Struct((field("x", "date"), field("k", "int")))
            members = (field("a", "long"), field("b", "string"), field("c", inner))
            return field(name, Struct(members))
        case "l":
            return field(name, List(field("element", Struct((field("p", "int"),)))))
        case "m":
            value = field("value", "decimal(9, 2)")
            return field(name, Map(field("key", "string", required=True), value))
    raise AssertionError(name)


def _partitions(schema: Schema, ids: list[int], rng: Random) -> list[Partition]:
    """Return a partition by name, and some by what chance has."""
    sources = [each for each in schema.told() if each.path not in _CHANGE and each.has_stats]
    every = [
        (source, transform)
        for source in sources
        for transform in transforms.TAKES
        if transforms.takes(transform, source.type)
    ]
    name = next(each for each in sources if each.path == "name")
    chosen = [(name, "identity"), *(pair for pair in rng.sample(every, 4) if pair[0] != name)]
    parts = [
        Partition(
            expr_id=ids.pop(),
            partition_field_id=1000 + at,
            source_id=source.id,
            source=source.path,
            transform=transform,
            name=source.path
            if transform == "identity"
            else f"{source.path.replace('.', '_')}_{transform.partition('[')[0]}",
        )
        for at, (source, transform) in enumerate(chosen)
    ]
    may_be = [each for each in sources if transforms.takes("bucket[3]", each.type)]
    if len(may_be) > 1 and rng.random() < 0.5:
        parts.append(_of_several(may_be, ids.pop(), rng))
    return parts


def _of_several(may_be: list[Told], expr_id: int, rng: Random) -> Partition:
    """Return a bucket over two or three columns: often of those that filters ask for."""
    common = [each for each in may_be if each.path in ("name", "n")]
    if len(common) < 2 or rng.random() < 0.3:
        common = may_be
    first, *more = rng.sample(common, rng.randint(2, min(3, len(common))))
    return Partition(
        expr_id=expr_id,
        partition_field_id=1999,
        source_id=first.id,
        source=first.path,
        transform="bucket[3]",
        name="of_several",
        others=tuple((each.id, each.path) for each in more),
    )


def _of_other_columns(parts: list[Partition]) -> list[Partition]:
    """Return parts of a spec, one of each column."""
    found: dict[str, Partition] = {}
    for each in parts:
        if found.keys().isdisjoint(each.sources):
            found |= dict.fromkeys(each.sources, each)
    return list(dict.fromkeys(found.values()))


def plain_layout(**ids: int) -> Layout:
    """Return every column, numbered from 1 unless told, and a second spec by name."""
    columns = tuple(
        Field(id=ids.get(name, at), key=name, name=name, type=plain(type), required=name == "id")
        for at, (name, type) in enumerate(_TYPES.items(), start=1)
    )
    by_name = Partition(
        expr_id=100,
        partition_field_id=1000,
        source_id=columns[1].id,
        source="name",
        transform="identity",
        name="name",
    )
    return Layout(schemas=(Schema(0, columns),), specs={0: (), 1: (by_name,)}, default_spec_id=0)


# --- rows ------------------------------------------------------------------------------------


def draw_rows(rng: Random, first_id: int, count: int, layout: Layout, spec_id: int) -> list[Row]:
    """Draw rows of one partition of a spec, with ids that no other row has."""
    rows = []
    for at in range(count):
        row = {each.key: draw(each.type, rng) for each in layout.columns}
        row |= {"id": first_id + at, "note": rng.choice(("x" * 20, "y", None))}
        if rng.random() >= 0.3:
            row["n"] = at * 7 % 31
        rows.append(row)
    quiet = rng.choice(("flag", "note", "price", None))
    for row in rows:
        if quiet == "flag":
            row["flag"] = False
        elif quiet in row:
            row[quiet] = None
    chosen = rows[0]
    for part in layout.specs[spec_id]:
        for row in rows[1:]:
            for path, value in _beside(chosen, part, layout, rng).items():
                put(row, path, value)
    return rows


def _beside(chosen: Row, part: Partition, layout: Layout, rng: Random) -> dict[str, Any]:
    """Return values, others than those of a row if need not be, that are in the same partition."""
    values = {path: dig(chosen, path) for path in part.sources}
    if None in values.values() and part.transform != "void":
        return values
    for _ in range(3):
        other = {path: draw(layout.told(path).type, rng) for path in part.sources}
        found = transforms.apply(part.transform, *other.values())
        # -0.0 is another partition than 0.0, and NaN is one.
        if None not in other.values() and repr(found) == repr(part.value(chosen)):
            return other
    return values
