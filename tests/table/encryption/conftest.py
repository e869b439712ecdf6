"""A lake in which every kind of encrypted file is, made once, and copies of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.table.encryption.lake import KEY, SCHEMA, SMALL, connected, rows


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake in which every kind of file is."""
    tmp_path = tmp_path_factory.mktemp("made")
    with connected(tmp_path, k=KEY) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", SCHEMA, partition_by="city", properties=SMALL)
        for start in range(0, 60, 10):
            table.append(rows(*range(start, start + 10)))
        table.create_tag("before")
        table.delete("n = 5")
        table.delete("n in (6, 15)")
        table.delete("city = 'Zanzibar' and n < 10")
        table.update({"diagnosis": "'hush-new'"}, "n = 22")
        table.upsert(rows(1, 1000), on=["n"])
        table.merge(rows(22, 23), on=["n"]).when_matched_delete().run()
        table.maintenance.rewrite_manifests()
    return tmp_path


@pytest.fixture
def tmp_lake(made: Path, tmp_path: Path) -> Path:
    """A copy of that lake, to be changed; locations are those of the copy."""
    with connected(made, k=KEY) as lake, connected(tmp_path, k=KEY) as ours:
        at = lake.backup_table("db.t", str(tmp_path / "lake" / "db" / "t"))
        ours.create_namespace("db")
        ours.register_table("db.t", at)
    return tmp_path
