"""What a format of data files must do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
from pyiceberg.types import NestedField

from icetree.codec.encryption.key_metadata import FileKey
from icetree.spec.fields import FIELD_ID_KEY


class Reader(Protocol):
    """An open file, which does one thing at a time."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the file, in the types that come out of it."""

    @property
    def group_rows(self) -> Sequence[int]:
        """How many rows each run has that is read at once."""

    @property
    def split_offsets(self) -> list[int] | None:
        """Where readers can begin; None where the file tells nothing."""

    def read(self, group: int, leaves: Sequence[int], names: Sequence[str]) -> pa.Table:
        """Return columns of a run of rows: at least those of the leaves, or of the names."""


class RowsWriter(Protocol):
    """A file that is being made."""

    def write(self, rows: pa.Table, group: int | None = None) -> None:
        """Add rows, which have the columns of the file; `group` of them make one, where it has groups."""

    def close(self) -> None:
        """End the file."""


#: Opens what is at a location, as errors name it; tells whether checksums count.
Open = Callable[[pa.NativeFile, str, bool], Reader]
#: Begins a file of these columns, as properties of the table say.
Begin = Callable[[pa.NativeFile, Sequence[NestedField], Mapping[str, str]], RowsWriter]


def as_it_is(content: pa.Buffer) -> pa.Buffer:
    """Return a file that its writer has ended."""
    return content


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format of data files."""

    name: str
    open: Open
    begin: Begin
    #: Where a whole file can be cut so that readers can begin there; None where it tells nothing.
    split_offsets: Callable[[pa.Buffer], list[int] | None]
    #: How many bytes of rows a writer is best given at once.
    bytes_at_once: Callable[[Mapping[str, str]], int]
    #: How many rows make a group at most.
    most_rows: Callable[[Mapping[str, str]], int] = lambda _: sys.maxsize
    #: What becomes of a file that its writer has ended, before it is stored.
    finished: Callable[[pa.Buffer], pa.Buffer] = as_it_is
    #: The same, with an encryption of its own; None where files are encrypted as they are.
    keyed: Callable[[FileKey], Format] | None = None
    #: The key of field ids in the metadata of the reader's columns.
    id_key: bytes = FIELD_ID_KEY

    def rows_at_once(self, properties: Mapping[str, str], row_bytes: float) -> int:
        """Return how many rows of so many bytes a writer is best given at once."""
        fit = int(self.bytes_at_once(properties) / max(1.0, row_bytes))
        return max(1, min(self.most_rows(properties), fit))
