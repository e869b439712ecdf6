"""One word for one thing in what is told: columns of tables, and the JSON of the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from itertools import count
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import icetree
from icetree.cli.main import cli
from icetree.picture.model import Arrow
from icetree.rows.write.deletes import write_equality_deletes
from icetree.table.inspect.inspect import Inspect
from icetree.table.repair import Action
from tests.test_language import public, words

#: Columns of Iceberg's metadata tables, whose names stay as people know them.
OF_ICEBERG = words(
    """
    added_data_files_count added_delete_files_count added_manifests_count rewritten_manifests_count added_bytes_count rewritten_bytes_count rewritten_delete_files_count added_rows added_rows_count added_snapshot_id
    column_size column_sizes committed_at contains_nan contains_null content content_offset
    content_size_in_bytes data_file delete_file_path deleted_data_files_count
    deleted_delete_files_count deleted_equality_delete_files_count deleted_manifest_files_count
    deleted_manifest_lists_count deleted_position_delete_files_count deleted_rows_count
    deleted_statistics_files_count equality_delete_file_count failed_data_files_count
    equality_delete_record_count equality_ids existing_data_files_count
    existing_delete_files_count existing_rows_count file file_count file_format file_path
    file_sequence_number file_size_in_bytes first_row_id is_current_ancestor key_metadata
    last_updated_at last_updated_snapshot_id latest_schema_id latest_sequence_number
    latest_snapshot_id length lower_bound made_current_at manifest_list max_reference_age_in_ms
    max_snapshot_age_in_ms min_sequence_number min_snapshots_to_keep name nan_value_count
    nan_value_counts null_value_count null_value_counts operation orphan_file_location parent_id partition
    partition_spec_id partition_summaries path pos position_delete_file_count
    position_delete_record_count readable_metrics record_count reference_snapshot_id
    referenced_data_file removed_delete_files_count rewritten_bytes_count
    rewritten_data_files_count row schema_id sequence_number snapshot_id sort_order_id spec_id
    split_offsets status summary timestamp total_data_file_size_in_bytes type upper_bound
    value_count value_counts partition_statistics_file statistics_file
    """
)


#: Words for what Iceberg's have no column for.
OUR_COLUMNS = words(
    """
    affiliated_with by change change_ordinal data_sequence_number dv_cardinality entries
    equality_deletes expr_id is_default is_removed kept kind leaf level live_entries
    manifest_dv_cardinality object objects partition_field_id position position_deletes residual
    root_manifest source_ids source_names spec_ids transform within
    """
)


#: Words of JSON that are no column: what holds other things, and what is told of a whole table.
OF_JSON = words(
    """
    actions arrows caption clean columns conjuncts counts current_snapshot data_dvs data_files
    data_leaves_read data_leaves_skipped data_leaves_total delete_files delete_leaves_read
    delete_leaves_skipped delete_leaves_total deletes doc does done dry_run dvs facts files findings
    format_version groups id is_group is_past kept_avro_manifests_count key label leaf_entries_scanned leaf_entries_skipped leaves
    left left_behind location loses metadata_location metrics more note order_by pages partition_by snapshot_ids properties
    refs required root root_entries_scanned root_entries_skipped row_arrows rows rule severity
    snapshot_count snapshots source target tasks title total_objects uuid vectors where
    cleaned copied_files_count kept_files_count ndv partition_count cost_bytes data_bytes deleted_rows health reason result root_entries
    reused_manifests_count written gains sort_column sort_overlap steps table verb
    """
)


#: What holds names that are its users' own, or a snapshot's summary.
OPEN = words("ndv properties refs summary")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a catalog and a table that has something of everything, and lost a file."""
    folder = tmp_path_factory.mktemp("told")
    with icetree.connect(f"sqlite:///{folder}/c.db", warehouse=str(folder / "lake")) as lake:
        lake.create_namespace("db")
        how = {"write.root.max-data-entries": "1", "write.flush.affinity-min-entries": "1"}
        columns = pa.schema([("id", pa.int64()), ("n", pa.float64())])
        table = lake.create_table("db.t", columns, partition_by=["id"], properties=how)
        rows = pa.table({"id": [1, 1, 2, 3], "n": [1.0, 2.0, 3.0, 4.0]})
        whole = lake.create_table("db.whole", columns)
        whole.append(rows)
        whole.append(rows, branch=None, summary={"wap.id": "audited"})
        for _ in range(3):
            table.append(rows)
        table.delete("n = 2")
        table.delete("id = 3")
        table.create_tag("one")
        table.create_branch("two")
        equal = pa.table({"id": pa.array([2], pa.int64())})
        written = write_equality_deletes(
            equal, ["id"], metadata=table.metadata, store=table.files.store
        )
        table.row_delta(written)
        lost = table.scan("id = 1").plan().tasks["location"][0].as_py()
        Path(table.location, lost).unlink()
    (folder / LANDING).mkdir()
    pq.write_table(rows, folder / LANDING / "one.parquet")
    return folder


