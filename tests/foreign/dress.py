"""Ways to write a Parquet file down that change nothing of what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from tests.foreign.columns import Json

_INT, _LONG, _STRING, _BINARY = pa.int32(), pa.int64(), pa.string(), pa.binary()


def aside(rng: Random, what: str) -> Random:
    """Return chance that takes none away: whatever is drawn from it, all else stays as it was."""
    _, state, _ = rng.getstate()
    return Random(f"{what} {state[0]} {state[-1]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dress:
    """How a manifest's columns are dressed; plain by default, for trees that are made by hand."""

    rng: Random | None = None
    #: Columns to leave out, by id, whatever they hold: an illegal file.
    without: frozenset[int] = frozenset()
    #: Columns of another type, by id: an illegal file.
    retyped: dict[int, pa.DataType] = field(default_factory=dict)
    key_values: Json = field(default_factory=dict)
    #: Whether a file's columns are told by their names alone.
    named: bool = False
    #: Whether what is strange, and legal, is drawn as well.
    strange: bool = False

    def aside(self, what: str) -> Random | None:
        """Return chance for one more thing; None where there is none."""
        return aside(self.rng, what) if self.rng is not None and self.strange else None

    def chance(self, probability: float) -> bool:
        return self.rng is not None and self.rng.random() < probability

    def type(self, type: pa.DataType) -> pa.DataType:
        """Return one of the Arrow types that are the same in Parquet."""
        if self.rng is None:
            return type
        choices = [type]
        if type == _STRING:
            choices += [pa.large_string(), pa.string_view(), pa.dictionary(_INT, _STRING)]
        elif type == _BINARY:
            choices += [pa.large_binary(), pa.binary_view(), pa.dictionary(_INT, _BINARY)]
        elif pa.types.is_list(type):
            choices += [pa.large_list(type.value_type), pa.list_view(type.value_type)]
        elif type == _LONG:
            choices += [type, pa.duration("us")]
        return self.rng.choice(choices)

    def nested(self, type: pa.DataType) -> pa.DataType:
        """Return an Arrow type that is the same in Parquet, as are all in it."""
        if pa.types.is_struct(type):
            return pa.struct([each.with_type(self.nested(each.type)) for each in type])
        if pa.types.is_list(type):
            item = type.value_field
            item = item.with_type(self.nested(item.type))
            return pa.large_list(item) if self.chance(0.3) else pa.list_(item)
        return type if type == _LONG or pa.types.is_map(type) else self.type(type)

    def shuffled(self, items: list[Any]) -> list[Any]:
        if self.rng is not None and self.rng.random() < 0.7:
            items = list(items)
            self.rng.shuffle(items)
        return items


PLAIN = Dress()


def encodings(schema: pa.Schema, rng: Random, page: str) -> dict[str, str]:
    """Return how each column has its values, by its path."""
    # Paths in lists and maps depend on what these call what is in them: those are plain.
    return {
        path: rng.choice(("PLAIN", *_encodings_of(type, page)))
        for field in schema
        for path, type in _paths(field.name, field.type)
    }


def _paths(path: str, type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(type):
        for each in type:
            yield from _paths(f"{path}.{each.name}", each.type)
    elif not pa.types.is_nested(type):
        yield path, type


def _encodings_of(type: pa.DataType, page: str) -> tuple[str, ...]:
    if pa.types.is_boolean(type):
        return ("RLE",) if page == "2.0" else ()
    if pa.types.is_floating(type) or pa.types.is_fixed_size_binary(type):
        return ("BYTE_STREAM_SPLIT",)
    if pa.types.is_string(type) or pa.types.is_binary(type):
        return ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
    if pa.types.is_integer(type) or pa.types.is_temporal(type):
        return ("DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
    return ()
