"""Which store a location belongs to, by its scheme."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import pyarrow as pa

from icetree.errors import InvalidInput, Unsupported
from icetree.spec.location import AZURE, AZURE_SHORT, GCS, LOCAL, S3, scheme_of
from icetree.store import azure_options, gcs_options, s3_options
from icetree.store.base import FileInfo, NewFile, Store, begin_new, in_turn, side_by_side
from icetree.store.local import LocalStore
from icetree.store.memory import MemoryStore
from icetree.store.object import ObjectStore
from icetree.store.object_options import ObjectOptions
from icetree.store.places import MEMORY

#: Kinds of store, as messages and `io.stores` call them, and the schemes of each. Azure without an
#: account is a kind of its own: a file would have two names in a table that has both.
KINDS: Final[Mapping[str, frozenset[str]]] = {
    "file": LOCAL,
    "memory": MEMORY,
    "s3": S3,
    "gs": GCS,
    "abfss": AZURE,
    "az": AZURE_SHORT,
}
_OPTIONS: Final[Mapping[str, Callable[[Mapping[str, str]], ObjectOptions]]] = {
    "s3": s3_options.options_of,
    "gs": gcs_options.options_of,
    "abfss": azure_options.options_of,
    "az": azure_options.options_of,
}
#: Every property of a connection that a store reads.
STORE_PROPERTIES: Final = (
    s3_options.S3_PROPERTIES | gcs_options.GCS_PROPERTIES | azure_options.AZURE_PROPERTIES
)

#: One store by each name, so that all who say `memory://name/…` mean the same files.
_in_memory: dict[str, MemoryStore] = {}
_in_memory_lock: Final = Lock()


def kind_of(location: str) -> str:
    """Return the kind of store that a location is in; Unsupported."""
    scheme = scheme_of(location)
    for kind, schemes in KINDS.items():
        if scheme in schemes:
            account = kind != "abfss" or "@" in location.partition("://")[2].partition("/")[0]
            return kind if account else "az"
    known = ", ".join(f"{kind}://" for kind in KINDS)
    raise Unsupported(f"{location!r}: no store for {scheme}:// locations; there are {known}")


def store_for(location: str, properties: Mapping[str, str] | None = None) -> Store:
    """Return a store for a warehouse, or for any location in it.

    Properties are PyIceberg's `s3.*`, `gcs.*` and `adls.*`; what they leave open comes from
    variables of the environment.
    """
    kind = kind_of(location)
    if kind == "file":
        return LocalStore()
    if kind == "memory":
        name = _name_in_memory(location)
        with _in_memory_lock:
            return _in_memory.setdefault(name, MemoryStore())
    options = _OPTIONS[kind](properties or {})
    if location.partition("://")[2]:
        options.place(location)
    return ObjectStore(options)


def _name_in_memory(location: str) -> str:
    name = location.split("/")[2] if location.startswith("memory://") else ""
    if not name:
        raise InvalidInput(f"{location!r} names no store in memory: give memory://name/path")
    return name


def check_store_properties(properties: Mapping[str, str], given: Iterable[str]) -> None:
    """Refuse properties that make no sense, of every kind of store that one of the given is for."""
    prefixes = {name.partition(".")[0] for name in given}
    for kind, prefix in (("s3", "s3"), ("s3", "client"), ("gs", "gcs"), ("abfss", "adls")):
        if prefix in prefixes:
            _OPTIONS[kind](properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Properties:
    """Properties, which may hold secrets and stay out of the text form."""

    values: Mapping[str, str] = field(repr=False)


class EveryStore:
    """A store of every location that `store_for` knows a store for, each made at first use.

    `beside` narrows it to the kinds that one table may name files in.
    """

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = _Properties(values=dict(properties or {}))
        self._stores: dict[str, Store] = {}
        #: The kinds that may be opened, and the place that they were chosen for; all without.
        self._kinds: frozenset[str] | None = None
        self._place = ""

    def beside(self, location: str, also: Iterable[str] = ()) -> EveryStore:
        """Return the same stores, of which only those of a location's kind are open, and others told."""
        found = EveryStore()
        found._properties, found._stores = self._properties, self._stores
        found._kinds = frozenset({kind_of(location), *also})
        found._place = location
        return found

    def prepare(self, location: str) -> None:
        """Make the store of a location, so that what cannot work is refused here and now."""
        self._of(location)

    def s3_options(self) -> s3_options.S3Options:
        """Return how S3 is reached."""
        return s3_options.options_of(self._properties.values)

    def __repr__(self) -> str:
        opened = ", ".join(sorted(self._stores)) or "none yet"
        return f"EveryStore(opened: {opened})"

    def check(self, location: str) -> None:
        """Refuse a location in a kind of store that is not open."""
        kind = kind_of(location)
        if self._kinds is not None and kind not in self._kinds:
            raise InvalidInput(
                f"{location!r} is in another kind of store than the table, which is at "
                f"{self._place!r}: if you trust who wrote the table, connect with io.stores={kind}"
            )

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

    def begin_new(self, location: str) -> NewFile:
        return begin_new(self._of(location), location)

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        files = [*files]
        stores = {id(store): store for store in (self._of(location) for location, _ in files)}
        if len(stores) == 1:
            stores.popitem()[1].write_many(files)
        else:
            side_by_side(self.write_new, files, at_once=8)

    def delete(self, locations: Iterable[str]) -> None:
        together: dict[int, tuple[Store, list[str]]] = {}

        def put(location: str) -> None:
            store = self._of(location)
            together.setdefault(id(store), (store, []))[1].append(location)

        try:
            in_turn(put, zip(locations))
        finally:
            in_turn(lambda store, each: store.delete(each), together.values())

    def list(self, folder: str) -> Iterator[FileInfo]:
        return self._of(folder).list(folder)

    def _of(self, location: str) -> Store:
        self.check(location)
        kind = kind_of(location)
        name = f"memory:{_name_in_memory(location)}" if kind == "memory" else kind
        found = self._stores.get(name)
        if found is None:
            # Two threads may make one each: the first stays.
            found = self._stores.setdefault(name, store_for(location, self._properties.values))
        return found
