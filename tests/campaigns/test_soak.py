"""`make soak`, shortened: writers who are killed lose nothing, on disk and on servers in trouble."""

from __future__ import annotations

from pathlib import Path

from campaigns.soak.run import soak
from campaigns.soak.servers import on_disk, on_servers

#: As many as see a writer killed.
COMMITS = 40


def test_writers_that_are_killed_on_a_faulty_disk_lose_nothing(tmp_path: Path) -> None:
    assert soak(on_disk(tmp_path, 0.02), COMMITS, every_s=1) == []


def test_a_failover_and_a_faulty_object_store_lose_nothing(tmp_path: Path) -> None:
    with on_servers(tmp_path, {"postgres", "s3"}, 0.03) as ground:
        assert ground.pair is not None
        ground.pair.coming = ["failover", "restart"]
        assert soak(ground, COMMITS, every_s=1) == []
    struck = ground.struck()
    assert struck["PostgreSQL failover"] >= 1
    assert any(kind.startswith("S3 ") for kind in struck)
