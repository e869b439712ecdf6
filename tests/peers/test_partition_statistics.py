"""Partition statistics before Iceberg Java: it reads the file that an export names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icetree
from icetree.table.maintain.statistics.since import since_last
from icetree.table.table import Table
from tests.java import IcebergJava

_READ = """
import org.apache.iceberg.*;
public class PartitionStatsRead implements java.util.function.Function {
  public Object apply(Object table) {
    StringBuilder told = new StringBuilder();
    java.util.Iterator all = ((Table) table).newPartitionStatisticsScan().scan().iterator();
    while (all.hasNext()) {
      StructLike row = (StructLike) all.next();
      StructLike partition = (StructLike) row.get(0, StructLike.class);
      for (int at = 0; at < partition.size(); at++) {
        told.append(partition.get(at, Object.class)).append(' ');
      }
      for (int at = 1; at < row.size(); at++) {
        told.append('\\t').append(row.get(at, Object.class));
      }
      told.append('\\n');
    }
    return told.toString();
  }
}
"""


def _told(table: Table) -> pa.Table:
    """What our newest file tells."""
    newest = table.refresh().current_snapshot
    assert newest is not None
    [file] = [e for e in table.metadata.partition_statistics if e.snapshot_id == newest.snapshot_id]
    return pq.read_table(pa.BufferReader(table.files.fetch(file.statistics_path)))


def _lines(found: pa.Table) -> list[list[str]]:
    """Rows as Java writes values down."""
    told = []
    for row in found.to_pylist():
        partition = "".join(f"{_text(each)} " for each in row.pop("partition").values())
        told.append([partition, *map(_text, row.values())])
    return sorted(told)


def _text(value: Any) -> str:
    return "null" if value is None else str(value)


def test_java_reads_of_our_file_what_we_wrote(tmp_path: Path, java: IcebergJava) -> None:
    schema = pa.schema([("id", pa.int64()), ("country", pa.string())])
    small = {"write.root.max-data-entries": "1", "write.root.max-delete-entries": "1"}
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", schema, partition_by=["country"], properties=small)
        for number, countries in enumerate((["DE", "DE", None], ["FR", "DE"], ["IT", "IT"])):
            ids = range(10 * number, 10 * number + len(countries))
            table.append(pa.table({"id": ids, "country": countries}, schema))
        with table.edit_spec() as spec:
            spec.add("bucket(4, id)")
        table.append(pa.table({"id": [40, 41], "country": ["FR", "PT"]}, schema))
        table.maintenance.compute_partition_stats()
        table.delete("id in (0, 20)")
        table.append(pa.table({"id": [50], "country": ["PT"]}, schema))
        # From those before, and what came since.
        newest = table.current_snapshot
        assert newest is not None
        assert since_last(table, newest, table.metadata.shape()) is not None
        table.maintenance.compute_partition_stats()
        ours = _told(table)
        shown = java.table(table.export().metadata_location)
    read = java.compiled("PartitionStatsRead", _READ).apply(shown)
    assert sorted(line.split("\t") for line in read.splitlines()) == _lines(ours)
    assert ours.num_rows == 7
