"""More tables that Iceberg Java writes, and the rows that it reads of every snapshot of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from tests.effort import EFFORT

#: Creates a table of the columns of `rows`, and more: name, version, partitioning, properties.
Create = Callable[..., None]
#: Inserts rows by where they start.
Insert = Callable[..., None]
#: Of how many manifests a table of many is: each takes a data file, which all readers open.
_MANY = 2_000 if EFFORT > 1 else 60


def transforms(spark: SparkSession, name: str, create: Create, insert: Insert) -> None:
    """Partition by every transform, of every type that it takes, in one spec and by evolution."""
    create(spark, name, 2, "truncate(1, country), years(d), months(ts), hours(tsn), flag")
    insert(spark, name, 0, size=9)
    for spoken in ("truncate(100, id)", "bucket(3, country)", "bucket(2, amount)"):
        spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD {spoken}")
    for spoken in ("years(d)", "hours(tsn)", "flag"):
        spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD {spoken}")
    spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD months(ts) WITH days(ts)")
    insert(spark, name, 100, size=9)
    spark.sql(f"DELETE FROM {name} WHERE id IN (3, 104)")


def first_version(spark: SparkSession, name: str, create: Create, insert: Insert) -> None:
    """Drop a partition field of v1, of which nothing is left but its place."""
    create(spark, name, 1, "country, days(ts)", write_delete_mode="copy-on-write")
    insert(spark, name, 0, size=20)
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD country")
    insert(spark, name, 50, size=20)
    spark.sql(f"DELETE FROM {name} WHERE id IN (3, 55)")


def rewritten(spark: SparkSession, name: str, create: Create, insert: Insert) -> None:
    """Delete, update and merge by writing files anew."""
    modes = {f"write_{verb}_mode": "copy-on-write" for verb in ("delete", "update", "merge")}
    create(spark, name, 2, "bucket(2, id)", **modes)
    insert(spark, name, 0, size=60)
    spark.sql(f"UPDATE {name} SET n = n + 100 WHERE id % 9 = 1")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT * FROM rows WHERE id BETWEEN 50 AND 70) s "
        "ON t.id = s.id WHEN MATCHED AND s.id % 2 = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET amount = 0.5 WHEN NOT MATCHED THEN INSERT *"
    )


def types(spark: SparkSession, name: str, create: Create, insert: Insert) -> None:
    """Columns of all types of Spark's, deep within each other, renamed, moved and dropped."""
    del insert
    more = (
        "f float, b binary, tiny int, l array<struct<a: int, b: string>>, "
        "m map<string, array<bigint>>, deep struct<x: struct<y: array<map<string, double>>>, z: date>"
    )
    create(spark, name, 3, "country", more=more)
    values = (
        "SELECT *, CAST(id AS FLOAT) / 8, CAST(concat('b', id) AS BINARY), CAST(id % 3 AS INT), "
        "IF(id % 5 = 0, NULL, array(named_struct('a', CAST(id AS INT), 'b', 'x'), NULL)), "
        "IF(id % 4 = 0, NULL, map('k', array(id, NULL), 'l', NULL)), "
        "IF(id % 6 = 0, NULL, named_struct('x', named_struct('y', array(map('p', id / 2D))), 'z', d)) "
        "FROM rows WHERE id >= {} AND id < {}"
    )
    spark.sql(f"INSERT INTO {name} {values.format(0, 30)}")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN deep.x TO inner")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN l.element.c date")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN tiny TYPE bigint")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN f TYPE double")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN amount TYPE decimal(18, 2)")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN b")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN m FIRST")
    spark.sql(f"DELETE FROM {name} WHERE id IN (2, 11)")


def branches(spark: SparkSession, name: str, create: Create, insert: Insert) -> None:
    """Write to branches and tag what was there."""
    create(spark, name, 3, "")
    insert(spark, name, 0, size=10)
    spark.sql(f"ALTER TABLE {name} CREATE TAG first")
    spark.sql(f"ALTER TABLE {name} CREATE BRANCH aside RETAIN 7 DAYS")
    insert(spark, f"{name}.branch_aside", 100, size=10)
    spark.sql(f"DELETE FROM {name}.branch_aside WHERE id = 3")
    insert(spark, name, 50, size=10)


def many(spark: SparkSession, name: str, create: Create, insert: Insert) -> None:
    """Have a manifest for each of many files, by Iceberg's own API, which no job of Spark's slows."""
    create(spark, name, 2, "", commit_manifest__merge_enabled="false")
    insert(spark, name, 0, size=5)
    jvm: Any = spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(_MANIFESTS)
    compiler.getClassLoader().loadClass("Manifests").newInstance().apply(table, _MANY)