def fields_of(schema: pa.Schema | pa.DataType) -> Iterator[str]:
    """Yield the names of columns and of fields within them, but not what a table itself names."""
    for field in schema:
        yield field.name
        inner = getattr(field.type, "value_type", field.type)
        if pa.types.is_struct(inner) and field.name not in ("partition", "row"):
            if field.name == "readable_metrics":
                for own in inner:
                    yield from fields_of(own.type)
            else:
                yield from fields_of(inner)


def keys_of(value: Any) -> Iterator[str]:
    """Yield the names in JSON, but not what a table itself names."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield name
            if name not in OPEN:
                yield from keys_of(inner)
    elif isinstance(value, list):
        for each in value:
            yield from keys_of(each)


def columns_told(folder: Path) -> dict[str, set[str]]:
    """Return the columns of everything that is told as a table."""
    with icetree.connect(f"sqlite:///{folder}/c.db") as lake:
        table = lake.table("db.t")
        tables = {name: getattr(table.inspect, name)() for name in public(Inspect)}
        explained = table.explain("id > 1")
        tables |= {"groups": explained.groups, "objects": explained.objects}
        tables |= {"files": table.changes().files(), "net": table.changes().net()}
    return {name: set(fields_of(each.schema)) for name, each in tables.items()}


#: A folder of files that are no table yet; where a backup would go.
LANDING, BACKUP = "landing", "backup"
#: The newest metadata file of a table, and of what it looks like to those who know no v4.
METADATA, OLDER = "metadata", "older"
#: A name that nothing has had.
FRESH = "fresh"
_NUMBERS = count()


COMMANDS = {
    "ls": (),
    "describe": ("db.t",),
    "snapshots": ("db.t",),
    "refs": ("db.t",),
    "files": ("db.t",),
    "tree": ("db.t",),
    "plan": ("db.t",),
    "explain": ("db.t", "--where", "id > 1"),
    "changes": ("db.t",),
    "verify": ("db.t", "--deep"),
    "repair": ("db.t",),
    "expire": ("db.t", "--retain-last", "1"),
    "orphans": ("db.t",),
    "rewrite-data-files": ("db.t",),
    "compute-table-stats": ("db.whole",),
    "compute-partition-stats": ("db.t",),
    "rewrite-manifests": ("db.t",),
    "rewrite-position-delete-files": ("db.t",),
    "optimize": ("db.t",),
    "maintain": ("db.whole", "--rounds", "1"),
    "export": ("db.t",),
    "upgrade": ("db.t",),
    "downgrade": ("db.t",),
    "schema": ("db.t",),
    "spec": ("db.t",),
    "properties": ("db.t",),
    "rollback": ("db.t", "--to", "main"),
    "set-current": ("db.t", "--to", "one"),
    "fast-forward": ("db.t", "--to", "main", "--branch", "two", "--dry-run"),
    "cherry-pick": ("db.t", "--at", "main", "--branch", "two", "--dry-run"),
    "ancestors": ("db.t",),
    "drop": ("db.whole",),
    "migrate": ("db.taken", "--source", LANDING),
    "snapshot": ("db.taken", "--source", LANDING, "--dry-run"),
    "trial": ("db.tried", "--source", OLDER, "--dry-run"),
    "add-files": ("db.whole", f"{LANDING}/one.parquet", "--dry-run"),
    "register": ("db.again", "--metadata-location", METADATA, "--dry-run"),
    "backup": ("db.whole", "--location", BACKUP, "--dry-run"),
    "copy": ("db.whole", "--to", "db.other", "--dry-run"),
    "rename": ("db.whole", "--to", "db.other", "--dry-run"),
    "create": (f"db.{FRESH}", "--schema", "n long"),
    "branch": ("db.whole", FRESH),
    "tag": ("db.whole", FRESH),
    "publish": ("db.whole", "--wap-id", "audited", "--dry-run"),
}


#: What prints rows, whose columns are a table's or a query's own.
ROWS = words("head sql")


#: Commands that end with 1 where they find something.
FINDING = words("verify")


def _meant(word: str, folder: Path) -> str:
    """Return what a word of a command stands for in a folder."""
    if word.startswith((LANDING, BACKUP)):
        return str(folder / word)
    if word in (METADATA, OLDER):
        with icetree.connect(f"sqlite:///{folder}/c.db") as lake:
            table = lake.table("db.whole")
            found = table.state if word == METADATA else table.export()
            return found.metadata_location
    return word.replace(FRESH, f"{FRESH}{next(_NUMBERS)}")


def texts_of(value: Any) -> Iterator[str]:
    """Yield all texts in JSON, names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from texts_of(inner)
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)


