"""Encrypted tables on Spark: the same verbs, keys go with the files of each task, values are nowhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.expressions import AlwaysTrue
from pyspark.sql import SparkSession

import icetree.spark
from icetree.spark import SparkLake
from icetree.spark.read.plan import Executors
from icetree.spark.source.source import register
from icetree.tree.plan.plan import LeafCall, read_leaf
from icetree.tree.prune.bind import bind
from icetree.tree.reading import leaves_in
from tests.table.encryption.lake import VALUES, texts_in

KEY = b"0123456789012345"
PROPERTIES = {"encryption.key-id": "k", "write.root.max-data-entries": "3"}


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers, "diagnosis": [f"hush-{n}" for n in numbers]})


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    place = tmp_path / "keys"
    place.write_text(f"k = {b64encode(KEY).decode()}")
    return place


@pytest.fixture
def lake(spark: SparkSession, keys: Path, tmp_path: Path) -> Iterator[SparkLake]:
    made = icetree.spark.connect(
        f"sqlite:///{tmp_path}/catalog.db",
        warehouse=str(tmp_path / "lake"),
        properties={"encryption.key-file": str(keys)},
        spark=spark,
    )
    made.create_namespace("db")
    made.create_table("db.t", rows(1).schema, properties=PROPERTIES)
    yield made
    made.close()


def test_every_verb_of_spark_works_on_an_encrypted_table(lake: SparkLake, tmp_path: Path) -> None:
    table, spark = lake.table("db.t"), lake.spark
    lake.append("db.t", spark.createDataFrame(rows(*range(20))))
    before = table.refresh().snapshot()
    assert before is not None
    lake.sql("DELETE FROM db.t WHERE n % 5 = 0")
    lake.sql("UPDATE db.t SET diagnosis = 'hush-new' WHERE n = 3")
    lake.sql(
        "MERGE INTO db.t USING (SELECT 4 AS n UNION ALL SELECT 99) s ON t.n = s.n "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (n, diagnosis) VALUES (s.n, 'hush-99')"
    )
    expected = sorted({n for n in range(20) if n % 5} - {4} | {99})
    assert sorted(row.n for row in lake.read("db.t").collect()) == expected
    assert [row.diagnosis for row in lake.sql("SELECT * FROM db.t WHERE n = 3").collect()] == [
        "hush-new"
    ]
    assert lake.read("db.t", at=before.snapshot_id).count() == 20
    assert lake.changes("db.t", images=True).where("_change_type = 'DELETE'").count() == 5
    lake.sql("CALL system.rewrite_data_files(table => 'db.t')")
    assert sorted(row.n for row in lake.read("db.t").collect()) == expected
    assert table.refresh().verify(deep=True).is_clean
    assert texts_in(tmp_path / "lake", *VALUES) == {}


def test_the_data_source_takes_keys_along(lake: SparkLake, keys: Path, tmp_path: Path) -> None:
    table = lake.table("db.t")
    table.append(rows(*range(20)))
    table.delete("n % 5 = 0")
    register(lake.spark)
    loaded = (
        lake.spark.read.format("icetree")
        .option("catalog", f"sqlite:///{tmp_path}/catalog.db")
        .option("encryption.key-file", str(keys))
    )
    found = sorted(row.n for row in loaded.load("db.t").collect())
    assert found == [n for n in range(20) if n % 5]
    changes = loaded.option("changes", "true").load("db.t")
    assert changes.where("_change_type = 'DELETE'").count() == 4


def test_executors_refuse_a_plain_leaf_as_the_driver_does(lake: SparkLake) -> None:
    table = lake.table("db.t")
    for start in range(0, 30, 5):
        table.append(rows(*range(start, start + 5)))
    scan = table.scan()
    root = table.files.root(table.current_snapshot, table.metadata.shape())
    leaves = [replace(each, key_metadata=None) for each in leaves_in(root)]
    assert leaves
    reader = table.files.reader(table.metadata.shape())
    call = LeafCall(
        read=read_leaf,
        reader=reader,
        predicate=bind(AlwaysTrue(), table.metadata.shape()),
        columns=None,
        removed={},
    )
    for here in (len(leaves), 0):
        run = Executors(spark=lake.spark, scan=scan, leaves_here=here)
        with pytest.raises(Exception, match="by the table's metadata it is plain"):
            list(run(call, leaves))
