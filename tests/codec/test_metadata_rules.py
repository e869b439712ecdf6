"""Metadata that breaks a rule or a byte is refused, with the rule and the file."""

from __future__ import annotations

import copy
import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.codec import metadata as codec
from icetree.errors import CorruptTable, Unsupported
from tests.codec.metadata_documents import ALL, FILE, JSON_VALUES, V2, Json, read, v3, v4
from tests.effort import law


def broken(document: object) -> str:
    with pytest.raises(CorruptTable) as caught:
        read(document)
    assert caught.value.file == FILE
    return caught.value.rule


def changed(version: int, *path: str | int, to: Any) -> Json:
    document = copy.deepcopy(ALL[version])
    at: Any = document
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return document


SNAPSHOT: Json = {"snapshot-id": 7, "timestamp-ms": 1, "manifest-list": "s3://b/l"}


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ([], "not a JSON object"),
        ({}, "format-version None"),
        (changed(2, "format-version", to="2"), "format-version '2'"),
        (changed(2, "format-version", to=0), "format-version 0"),
        (changed(2, "location", to=5), "Expected `str`, got `int` - at `$.location`"),
        (changed(2, "location", to=""), "location is empty"),
        (changed(2, "last-column-id", to="5"), "at `$.last-column-id`"),
        (changed(2, "last-sequence-number", to=-1), "last-sequence-number -1 is negative"),
        (changed(2, "last-sequence-number", to=2**63), "at `$.last-sequence-number`"),
        (changed(2, "last-sequence-number", to=1), "above last-sequence-number 1"),
        (changed(2, "table-uuid", to=None), "table-uuid is missing"),
        (changed(3, "next-row-id", to=None), "next-row-id is missing"),
        (changed(2, "schemas", to={}), "at `$.schemas`"),
        (changed(2, "schemas", 0, "schema-id", to="0"), "a schema has no schema-id"),
        (changed(2, "schemas", 0, "schema-id", to=1), "two schemas have schema-id 1"),
        (changed(2, "current-schema-id", to=9), "current-schema-id 9 is not among"),
        (changed(2, "schemas", 1, "fields", 0, "type", to="lang"), "schema 1: 'lang'"),
        (changed(2, "schemas", 0, "fields", 0, "type", to="lang"), "schema 0: 'lang'"),
        (changed(2, "schemas", 0, "schema-id", to=True), "a schema has no schema-id"),
        (changed(2, "schemas", 1, "identifier-field-ids", to=["a"]), "schema 1: not a schema"),
        (changed(2, "schemas", 1, "fields", 0, "type", to=3), "schema 1: schema.id has no type"),
        (changed(2, "schemas", 1, "fields", 0, "id", to="1"), "a field of schema lacks its id"),
        (changed(2, "schemas", 0, "fields", to=None), "schema 0: schema has no list of fields"),
        (changed(2, "schemas", 1, "fields", 0, "id", to=5), "two columns have id 5"),
        (changed(2, "last-column-id", to=4), "column id 5 is above last-column-id 4"),
        (changed(2, "partition-specs", to=7), "partition-specs is not a list"),
        (changed(2, "partition-specs", 1, "fields", 0, to=1), "fields[0] is not an object"),
        (changed(2, "partition-specs", 1, "fields", 0, "field-id", to="a"), "`$.field-id`"),
        (
            changed(2, "partition-specs", 1, "fields", 0, "source-id", to=None),
            "without a source-id",
        ),
        (
            changed(2, "partition-specs", 1, "fields", 0, "source-ids", to=[77]),
            "with a source-id that is not the first of its source-ids",
        ),
        (
            changed(2, "sort-orders", 1, "fields", 0, "source-ids", to=[77]),
            "with a source-id that is not the first of its source-ids",
        ),
        (changed(2, "partition-specs", 0, "spec-id", to=1), "two specs have spec-id 1"),
        (changed(2, "default-spec-id", to=4), "default-spec-id 4 is not among"),
        (changed(2, "partition-specs", 0, "fields", to=[{"expr-id": 1}]), "new in v4"),
        (changed(2, "expressions", to=v4()["expressions"]), "expressions are new in v4"),
        (changed(2, "snapshot-pages", to=v4()["snapshot-pages"]), "snapshot-pages are new in v4"),
        (changed(2, "sort-orders", 1, "order-id", to=0), "two sort orders have order-id 0"),
        (changed(2, "default-sort-order-id", to=1), "default-sort-order-id 1 is not among"),
        (changed(2, "sort-orders", 1, "fields", 0, "direction", to="up"), "'up' is none of"),
        (changed(2, "snapshots", 0, "snapshot-id", to="x"), "snapshots: Expected `int`"),
        (changed(2, "snapshots", 0, to=V2["snapshots"][1]), "two snapshots have snapshot-id"),
        (changed(2, "snapshots", 0, "manifest-list", to=None), "has not exactly one of"),
        (changed(2, "snapshots", 0, "manifests", to=[]), "has not exactly one of"),
        (changed(2, "snapshots", 0, to={**SNAPSHOT, "x": 1, "timestamp-ms": "1"}), "snapshots[0]"),
        (
            changed(
                2, "snapshots", 0, to={"snapshot-id": 7, "timestamp-ms": 1, "root-manifest": "r"}
            ),
            "has a root-manifest, which is new in v4",
        ),
        (changed(2, "refs", "audit", "snapshot-id", to=5), "ref 'audit' points to snapshot 5"),
        (changed(4, "refs", "audit", "snapshot-id", to=5), "ref 'audit' points to snapshot 5"),
        (changed(2, "refs", "audit", "type", to="twig"), "ref 'audit': Invalid enum value 'twig'"),
        (changed(2, "refs", "main", "type", to="tag"), "ref 'main' is a tag"),
        (changed(2, "refs", to=[1]), "refs is not an object"),
        (changed(2, "current-snapshot-id", to=3051729675574597004), "differs from 'main'"),
        (changed(2, "current-snapshot-id", to=None), "differs from 'main'"),
        (changed(2, "properties", to={"a": 1}), "Expected `str`, got `int`"),
        (changed(2, "metadata-log", 0, "metadata-file", to=None), "metadata-log"),
        (changed(3, "encryption-keys", 0, "key-id", to=4), "encryption-keys"),
        (changed(3, "encryption-keys", to=v3()["encryption-keys"] * 2), "two encryption keys"),
        (changed(4, "expressions", 0, "expr-id", to=102), "two expressions have expr-id 102"),
        (changed(4, "expressions", 1, "expr-id", to=3), "expr-id 3 is also the id of a column"),
        (changed(4, "last-column-id", to=103), "expr-id 104 is above last-column-id 103"),
        (changed(4, "expressions", 0, "expr", to="day"), "expressions[0]"),
        (
            changed(4, "expressions", 0, "expr", "source-id", to=None),
            "expressions[0] has no source-id",
        ),
        (
            changed(4, "expressions", 0, "expr", "source-ids", to=[77, 78]),
            "expressions[0] has source-id 2 beside source-ids [77, 78]",
        ),
        (changed(4, "expressions", 0, "expr", "transform", to=1), "expressions[0].expr"),
        (changed(4, "expressions", to={}), "expressions is not a list"),
        (changed(4, "partition-specs", 1, "fields", 0, "expr-id", to=103), "names expr-id 103"),
        (changed(4, "partition-specs", 1, to=V2["partition-specs"][1]), "in place of an expr-id"),
        (
            changed(4, "partition-specs", 1, "fields", 0, to=V2["partition-specs"][1]["fields"][0]),
            "mixes",
        ),
        (changed(4, "snapshot-pages", 0, "count", to=-1), "range or count that cannot be"),
        (changed(4, "snapshot-pages", 0, "first-sequence-number", to=101), "range or count"),
        (changed(4, "snapshot-pages", 0, "first-log-timestamp-ms", to=6), "range or count"),
        (changed(4, "snapshot-pages", 0, "location", to=None), "snapshot-pages"),
        (changed(4, "snapshot-pages", to=v4()["snapshot-pages"] * 2), "two pages have location"),
        (changed(1, "schema", to=None), "schema is not an object"),
        (changed(1, "partition-spec", to=[1]), "a partition field is not an object"),
        (changed(1, "partition-spec", 0, "field-id", to="x"), "at `$.field-id`"),
    ],
)
def test_metadata_that_breaks_a_rule_is_refused_with_the_rule(document: Json, rule: str) -> None:
    assert rule in broken(document)


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize(
    "name",
    [
        "location",
        "last-sequence-number",
        "last-updated-ms",
        "last-column-id",
        "schemas",
        "current-schema-id",
        "partition-specs",
        "default-spec-id",
        "last-partition-id",
        "sort-orders",
        "default-sort-order-id",
    ],
)
def test_a_missing_required_field_is_named(version: int, name: str) -> None:
    document = {key: value for key, value in ALL[version].items() if key != name}
    assert f"missing required field `{name}`" in broken(document)