#: Appends files of one row each, every one in a manifest of its own. For the compiler that Spark brings along,
#: which knows no generics.
_MANIFESTS = """
import org.apache.iceberg.*;
import org.apache.iceberg.data.GenericAppenderFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.io.*;

public class Manifests implements java.util.function.BiFunction {
  public Object apply(Object given, Object count) {
    try {
      Table table = (Table) given;
      int many = ((Integer) count).intValue();
      for (int at = 0; at < many; at++) {
        table.newFastAppend().appendFile(file(table, 1000 + at)).commit();
      }
      return null;
    } catch (java.io.IOException error) {
      throw new RuntimeException(error);
    }
  }

  private DataFile file(Table table, int id) throws java.io.IOException {
    Record row = GenericRecord.create(table.schema());
    row.setField("id", Long.valueOf(id));
    row.setField("n", Integer.valueOf(id % 50));
    row.setField("country", id % 2 == 0 ? "DE" : "US");
    row.setField("price", Double.valueOf(id / 4.0));
    OutputFile place = table.io().newOutputFile(table.location() + "/data/one-" + id + ".parquet");
    DataWriter writer = new GenericAppenderFactory(table.schema(), table.spec())
        .newDataWriter(EncryptedFiles.plainAsEncryptedOutput(place), FileFormat.PARQUET, null);
    writer.write(row);
    writer.close();
    return writer.toDataFile();
  }
}
"""


def formats(spark: SparkSession, name: str, create: Create, insert: Insert) -> None:
    """Write data files and deletes in ORC, in Avro and in Parquet, with columns that change between."""

    def write_in(format: str) -> None:
        spark.sql(
            f"ALTER TABLE {name} SET TBLPROPERTIES ('write.format.default' = '{format}', "
            f"'write.delete.format.default' = '{format}')"
        )

    more = "f float, b binary, l array<struct<a: int, b: string>>, m map<string, array<bigint>>"
    create(spark, name, 2, "country", more=more)
    values = (
        "SELECT *, CAST(id AS FLOAT) / 8, CAST(concat('b', id) AS BINARY), "
        "IF(id % 5 = 0, NULL, array(named_struct('a', CAST(id AS INT), 'b', 'x'), NULL)), "
        "IF(id % 4 = 0, NULL, map('k', array(id, NULL), 'l', NULL)) "
        "FROM rows WHERE id >= {} AND id < {}"
    )
    for at, format in enumerate(("orc", "avro", "parquet")):
        write_in(format)
        spark.sql(f"INSERT INTO {name} {values.format(60 * at, 60 * at + 25)}")
        write_in(("orc", "avro", "orc")[at])
        spark.sql(f"DELETE FROM {name} WHERE id IN ({60 * at + 3}, {60 * at + 7}, 8)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN l.element.c date")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE bigint")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN f TYPE double")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN amount TYPE decimal(18, 2)")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN m TO b2")
    spark.sql(f"ALTER TABLE {name} DROP COLUMN b")
    spark.sql(f"DELETE FROM {name} WHERE id IN (12, 71)")
    del insert


#: What makes each table, by name.
ZOO: Mapping[str, Callable[..., None]] = {
    "zoo.transforms": transforms,
    "zoo.v1": first_version,
    "zoo.rewritten": rewritten,
    "zoo.types": types,
    "zoo.branches": branches,
    "zoo.formats": formats,
    "zoo.many": many,
}


def write_rows(spark: SparkSession, name: str, folder: Path) -> None:
    """Write what Iceberg Java reads of each snapshot of a table, and where its refs point."""
    place = folder / name
    place.mkdir(parents=True)
    refs = spark.sql(f"SELECT name, type, snapshot_id FROM {name}.refs").collect()
    (place / "refs.json").write_text(json.dumps([row.asDict() for row in refs]))
    newest = {row["snapshot_id"] for row in refs}
    every = [row[0] for row in spark.sql(f"SELECT snapshot_id FROM {name}.snapshots").collect()]
    # Of a long history some are enough: what refs point to, the first and the last few.
    chosen = {*every[:1], *every[-2:], *newest}
    for id in chosen:
        found = spark.sql(f"SELECT * FROM {name} VERSION AS OF {id}").toArrow()
        with (
            pa.OSFile(str(place / f"{id}.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, found.schema) as writer,
        ):
            writer.write_table(found)
