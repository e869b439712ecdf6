"""Reads what tables are made of as it is: bytes, trees and rows, by Arrow and plain Python alone."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from campaigns.simulate import by_hand
from campaigns.simulate.by_hand import Tracked, Tree
from campaigns.simulate.finding import found, require
from campaigns.simulate.model import DataFile, Row, place_of
from icetree.errors import NotFound
from icetree.files.table_files import read_metadata
from icetree.spec.metadata.metadata import TableMetadata
from icetree.store.memory import MemoryStore

#: Columns of lineage, as the format numbers them.
_ROW_ID, _UPDATED = 2147483540, 2147483539


class Witness:
    """Tells what a store holds; what is named has to be there."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self._reader = by_hand.Reader(self.read)

    def head(self, location: str) -> TableMetadata:
        """Return metadata that a swap has just made a table's."""
        try:
            return read_metadata(self.store, location)
        except NotFound:
            found("files stay", f"{location} is the head now, and not there")

    def read(self, location: str) -> bytes:
        """Return the bytes of a file that something names."""
        try:
            return self.store.read(location)
        except NotFound:
            found("files stay", f"{location} is named, and not there")

    def tree(self, table: str, root: str) -> Tree:
        """Return the tree of a snapshot, given where its table and its root are."""
        return self._reader.tree(table, root)

    def marked(self, tree: Tree, metadata: TableMetadata) -> dict[str, frozenset[int]]:
        """Return the rows that DVs mark, by data file."""
        return {
            each.referenced: self._reader.positions(metadata.location, each)
            for each in tree.live
            if each.content == by_hand.DATA_DV and each.referenced is not None
        }

    def file(self, tracked: Tracked, metadata: TableMetadata) -> DataFile:
        """Return a data file as it is, read by Arrow alone."""
        content = self.read(f"{metadata.location}/{tracked.location}")
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        ids = [int(each.metadata[b"PARQUET:field_id"]) for each in table.schema]
        columns = dict(zip(ids, (column.to_pylist() for column in table.columns), strict=True))
        numbers, ages = columns.pop(_ROW_ID, None), columns.pop(_UPDATED, None)
        first = -1 if tracked.first_row_id is None else tracked.first_row_id
        rows = []
        for at in range(table.num_rows):
            number, age = numbers and numbers[at], ages and ages[at]
            rows.append(
                Row(
                    values={id: values[at] for id, values in columns.items()},
                    row_id=first + at if number is None else number,
                    updated=tracked.sequence if age is None else age,
                )
            )
        places = {place_of(row.values, metadata, tracked.spec) for row in rows}
        require(len(places) == 1, "partitions", f"{tracked.location} is in {places}")
        require(len(rows) == tracked.rows, "files", f"{tracked.location} has {len(rows)} rows")
        return DataFile(name=tracked.location, place=places.pop(), rows=tuple(rows))
