"""PyIceberg's own table beside ours, and the requests that both make of their stores."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import ClassVar, Final

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io import InputFile, InputStream, OutputFile, OutputStream
from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO
from pyiceberg.table import Table
from typing_extensions import override

from icetree.store.base import FileInfo, Store

WRITES: Final = "writes"
READS: Final = "reads"


class CountedStore:
    """A store that counts what an object store would bill: writes and lists, reads and looks."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.requests: Counter[str] = Counter()

    def read(self, location: str) -> bytes:
        """Return the whole file."""
        self.requests[READS] += 1
        return self._store.read(location)

    def read_range(self, location: str, *, offset: int, length: int) -> bytes:
        """Return a part of a file."""
        self.requests[READS] += 1
        return self._store.read_range(location, offset=offset, length=length)

    def open(self, location: str) -> pa.NativeFile:
        """Return the file for random access; counted once, as the other side's are."""
        self.requests[READS] += 1
        return self._store.open(location)

    def size(self, location: str) -> int:
        """Return the size in bytes."""
        self.requests[READS] += 1
        return self._store.size(location)

    def exists(self, location: str) -> bool:
        """Tell whether the file is there."""
        self.requests[READS] += 1
        return self._store.exists(location)

    def write_new(self, location: str, content: bytes) -> None:
        """Write a file."""
        self.requests[WRITES] += 1
        self._store.write_new(location, content)

    def write_many(self, files: Iterable[tuple[str, bytes]]) -> None:
        """Write files side by side."""
        many = list(files)
        self.requests[WRITES] += len(many)
        self._store.write_many(many)

    def delete(self, locations: Iterable[str]) -> None:
        """Delete files, which is free."""
        self._store.delete(locations)

    def list(self, folder: str) -> Iterator[FileInfo]:
        """Yield the files below a folder."""
        self.requests[WRITES] += 1
        return self._store.list(folder)


class CountedIO(PyArrowFileIO):
    """PyIceberg's own file I/O, with its requests counted.

    On S3 it looks at a file before it opens it; that is not counted, in its favour.
    """

    requests: ClassVar[Counter[str]] = Counter()

    @override
    def new_input(self, location: str) -> PyArrowFile:
        return _CountedFile(super().new_input(location))  # type: ignore[return-value]

    @override
    def new_output(self, location: str) -> PyArrowFile:
        return _CountedFile(super().new_output(location))  # type: ignore[return-value]


class _CountedFile(InputFile, OutputFile):
    def __init__(self, file: PyArrowFile) -> None:
        super().__init__(file.location)
        self._file = file

    def __len__(self) -> int:
        return len(self._file)

    @override
    def exists(self) -> bool:
        CountedIO.requests[READS] += 1
        return self._file.exists()

    @override
    def open(self, seekable: bool = True) -> InputStream:
        CountedIO.requests[READS] += 1
        return self._file.open(seekable)

    @override
    def to_input_file(self) -> PyArrowFile:
        return _CountedFile(self._file.to_input_file())  # type: ignore[return-value]

    @override
    def create(self, overwrite: bool = False) -> OutputStream:
        CountedIO.requests[WRITES] += 1
        return self._file.create(overwrite)


def peer_catalog(folder: Path) -> SqlCatalog:
    """Open PyIceberg's own catalog in a folder: SQLite, as ours."""
    return SqlCatalog(
        "peer",
        uri=f"sqlite:///{folder}/catalog.db",
        warehouse=f"file://{folder}/warehouse",
        **{"py-io-impl": f"{CountedIO.__module__}.{CountedIO.__name__}"},
    )


def peer_table(folder: Path, name: str, schema: pa.Schema) -> Table:
    """Make a table of PyIceberg's."""
    folder.mkdir()
    catalog = peer_catalog(folder)
    catalog.create_namespace(name.partition(".")[0])
    return catalog.create_table(name, schema)


def quiet() -> None:
    """Keep what PyIceberg warns and logs off the screen: it is counted and shown otherwise."""
    warnings.filterwarnings("ignore", module="pyiceberg")
    logging.getLogger("pyiceberg").setLevel(logging.CRITICAL)
