"""A store around a store: every request passes through one place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from icetree.store.base import FileInfo, Store, side_by_side
from icetree.store.ranged import ranged_file

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request to a store; a delete of many files is one, named after the first."""

    operation: str
    location: str
    #: What is sent, none for a request that only asks.
    content: bytes = b""


class WrappedStore:
    """Passes every request on as it is; override `_pass` to do something about it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def _pass(self, request: Request, effect: Callable[[], T]) -> T:  # noqa: ARG002  # for others
        """Carry out a request; `effect` is what the store inside does."""
        return effect()

    def read(self, location: str) -> bytes:
        request = Request(operation="read", location=location)
        return self._pass(request, lambda: self.store.read(location))

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        request = Request(operation="read_range", location=location)
        return self._pass(
            request, lambda: self.store.read_range(location, offset=offset, length=length)
        )

    def open(self, location: str) -> pa.NativeFile:
        return ranged_file(
            lambda offset, length: self.read_range(location, offset=offset, length=length),
            size_bytes=self.size(location),
        )

    def size(self, location: str) -> int:
        request = Request(operation="size", location=location)
        return self._pass(request, lambda: self.store.size(location))

    def exists(self, location: str) -> bool:
        request = Request(operation="exists", location=location)
        return self._pass(request, lambda: self.store.exists(location))

    def write_new(self, location: str, content: bytes) -> None:
        request = Request(operation="write_new", location=location, content=content)
        self._pass(request, lambda: self.store.write_new(location, content))

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        side_by_side(self.write_new, files, at_once=16)

    def delete(self, locations: Iterable[str]) -> None:
        gone = [*locations]
        if gone:
            request = Request(operation="delete", location=gone[0])
            self._pass(request, lambda: self.store.delete(gone))

    def list(self, folder: str) -> Iterator[FileInfo]:
        request = Request(operation="list", location=folder)
        yield from self._pass(request, lambda: [*self.store.list(folder)])
