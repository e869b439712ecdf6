"""Avro records as Arrow columns, many blocks side by side: no record ever exists as a Python object.

Where a record begins stands only in the records before, but blocks know nothing of each other. So each
block is a lane, and a step reads the same field of one record in all lanes at once. A step notes where
values are; what they are is read afterwards, all values of a column together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from icetree.codec.avro.avro import Json
from icetree.codec.avro.columns import ArrowColumns, decimals, is_null
from icetree.codec.cuts import cut, cut_by

Places: TypeAlias = npt.NDArray[np.int64]

_VARINT_BYTES: Final = 10
#: Items that take no bytes are stepped over one by one, and a few bytes can tell of any number.
_MOST_EMPTY: Final = 100_000
#: Bytes past the end that may be looked at before anyone notices.
_ROOM: Final = 16
_WIDTHS: Final = {"boolean": 1, "float": 4, "double": 8}


class Bytes:
    """The blocks' bytes, one after the other, and where the number that is at a place ends."""

    def __init__(self, blocks: Sequence[bytes]) -> None:
        self.size = sum(map(len, blocks))
        self.data = np.frombuffer(b"".join([*blocks, bytes(_ROOM)]), np.uint8)
        at = np.arange(len(self.data), dtype=np.int32 if self.size < 2**31 - _ROOM else np.int64)
        at[self.data >= 0x80] = at[-1]
        self.ends = np.minimum.accumulate(at[::-1])[::-1]

    def after(self, at: Places) -> Places:
        """Return where numbers end that begin at these places."""
        if len(at) and at.max() > self.size:
            raise ValueError("a record does not end inside its block")
        return self.ends[at].astype(np.int64) + 1

    def numbers(self, at: Places) -> Places:
        """Return the numbers that begin at these places."""
        widths = self.after(at) - at
        widest = int(widths.max(initial=0))
        if widest > _VARINT_BYTES:
            raise ValueError("a number does not end")
        found = np.zeros(len(at), np.uint64)
        for byte in range(widest):
            bits = self.data[np.minimum(at + byte, self.size)].astype(np.uint64) & np.uint64(0x7F)
            found |= np.where(widths > byte, bits << np.uint64(7 * byte), np.uint64(0))
        return (found >> np.uint64(1)).astype(np.int64) ^ -(found & np.uint64(1)).astype(np.int64)

    def spans(self, at: Places) -> tuple[Places, Places]:
        """Return where bytes begin that are told by their length, and how many they are."""
        lengths, starts = self.numbers(at), self.after(at)
        if len(at) and ((lengths < 0) | (lengths > self.size - starts)).any():
            raise ValueError("a text does not end inside its block")
        return starts, lengths

    def gathered(self, starts: Places, lengths: Places) -> npt.NDArray[np.uint8]:
        """Return the bytes of spans, one after the other."""
        ends = np.cumsum(lengths)
        shift = np.repeat(starts - (ends - lengths), lengths)
        found: npt.NDArray[np.uint8] = self.data[np.arange(len(shift)) + shift]
        return found


class Node(ABC):
    """A type: steps over values, and notes where those are that are wanted."""

    def __init__(self, bytes: Bytes, type: pa.DataType, wanted: bool) -> None:
        self.bytes = bytes
        self.type = type
        self.wanted = wanted
        self._owners: list[Places] = []

    @abstractmethod
    def step(self, at: Places, owners: Places) -> Places:
        """Return where values end that begin at these places; `owners` number what they are of."""

    @abstractmethod
    def column(self, size: int) -> pa.Array:
        """Return the values of so many owners; those without one are null."""


class _Leaf(Node):
    """A type without others in it."""

    def __init__(self, bytes: Bytes, type: pa.DataType, wanted: bool) -> None:
        super().__init__(bytes, type, wanted)
        self._at: list[Places] = []

    def step(self, at: Places, owners: Places) -> Places:
        if self.wanted:
            self._owners.append(owners)
            self._at.append(at)
        return self.past(at)

    def column(self, size: int) -> pa.Array:
        owners, at = _joined(self._owners), _joined(self._at)
        if len(owners) == size and (np.diff(owners) == 1).all():
            return self.values(at)
        places = np.full(size, -1, np.int64)
        places[owners] = np.arange(len(owners))
        return self.values(at).take(pa.array(places, mask=places < 0))

    @abstractmethod
    def past(self, at: Places) -> Places:
        """Return where values end."""

    @abstractmethod
    def values(self, at: Places) -> pa.Array:
        """Return the values at these places."""


def _joined(parts: list[Places]) -> Places:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


class _Number(_Leaf):
    def past(self, at: Places) -> Places:
        return self.bytes.after(at)

    def values(self, at: Places) -> pa.Array:
        stored = pa.int32() if self.type.bit_width == 32 else pa.int64()
        return pa.array(self.bytes.numbers(at)).cast(stored).view(self.type)