def test_a_newer_format_version_is_unsupported_not_corrupt() -> None:
    with pytest.raises(Unsupported, match="v5"):
        read({"format-version": 5})


@pytest.mark.parametrize(
    ("data", "file", "rule"),
    [
        (b"", FILE, "not JSON"),
        (b'{"format-version": 2,', FILE, "not JSON"),
        (b'{"location": "\xff"}', FILE, "not JSON"),
        (b"[" * 100_000, FILE, "not JSON"),
        (b"{}", "x.gz.metadata.json", "not a whole gzip file"),
        (b"\x1f\x8b", FILE, "not a whole gzip file"),
        (gzip.compress(b"{}", mtime=0)[:-3], FILE, "not a whole gzip file"),
        (gzip.compress(b"{}", mtime=0)[:-8] + b"\0" * 8, FILE, "not a whole gzip file"),
    ],
)
def test_bad_bytes_are_refused_with_the_file_and_the_rule(
    data: bytes, file: str, rule: str
) -> None:
    for decode in (codec.decode, codec.decode_page):
        with pytest.raises(CorruptTable, match=rule) as caught:
            decode(data, file=file)
        assert caught.value.file == file


@law(60)
@given(st.data())
def test_any_damage_is_either_harmless_or_a_corrupt_table(data: st.DataObject) -> None:
    document = copy.deepcopy(ALL[data.draw(st.sampled_from([1, 2, 3, 4]))])
    at: Any = document
    while True:
        key = data.draw(st.sampled_from(sorted(at) if isinstance(at, dict) else range(len(at))))
        if not at[key] or not isinstance(at[key], dict | list) or data.draw(st.booleans()):
            break
        at = at[key]
    at[key] = data.draw(JSON_VALUES)
    try:
        metadata = read(document)
    except (CorruptTable, Unsupported):
        return
    assert read(json.loads(codec.encode(metadata, compress=False))) == metadata
