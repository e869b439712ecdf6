"""What peers wrote and planned, made once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from icetree.catalog.memory import MemoryCatalog
from icetree.store.local import LocalStore
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import EFFORT, SEED
from tests.jars import fetched
from tests.peers.filters import Filter, random_filters, to_json
from tests.peers.plans import Planned
from tests.peers.values import ALL_JAVA_TABLES, JAVA_TABLES, pools

REPOSITORY = Path(__file__).parents[2]
#: As many filters must have been compared on each table.
FILTERS = 60 * EFFORT
#: As many are asked: on a few Java fails.
_ASKED = 72 * EFFORT


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaTable:
    """A table that Iceberg Java wrote, and what it plans for each filter."""

    metadata_location: str
    plans: list[tuple[Filter, Planned]]
    #: Those that Java has no answer for.
    unanswered: list[Filter]
    everything: Planned
    first_row_ids: Mapping[str, int | None]

    def opened(self) -> Table:
        """Return icetree's handle on the table as Java left it."""
        lake = Lake(catalog=MemoryCatalog("peers"), store=LocalStore())
        lake.create_namespace("db")
        return lake.register_table("db.t", self.metadata_location)


@pytest.fixture(scope="session")
def java_tables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, JavaTable]:
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
        [*command, str(asked), str(answers)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    told = json.loads(answers.read_text())
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
