"""A program: write tables with Iceberg Java, let it plan filters on them, print what it planned.

It runs by itself because a Spark session gets its jars when it starts. Arguments: the runtime
jar, a warehouse, a JSON file of filters by table name, a file for the answers, a folder for the rows
of the zoo.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from icetree.spark.session import local_session
from tests.peers.java_zoo import ZOO, write_rows
from tests.spark.settings import INTERPRETED

COLUMNS = (
    "id bigint, n int, country string, price double, amount decimal(9,2), d date, "
    "ts timestamp, tsn timestamp_ntz, flag boolean, place struct<city: string, zip: int>"
)


def main(jar: str, warehouse: str, filters: str, answers: str, rows: str) -> None:
    """Make the tables, plan every filter on its table, and write the answers and rows down."""
    asked: dict[str, list[str]] = json.loads(Path(filters).read_text())
    spark = _session(jar, warehouse)
    plan = _compiled(spark)
    _make_rows(spark)
    found = {}
    for name, make in _TABLES.items():
        make(spark, name)
        found[name] = _answers(spark, name, plan, asked.get(name, []))
        write_rows(spark, name, Path(rows))
    for name, make_animal in ZOO.items():
        make_animal(spark, name, _create, _insert)
        found[name] = {"metadata": _metadata_of(_table(spark, name))}
        write_rows(spark, name, Path(rows))
    Path(answers).write_text(json.dumps(found))
    spark.stop()


def _session(jar: str, warehouse: str) -> SparkSession:
    settings = {
        "spark.jars": jar,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.defaultCatalog": "lake",
        "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lake.type": "hadoop",
        "spark.sql.catalog.lake.warehouse": warehouse,
        "spark.sql.catalog.lake.cache-enabled": "false",
        "spark.sql.adaptive.enabled": "false",
        **INTERPRETED,
    }
    return local_session("iceberg java", shuffle_partitions=1, extra_conf=settings)


def _make_rows(spark: SparkSession) -> None:
    """Make `rows`: 400 rows with nulls and NaNs, each column in an order of its own."""
    spark.sql(
        """
        CREATE TEMPORARY VIEW rows AS SELECT
          id,
          CAST(IF(id % 17 = 0, NULL, id % 50) AS INT) AS n,
          IF(id % 23 = 0, NULL, element_at(array('DE', 'FR', 'US'), CAST(1 + id % 3 AS INT)))
            AS country,
          CASE WHEN id % 40 < 4 THEN double('NaN') WHEN id % 11 = 0 THEN NULL
            ELSE CAST(id AS DOUBLE) / 4 - 20 END AS price,
          CAST(IF(id % 13 = 0, NULL, id * 1.25 - 100) AS DECIMAL(9, 2)) AS amount,
          date_add(DATE '2024-01-01', CAST(id DIV 20 AS INT)) AS d,
          TIMESTAMP '2024-01-01 00:00:00' + make_dt_interval(0, CAST(id * 3 AS INT)) AS ts,
          CAST(TIMESTAMP '1969-12-28 00:00:00' + make_dt_interval(0, CAST(id AS INT))
            AS TIMESTAMP_NTZ) AS tsn,
          IF(id % 19 = 0, NULL, id < 200) AS flag,
          IF(id % 29 = 0, NULL, named_struct(
            'city', concat('town-', lpad(CAST(id DIV 8 AS STRING), 3, '0')),
            'zip', CAST(IF(id % 7 = 0, NULL, id * 3) AS INT))) AS place
        FROM range(0, 400)
        """
    )


def _create(
    spark: SparkSession, name: str, version: int, by: str, *, more: str = "", **properties: str
) -> None:
    told = {
        "format-version": str(version),
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.merge.mode": "merge-on-read",
        **{key.replace("__", "-").replace("_", "."): value for key, value in properties.items()},
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in told.items())
    spark.sql(
        f"CREATE TABLE {name} ({COLUMNS}{f', {more}' if more else ''}) USING iceberg "
        f"{f'PARTITIONED BY ({by}) ' if by else ''}"
        f"TBLPROPERTIES ({listed})"
    )


def _insert(spark: SparkSession, name: str, *starts: int, size: int = 40) -> None:
    for start in starts:
        picked = f"SELECT * FROM rows WHERE id >= {start} AND id < {start + size}"
        spark.sql(f"INSERT INTO {name} {picked}").collect()


def _table(spark: SparkSession, name: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


def _row_level(spark: SparkSession, name: str, version: int) -> None:
    _create(spark, name, version, "country, bucket(2, id)")
    _insert(spark, name, 0, 50, 100, size=50)
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 7")
    _insert(spark, name, 150, size=50)
    spark.sql(f"UPDATE {name} SET n = n + 100 WHERE id BETWEEN 30 AND 60 AND country = 'FR'")
    spark.sql(
        f"MERGE INTO {name} t USING (SELECT * FROM rows WHERE id BETWEEN 190 AND 215) s "
        "ON t.id = s.id WHEN MATCHED AND s.id % 2 = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET amount = 0.5 WHEN NOT MATCHED THEN INSERT *"
    )
    spark.sql(f"DELETE FROM {name} WHERE country = 'US' AND id < 20")


def _evolved(spark: SparkSession, name: str) -> None:
    _create(spark, name, 3, "days(ts)")
    _insert(spark, name, 0, 40)
    spark.sql(f"DELETE FROM {name} WHERE id % 7 IN (1, 2)")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(6, place.city)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN extra string")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE bigint")
    spark.sql(f"INSERT INTO {name} SELECT *, concat('e', n) FROM rows WHERE id BETWEEN 120 AND 160")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN price TO cost")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD days(ts)")
    spark.sql(f"INSERT INTO {name} SELECT *, NULL FROM rows WHERE id BETWEEN 161 AND 200")
    spark.sql(f"DELETE FROM {name} WHERE id % 9 = 5")


def _equality(spark: SparkSession, name: str, *, upgraded: bool) -> None:
    """Delete by equality, everywhere and in a partition; perhaps go on as v3, with vectors."""
    _create(spark, name, 2, "", write_delete_granularity="partition")
    _insert(spark, name, 0, 50, size=50)
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD country")
    _insert(spark, name, 100, 150, size=50)
    _delete_equal(spark, name, "everywhere", 0, {}, [{"n": 5}, {"n": 21}])
    _delete_equal(spark, name, "fr", 1, {"country": "FR"}, [{"n": 8, "country": "FR"}])
    _delete_equal(spark, name, "far", 1, {"country": "DE"}, [{"n": 5000, "country": "DE"}])
    _insert(spark, name, 200, size=50)
    spark.sql(f"DELETE FROM {name} WHERE id % 10 = 4")
    _delete_equal(spark, name, "late", 1, {"country": "US"}, [{"n": 2}, {"n": 9}, {"n": 14}])
    if upgraded:
        spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('format-version' = '3')")
        _insert(spark, name, 250, size=50)
        spark.sql(f"DELETE FROM {name} WHERE id % 30 IN (3, 8)")


def _delete_equal(
    spark: SparkSession,
    name: str,
    label: str,
    spec_id: int,
    partition: dict[str, Any],
    rows: list[dict[str, Any]],
) -> None:
    """Commit an equality delete file, which Spark's SQL never writes."""
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    table = _table(spark, name)
    columns = jvm.java.util.ArrayList()
    for column in rows[0]:
        columns.add(column)
    schema, spec = table.schema().select(columns), table.specs()[spec_id]
    ids = spark.sparkContext._gateway.new_array(jvm.int, len(rows[0]))
    for at, column in enumerate(rows[0]):
        ids[at] = schema.findField(column).fieldId()
    where = iceberg.data.GenericRecord.create(spec.partitionType())
    _fill(where, partition)
    output = table.io().newOutputFile(f"{table.location()}/data/{label}-equality.parquet")
    writer = iceberg.data.GenericAppenderFactory(schema, spec, ids, schema, None).newEqDeleteWriter(
        iceberg.encryption.EncryptedFiles.plainAsEncryptedOutput(output),
        iceberg.FileFormat.PARQUET,
        where,
    )
    for row in rows:
        record = iceberg.data.GenericRecord.create(schema)
        _fill(record, row)
        writer.write(record)
    writer.close()
    table.newRowDelta().addDeletes(writer.toDeleteFile()).commit()