def keys_told(folder: Path, command: str) -> set[str]:
    """Return the names in what a command prints as JSON."""
    return set(keys_of(json_told(folder, command)))


def json_told(folder: Path, command: str) -> Any:
    words = [_meant(each, folder) for each in COMMANDS[command]]
    where = ["--catalog", f"sqlite:///{folder}/c.db", "--warehouse", str(folder / "lake")]
    done = CliRunner().invoke(cli, [*where, command, *words, "--json"])
    assert done.exit_code == (command in FINDING), done.stderr
    return json.loads(done.stdout)


def test_every_column_is_named_as_iceberg_has_it_or_by_a_word_that_is_known(told: Path) -> None:
    others = {
        f"{name} of {whose}"
        for whose, names in columns_told(told).items()
        for name in names - OF_ICEBERG - OUR_COLUMNS
    }
    assert not others


@pytest.mark.parametrize("command", COMMANDS)
def test_json_has_the_words_of_columns_and_parameters(told: Path, command: str) -> None:
    found = keys_told(told, command)
    assert found
    assert found - OF_ICEBERG - OUR_COLUMNS - OF_JSON == set()


# A drawing shows what manifests say, wherever the table is.
@pytest.mark.parametrize("command", [each for each in COMMANDS if each != "tree"])
def test_json_tells_every_location_in_full(told: Path, command: str) -> None:
    folder = told / "lake/db/t"
    known = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
    assert len(known) > 10
    assert known.isdisjoint(texts_of(json_told(told, command)))


def test_every_command_that_prints_json_is_looked_at() -> None:
    prints = {name for name, each in cli.commands.items() if "as_json" in params_of(each)}
    assert prints - ROWS == COMMANDS.keys()


def params_of(command: click.Command) -> set[str | None]:
    return {each.name for each in command.params}


def test_no_word_is_told_that_nobody_says(told: Path) -> None:
    columns = set().union(*columns_told(told).values())
    keys = set().union(*(keys_told(told, each) for each in COMMANDS))
    # Not every table has something to repair, or a leaf that applies to another.
    keys |= {each.name for kind in (Action, Arrow) for each in fields(kind)}
    assert (OF_ICEBERG | OUR_COLUMNS) - columns - keys == set()
    assert OF_JSON - keys == set()
