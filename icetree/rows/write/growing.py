"""Files that rows are written to as they come, a few row groups in memory at a time."""

from __future__ import annotations

import pyarrow as pa

from icetree.rows.write.layout import Layout, Written, written
from icetree.rows.write.sealing import Sealing
from icetree.rows.write.stats import StatsGatherer
from icetree.store.base import HeldFile, NewFile, Store, begin_new


class Growing:
    """A file that rows are written to as they come."""

    def __init__(self, location: str, layout: Layout, store: Store) -> None:
        self._location, self._layout = location, layout
        self._how = Sealing.of(layout.format, layout.key_bytes)
        self._store = store
        self._file: NewFile
        if self._how.is_as_written:
            self._file = begin_new(store, location)
        else:
            self._file = HeldFile(store, location)
        self._rows = 0
        #: How much of what was written is in memory.
        self.held_bytes = 0
        self._stats = StatsGatherer(layout.fields, layout.modes)
        try:
            self._writer = self._how.format.begin(
                self._file.sink, layout.fields, layout.metadata.properties
            )
        except BaseException:
            self._file.abandon()
            raise

    def add(self, rows: pa.Table, group: int | None = None) -> None:
        """Write rows, so many in a group."""
        self._stats.add(rows)
        self._writer.write(rows, group)
        self._rows += rows.num_rows
        if isinstance(self._file, HeldFile):
            self.held_bytes = self._file.sink.tell()

    def end(self, rows: pa.Table, values: tuple[pa.Scalar, ...]) -> Written:
        """Write the last rows, and give the file its name."""
        if rows.num_rows:
            self.add(rows)
        self._writer.close()
        content = self._file.written()
        if self._how.is_as_written:
            stored, size = self._how.of_written(content), content.size
            self._file.end()
        else:
            stored = self._how.stored(content)
            size = len(stored.content)
            self._file.abandon()
            self._store.write_new(self._location, stored.content)
        stats = self._layout.with_partition(self._stats.stats(), values, self._rows)
        return written(self._location, self._layout, stored, self._rows, size, stats)

    def abandon(self) -> None:
        """Leave nothing of a file that has no name yet."""
        self._file.abandon()
