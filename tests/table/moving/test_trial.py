"""A trial shares the files of a table of v1 to v3, and never harms one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from icetree.errors import InvalidInput
from icetree.table.lake import Lake
from icetree.table.maintain.maintain import Maintenance
from icetree.table.table import Table
from tests.table.moving.old_tables import as_folder, everything, lake_on, old_table, rows, uri

EVER = "2100-01-01T00:00:00Z"


def sorted_rows(found: pa.Table) -> list[object]:
    return found.sort_by("id").to_pylist()


def _expire(table: Table) -> object:
    return table.maintenance.expire_snapshots(older_than=EVER, retain_last=1)


def _lose_all(table: Table) -> object:
    """Let go of all that is shared: every row, then every snapshot that had them."""
    for name in [name for name in table.refs if name != "main"]:
        table.remove_tag(name)
    table.truncate()
    return _expire(table)


#: What maintenance has, each with what makes it do the most.
MAINTENANCE: dict[str, Callable[[Table], object]] = {
    "expire_snapshots": _lose_all,
    "remove_orphan_files": lambda table: table.maintenance.remove_orphan_files(
        older_than=EVER, force=True
    ),
    "rewrite_manifests": lambda table: (table.maintenance.rewrite_manifests(), _expire(table)),
    "rewrite_data_files": lambda table: (
        table.maintenance.rewrite_data_files(options={"rewrite-all": "true"}),
        _expire(table),
    ),
    "compute_table_stats": lambda table: (table.maintenance.compute_table_stats(), _expire(table)),
    "compute_partition_stats": lambda table: table.maintenance.compute_partition_stats(),
    "rewrite_position_delete_files": lambda table: (
        table.maintenance.rewrite_position_delete_files(),
        _expire(table),
    ),
    "optimize": lambda table: table.maintenance.optimize(),
}
#: What else may be done to a trial.
VERBS: dict[str, Callable[[Lake, Table], object]] = {
    "append": lambda _, table: table.append(rows(50)),
    "delete rows": lambda _, table: (table.delete("id < 5"), _lose_all(table)),
    "delete partitions": lambda _, table: (table.delete("country = 'DE'"), _lose_all(table)),
    "update": lambda _, table: (table.update({"price": 0.0}), _lose_all(table)),
    "overwrite": lambda _, table: (table.overwrite("true", rows(0)), _lose_all(table)),
    "evolve": lambda _, table: table.edit_schema().__enter__().drop("price"),
    "drop": lambda lake, table: lake.drop_table(str(table.name)),
    "drop with its files": lambda lake, table: lake.drop_table(str(table.name), purge=True),
    "drop with its files, in the end": lambda lake, table: (
        _lose_all(table),
        table.append(rows(0)),
        lake.drop_table(str(table.name), purge=True),
    ),
    **{name: lambda _, table, do=do: do(table) for name, do in MAINTENANCE.items()},  # type: ignore[misc]
}


def test_every_verb_of_maintenance_is_among_those_that_are_tried() -> None:
    assert MAINTENANCE.keys() == {name for name in dir(Maintenance) if not name.startswith("_")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trial")
    old_table(folder)
    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_on_a_trial_changes_or_deletes_a_file_of_the_other_table(
    made: Path, verb: str
) -> None:
    with lake_on(made) as lake:
        before, head = everything(made / "lake"), lake.table("db.old").state.metadata_location
        ours = sorted_rows(lake.table("db.old").scan().to_arrow())
        trial = lake.trial_table("new.t", "db.old")
        try:
            assert trial.metadata.format_version == 4
            assert sorted_rows(trial.scan().to_arrow()) == ours
            assert trial.scan(at="first").count() == 10
            VERBS[verb](lake, trial)
            assert everything(made / "lake") == before
            assert lake.table("db.old").state.metadata_location == head
            assert sorted_rows(lake.table("db.old").scan().to_arrow()) == ours
            if lake.table_exists("new.t"):
                assert lake.table("new.t").verify(deep=True).findings == ()
        finally:
            lake.drop_table("new.t", missing_ok=True)


def test_a_dry_run_gives_the_trial_as_it_would_be_and_writes_nothing(tmp_path: Path) -> None:
    old_table(tmp_path)
    with lake_on(tmp_path) as lake:
        before = everything(tmp_path)
        would = lake.trial_table("new.t", "db.old", dry_run=True)
        assert would.metadata.format_version == 4
        assert would.scan().count() == lake.table("db.old").scan().count()
        assert not lake.table_exists("new.t")
        assert everything(tmp_path).keys() == before.keys()


def test_a_trial_lets_go_of_its_own_files(tmp_path: Path) -> None:
    made = tmp_path
    old_table(made)
    with lake_on(made) as lake:
        trial = lake.trial_table("new.t", "db.old")
        trial.append(rows(50))
        own = everything(made / "ours").keys()
        trial.delete("id >= 50")
        gone = MAINTENANCE["expire_snapshots"](trial)
        assert gone.deleted_data_files_count == 2  # type: ignore[attr-defined]
        assert own - everything(made / "ours").keys()
        done = lake.drop_table("new.t", purge=True)
        assert done is not None
        assert everything(made / "ours") == {}


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
def test_a_trial_writes_to_no_place_of_the_other_table(tmp_path: Path, name: str) -> None:
    theirs = old_table(tmp_path)
    place = theirs.location() + "/elsewhere"
    with lake_on(tmp_path) as lake:
        lake.table("db.old").set_properties({name: place})
        before = everything(tmp_path / "lake")
        trial = lake.trial_table("new.t", "db.old")
        trial.append(rows(50))
        assert everything(tmp_path / "lake") == before


@pytest.mark.parametrize("is_former", [False, True], ids=["now", "formerly"])
@pytest.mark.parametrize("below", ["space", "space/data", "space/data/below"])
def test_a_trial_keeps_off_the_places_that_the_other_table_has_files_in(
    tmp_path: Path, below: str, is_former: bool
) -> None:
    with lake_on(tmp_path) as lake:
        catalog = SqlCatalog("main", uri=uri(tmp_path), warehouse=f"file://{tmp_path}/lake")
        catalog.create_namespace("db")
        paths = {"write.data.path": f"file://{tmp_path}/space/data"}
        theirs = catalog.create_table("db.old", rows(0).schema, properties=paths)
        theirs.append(rows(0))
        if is_former:
            theirs.transaction().remove_properties("write.data.path").commit_transaction()
        catalog.engine.dispose()
        before = everything(tmp_path / "space")
        assert before
        place = f"{tmp_path}/{below}"
        if is_former and below.endswith("below"):
            trial = lake.trial_table("new.t", "db.old", location=place)
            _lose_all(trial)
        else:
            with pytest.raises(InvalidInput, match=r"one in the other|is a file of"):
                lake.trial_table("new.t", "db.old", location=place)
            assert not lake.table_exists("new.t")
        assert before.items() <= everything(tmp_path / "space").items()
        assert lake.table("db.old").scan().count() == 10


def test_the_other_tables_maintenance_may_take_files_from_under_a_trial_and_verify_tells(
    tmp_path: Path,
) -> None:
    theirs = old_table(tmp_path)
    with lake_on(tmp_path) as lake:
        trial = lake.trial_table("new.t", "db.old")
        assert trial.verify().findings == ()
        lost = next(Path(theirs.location().removeprefix("file://")).glob("data/**/*.parquet"))
        lost.unlink()
        found = lake.table("new.t").verify(deep=True).findings
        assert any(lost.name in str(each) for each in found)


def test_a_trial_of_a_folder_or_a_metadata_file_leaves_both_as_they_are(tmp_path: Path) -> None:
    place = as_folder(tmp_path)
    before = everything(place)
    with lake_on(tmp_path) as lake:
        for name, source in (("new.a", place), ("new.b", place / "metadata/v2.metadata.json")):
            trial = lake.trial_table(name, str(source), location=str(tmp_path / name))
            assert trial.scan().count() == 19
            trial.append(rows(50))
            lake.drop_table(name, purge=True)
    assert everything(place) == before


@pytest.mark.parametrize(
    ("source", "location", "why"),
    [
        ("db.old", "lake/db.db/old", "one in the other"),
        ("db.old", "lake/db.db/old/below", "one in the other"),
        ("db.old", "lake", "one in the other"),
        ("db.old", "s3://bucket/t", "another kind of store"),
        ("db.v4", "ours/t", "of v4 already"),
    ],
)
def test_a_trial_that_could_not_be_kept_apart_is_refused(
    made: Path, source: str, location: str, why: str
) -> None:
    with lake_on(made) as lake:
        lake.create_table("db.v4", rows(0).schema, location=f"{made}/v4", exist_ok=True)
        place = lake.table("db.old").location.removeprefix("file://")
        spelt = location.replace("lake/db.db/old", place) if "old" in location else location
        if "://" not in spelt and not spelt.startswith("/"):
            spelt = str(made / spelt)
        before = everything(made)
        with pytest.raises(InvalidInput, match=why):
            lake.trial_table("new.t", source, location=spelt)
        assert everything(made / "lake") == {
            name: held for name, held in before.items() if name.startswith(f"{made}/lake")
        }
        assert not lake.table_exists("new.t")
