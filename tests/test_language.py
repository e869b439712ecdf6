"""One word for one thing, in every door: Python, Spark, options of the data source, command line.

A parameter or option that is not among the words here fails. Before a new one is added, look
whether an old one says the same; `CONTRIBUTING.md` has the words that all doors share.
"""

from __future__ import annotations

import inspect
import pydoc
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import click
import msgspec
import pytest

import icetree
from icetree.cli.main import cli
from icetree.errors import InvalidInput
from icetree.spark import SparkLake, connect, local
from icetree.spark.source.options import OPTIONS
from icetree.spark.stream.read import read_stream
from icetree.spark.stream.write import write_stream
from icetree.table.commit.options import CommitOptions
from icetree.table.lake import Lake
from icetree.table.scan.explain import explain
from icetree.table.table import Table
from icetree.table.verify.verify import verify
from tests.public_names import held

VAR = inspect.Parameter.VAR_KEYWORD

#: What people hold, and the functions that give it to them.
HELD: tuple[type, ...] = tuple(sorted(held(), key=lambda each: (each.__module__, each.__name__)))
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
    after alias allow_incompatible before by cache case_sensitive catalog changes checkpoint clauses connection
    create_branch deep default deletes doc dry_run equal_authorities equal_schemes exist_ok facts files first folder force
    format_version history images
    isolation keeper kept key kind lake latest_by level limit location lookback max_ref_age_ms
    max_snapshots_per_trigger metadata metadata_location metadata_only missing_ok mode names namespace net nulls objects
    older_than on_batch open_cost_bytes options order_by overwrite parent partition_by paths
    prefix_mismatch_mode progress properties
    query_name reads_cache remove required retain_last retention rewritten row_groups run schema schema_id sequence_number skip snapshot_id snapshot_ids snapshots
    clean_expired_metadata
    purge
    rewrite_equality_deletes
    source source_alias spark state store stores strict summary table target_alias target_bytes tasks
    strategy max_bytes max_seconds
    text trigger type updates uri value verb version version_id wap_id warehouse written
    """
)
OF_THE_SOURCE = SHARED | words(
    """
    catalog catalog-name warehouse path push-filters changes images skip max-snapshots-per-trigger
    overwrite-mode key query-id checkpointlocation queryname
    """
)
#: As they are typed.
OF_THE_COMMAND_LINE = SHARED | words(
    """
    by catalog debug deep dry_run force json limit location namespace net older_than order_by output
    partition_by prefix_mismatch_mode property retain_last row_groups schema snapshots warehouse yes version
    purge clean_expired_metadata format format_version
    option snapshot_id strategy
    rewrite_equality_deletes
    source
    every max_bytes max_seconds names rounds
    equal_authorities equal_schemes metadata_location metadata_only paths wap_id
    all execute history shell tag unset drop
    browser
    host port grants token_key anyone tls_cert tls_key tls_client_ca workers plan_seconds submit_seconds former_seconds quiet new_secret
    commits keep small
    """
)
#: What is typed, by what it is in Python: a word that is taken there, or one of many.
ALIASES = {
    "all": {"former"},
    "format": {"form"},
    "json": {"as_json"},
    "option": {"options"},
    "property": {"given"},
    "schema": {"columns"},
    "set": {"properties", "set_"},
    "snapshot_id": {"snapshot_ids"},
}


def typed(each: click.Parameter) -> set[str]:
    """Return the words by which people say what a command takes; letters stand for them."""
    if isinstance(each, click.Argument):
        return {str(each.name)}
    said = {word for word in (*each.opts, *each.secondary_opts) if word.startswith("--")}
    assert said, f"{each.opts} is a letter for no word"
    return {word[2:].replace("-", "_") for word in said}


def is_record(one: type) -> bool:
    """Tell whether something is there to be looked at."""
    return is_dataclass(one) or issubclass(one, (Enum, msgspec.Struct))


def verbs() -> Iterator[tuple[Callable[..., Any], str]]:
    """Yield everything public that can be called, with its full name."""
    for one in HELD:
        for name in dir(one):
            found = getattr(one, name)
            # Records are given by us, and have the words of what is told.
            is_made = name == "__init__" and not is_record(one)
            is_ours = str(getattr(found, "__module__", "")).startswith("icetree.")
            if callable(found) and is_ours and (is_made or not name.startswith("_")):
                yield found, f"{one.__module__}.{one.__name__}.{name}"
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


def test_every_verb_says_what_it_takes_and_gives() -> None:
    """Where anything may be meant, neither completion nor a type checker knows what to do with it."""
    unsaid = {
        f"{name} of {whose}"
        for verb, whose in verbs()
        for name, told in inspect.unwrap(verb).__annotations__.items()
        if "Any" in re.split(r" \| ", str(told))
    }
    assert not unsaid


def test_a_commit_is_told_what_a_transaction_is() -> None:
    told = list(inspect.signature(Table.transaction).parameters)[1:]
    assert told == list(CommitOptions.__annotations__)


@pytest.mark.parametrize("verb", ["append", "delete", "merge", "rewrite", "transaction", "explain"])
def test_help_shows_the_options_of_a_verb(verb: str) -> None:
    shown = pydoc.render_doc(getattr(Table, verb))
    assert ("at:" if verb == "explain" else "create_branch:") in shown


#: Nouns of the format, whose few functions are for the code.
NOUNS = re.compile(r"icetree\.spec\.(?!edit\.)")
#: By name, or in its place.
NAMED = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def arguments() -> Iterator[tuple[Callable[..., Any], inspect.Parameter, str]]:
    """Yield everything that a verb of people's takes, with whose it is."""
    for verb, whose in verbs():
        # A door says the words of what is behind it.
        is_door = "." in verb.__qualname__ or verb in (icetree.connect, connect, local)
        if is_door and not whose.endswith("__init__") and not NOUNS.match(whose):
            for each in inspect.signature(verb).parameters.values():
                if each.name != "self":
                    yield verb, each, f"{each.name} of {whose}"