def _fill(record: Any, values: dict[str, Any]) -> None:
    for column, value in values.items():
        record.setField(column, value)


_TABLES = {
    "db.v2": partial(_row_level, version=2),
    "db.v2_equality": partial(_equality, upgraded=False),
    "db.v3": partial(_row_level, version=3),
    "db.v3_evolved": _evolved,
    "db.v3_upgraded": partial(_equality, upgraded=True),
}


def _answers(spark: SparkSession, name: str, plan: Any, filters: list[str]) -> dict[str, Any]:
    table = _table(spark, name)
    everything = '{"type": "literal", "value": true}'
    return {
        "metadata": _metadata_of(table),
        "all": _planned(plan, table, everything),
        "plans": [_planned(plan, table, each) for each in filters],
    }


def _metadata_of(table: Any) -> str:
    return table.operations().current().metadataFileLocation()  # type: ignore[no-any-return]


def _planned(plan: Any, table: Any, filter: str) -> list[Any] | None:
    """Return each planned file as its location, first row id and deletes; None if Java fails.

    It does where a partition is null and a set of strings is asked whether it holds the null.
    """
    found = []
    try:
        lines = plan.apply(table, filter).splitlines()
    except Py4JJavaError as error:
        if "NullPointerException: Invalid object: null" not in str(error):
            raise
        return None
    for line in lines:
        location, first_row_id, *deletes = line.split("\t")
        parts = zip(*[iter(deletes)] * 3, strict=True)
        found.append([location, _number(first_row_id), [_delete(*one) for one in parts]])
    return found


