"""One word for one thing, in every door: Python, Spark, options of the data source, command line.

A parameter or option that is not among the words here fails. Before a new one is added, look
whether an old one says the same; `CONTRIBUTING.md` has the words that all doors share.
"""

from __future__ import annotations

import inspect
import json
import pydoc
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
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
from icetree.rows.write_deletes import write_equality_deletes
from icetree.spark import SparkLake, connect, local
from icetree.spark.rows.merge import Merge as SparkMerge
from icetree.spark.source.options import OPTIONS
from icetree.spark.stream.read import read_stream
from icetree.spark.stream.write import write_stream
from icetree.spark.writer import Write
from icetree.table.changes.appends import AppendScan
from icetree.table.changes.changes import ChangeRange
from icetree.table.commit.options import CommitOptions
from icetree.table.inspect.inspect import Inspect
from icetree.table.lake import Lake
from icetree.table.maintain.maintain import Maintenance
from icetree.table.repair import Action
from icetree.table.rows.merge import Merge
from icetree.table.scan.explain import explain
from icetree.table.scan.scan import Scan
from icetree.table.table import Table
from icetree.table.transaction import Transaction
from icetree.table.verify.verify import verify
from icetree.table.views.view import View

VAR = inspect.Parameter.VAR_KEYWORD

#: What people hold, and the functions that give it to them.
HELD: tuple[type, ...] = (
    Lake, Table, View, Transaction, Scan, ChangeRange, AppendScan, Inspect, Maintenance, Merge, SparkLake,
    SparkMerge, Write,
)  # fmt: skip
FUNCTIONS: tuple[Callable[..., Any], ...] = (
    icetree.connect, connect, local, explain, verify, read_stream, write_stream,
)  # fmt: skip


