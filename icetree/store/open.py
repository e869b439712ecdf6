"""Which store a location belongs to, by its scheme."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import Lock
from typing import Final

import pyarrow as pa

from icetree.errors import InvalidInput, Unsupported
from icetree.spec.location import LOCAL, S3, scheme_of
from icetree.store.base import FileInfo, Store, write_side_by_side
from icetree.store.local import LocalStore
from icetree.store.memory import MemoryStore
from icetree.store.object import ObjectStore
from icetree.store.places import MEMORY, refuse_credentials
from icetree.store.s3_options import options_of

#: One store by each name, so that all who say `memory://name/…` mean the same files.
_in_memory: dict[str, MemoryStore] = {}
_in_memory_lock: Final = Lock()


def store_for(location: str, properties: Mapping[str, str] | None = None) -> Store:
    """Return a store for a warehouse, or for any location in it.

    Properties are PyIceberg's `s3.*`; what they leave open comes from AWS_* environment variables.
    """
    scheme = scheme_of(location)
    if scheme in LOCAL:
        return LocalStore()
    if scheme in S3:
        refuse_credentials(location)
        return ObjectStore(options_of(properties or {}))
    if scheme in MEMORY:
        name = location.split("/")[2] if location.startswith("memory://") else ""
        if not name:
            raise InvalidInput(f"{location!r} names no store in memory: give memory://name/path")
        with _in_memory_lock:
            return _in_memory.setdefault(name, MemoryStore())
    raise Unsupported(
        f"{location!r}: no store for {scheme}:// locations; there are file://, s3:// and memory://"
    )


class EveryStore:
    """A store of every location that `store_for` knows a store for, each made at first use.

    For tables whose files lie in several places, and catalogs whose tables do.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = dict(properties or {})
        self._stores: dict[str, Store] = {}

    def read(self, location: str) -> bytes:
        return self._of(location).read(location)

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        return self._of(location).read_range(location, offset=offset, length=length)

    def open(self, location: str) -> pa.NativeFile:
        return self._of(location).open(location)

    def size(self, location: str) -> int:
        return self._of(location).size(location)

    def exists(self, location: str) -> bool:
        return self._of(location).exists(location)

    def write_new(self, location: str, content: bytes) -> None:
        self._of(location).write_new(location, content)

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        files = [*files]
        stores = {id(store): store for store in (self._of(location) for location, _ in files)}
        if len(stores) == 1:
            stores.popitem()[1].write_many(files)
        else:
            write_side_by_side(self.write_new, files, at_once=8)

    def delete(self, locations: Iterable[str]) -> None:
        together: dict[int, tuple[Store, list[str]]] = {}
        for location in locations:
            store = self._of(location)
            together.setdefault(id(store), (store, []))[1].append(location)
        for store, each in together.values():
            store.delete(each)

    def list(self, folder: str) -> Iterator[FileInfo]:
        return self._of(folder).list(folder)

    def _of(self, location: str) -> Store:
        scheme = scheme_of(location)
        key = location.split("/")[2] if location.startswith("memory://") else ""
        kind = "file" if scheme in LOCAL else "s3" if scheme in S3 else f"{scheme}:{key}"
        if kind not in self._stores:
            self._stores[kind] = store_for(location, self._properties)
        return self._stores[kind]
