"""The commands by which tables come to the lake, from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from click.testing import CliRunner, Result

from icetree.cli.main import cli
from tests.table.moving.old_tables import as_folder, everything, lake_on, old_table, rows, uri


def run(folder: Path, *words: str) -> Result:
    options = ["--catalog", uri(folder), "--warehouse", str(folder / "ours")]
    return CliRunner().invoke(cli, [*options, "--property", "name=main", *words])


def test_upgrade_says_what_would_happen_and_does_it_with_yes(tmp_path: Path) -> None:
    old_table(tmp_path)
    before = everything(tmp_path / "lake")
    looked = run(tmp_path, "upgrade", "db.old")
    assert looked.exit_code == 0
    assert "db.old would become v4; it was v2" in looked.stdout
    assert "nothing was changed" in looked.stdout
    assert everything(tmp_path / "lake") == before
    done = run(tmp_path, "upgrade", "db.old", "--yes", "--json")
    assert json.loads(done.stdout)["dry_run"] is False
    again = run(tmp_path, "upgrade", "db.old", "--yes")
    assert again.exit_code != 0
    assert "v4 already" in again.stderr


def test_a_folder_gets_its_name_and_namespace_by_upgrade(tmp_path: Path) -> None:
    place = as_folder(tmp_path)
    looked = run(tmp_path, "upgrade", "fresh.t", "--source", str(place))
    assert "would become v4" in looked.stdout
    with lake_on(tmp_path) as lake:
        assert "fresh" not in lake.namespaces()
    assert run(tmp_path, "upgrade", "fresh.t", "--source", str(place), "--yes").exit_code == 0
    with lake_on(tmp_path) as lake:
        assert lake.table("fresh.t").scan().count() == 19


def test_trial_makes_a_table_that_can_be_dropped_again(tmp_path: Path) -> None:
    old_table(tmp_path)
    before = everything(tmp_path / "lake")
    would = run(tmp_path, "trial", "try.t", "--source", "db.old", "--dry-run").stdout
    assert would.startswith("would make try.t at ")
    assert everything(tmp_path / "lake") == before
    made = run(tmp_path, "trial", "try.t", "--source", "db.old")
    assert made.exit_code == 0
    assert "of the files of db.old" in made.stdout
    assert run(tmp_path, "drop", "try.t", "--purge", "--yes").exit_code == 0
    assert everything(tmp_path / "lake") == before


def test_a_folder_of_parquet_files_becomes_a_table(tmp_path: Path) -> None:
    place = tmp_path / "files"
    place.mkdir()
    pq.write_table(rows(0), place / "a.parquet")
    before = everything(place)
    would = run(tmp_path, "snapshot", "try.t", "--source", str(place), "--dry-run").stdout
    assert would.startswith("would make try.t at ")
    assert would.endswith(", of 1 data files\n")
    assert "try" not in run(tmp_path, "ls").stdout
    assert "of 1 data files" in run(tmp_path, "snapshot", "try.t", "--source", str(place)).stdout
    assert run(tmp_path, "drop", "try.t", "--purge", "--yes").exit_code == 0
    looked = run(tmp_path, "migrate", "db.t", "--source", str(place))
    assert f"would make db.t at {place}, of 1 data files" in looked.stdout
    assert "nothing was changed" in looked.stdout
    assert everything(place) == before
    told = json.loads(run(tmp_path, "migrate", "db.t", "--source", str(place), "--json").stdout)
    assert told == {"name": "db.t", "source": str(place), "files": 1, "dry_run": True}
    gone = run(tmp_path, "migrate", "db.t", "--source", str(tmp_path / "nowhere"))
    assert "has no Parquet files" in gone.stderr, "it is looked at before anybody says yes"
    assert "of 1 data files" in run(
        tmp_path, "migrate", "db.t", "--source", str(place), "--yes"
    ).stdout  # fmt: skip
    with lake_on(tmp_path) as lake:
        assert lake.table("db.t").scan().count() == 10