class _Enum(_Number):
    symbols: list[str]

    def values(self, at: Places) -> pa.Array:
        numbers = self.bytes.numbers(at)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(self.symbols):
            raise ValueError("an enum has no such symbol")
        return pa.array(self.symbols, pa.string()).take(pa.array(numbers))


class _Fixed(_Leaf):
    width: int

    def past(self, at: Places) -> Places:
        return at + self.width

    def values(self, at: Places) -> pa.Array:
        if len(at) and at.max() + self.width > self.bytes.size:
            raise ValueError("a record does not end inside its block")
        found = self.bytes.data[at[:, None] + np.arange(self.width)]
        if pa.types.is_boolean(self.type):
            return pa.array(found[:, 0] != 0)
        if pa.types.is_floating(self.type):
            dtype: Any = f"<f{self.width}"
            return pa.array(np.ascontiguousarray(found).view(dtype).reshape(-1), self.type)
        parts = cut(found.reshape(-1), self.width) if self.width else pa.array([b""] * len(at))
        return (
            decimals(self.type, parts) if pa.types.is_decimal(self.type) else parts.cast(self.type)
        )


class _Text(_Leaf):
    def past(self, at: Places) -> Places:
        starts, lengths = self.bytes.spans(at)
        return starts + lengths

    def values(self, at: Places) -> pa.Array:
        starts, lengths = self.bytes.spans(at)
        if lengths.sum() >= 2**31:
            raise ValueError("texts of more than 2 GB at once")
        found = cut_by(lengths, self.bytes.gathered(starts, lengths))
        return (
            decimals(self.type, found) if pa.types.is_decimal(self.type) else found.cast(self.type)
        )


class _Null(Node):
    def step(self, at: Places, owners: Places) -> Places:  # noqa: ARG002  # it takes no bytes
        return at

    def column(self, size: int) -> pa.Array:
        return pa.nulls(size)


class _Optional(Node):
    """A union of null and something."""

    #: The bytes that say which follows; None for null where that cannot be.
    something: int
    nothing: int | None
    inner: Node

    def step(self, at: Places, owners: Places) -> Places:
        if len(at) and at.max() >= self.bytes.size:
            raise ValueError("a record does not end inside its block")
        side = self.bytes.data[at]
        present = side == self.something
        if not (present if self.nothing is None else present | (side == self.nothing)).all():
            raise ValueError("a union has no such type")
        after = at + 1
        if present.all():
            return self.inner.step(after, owners)
        (chosen,) = np.nonzero(present)
        if len(chosen):
            after[chosen] = self.inner.step(after[chosen], owners[chosen])
        return after

    def column(self, size: int) -> pa.Array:
        return self.inner.column(size)


class _Record(Node):
    members: list[Node]

    def step(self, at: Places, owners: Places) -> Places:
        if self.wanted:
            self._owners.append(owners)
        for member in self.members:
            at = member.step(at, owners)
        return at

    def column(self, size: int) -> pa.Array:
        there = np.zeros(size, np.bool_)
        there[_joined(self._owners)] = True
        if not self.members:
            return pa.array([{} if each else None for each in there.tolist()], self.type)
        mask = None if there.all() else pa.array(~there)
        columns = [member.column(size) for member in self.members]
        return pa.StructArray.from_arrays(columns, fields=list(self.type), mask=mask)


class _Repeated(Node):
    """An array, or a map: items in runs, each told by its count, until one is of none."""

    items: list[Node]

    def __init__(self, bytes: Bytes, type: pa.DataType, wanted: bool) -> None:
        super().__init__(bytes, type, wanted)
        self._parents: list[Places] = []
        self._count = 0

    def step(self, at: Places, owners: Places) -> Places:
        if self.wanted:
            self._owners.append(owners)
        at = at.copy()
        left = np.zeros(len(at), np.int64)
        lanes: Places = np.arange(len(at))
        while len(lanes):
            ended = lanes[left[lanes] == 0]
            if len(ended):
                self._begin(at, left, ended)
                lanes = lanes[left[lanes] > 0]
            if len(lanes):
                after = self._item(at[lanes], owners[lanes])
                if after.max() > self.bytes.size:
                    raise ValueError("a list does not end inside its block")
                if (after == at[lanes]).any() and left[lanes].max() > _MOST_EMPTY:
                    raise ValueError(f"a list of over {_MOST_EMPTY:,} items that take no bytes")
                at[lanes] = after
                left[lanes] -= 1
        return at

    def _begin(self, at: Places, left: Places, ended: Places) -> None:
        """Read how many items come next, of lanes that have none left."""
        counts, after = self.bytes.numbers(at[ended]), self.bytes.after(at[ended])
        # Where a count is negative, the size of the run in bytes stands after it.
        sized = counts < 0
        if sized.any():
            after[sized] = self.bytes.after(after[sized])
        left[ended], at[ended] = np.abs(counts), after
        if (left[ended] < 0).any():
            raise ValueError("a list has a length that is none")

    def _item(self, at: Places, owners: Places) -> Places:
        if not self.wanted:
            for item in self.items:
                at = item.step(at, owners)
            return at
        numbers = np.arange(self._count, self._count + len(at))
        self._count += len(at)
        self._parents.append(owners)
        for item in self.items:
            at = item.step(at, numbers)
        return at

    def column(self, size: int) -> pa.Array:
        parents = _joined(self._parents)
        order = pa.array(np.argsort(parents, kind="stable"))
        columns = [item.column(self._count).take(order) for item in self.items]
        there = np.zeros(size, np.bool_)
        there[_joined(self._owners)] = True
        ends = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=size))])
        if ends[-1] >= 2**31:
            raise ValueError("more elements than lists of one batch can have")
        buffers = [pa.array(there).buffers()[1], pa.py_buffer(ends.astype(np.int32))]
        [child] = columns if len(columns) == 1 else [self._entries(columns)]
        return pa.Array.from_buffers(self.type, size, buffers, children=[child])

    def _entries(self, columns: list[pa.Array]) -> pa.Array:
        keys, values = columns
        if keys.null_count:
            raise ValueError("a key of a map is null")
        fields = [self.type.key_field, self.type.item_field]
        return pa.StructArray.from_arrays([keys, values], fields=fields)


