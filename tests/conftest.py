"""How the tests are shared out when they run side by side.

A file's tests stay together, so that what they share is made once. A Spark session is shared by
all tests of a process.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests import parts
from tests.effort import EFFORT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.java import IcebergJava

# A busy machine fails no test, and what fails once fails again.
settings.register_profile(
    "tests", deadline=None, derandomize=EFFORT == 1, database=None, max_examples=100 * EFFORT
)
settings.load_profile("tests")

#: Files in memory are safe at once: a commit waits for a disk more than for anything else.
_MEMORY, _ENOUGH_BYTES = Path("/dev/shm"), 2 << 30
if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))

_CORES = os.cpu_count() or 1
#: What takes longest starts first: nothing is left to run alone at the end.
_FIRST = (
    "tests/spark",
    "tests/peers",
    "tests/campaigns",
    "tests/laws",
    "tests/foreign",
    "tests/table",
)
#: Tests that share what takes long to make, by where they are: what Java wrote, a stock Spark, and the
#: processes in which Spark runs a data source, one for each thing that is asked of it.
_SHARING = {
    "tests/peers": "peers",
    "tests/serve/plan/test_spark": "stock Spark",
    "tests/serve/test_signing_clients": "stock Spark",
    "tests/serve/test_spark_": "stock Spark",
    "tests/spark/cluster": "cluster",
    "tests/spark/test_bench_systems": "systems",
    "tests/spark/test_demo": "demo",
    "tests/spark/test_no_secrets": "data source",
    "tests/spark/test_source": "data source",
    "tests/spark/test_stream": "data source",
}
#: Tests that take the Spark session of their process. One that starts takes as long as many tests, and is
#: slow until it has seen most of what they ask, so that half of the processes have one.
_IN_A_SESSION = (
    "tests/spark/",
    "tests/test_docs_coming_from",
    "tests/test_docs_maintenance",
    "tests/test_docs_snippets",
)
#: Laws whose parts are made to run side by side.
_PARTS = (
    "test_any_history",
    "test_any_sequence",
    "test_no_seed_breaks_a_law",
    "test_the_quick_form_of_a_law",
)


class Together(LoadScopeScheduling):
    """Hand out tests by the group they belong to."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        for at, group in _SHARING.items():
            if file.startswith(at):
                return group
        if file.startswith(_IN_A_SESSION):
            return f"session {crc32(file.encode()) % self._sessions}"
        return nodeid if any(law in nodeid for law in _PARTS) else file

    @cached_property
    def _sessions(self) -> int:
        """How many sessions there are: as many as cores where nothing else is asked for."""
        alone = all(each.startswith(_IN_A_SESSION) for each in self.collection or ())
        return _CORES if alone else max(1, _CORES // 2)


def pytest_xdist_auto_num_workers() -> int:
    """Run one process more than there are cores: who asks Java, a server or a browser waits for it."""
    return _CORES + 1


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    """Share out tests by groups."""
    return Together(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the long tests first, and mark those that others take part in."""
    for item in items:
        if parts.is_interop(item.nodeid, getattr(item, "fixturenames", ())):
            item.add_marker(parts.INTEROP)
    items.sort(key=_turn)


def pytest_collection_finish() -> None:
    """Take what all tests are made of for what stays: each full collection went through all of it."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let what is fetched know whether it may be asked for."""
    parts.begin(item)


def _turn(item: pytest.Item) -> int:
    places = (i for i, place in enumerate(_FIRST) if item.nodeid.startswith(place))
    return next(places, len(_FIRST))


@pytest.fixture(scope="session")
def java() -> Iterator[IcebergJava]:
    """One Iceberg Java for all tests of a process that ask it."""
    from tests.java import iceberg_java

    with iceberg_java() as java:
        yield java


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests of a process: starting one takes seconds."""
    from icetree.spark.session import local_session
    from tests.jars import place_of
    from tests.spark.names_of_java import remember_names
    from tests.spark.reading import USUAL
    from tests.spark.settings import QUICK

    remember_names()
    # A session gets its jars when it starts; where they are missing, only tests on S3 are, too.
    jars = ",".join(map(str, sorted(place_of("s3a").glob("*.jar"))))
    conf = {**QUICK, **USUAL, **({"spark.jars": jars} if jars else {})}
    session = local_session("icetree tests", shuffle_partitions=2, extra_conf=conf)
    yield session
    session.stop()
