"""More tables that Iceberg Java writes, and the rows that it reads of every snapshot of a table."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
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
#: And one of very many, of so few data files: the others are these under other names. They are of Avro, which
#: Java opens in no time.
_THOUSANDS, _DIFFERENT = 8_000 if EFFORT > 1 else 2_000, 200


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
    """Have a manifest for each of many files, each of a commit of its own."""
    create(spark, name, 2, "", commit_manifest__merge_enabled="false")
    insert(spark, name, 0, size=5)
    _append(spark, name, commits=_MANY, manifests=1, first=1000, different=_MANY)


def thousands(spark: SparkSession, name: str, create: Create, insert: Insert) -> None:
    """Have thousands of manifests, made before they are committed at once."""
    del insert
    in_one_task = {"read_split_open__file__cost": "1"}
    create(spark, name, 2, "", write_format_default="avro", **in_one_task)
    _append(spark, name, commits=1, manifests=_THOUSANDS, first=0, different=_DIFFERENT)


def _append(spark: SparkSession, name: str, **counts: int) -> None:
    """Append manifests of one row each by Iceberg's own API, which no job of Spark's slows."""
    jvm: Any = spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    _appender(jvm).apply(table, json.dumps(counts))


@cache
def _appender(jvm: Any) -> Any:
    """Return `_MANIFESTS` as an object; Python takes a second class of its name for the first."""
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(_MANIFESTS)
    return compiler.getClassLoader().loadClass("Manifests").newInstance()


#: Appends files of one row each, every one in a manifest of its own. For the compiler that Spark brings along,
#: which knows no generics.
_MANIFESTS = """
import java.nio.file.Paths;
import java.util.*;
import org.apache.iceberg.*;
import org.apache.iceberg.data.GenericAppenderFactory;
import org.apache.iceberg.data.GenericRecord;
import org.apache.iceberg.data.Record;
import org.apache.iceberg.encryption.EncryptedFiles;
import org.apache.iceberg.io.*;
import org.apache.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper;

public class Manifests implements java.util.function.BiFunction {
  private Map counts;
  private List written = new ArrayList();

  public Object apply(Object given, Object asked) {
    try {
      Table table = (Table) given;
      counts = (Map) new ObjectMapper().readValue((String) asked, Map.class);
      written.clear();
      int number = 0;
      for (int at = 0; at < count("commits"); at++) {
        AppendFiles append = table.newFastAppend();
        if (count("manifests") == 1) append.appendFile(file(table, number++));
        else for (int one = 0; one < count("manifests"); one++) {
          append.appendManifest(manifest(table, number++));
        }
        append.commit();
      }
      return null;
    } catch (java.io.IOException error) {
      throw new RuntimeException(error);
    }
  }

  private int count(String name) {
    return ((Integer) counts.get(name)).intValue();
  }

  private ManifestFile manifest(Table table, int number) throws java.io.IOException {
    String place = table.location() + "/metadata/one-" + number + ".avro";
    OutputFile output = table.io().newOutputFile(place);
    ManifestWriter writer = ManifestFiles.write(2, table.spec(), output, (Long) null);
    writer.add(file(table, number));
    writer.close();
    return writer.toManifestFile();
  }

  private DataFile file(Table table, int number) throws java.io.IOException {
    String place = table.location() + "/data/one-" + number;
    if (number >= count("different")) {
      DataFile same = (DataFile) written.get(number % count("different"));
      java.nio.file.Files.createLink(Paths.get(place), Paths.get(same.location()));
      return DataFiles.builder(table.spec()).copy(same).withPath(place).build();
    }
    int id = count("first") + number;
    Record row = GenericRecord.create(table.schema());
    row.setField("id", Long.valueOf(id));
    row.setField("n", Integer.valueOf(id % 50));
    row.setField("country", id % 2 == 0 ? "DE" : "US");
    row.setField("price", Double.valueOf(id / 4.0));
    FileFormat format = FileFormat.fromString(
        (String) table.properties().getOrDefault("write.format.default", "parquet"));
    DataWriter writer = new GenericAppenderFactory(table.schema(), table.spec())
        .newDataWriter(EncryptedFiles.plainAsEncryptedOutput(table.io().newOutputFile(place)), format, null);
    writer.write(row);
    writer.close();
    written.add(writer.toDataFile());
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
    "zoo.thousands": thousands,
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
