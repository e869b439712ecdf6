"""Equality deletes that lie: each says whether it found what to break."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tests.foreign.columns import Field, Json, List, Map, Plain, Struct
from tests.foreign.forgery import Forgery, status_of
from tests.foreign.layout import Partition
from tests.foreign.model import EQUALITY
from tests.foreign.tree import DELETE_LEAF, DELETED

_Change: TypeAlias = Callable[[Json], None]
_May: TypeAlias = Callable[[Json], bool]


def unknown_equality_id(f: Forgery) -> bool:
    return _delete_by(f, [f.writer.layout.free[0]])


def equality_id_of_an_expression(f: Forgery) -> bool:
    return _delete_by(f, list(f.writer.layout.partitions))


def equality_id_of_a_metadata_column(f: Forgery) -> bool:
    return _delete_by(f, [2147483646])


def equality_id_of_a_float(f: Forgery) -> bool:
    return _delete_by(f, _ids(f, lambda each: _is_plain(each, "float", "double")))


def equality_id_of_a_list(f: Forgery) -> bool:
    return _delete_by(f, _ids(f, lambda each: isinstance(each.type, List)))


def equality_id_of_an_element(f: Forgery) -> bool:
    inside = [
        p.id for each in _fields(f) if isinstance(each.type, List | Map) for p in each.parts()
    ]
    return _delete_by(f, inside)


def equality_id_of_a_map(f: Forgery) -> bool:
    return _delete_by(f, _ids(f, lambda each: isinstance(each.type, Map)))


def equality_id_of_a_struct(f: Forgery) -> bool:
    return _delete_by(f, _ids(f, lambda each: isinstance(each.type, Struct)))


def equality_id_that_its_file_lacks(f: Forgery) -> bool:
    id = f.writer.layout.column("id").id

    def lacks(row: Json) -> bool:
        return id not in row["equality_ids"]

    return _break(f, lambda row: _also(row, id), lacks)


def equality_delete_of_two_partitions(f: Forgery) -> bool:
    """Bounds that differ, of a partition by what has many values."""

    ends = {"int": (1, 2), "long": (1, 2), "string": ("a", "b")}

    def spread(row: Json) -> None:
        part = _parts(f, row)[0]
        lower, upper = ends[_type(f, part)]
        told = {part.stats_id: {"lower_bound": lower, "upper_bound": upper}}
        row["content_stats"] = row["content_stats"] | told

    return _break(f, spread, lambda row: any(_type(f, e) in ends for e in _parts(f, row)[:1]))


def equality_delete_of_no_partition(f: Forgery) -> bool:
    def forget(row: Json) -> None:
        gone = {part.stats_id for part in _parts(f, row)}
        told = row["content_stats"]
        row["content_stats"] = {id: each for id, each in told.items() if id not in gone}

    return _break(f, forget, lambda row: bool(_parts(f, row)))


def equality_delete_with_stats_of_others(f: Forgery) -> bool:
    """Stats of a column that it neither deletes by nor is partitioned by would hide it."""
    id = f.writer.layout.column("id").id

    def tell(row: Json) -> None:
        told = {"lower_bound": -9, "upper_bound": -8, "value_count": 1, "null_value_count": 0}
        row["content_stats"] = (row["content_stats"] or {}) | {id: told}

    return _break(f, tell, lambda row: id not in row["equality_ids"])


# --- what is there ---------------------------------------------------------------------------


def _fields(f: Forgery) -> list[Field]:
    return [each for schema in f.writer.layout.schemas for each in schema.fields()]


def _ids(f: Forgery, holds: Callable[[Field], bool]) -> list[int]:
    return [each.id for each in _fields(f) if holds(each)]


def _is_plain(field: Field, *names: str) -> bool:
    return isinstance(field.type, Plain) and field.type.name in names


def _parts(f: Forgery, row: Json) -> tuple[Partition, ...]:
    found = f.writer.layout.specs[row["partition_spec_id"]]
    return () if f.writer.layout.is_unpartitioned(row["partition_spec_id"]) else found


def _type(f: Forgery, part: Partition) -> str:
    return next(e for e in f.writer.layout.stats_fields if e.id == part.stats_id).type.name


def _delete_by(f: Forgery, ids: list[int]) -> bool:
    """Let a delete compare one more field, out of these."""
    if not ids:
        return False
    id = f.rng.choice(ids)
    return _break(f, lambda row: _also(row, id), lambda _: True)


def _also(row: Json, id: int) -> None:
    row["equality_ids"] = [*row["equality_ids"], id]


def _break(f: Forgery, change: _Change, holds: _May) -> bool:
    """Change a live equality delete, in the root or in a leaf: where chance looks first."""

    def may(row: Json) -> bool:
        is_delete = row["content_type"] == EQUALITY and status_of(row) != DELETED
        return is_delete and holds(row)

    ways = [_break_in_root, _break_in_leaf]
    f.rng.shuffle(ways)
    return any(way(f, change, may) for way in ways)


def _break_in_root(f: Forgery, change: _Change, may: _May) -> bool:
    row = f.where(may)
    if row is not None:
        change(row)
    return row is not None


def _break_in_leaf(f: Forgery, change: _Change, may: _May) -> bool:
    found = f.leaf(DELETE_LEAF)
    if found is None:
        return False
    leaf, entries = found[0], f.entries(found[0])
    live = [at for at, (file, _) in enumerate(leaf.entries) if file in leaf.live()]
    chosen = next((entries[at] for at in live if may(entries[at])), None)
    if chosen is None:
        return False
    change(chosen)
    f.rewrite(*found, entries)
    return True
