"""`make writers`, shortened: in threads of one process, so that it is quick."""

from __future__ import annotations

from pathlib import Path

import pytest

from campaigns.writers.run import run
from tests.effort import EFFORT
from tests.servers.postgres import shared_server


@pytest.mark.law
@pytest.mark.parametrize("catalog", ["sqlite", "postgres"])
def test_sixteen_writers_of_every_kind_lose_nothing_and_give_up_nothing(
    catalog: str, tmp_path: Path
) -> None:
    of_file = f"sqlite:///{tmp_path}/catalog.db"
    address = of_file if catalog == "sqlite" else shared_server().new_schema()
    _, wrong = run(
        address, tmp_path, writers=16, commits=2 * EFFORT, give_up_s=300, in_threads=True
    )
    assert wrong == []
