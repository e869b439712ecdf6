"""Spark standalone, a catalog in PostgreSQL, tables in S3: all that the lake does, on other machines.

Each worker is a process of its own, and executors have nothing but what is installed. The usual run
has one executor, of a cluster that is within the driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.effort import EFFORT, SEED, usually
from tests.jars import fetched
from tests.servers.postgres import shared_server
from tests.servers.proxy import Hold, Wire, wire_to
from tests.servers.s3 import shared_s3
from tests.spark.cluster import losing, tasks
from tests.spark.cluster.driver import Driver, Place, begin, wait_for_executors
from tests.spark.cluster.standalone import SMALLEST, Standalone, installed, spark_home

WORKERS = 2
ROWS = 100


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all of the cluster sees."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(autouse=True)
def nothing_told(folder: Path) -> Iterator[None]:
    """Leave none of the files by which a test and its executors tell each other of something."""
    yield
    for each in ("go", "stop", "waiting"):
        (folder / each).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Standalone]:
    made = Standalone(folder, workers=WORKERS)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    """What lies between icetree and S3."""
    with wire_to(shared_s3().port) as made:
        yield made


@pytest.fixture(scope="module")
def place(folder: Path, wire: Wire) -> Place:
    s3 = shared_s3()
    return Place(
        master=SMALLEST,
        catalog=shared_server().new_schema(),
        bucket=s3.new_bucket(),
        properties=s3.properties(port=wire.port),
        jars=tuple(map(str, sorted(fetched("s3a").glob("*.jar")))),
        folder=folder,
        python=installed(folder / "python"),
        home=spark_home(folder / "spark"),
    )


@pytest.fixture(scope="module")
def driver(cluster: Standalone, place: Place) -> Iterator[Driver]:
    yield from _driver(replace(place, master=cluster.address), WORKERS)


@pytest.fixture(scope="module")
def small(place: Place) -> Iterator[Driver]:
    yield from _driver(place, 1)


def _driver(place: Place, executors: int) -> Iterator[Driver]:
    place = replace(place, catalog=shared_server().new_schema(), bucket=shared_s3().new_bucket())
    made = Driver()
    made.do(begin, place)
    made.do(wait_for_executors, executors)
    yield made
    made.stop()


@pytest.mark.parametrize("of", usually(["driver", "small"], "small"))
def test_executors_know_what_is_installed_and_nothing_else_of_this_repository(
    request: pytest.FixtureRequest, place: Place, of: str
) -> None:
    driver: Driver = request.getfixturevalue(of)
    [own] = place.python.parents[1].glob("lib/python*/site-packages")
    assert driver.do(tasks.places, ("icetree",)) == {str(own)}
    assert driver.do(tasks.places, ("tests", "benchmarks", "campaigns")) == {None}


@pytest.mark.parametrize("of", usually(["driver", "small"], "small"))
def test_rows_are_written_changed_planned_streamed_told_of_and_maintained_on_a_cluster(
    request: pytest.FixtureRequest, folder: Path, of: str
) -> None:
    driver: Driver = request.getfixturevalue(of)
    name = f"db.{of}"
    driver.do(tasks.create, name, ROWS)
    assert driver.do(tasks.statements, name) == [
        (88, "first"),
        (89, "first"),
        (90, "merged"),
        (91, "merged"),
        (92, "merged"),
    ]
    expected = {id: "first" for id in range(ROWS) if id % 10} | dict.fromkeys(
        range(90, 110), "merged"
    )
    assert driver.do(tasks.values, name) == expected
    assert driver.do(tasks.plans, name, "id > 3")
    # Ten rows were deleted, nine updated, and of eleven that are new one was deleted before.
    assert driver.do(tasks.changed, name) == {"INSERT": 120, "DELETE": 19}
    (folder / "go").touch()
    driver.do(losing.stream, name, 110, 130)
    expected |= dict.fromkeys(range(110, 130), "new")
    assert driver.do(tasks.values, name) == expected
    before, after = driver.do(tasks.maintain, name)
    # One file for each partition.
    assert before > after == 4
    assert driver.do(tasks.values, name) == expected
    assert driver.do(tasks.is_sound, name)


@pytest.mark.long
@pytest.mark.law
def test_any_sequence_of_statements_reads_like_a_list_of_rows_on_a_cluster(driver: Driver) -> None:
    driver.do(tasks.play, SEED, 6 * EFFORT)


@pytest.mark.parametrize(
    "verb",
    [
        pytest.param(each, marks=pytest.mark.long)
        for each in (losing.append, losing.merge, losing.stream)
    ],
    ids=lambda each: each.__name__,
)
def test_a_worker_that_is_lost_takes_no_row_along_and_brings_none_twice(
    cluster: Standalone, driver: Driver, folder: Path, verb: Callable[[str, int, int], None]
) -> None:
    name = f"db.{verb.__name__}"
    driver.do(tasks.create, name, ROWS)
    before = driver.do(tasks.values, name)
    new = range(50 if verb is losing.merge else ROWS, 150)
    running = driver.start(verb, name, new.start, new.stop)
    cluster.lose_worker(_told(folder / "waiting"))
    (folder / "go").touch()
    failed = running.exception(240)
    found = driver.do(tasks.values, name)
    assert found == (before if failed else before | dict.fromkeys(new, "new"))
    assert driver.do(tasks.is_sound, name)
    # The next loses one as well.
    cluster.add_worker()
    driver.do(wait_for_executors, WORKERS)


@pytest.mark.long
def test_a_stream_that_is_stopped_when_its_worker_is_lost_goes_on_where_it_was(
    cluster: Standalone, driver: Driver, folder: Path
) -> None:
    name = "db.stopped"
    driver.do(tasks.create, name, ROWS)
    before = driver.do(tasks.values, name)
    driver.do(losing.begin_to_stream, name, ROWS, 150)
    running = driver.start(losing.go_on, name)
    cluster.lose_worker(_told(folder / "waiting"))
    (folder / "stop").touch()
    running.result(240)
    (folder / "stop").unlink()
    assert driver.do(tasks.values, name) == before
    (folder / "go").touch()
    for _ in range(2):
        driver.do(losing.go_on, name)
        assert driver.do(tasks.values, name) == before | dict.fromkeys(range(ROWS, 150), "new")
    assert driver.do(tasks.is_sound, name)
    cluster.add_worker()
    driver.do(wait_for_executors, WORKERS)


@pytest.mark.long
@pytest.mark.parametrize(
    ("verb", "moment"),
    [
        (losing.compact, (b"PUT ", b"/data/")),
        (losing.rewrite_manifests, (b"PUT ", b"/metadata/")),
        (losing.find_orphans, (b"GET ", b"list-type=2")),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_worker_that_is_lost_in_maintenance_changes_no_row(
    cluster: Standalone,
    driver: Driver,
    wire: Wire,
    verb: Callable[[str], int],
    moment: tuple[bytes, ...],
) -> None:
    name = f"db.{verb.__name__}"
    driver.do(tasks.create, name, ROWS)
    driver.do(losing.leave_something_to_do, name, ROWS)
    before = driver.do(tasks.lineage, name)
    wire.hold = hold = Hold(moment)
    running = driver.start(verb, name)
    cluster.lose_client(hold.held.get(timeout=120))
    wire.hold = None
    hold.go.set()
    # Another worker does what this one did not get done.
    assert running.result(240)
    assert driver.do(tasks.lineage, name) == before
    assert driver.do(tasks.is_sound, name)
    cluster.add_worker()
    driver.do(wait_for_executors, WORKERS)


@pytest.mark.long
@pytest.mark.parametrize(
    "verb",
    [losing.append_unweighed, losing.merge_unweighed, losing.append_large],
    ids=lambda each: each.__name__,
)
def test_a_worker_that_is_lost_while_it_writes_what_nobody_weighed_costs_and_doubles_no_row(
    cluster: Standalone, driver: Driver, wire: Wire, verb: Callable[[str, int, int], None]
) -> None:
    name = f"db.{verb.__name__}"
    driver.do(tasks.create, name, ROWS)
    expected = driver.do(tasks.values, name)
    new = range(50 if verb is losing.merge_unweighed else ROWS, 150)
    wire.hold = hold = Hold((b"PUT ", b"/data/"))
    running = driver.start(verb, name, new.start, new.stop)
    cluster.lose_client(hold.held.get(timeout=120))
    wire.hold = None
    hold.go.set()
    running.result(240)
    expected |= dict.fromkeys(new, "new")
    if verb is losing.append_large:
        expected |= dict.fromkeys(new[-5:], "new" + " " * losing.LARGE_SIZE)
    assert driver.do(tasks.values, name) == expected
    assert driver.do(tasks.is_sound, name)
    # What the lost worker wrote is an orphan, and no file is anything else.
    driver.do(losing.remove_orphans, name)
    assert driver.do(tasks.values, name) == expected
    assert driver.do(tasks.is_sound, name)
    cluster.add_worker()
    driver.do(wait_for_executors, WORKERS)


def _told(file: Path) -> str:
    """Return what a file says, as soon as it is there."""
    give_up = time.monotonic() + 120
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < give_up, "nothing waited"
        time.sleep(0.05)
    return file.read_text()