def _delete(location: str, offset: str, size: str) -> list[Any]:
    return [location, _number(offset), _number(size)]


def _number(text: str) -> int | None:
    return None if text == "null" else int(text)


def _compiled(spark: SparkSession) -> Any:
    """Return `_PLAN` as an object: asking Java for each file one by one would take minutes."""
    jvm: Any = spark._jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.setParentClassLoader(jvm.Thread.currentThread().getContextClassLoader())
    compiler.cook(_PLAN)
    return compiler.getClassLoader().loadClass("Plan").newInstance()


#: For the compiler that Spark brings along, which knows no generics.
_PLAN = """
import org.apache.iceberg.*;
import org.apache.iceberg.expressions.*;

public class Plan implements java.util.function.BiFunction {
  public Object apply(Object given, Object filter) {
    Table table = (Table) given;
    Expression parsed = ExpressionParser.fromJson((String) filter, table.schema());
    StringBuilder text = new StringBuilder();
    java.util.Iterator tasks = ((TableScan) table.newScan().filter(parsed)).planFiles().iterator();
    while (tasks.hasNext()) {
      FileScanTask task = (FileScanTask) tasks.next();
      DataFile file = (DataFile) task.file();
      text.append(file.location()).append('\\t').append((Object) file.firstRowId());
      java.util.Iterator deletes = task.deletes().iterator();
      while (deletes.hasNext()) {
        DeleteFile one = (DeleteFile) deletes.next();
        text.append('\\t').append(one.location());
        text.append('\\t').append((Object) one.contentOffset());
        text.append('\\t').append((Object) one.contentSizeInBytes());
      }
      text.append('\\n');
    }
    return text.toString();
  }
}
"""


if __name__ == "__main__":
    main(*sys.argv[1:])
