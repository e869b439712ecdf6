"""Upserts that read nothing: new rows, and equality deletes of all older rows with their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.rows.matching.same import ranks, row_codes
from icetree.rows.write.deletes import write_equality_deletes
from icetree.rows.write.write import write_files
from icetree.spark.complaints import one_line
from icetree.spark.in_python import done_in_python
from icetree.spark.names import column
from icetree.spark.restored import fitting
from icetree.spark.ship import shipped, shipped_metadata, unshipped
from icetree.spark.write.fit import fit
from icetree.spec.entry.entry import concat
from icetree.spec.metadata.metadata import TableMetadata
from icetree.table.commit.commit import Committed
from icetree.table.table import Table
from icetree.table.transaction import Transaction


def upsert_by_equality(
    table: Table, rows: DataFrame, keys: Sequence[str], transaction: Transaction
) -> Committed | None:
    """Add rows in the place of older ones with equal keys, as one snapshot; None for no rows.

    Two rows with the same key are `InvalidInput`. In a partitioned table a row is replaced where
    it is now: its keys must tell the partition, or the table must have an unpartitioned spec.
    """
    name, metadata, store = str(table.name), table.metadata, table.files.store
    sent, columns = shipped_metadata(metadata), list(keys)
    everywhere = _leaves_partitions(metadata, columns)

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        at = metadata_codec.decode(sent, file="table metadata")
        types = {field.name: field.field_type for field in at.schema().fields}
        held = [fitting(batch, types) for batch in batches if batch.num_rows]
        if not held:
            return
        data = pa.Table.from_batches(held)
        _require_unique(data, columns)
        how: dict[str, Any] = {"table": name, "metadata": at, "store": store}
        gone = write_equality_deletes(
            data.select(_needed(at, columns, everywhere=everywhere)),
            columns,
            everywhere=everywhere,
            **how,
        )
        for made in (write_files(data, **how), gone):
            yield pa.RecordBatch.from_pydict({"files": [shipped(made)]})

    ready = fit(rows, table.schema, table=str(table.name))
    together = ready.repartition(*map(column, columns))
    with one_line():
        found = done_in_python(together, work, "files binary")
    files = [unshipped(each) for each in found["files"].to_pylist()]
    if not files:
        return None
    with transaction:
        transaction.row_delta(transaction.adopt(concat(files)))
        return transaction.commit()


def require_unique(rows: DataFrame, keys: Sequence[str]) -> None:
    """Refuse rows of which two have the same key."""
    many = rows.groupBy(*map(column, keys)).count().where("count > 1")
    with one_line():
        if not many.isEmpty():
            raise _same_key(keys)


def _require_unique(data: pa.Table, keys: Sequence[str]) -> None:
    codes = row_codes([data[name] for name in keys], data.num_rows)
    if ranks(codes).any():
        raise _same_key(keys)


def _same_key(keys: Sequence[str]) -> InvalidInput:
    return InvalidInput(
        f"two rows of one batch have the same {', '.join(keys)}: say which one counts with latest_by"
    )


def _sources(metadata: TableMetadata) -> set[str]:
    """Return the columns that the table is partitioned by."""
    shape = metadata.shape()
    spec = [each for each in shape.spec(metadata.default_spec_id) if each.transform != "void"]
    names = {shape.schema.find_column_name(id) for each in spec for id in each.source_ids}
    return {name.partition(".")[0] for name in names if name is not None}


def _leaves_partitions(metadata: TableMetadata, keys: Sequence[str]) -> bool:
    """Tell whether a row with the same key may be in another partition, or under another spec."""
    sources, others = _sources(metadata), metadata.shape().specs.keys() - {metadata.default_spec_id}
    return not sources <= set(keys) or (bool(sources) and bool(others))


def _needed(metadata: TableMetadata, keys: Sequence[str], *, everywhere: bool) -> list[str]:
    more = set() if everywhere else _sources(metadata)
    return [field.name for field in metadata.schema().fields if field.name in {*keys, *more}]
