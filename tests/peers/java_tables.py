"""A program: write tables with Iceberg Java, let it plan filters on them, print what it planned.

It runs by itself because a Spark session gets its jars when it starts. Arguments: the runtime
jar, a warehouse, a JSON file of filters by table name, a file for the answers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from icetree.spark.session import local_session

COLUMNS = (
    "id bigint, n int, country string, price double, amount decimal(9,2), d date, "
    "ts timestamp, tsn timestamp_ntz, flag boolean, place struct<city: string, zip: int>"
)


def main(jar: str, warehouse: str, filters: str, answers: str) -> None:
    """Make the tables, plan every filter on its table, and write the answers down."""
    asked: dict[str, list[str]] = json.loads(Path(filters).read_text())
    spark = _session(jar, warehouse)
    rows = _rows(spark)
    found = {}
    for name, make in TABLES.items():
        make(spark, rows)
        found[name] = _answers(spark, name, asked.get(name, []))
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
    }
    return local_session("iceberg java", shuffle_partitions=1, extra_conf=settings)


def _rows(spark: SparkSession) -> None:
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


def _create(spark: SparkSession, name: str, version: int, by: str, **properties: str) -> None:
    told = {
        "format-version": str(version),
        "write.distribution-mode": "none",
        "write.spark.fanout.enabled": "true",
        "write.delete.mode": "merge-on-read",
        "write.update.mode": "merge-on-read",
        "write.merge.mode": "merge-on-read",
        **{key.replace("_", "."): value for key, value in properties.items()},
    }
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in told.items())
    spark.sql(
        f"CREATE TABLE {name} ({COLUMNS}) USING iceberg PARTITIONED BY ({by}) "
        f"TBLPROPERTIES ({listed})"
    )


def _insert(spark: SparkSession, name: str, *starts: int, size: int = 40) -> None:
    for start in starts:
        picked = f"SELECT * FROM rows WHERE id >= {start} AND id < {start + size}"
        spark.sql(f"INSERT INTO {name} {picked}").collect()


def _make_v1(spark: SparkSession, _: None) -> None:
    name = "db.v1"
    _create(spark, name, 1, "truncate(5, country), month(d)")
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('write.delete.mode' = 'copy-on-write')")
    _insert(spark, name, 0, 40, 80, 120, 160, 200)
    spark.sql(f"DELETE FROM {name} WHERE id % 50 = 3")
    spark.sql(f"ALTER TABLE {name} REPLACE PARTITION FIELD month(d) WITH bucket(3, id)")
    _insert(spark, name, 240, 280)


def _make_row_level(spark: SparkSession, name: str, version: int) -> None:
    _create(spark, name, version, "country, bucket(4, id)")
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


def _make_evolved(spark: SparkSession, name: str, version: int) -> None:
    _create(spark, name, version, "days(ts)", write_delete_granularity="partition")
    _insert(spark, name, 0, 60, size=60)
    spark.sql(f"DELETE FROM {name} WHERE n = 13 OR id = 44")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION FIELD truncate(6, place.city)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMN extra string")
    spark.sql(f"ALTER TABLE {name} ALTER COLUMN n TYPE bigint")
    spark.sql(f"INSERT INTO {name} SELECT *, concat('e', n) FROM rows WHERE id BETWEEN 120 AND 160")
    spark.sql(f"ALTER TABLE {name} RENAME COLUMN price TO cost")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION FIELD days(ts)")
    spark.sql(f"INSERT INTO {name} SELECT *, NULL FROM rows WHERE id BETWEEN 161 AND 200")
    spark.sql(f"DELETE FROM {name} WHERE id % 9 = 5")


TABLES = {
    "db.v1": _make_v1,
    "db.v2": lambda spark, _: _make_row_level(spark, "db.v2", 2),
    "db.v2_evolved": lambda spark, _: _make_evolved(spark, "db.v2_evolved", 2),
    "db.v3": lambda spark, _: _make_row_level(spark, "db.v3", 3),
    "db.v3_evolved": lambda spark, _: _make_evolved(spark, "db.v3_evolved", 3),
}


def _answers(spark: SparkSession, name: str, filters: list[str]) -> dict[str, Any]:
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    schema = table.schema()
    parse = iceberg.expressions.ExpressionParser.fromJson
    return {
        "metadata": table.operations().current().metadataFileLocation(),
        "all": _planned(iceberg, table.newScan()),
        "plans": [_planned(iceberg, table.newScan().filter(parse(each, schema))) for each in filters],
    }


def _planned(iceberg: Any, scan: Any) -> list[Any]:
    """Return each planned file as its location, first row id and deletes."""
    tasks = scan.planFiles()
    found = []
    each = tasks.iterator()
    while each.hasNext():
        task = each.next()
        file = task.file()
        deletes = [
            [one.location(), one.contentOffset(), one.contentSizeInBytes()]
            for one in task.deletes()
        ]
        found.append([file.location(), file.firstRowId(), deletes])
    tasks.close()
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
