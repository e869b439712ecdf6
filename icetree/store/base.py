"""What every store does. Files are immutable: written once, read often, deleted at last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa
from typing_extensions import TypeVarTuple, Unpack

from icetree.errors import InvalidInput
from icetree.surroundings import new_pool

Given = TypeVarTuple("Given")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file that a listing found; its location starts as the listed folder was spelt."""

    location: str
    size_bytes: int
    modified_at_ms: int


class Store(Protocol):
    """Files by absolute location. Safe to share between threads.

    Every method raises NotFound or AlreadyExists naming the location, InvalidInput where the
    location or the credentials cannot work as they stand, and Unavailable where trying later may.
    """

    def read(self, location: str) -> bytes:
        """Return the whole file."""
        ...

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        """Return the bytes from an offset on, fewer than asked for where the file ends before.

        For a length of 0 the file is not looked at.
        """
        ...

    def open(self, location: str) -> pa.NativeFile:
        """Return the file for random access: only the ranges that a reader asks for are read."""
        ...

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        ...

    def exists(self, location: str) -> bool:
        """Tell whether the file is there; a folder is no file."""
        ...

    def write_new(self, location: str, content: bytes) -> None:
        """Write a file that must not exist yet; when this returns, it is durable.

        Under its name there is at any moment the whole file or nothing. After Unavailable either
        may be the case.
        """
        ...

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Do `write_new` for each (location, content), side by side.

        When one fails the others are still finished, and then the first failure is raised.
        """
        ...

    def delete(self, locations: Iterable[str]) -> None:
        """Delete the files, in no particular order; one that is not there is fine.

        When one fails the others are still tried, and then the first failure is raised.
        """
        ...

    def list(self, folder: str) -> Iterator[FileInfo]:
        """Yield every file below a folder, at any depth, in no particular order.

        A folder that does not exist has no files. What is written or deleted meanwhile may or may
        not be seen.
        """
        ...


class NewFile(Protocol):
    """A file that is being written; before `end` nothing has its name, and afterwards all of it does."""

    @property
    def sink(self) -> pa.NativeFile:
        """What its bytes are written to."""
        ...

    def written(self) -> pa.Buffer:
        """Return all that was written; nothing more is, from now on."""
        ...

    def end(self) -> None:
        """Give the file its name, as `Store.write_new` does."""
        ...

    def abandon(self) -> None:
        """Leave nothing of a file that was not ended."""
        ...


@runtime_checkable
class StreamingStore(Protocol):
    """A store that takes a file as it is made."""

    def begin_new(self, location: str) -> NewFile:
        """Begin a file that must not exist yet."""
        ...


class HeldFile:
    """A new file of a store that takes only whole ones: it is in memory until it ends."""

    def __init__(self, store: Store, location: str) -> None:
        self._store = store
        self._location = location
        self._sink = pa.BufferOutputStream()
        self._content: pa.Buffer | None = None

    @property
    def sink(self) -> pa.NativeFile:
        return self._sink

    def written(self) -> pa.Buffer:
        if self._content is None:
            self._content = self._sink.getvalue()
        return self._content

    def end(self) -> None:
        content = self.written().to_pybytes()
        self._content = None
        self._store.write_new(self._location, content)

    def abandon(self) -> None:
        self._content = None


def begin_new(store: Store, location: str) -> NewFile:
    """Begin a file that must not exist yet, where the store can as one that takes no memory."""
    if isinstance(store, StreamingStore):
        return store.begin_new(location)
    return HeldFile(store, location)


class NotDeleted(InvalidInput):
    """Files that a store refuses to delete, each for the same reason as far as it was asked."""

    def __init__(self, message: str, locations: Iterable[str]) -> None:
        super().__init__(message)
        self.locations = frozenset(locations)


def side_by_side(
    call: Callable[[Unpack[Given]], None], items: Iterable[tuple[Unpack[Given]]], *, at_once: int
) -> None:
    """Call for each item with threads, the caller's own among them: a single item starts none.

    When one fails the others are still finished, and then the first failure is raised.
    """
    items = list(items)
    if len(items) < 2:
        for item in items:
            call(*item)
        return
    with new_pool(min(len(items), at_once) - 1, "icetree-store") as pool:
        pending = [pool.submit(call, *item) for item in items[1:]]
        call(*items[0])
    for each in pending:
        each.result()


def in_turn(call: Callable[[Unpack[Given]], object], items: Iterable[tuple[Unpack[Given]]]) -> None:
    """Call for each item, one after the other; fails as `side_by_side` does."""
    failed: Exception | None = None
    for item in items:
        try:
            call(*item)
        except Exception as error:  # noqa: PERF203  # each is tried, whatever became of the last
            failed = failed or error
    if failed:
        raise failed


def check_range(location: str, offset: int, length: int) -> None:
    """Refuse a range that no file has."""
    if offset < 0 or length < 0:
        raise InvalidInput(f"{location}: there is no range at offset {offset} of length {length}")