def test_a_mistyped_argument_of_any_verb_is_answered_with_the_right_one() -> None:
    checked = 0
    for verb, each, whose in arguments():
        name = each.name
        hint = f"did you mean '{name}'" if each.kind in NAMED else "takes no"
        with pytest.raises(InvalidInput, match=hint) as refused:
            verb(**{f"{name}s": None})
        assert verb.__name__ in str(refused.value), whose
        checked += 1
    assert checked > 400


def test_the_name_of_what_a_verb_is_about_comes_first() -> None:
    for verb, whose in verbs():
        named = [
            each
            for each in inspect.signature(verb).parameters.values()
            if each.name not in ("self", "lake")
        ]
        for each in named:
            if each.name == "name" and each.default is each.empty and "__init__" not in whose:
                assert named[0].name == "name", whose


def test_every_option_of_the_data_source_is_a_word_that_is_known() -> None:
    assert OPTIONS.keys() - OF_THE_SOURCE == set()
    assert OF_THE_SOURCE - SHARED - OPTIONS.keys() == set(), "nobody says these any more"
    assert {"where", "at", "since", "upto", "columns", "branch"} <= OPTIONS.keys()


def unknown(command: click.Command) -> set[str]:
    """Return the words of a command that are not known, or say what is called otherwise elsewhere."""
    return {
        word
        for each in command.params
        for word in typed(each)
        if word not in OF_THE_COMMAND_LINE or each.name not in ALIASES.get(word, {word})
    }


@pytest.mark.parametrize("name", ["", *cli.commands])
def test_every_option_of_a_command_is_a_word_that_is_known(name: str) -> None:
    assert unknown(cli.commands[name] if name else cli) == set()


@pytest.mark.parametrize(
    "said",
    [["--filter", "where"], ["--as-of", "at"], ["--all", "at"], ["--brnch"], ["--to", "upto"]],
)
def test_an_option_outside_of_the_language_is_found(said: list[str]) -> None:
    planted = click.Command("planted", params=[click.Option(said), click.Argument(["name"])])
    assert unknown(planted) == {said[0][2:].replace("-", "_")}


def test_no_word_of_the_command_line_is_kept_that_nobody_types() -> None:
    said = {
        word for each in (cli, *cli.commands.values()) for one in each.params for word in typed(one)
    }
    assert OF_THE_COMMAND_LINE - SHARED - said == set()
    assert ALIASES.keys() - said == set()


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
    table = list(inspect.signature(getattr(Table, verb)).parameters)
    lake = list(inspect.signature(getattr(Lake, verb)).parameters)
    assert lake[1] == "name"
    assert [lake[0], *lake[2:]] == table


def test_what_is_written_comes_after_what_it_replaces() -> None:
    replacing = 0
    for verb, whose in verbs():
        named = [
            each.name
            for each in inspect.signature(verb).parameters.values()
            if each.kind is each.POSITIONAL_OR_KEYWORD
        ]
        for new in {"rows", "files"} & {*named}:
            replaced = {"name", "where", "remove"} & {*named}
            assert all(named.index(each) < named.index(new) for each in replaced), whose
            replacing += bool(replaced)
    assert replacing > 10


def test_contributing_tells_the_shared_words() -> None:
    page = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.partition("## One language")[2].partition("\n## ")[0]
    assert set(re.findall(r"`(\w+)`", section)) >= SHARED