def words(text: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(text.split())


#: The words that all doors share.
SHARED = words("where at since upto to branch on columns name rows set")
#: Words with one meaning each, that some doors need.
KNOWN = SHARED | words(
    """
    add alias by cache case_sensitive catalog changes checkpoint clauses connection
    create_branch deep deletes dry_run equal_authorities equal_schemes exist_ok facts files folder force
    format_version images
    isolation keeper kept key lake latest_by level limit location lookback max_ref_age_ms
    max_snapshots_per_trigger metadata metadata_location metadata_only missing_ok mode names namespace net objects
    older_than on_batch open_cost_bytes options order_by parent partition_by paths
    prefix_mismatch_mode progress properties put
    query_name reads_cache remove retain_last retention rewritten row_groups run schema sequence_number skip snapshot_id snapshot_ids snapshots
    clean_expired_metadata
    purge
    rewrite_equality_deletes
    source source_alias spark state store stores strict summary table target_alias target_bytes tasks
    sort_order strategy max_bytes max_seconds
    text trigger updates uri value values verb wap_id warehouse written
    """
)
OF_THE_SOURCE = SHARED | words(
    """
    catalog warehouse path push-filters changes images skip max-snapshots-per-trigger
    overwrite-mode key query-id checkpointlocation
    """
)
OF_THE_COMMAND_LINE = SHARED | words(
    """
    as_json by catalog current debug deep dry_run force form limit location namespace net older_than order_by output
    partition_by prefix_mismatch_mode properties retain_last row_groups schema snapshot_ids warehouse yes version
    purge clean_expired_metadata format_version
    options sort_order strategy
    rewrite_equality_deletes
    source
    every max_bytes max_seconds names rounds
    equal_authorities equal_schemes metadata_location metadata_only paths wap_id
    execute former given set_ shell tag unset drop
    browser
    host port grants anyone tls_cert tls_key tls_client_ca workers plan_seconds submit_seconds quiet new_secret
    """
)


def verbs() -> Iterator[tuple[Callable[..., Any], str]]:
    """Yield everything public that can be called, with its full name."""
    for held in HELD:
        for name in dir(held):
            found = getattr(held, name)
            if (name == "__init__" or not name.startswith("_")) and callable(found):
                yield found, f"{held.__module__}.{held.__name__}.{name}"
    for function in FUNCTIONS:
        yield function, f"{function.__module__}.{function.__name__}"


def parameters() -> Iterator[tuple[inspect.Parameter, str]]:
    """Yield every parameter of the public API, with whose it is."""
    for verb, whose in verbs():
        for each in inspect.signature(verb).parameters.values():
            if each.name != "self":
                yield each, whose


def test_every_parameter_is_a_word_that_is_known() -> None:
    others = {f"{each.name} of {whose}" for each, whose in parameters() if each.name not in KNOWN}
    assert not others


def test_no_word_is_kept_that_nobody_says() -> None:
    said = {each.name for each, _ in parameters()}
    assert KNOWN - said == frozenset()


def test_every_option_is_spelled_out() -> None:
    """Where any keyword is taken, neither completion nor `help` nor a type checker knows one."""
    unsaid = {f"**{each.name} of {whose}" for each, whose in parameters() if each.kind is VAR}
    assert not unsaid
    for verb, whose in verbs():
        # What is shown is taken: by the function itself, or by the TypedDict that it unpacks.
        own = inspect.signature(inspect.unwrap(verb), follow_wrapped=False).parameters
        taken = [str(each.annotation) for each in own.values() if each.kind is VAR]
        assert taken in ([], ["Unpack[CommitOptions]"]), whose
        options = CommitOptions.__annotations__.keys() if taken else set()
        shown = inspect.signature(verb).parameters.keys()
        assert shown - own.keys() == options - own.keys(), whose


def test_a_commit_is_told_what_a_transaction_is() -> None:
    told = list(inspect.signature(Table.transaction).parameters)[1:]
    assert told == list(CommitOptions.__annotations__)


@pytest.mark.parametrize("verb", ["append", "delete", "merge", "rewrite", "transaction", "explain"])
def test_help_shows_the_options_of_a_verb(verb: str) -> None:
    shown = pydoc.render_doc(getattr(Table, verb))
    assert ("at:" if verb == "explain" else "create_branch:") in shown


def test_every_option_of_the_data_source_is_a_word_that_is_known() -> None:
    assert OPTIONS.keys() == OF_THE_SOURCE & OPTIONS.keys()
    assert {"where", "at", "since", "columns", "branch"} <= OPTIONS.keys()


@pytest.mark.parametrize("name", [name for name in cli.commands if name != "demo"])
def test_every_option_of_a_command_is_a_word_that_is_known(name: str) -> None:
    command = cli.commands[name]
    options = {each.name for each in command.params if isinstance(each, click.Parameter)}
    assert options - OF_THE_COMMAND_LINE == set()


def public(held: type) -> list[str]:
    """Return the names that people see of what they hold."""
    return [name for name in dir(held) if not name.startswith("_")]


def test_a_lake_on_spark_can_do_all_that_a_lake_can_under_the_same_names() -> None:
    """Whatever is called on a lake can be called in the same words on one that Spark works for."""
    assert issubclass(SparkLake, Lake)
    assert "read" not in public(Lake)
    for name in public(Lake):
        ours = inspect.signature(getattr(Lake, name)).parameters
        theirs = inspect.signature(getattr(SparkLake, name)).parameters
        assert theirs.keys() >= ours.keys(), name
        for each, other in zip(ours.values(), theirs.values(), strict=False):
            if each.kind is each.POSITIONAL_OR_KEYWORD:
                assert other.name == each.name, name
        for each in ours.values():
            assert theirs[each.name].kind is each.kind, name
            # Nothing must be said to the one that the other would do without, nor differs unsaid.
            if each.default is not each.empty:
                assert theirs[each.name].default == each.default, f"{each.name} of {name}"
        for each in theirs.values():
            assert each.name in ours or each.default is not each.empty, f"{each.name} of {name}"


@pytest.mark.parametrize(
    "verb",
    ["append", "overwrite", "replace_partitions", "delete", "update", "upsert", "merge"],
)
def test_a_lake_says_a_row_verb_as_its_tables_do_after_the_name(verb: str) -> None:
    """What a table calls `add` may be files, too; a lake takes rows."""
    table = inspect.signature(getattr(Table, verb)).parameters
    lake = list(inspect.signature(getattr(Lake, verb)).parameters)
    assert lake[1] == "name"
    assert [lake[0], *lake[2:]] == ["rows" if name == "add" else name for name in table]


# --- what is told: columns and JSON --------------------------------------------------------------

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
    value_count value_counts
    """
)
OF_ICEBERG |= words("partition_statistics_file statistics_file")
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
    """
)
OF_JSON |= words("cleaned ndv partition_count")
OF_JSON |= words("cost_bytes data_bytes deleted_rows health reason result root_entries")
OF_JSON |= words("reused_manifests_count written")
OF_JSON |= words("gains sort_column sort_overlap steps table verb")
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
        lake.create_table("db.whole", columns).append(rows)
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


#: A folder of files that are no table yet.
LANDING = "landing"
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
}
#: What prints as another does, rows whose columns are the table's own, or one of the words above.
ALIKE = words(
    "add-files backup branch copy create head publish register rename snapshot sql tag trial"
)


def keys_told(folder: Path, command: str) -> set[str]:
    """Return the names in what a command prints as JSON."""
    words = [str(folder / each) if each == LANDING else each for each in COMMANDS[command]]
    given = ["--catalog", f"sqlite:///{folder}/c.db", command, *words, "--json"]
    return set(keys_of(json.loads(CliRunner().invoke(cli, given).stdout)))


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


def test_every_command_that_prints_json_is_looked_at() -> None:
    prints = {name for name, each in cli.commands.items() if "as_json" in params_of(each)}
    assert prints - ALIKE == COMMANDS.keys()


def params_of(command: click.Command) -> set[str | None]:
    return {each.name for each in command.params}


def test_no_word_is_told_that_nobody_says(told: Path) -> None:
    columns = set().union(*columns_told(told).values())
    keys = set().union(*(keys_told(told, each) for each in COMMANDS))
    # Not every table has something to repair, or a leaf that applies to another.
    keys |= {each.name for kind in (Action, Arrow) for each in fields(kind)}
    assert (OF_ICEBERG | OUR_COLUMNS) - columns - keys == set()
    assert OF_JSON - keys == set()


def test_contributing_tells_the_shared_words() -> None:
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## One language")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) >= SHARED