class Lanes:
    """Reads blocks of one schema."""

    def __init__(
        self, columns: ArrowColumns, blocks: Sequence[bytes], wanted: Collection[str]
    ) -> None:
        self._columns = columns
        self._bytes = Bytes(blocks)
        self._lengths = [len(block) for block in blocks]
        self._fields = [
            (name, self._node(type, name in wanted)) for name, type in columns.fields.items()
        ]
        self._wanted = wanted

    def read(self, counts: Sequence[int]) -> dict[str, pa.Array]:
        """Return the wanted columns of blocks that have so many records each."""
        rows = np.array(counts, np.int64)
        ends: Places = np.cumsum(np.array(self._lengths, np.int64))
        first_rows = np.cumsum(rows) - rows
        # With those of many records first, lanes that go on are always the first ones.
        order = np.argsort(-rows, kind="stable")
        at: Places = (ends - np.array(self._lengths, np.int64))[order]
        owners = first_rows[order]
        left = rows[order]
        for number in range(int(left[0]) if len(left) else 0):
            going = int(np.searchsorted(-left, -number, side="left"))
            here: Places = at[:going].copy()
            for _, node in self._fields:
                here = node.step(here, owners[:going] + number)
            if (here > ends[order[:going]]).any():
                raise ValueError("a record does not end inside its block")
            at[:going] = here
        if (at != ends[order]).any():
            raise ValueError("a block goes on after its last record")
        total = int(rows.sum())
        return {name: node.column(total) for name, node in self._fields if name in self._wanted}

    def _node(self, schema: Json, wanted: bool) -> Node:
        if isinstance(schema, list):
            return self._optional(schema, wanted)
        found = self._columns.resolved(schema)
        type = self._columns.type(found)
        kind = found if isinstance(found, str) else found["type"]
        match kind:
            case "null":
                return _Null(self._bytes, type, wanted)
            case "int" | "long":
                return _Number(self._bytes, type, wanted)
            case "enum":
                enum = _Enum(self._bytes, type, wanted)
                enum.symbols = found["symbols"]
                return enum
            case "bytes" | "string":
                return _Text(self._bytes, type, wanted)
            case "record" | "error":
                record = _Record(self._bytes, type, wanted)
                record.members = [self._node(each["type"], wanted) for each in found["fields"]]
                return record
            case "array" | "map":
                return self._repeated(found, type, wanted)
        fixed = _Fixed(self._bytes, type, wanted)
        fixed.width = _WIDTHS[kind] if kind in _WIDTHS else found["size"]
        return fixed

    def _optional(self, schema: list[Json], wanted: bool) -> Node:
        made = _Optional(self._bytes, pa.null(), wanted)
        something = [at for at, each in enumerate(schema) if not is_null(each)]
        nothing = [at for at, each in enumerate(schema) if is_null(each)]
        # A side is told by its place, as a number of one byte.
        made.something = 2 * something[0] if something else 0
        made.nothing = 2 * nothing[0] if something and nothing else None
        made.inner = self._node(schema[something[0]] if something else "null", wanted)
        return made

    def _repeated(self, schema: Json, type: pa.DataType, wanted: bool) -> Node:
        made = _Repeated(self._bytes, type, wanted)
        if schema["type"] == "map":
            made.items = [self._node("string", wanted), self._node(schema["values"], wanted)]
        elif schema.get("logicalType") == "map":
            pair = self._columns.resolved(schema["items"])["fields"]
            made.items = [self._node(each["type"], wanted) for each in pair]
        else:
            made.items = [self._node(schema["items"], wanted)]
        return made
