"""ORC files taken apart outside of this process: what a broken one does, it does there.

`orc_readers` has the processes, `orc_child` is their program.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence
from itertools import count
from typing import Final

import pyarrow as pa

from icetree.codec import limits
from icetree.errors import CorruptTable, Unavailable
from icetree.rows.formats import orc_readers
from icetree.rows.formats.orc_child import (
    BEAT,
    RANGE,
    Gone,
    Silent,
    receive_head,
    receive_into,
    send,
)
from icetree.rows.formats.orc_readers import READERS, Orphaned

#: How much of a processor a reader may use for what it is asked: so many seconds, and one more for so many
#: bytes that columns may take. No sound file comes near; one that has its reader go in a circle ends.
_CPU_S: float = 60
_BYTES_A_S: Final = 32 * 1024**2
#: A reader that is gone may have been ended by someone else: a file is broken if two die of it, the second made
#: after the first was gone, for who ends one may end all that there are. Nor is a third waited for where two stood
#: still.
_TRIES: Final = 2
#: How often a reader is replaced that ended because the process it came from did.
_ORPHANS: Final = 8
_NUMBERS: Final = count(1)


class Broken(ValueError):
    """The bytes are no ORC file that Arrow reads; the text says why."""


class OrcApart:
    """An ORC file that others read for us."""

    def __init__(self, source: pa.NativeFile, location: str) -> None:
        self._source = source
        self._size = source.size()
        self._location = location
        self._number = next(_NUMBERS)

    def schema(self) -> pa.Schema:
        """Return the columns of the file as Arrow has them."""
        return pa.ipc.read_schema(self._asked(None, None))

    def stripe(self, stripe: int, columns: Sequence[str] | None) -> pa.RecordBatch:
        """Return columns of a stripe, all of them for None."""
        answer = self._asked(stripe, columns)
        found = pa.ipc.open_stream(answer).read_next_batch()
        # Who read it may have been led astray before it came to an end.
        for column in found.columns:
            column.view(_as_bytes(column.type)).validate(full=True)
        return found

    def _asked(self, stripe: int | None, columns: Sequence[str] | None) -> pa.Buffer:
        asked = {
            "file": self._number,
            "size": self._size,
            "most": limits.ROW_GROUP.bytes,
            "seconds": _most_s(),
            "stripe": stripe,
            "columns": columns,
        }
        died = silent = 0
        for _ in range(_ORPHANS):
            try:
                with READERS.reader(fresh=died > 0) as link:
                    send(link, b"R", json.dumps(asked).encode())
                    return self._answered(link, stripe)
            except Orphaned:
                continue
            except Silent:
                silent += 1
            except Gone:
                died += 1
            if died == _TRIES:
                raise CorruptTable(
                    self._location,
                    "Arrow's ORC reader dies of it: it is damaged, or takes more to read than the limit of "
                    f"{limits.ROW_GROUP.bytes:,} bytes, {limits.ROW_GROUP.name} in the environment",
                ) from None
            if silent == _TRIES:
                break
        raise Unavailable(
            f"{self._location} could not be read: the processes that read ORC files are ended or stopped "
            f"from outside, or say nothing for {orc_readers.PATIENCE_S:g} s; read again when the machine is less busy"
        )

    def _answered(self, link: socket.socket, stripe: int | None) -> pa.Buffer:
        while True:
            kind, length = receive_head(link)
            what = "its schema" if stripe is None else f"stripe {stripe}"
            limits.ROW_GROUP.require(length, file=self._location, what=what)
            content = pa.allocate_buffer(length)
            receive_into(link, memoryview(content))
            if kind == BEAT:
                continue
            if kind == b"N":
                offset, size = RANGE.unpack(content)
                if offset + size > self._size:
                    raise Broken("it asks for bytes outside of it")
                self._source.seek(offset)
                send(link, b"B", self._source.read(size))
            elif kind == b"E":
                why, text = json.loads(content.to_pybytes())
                if why == "memory":
                    raise limits.ROW_GROUP.exceeded(self._location, f"{what} takes more to read")
                if why == "time":
                    raise CorruptTable(
                        self._location,
                        f"{what} takes more than {_most_s():g} s of a processor to read, which grow with "
                        f"{limits.ROW_GROUP.name} in the environment: it is damaged",
                    )
                raise Broken(text)
            else:
                return content


def _most_s() -> float:
    return _CPU_S + limits.ROW_GROUP.bytes / _BYTES_A_S


def _as_bytes(type: pa.DataType) -> pa.DataType:
    """Return a type whose texts are bytes: whether they are texts is for the reader of rows to say."""
    is_ = pa.types
    if is_.is_string(type):
        return pa.binary()
    if is_.is_struct(type):
        return pa.struct([_field_as_bytes(each) for each in type])
    if is_.is_map(type):
        return pa.map_(_field_as_bytes(type.key_field), _field_as_bytes(type.item_field))
    if is_.is_list(type):
        return pa.list_(_field_as_bytes(type.value_field))
    return type


def _field_as_bytes(field: pa.Field) -> pa.Field:
    return field.with_type(_as_bytes(field.type))
