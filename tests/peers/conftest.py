"""What peers wrote and planned, made once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable
from pyiceberg.transforms import BucketTransform, DayTransform, Transform, TruncateTransform
from pyiceberg.types import DateType, IcebergType, TimestampType, TimestamptzType

import icetree
from icetree.catalog.memory import MemoryCatalog
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.jars import fetched
from tests.java import IcebergJava
from tests.peers.filters import Filter, random_filters, to_json
from tests.peers.java_rows import JavaRows
from tests.peers.plans import Planned
from tests.peers.readers import (
    Reader,
    icetree_reads,
    java_reads,
    of_exports,
    pyiceberg_reads,
    through_server,
)
from tests.peers.values import ALL_JAVA_TABLES, JAVA_TABLES, JAVA_ZOO, pools
from tests.serve.processes import running

REPOSITORY = Path(__file__).parents[2]
#: As many filters must have been compared on each table.
FILTERS = 30 * EFFORT
#: As many are asked: on a few Java fails.
_ASKED = 40 * EFFORT


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaTable:
    """A table that Iceberg Java wrote, and what it plans for each filter."""

    metadata_location: str
    plans: list[tuple[Filter, Planned]]
    #: Those that Java has no answer for.
    unanswered: list[Filter]
    everything: Planned
    first_row_ids: Mapping[str, int | None]

    def lake(self) -> Lake:
        """Return a lake with the table, as Java left it, as `db.t`."""
        lake = Lake(catalog=MemoryCatalog("peers"), store=LocalStore())
        lake.create_namespace("db")
        lake.register_table("db.t", self.metadata_location)
        return lake

    def opened(self) -> Table:
        """Return icetree's handle on the table as Java left it."""
        return self.lake().table("db.t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Animal:
    """A table that Iceberg Java wrote, and the rows that it reads of some snapshots."""

    metadata_location: str
    rows: Mapping[int, pa.Table]
    #: Where branches and tags point.
    refs: Mapping[str, int]

    def opened(self) -> Table:
        """Return icetree's handle on the table as Java left it."""
        lake = Lake(catalog=MemoryCatalog("peers"), store=LocalStore())
        lake.create_namespace("db")
        return lake.register_table("db.t", self.metadata_location)


@pytest.fixture(scope="session")
def readers(
    java: IcebergJava, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Reader]]:
    """Who reads the tables of the zoo, by name; all that read a table have their place here."""
    folder = tmp_path_factory.mktemp("served")
    address = f"sqlite:///{folder}/c.db"
    with icetree.connect(address, warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        # A plan of thousands of manifests takes as long as the machine is busy.
        with running(folder, "--plan-seconds", "600") as server:
            rest = RestCatalog("served", uri=server.uri)
            assert rest.supports_server_side_planning()
            served_to_pyiceberg = through_server(lake, lambda *name: rest.load_table(name))
            served_to_java = through_server(lake, lambda *name: java.served(server.uri, *name))
            # Who plans by itself reads the manifests that the server wrote when the table was loaded.
            itself = {"scan-planning-mode": "client"}
            alone = RestCatalog("alone", uri=server.uri, **itself)
            assert not alone.supports_server_side_planning()
            loaded_by_pyiceberg = through_server(lake, lambda *name: alone.load_table(name))
            loaded_by_java = through_server(
                lake, lambda *name: java.served(server.uri, *name, scan_planning_mode="client")
            )
            rows = JavaRows(java)
            yield {
                "icetree": icetree_reads(),
                "PyIceberg, of exports": pyiceberg_reads(of_exports(StaticTable.from_metadata)),
                "PyIceberg, through the server": pyiceberg_reads(served_to_pyiceberg),
                "Iceberg Java, of exports": java_reads(rows, of_exports(java.table)),
                "Iceberg Java, through the server": java_reads(rows, served_to_java),
                "PyIceberg, by manifests of the server": pyiceberg_reads(
                    loaded_by_pyiceberg, reads_again=True
                ),
                "Iceberg Java, by manifests of the server": java_reads(
                    rows, loaded_by_java, reads_again=True
                ),
            }


@pytest.fixture(scope="session")
def java_zoo(_java: _Told) -> Mapping[str, Animal]:
    """The rows that Iceberg Java reads of its tables."""
    return {name: _animal(_java, name) for name in JAVA_ZOO}


def _animal(told: _Told, name: str) -> Animal:
    place = told.rows / name
    found = {}
    for file in place.glob("*.arrow"):
        with pa.OSFile(str(file)) as source:
            found[int(file.stem)] = pa.ipc.open_file(source).read_all()
    refs = json.loads((place / "refs.json").read_text())
    return Animal(
        metadata_location=told.answers[name]["metadata"],
        rows=found,
        refs={each["name"]: each["snapshot_id"] for each in refs},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What the program told that wrote the tables."""

    answers: Mapping[str, Any]
    filters: Mapping[str, list[Filter]]
    rows: Path


@pytest.fixture(scope="session")
def _java(tmp_path_factory: pytest.TempPathFactory) -> _Told:
    """Let Iceberg Java write its tables and plan all filters, in a process of its own."""
    jar = fetched("iceberg-java")
    place = tmp_path_factory.mktemp("java")
    filters = {
        name: random_filters(seed, _ASKED, pools(name))
        for seed, name in enumerate(ALL_JAVA_TABLES, start=SEED * len(ALL_JAVA_TABLES))
        if name in JAVA_TABLES
    }
    asked, answers = place / "filters.json", place / "answers.json"
    asked.write_text(
        json.dumps({name: [to_json(one) for one in each] for name, each in filters.items()})
    )
    command = [sys.executable, "-m", "tests.peers.java_tables", str(jar), str(place / "lake")]
    done = subprocess.run(
        [*command, str(asked), str(answers), str(place / "rows")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    return _Told(answers=json.loads(answers.read_text()), filters=filters, rows=place / "rows")


@pytest.fixture(scope="session")
def java_tables(_java: _Told) -> Mapping[str, JavaTable]:
    """The plans of Iceberg Java for its tables."""
    told, filters = _java.answers, _java.filters
    return {
        name: JavaTable(
            metadata_location=told[name]["metadata"],
            plans=[(each, _planned(plan)) for each, plan in answered if plan is not None],
            unanswered=[each for each, plan in answered if plan is None],
            everything=_planned(told[name]["all"]),
            first_row_ids={location: first for location, first, _ in told[name]["all"]},
        )
        for name in JAVA_TABLES
        for answered in [list(zip(filters[name], told[name]["plans"], strict=True))]
    }


def _planned(tasks: list[tuple[str, int | None, list[list[object]]]]) -> Planned:
    found = {location: frozenset(map(tuple, deletes)) for location, _, deletes in tasks}
    assert len(found) == len(tasks), "Java plans a file twice"
    return found  # type: ignore[return-value]


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlCatalog]:
    for transform in (BucketTransform, DayTransform, TruncateTransform):
        monkeypatch.setattr(transform, "pyarrow_transform", _one_by_one)
    catalog = SqlCatalog(
        "main", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/lake"
    )
    catalog.create_namespace("db")
    yield catalog
    catalog.engine.dispose()


def _one_by_one(
    transform: Transform[Any, Any], source: IcebergType
) -> Callable[[pa.ChunkedArray], pa.Array]:
    """Apply PyIceberg's own transform to each value: for columns it wants a package more."""
    of_value = transform.transform(source)
    kept = isinstance(transform, TruncateTransform)

    def apply(values: pa.ChunkedArray) -> pa.Array:
        plain = values
        if isinstance(source, DateType):
            plain = values.cast(pa.int32())
        elif isinstance(source, TimestampType | TimestamptzType):
            plain = values.cast(pa.int64())
        found = [of_value(value) for value in plain.to_pylist()]
        return pa.array(found, values.type if kept else pa.int32())

    return apply
