"""Two parts of the tests: the usual run, and what others take part in.

`make test` runs the usual part, `make interop` the other one, `make check` and so CI both. This is the
one place that says which tests are of which part; whoever asks for a peer in the usual part is told so.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import pytest

#: The marker of the part that others take part in.
INTEROP = "interop"

#: Fixtures that are others themselves.
_OTHERS = frozenset({"java"})

#: Where others take part by themselves, and who they are.
PLACES = {
    "tests/campaigns/test_soak.py": "writers in processes of their own, and servers in trouble",
    "tests/catalog/test_many_processes.py": "writers in processes of their own",
    "tests/catalog/test_patience.py": "servers that stand still, which one has to wait for",
    "tests/cli/test_demo.py::test_without_spark_or_java_one_line_says_what_to_install": (
        "a Python that lacks something"
    ),
    "tests/cli/test_race.py": "PyIceberg, which commits beside us",
    "tests/explore/test_browser.py": "a browser",
    "tests/explore/test_browser_filters.py": "a browser",
    "tests/laws/test_no_secrets.py::test_python_shows_no_secret_where_nobody_answers_as_they_should": (
        "servers that are none, or stand still"
    ),
    "tests/peers": "tables of Iceberg Java and PyIceberg",
    "tests/serve/plan/test_pyiceberg.py": "PyIceberg, which lets the server plan",
    "tests/serve/plan/test_spark.py": "Spark with Iceberg Java",
    "tests/serve/test_docs.py": "PyIceberg, curl and Spark, as the page says",
    "tests/serve/test_process.py": "PyIceberg, and servers in processes of their own",
    "tests/serve/test_row_kills.py": "PyIceberg, whose commits are sent again",
    "tests/serve/test_signing_clients.py": "PyIceberg, and Spark with Iceberg Java, without keys",
    "tests/serve/test_spark_beside.py": "Spark with Iceberg Java",
    "tests/serve/test_spark_docs.py": "Spark with Iceberg Java, as the page says",
    "tests/serve/test_spark_procedures.py": "Spark with Iceberg Java, and tables of PyIceberg",
    "tests/serve/test_spark_same_file.py": "Spark with Iceberg Java",
    "tests/serve/test_spark_statements.py": "Iceberg Java, on the same Spark",
    "tests/serve/test_spark_v2.py": "Spark with Iceberg Java",
    "tests/serve/test_spark_whole_files.py": "Spark with Iceberg Java",
    "tests/serve/test_spark_writing.py": "Spark with Iceberg Java",
    "tests/serve/test_writing.py": "PyIceberg, which writes",
    "tests/serve/test_writing_deletes.py": "PyIceberg, which writes",
    "tests/spark/cluster": "executors on other machines, S3 and PostgreSQL",
    "tests/spark/test_bench_systems.py": "the systems that benchmarks compare",
    "tests/spark/test_demo.py": "PyIceberg, which commits beside us",
    "tests/spark/test_encryption.py::test_the_data_source_takes_keys_along": "a data source",
    "tests/spark/test_no_secrets.py": "a data source, which Spark runs in processes of its own",
    "tests/spark/test_s3.py": "Hadoop's S3A",
    "tests/spark/test_source.py": "a data source, which Spark runs in processes of its own",
    "tests/spark/test_stream.py": "streams, which run beside us",
    "tests/spark/test_stream_kills.py": "streams, which run beside us",
    "tests/spark/test_stream_read.py": "streams of a data source",
    "tests/spark/tpch": "plain files, which Spark answers the same questions of",
    "tests/store/test_patience.py": "servers that stand still, which one has to wait for",
    "tests/table/commit/test_many_writers.py": "writers in processes of their own",
    "tests/table/export/test_exported.py::test_pyiceberg_reads_what_icetree_does": "PyIceberg",
    "tests/table/maintain/test_beside_writers.py": "writers in processes of their own",
    "tests/table/maintain/test_compact_beside_writers.py": "writers in processes of their own",
    "tests/test_docs_snippets.py": "whoever reads the pages and tries what they say",
}


@dataclass(slots=True)
class _Now:
    """Which part the test that runs is of; None where none does."""

    is_interop: bool | None = None


_NOW = _Now()


def is_interop(test: str, fixtures: Collection[str] = ()) -> bool:
    """Tell whether others take part in a test: by its id, and by the fixtures that it asks for."""
    # A place is a folder, a file or a test in one.
    is_there = any(test.startswith((f"{place}/", f"{place}::", f"{place}[")) for place in PLACES)
    return is_there or test in PLACES or not _OTHERS.isdisjoint(fixtures)


def begin(item: pytest.Item) -> None:
    """Note of which part the test is that runs now."""
    _NOW.is_interop = item.get_closest_marker(INTEROP) is not None


def require_interop(what: str) -> None:
    """Fail a test of the usual part that asks for what it must not need."""
    if _NOW.is_interop is False:
        pytest.fail(f"a test of the usual run asks for {what}: name its file in tests/parts.py")
