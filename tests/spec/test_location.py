"""File locations: relative under the table, absolute elsewhere, and one form for one file."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.errors import InvalidInput
from icetree.spec.location import absolute, given_form, stored_form
from icetree.spec.locations import (
    absolute_array,
    canonical_range,
    given_form_array,
    stored_form_array,
)

TABLE = "s3://b/t"
PLACES = (
    "s3://b/t",
    "s3a://b/t/",
    "/wh/t",
    "file:///wh/t",
    "file:/wh//t",
    "/",
    "memory://m/t",
    "s3a:/b/t",
    "gcs://b/t",
    "abfss://c@a.dfs.z/t",
    "wasb://c@a.blob.z/t",
    "az://c/t",
)


@pytest.mark.parametrize(
    ("location", "stored"),
    [
        ("s3://b/t/data/a.parquet", "data/a.parquet"),
        ("s3://b/t/ts=10:00/a", "ts=10:00/a"),
        ("s3://b/t/ü/x", "ü/x"),
        ("s3://b/t/a..b/..c/d..", "a..b/..c/d.."),
        ("s3://b/t2/a", "s3://b/t2/a"),
        ("s3://b/t", "s3://b/t"),
        ("s3://b/t/", "s3://b/t/"),
        ("file:///tmp/a", "file:///tmp/a"),
        ("file://elsewhere/tmp/a", "file://elsewhere/tmp/a"),
        ("gs://b/t/a", "gs://b/t/a"),
        # Keys of an object store are not normalised.
        ("s3://b/t/a//b/./c", "a//b/./c"),
        # What would read back as something of its own stays whole.
        ("s3://b/t//a", "s3://b/t//a"),
        ("s3://b/t/x:/a", "s3://b/t/x:/a"),
    ],
)
def test_a_location_is_stored_relative_only_under_the_table(location: str, stored: str) -> None:
    assert stored_form(location, TABLE) == stored
    assert absolute(stored, TABLE) == location
    assert stored_form_array(pa.array([location, None]), TABLE).to_pylist() == [stored, None]
    assert absolute_array(pa.array([stored, None]), TABLE).to_pylist() == [location, None]


@pytest.mark.parametrize(
    ("table", "spellings", "stored"),
    [
        (
            "file:///wh/t",
            (
                "d/a",
                "./d/a",
                "d//a",
                "d/./a",
                "/wh/t/d/a",
                "//wh/t/d/a",
                "/wh/./t//d/a",
                "file:/wh/t/d/a",
                "FILE:///wh/t/d/a",
                "file://localhost/wh/t/d/a",
                "file:////wh/t/d/a",
            ),
            "d/a",
        ),
        ("/wh/t", ("file:/wh/t/d/a", "file:///wh/t/d/a", "/wh/t/d/a", "d/a"), "d/a"),
        ("file:/wh/t", ("file:/wh/x", "/wh/x", "file:///wh//x"), "file:///wh/x"),
        ("/wh/t", ("file:/wh/x", "/wh/x", "file:///wh//x"), "file:///wh/x"),
        (
            "s3://b/t",
            ("d/a", "s3://b/t/d/a", "s3a://b/t/d/a", "S3N://b/t/d/a", "/t/d/a"),
            "d/a",
        ),
        ("s3a://b/t", ("s3://b/x", "s3a://b/x", "S3://b/x", "/x"), "s3a://b/x"),
        ("memory://m/t", ("s3://b/x", "s3a://b/x", "s3n://b/x"), "s3://b/x"),
        ("s3://b/t", ("s3:/b/x", "s3a:/b/x", "S3N:/b/x"), "s3:/b/x"),
        ("gs://b/t", ("GS://b/t/a", "gs://b/t/a", "gcs://b/t/a", "/t/a"), "a"),
        ("gcs://b/t", ("gs://b/x", "GCS://b/x"), "gcs://b/x"),
        (
            "abfss://c@a.dfs.core.windows.net/t",
            (
                "abfs://c@a.dfs.core.windows.net/t/x",
                "wasbs://c@a.blob.core.windows.net/t/x",
                "WASB://c@a.blob.core.windows.net/t/x",
                "/t/x",
            ),
            "x",
        ),
        (
            "wasbs://c@a.blob.core.windows.net/t",
            ("abfss://c@a.dfs.core.windows.net/x", "wasb://c@a.blob.core.windows.net/x"),
            "wasbs://c@a.blob.core.windows.net/x",
        ),
        ("az://c/t", ("azure://c/t/x", "AZ://c/t/x"), "x"),
    ],
)
def test_a_file_has_one_stored_form_however_it_is_spelt(
    table: str, spellings: tuple[str, ...], stored: str
) -> None:
    assert {each: stored_form(each, table) for each in spellings} == dict.fromkeys(
        spellings, stored
    )
    column = pa.array([None, *spellings])
    assert stored_form_array(column, table).to_pylist() == [None, *[stored] * len(spellings)]


@pytest.mark.parametrize(
    "location",
    [
        "..",
        "../other/a",
        "data/../../other/a",
        "data/..",
        "s3://b/t/../other/a",
        "s3://c/x/../a",
        "/t/../a",
        "",
    ],
)
def test_a_location_that_leads_up_or_nowhere_is_refused(location: str) -> None:
    with pytest.raises(InvalidInput, match=r"part '\.\.'|empty"):
        stored_form(location, TABLE)
    with pytest.raises(InvalidInput, match=r"part '\.\.'|empty"):
        stored_form_array(pa.array(["s3://b/t/fine", location]), TABLE)
    with pytest.raises(InvalidInput, match=r"part '\.\.'|empty"):
        stored_form_array(pa.array(["fine", location]), TABLE)


@pytest.mark.parametrize("table", ["s3://b/t", "/wh/t"])
def test_a_caller_gives_a_uri_for_a_file_outside_the_table(table: str) -> None:
    with pytest.raises(InvalidInput, match="nor a URI with a scheme"):
        given_form("/tmp/a", table)
    with pytest.raises(InvalidInput, match="nor a URI with a scheme"):
        given_form_array(pa.array(["fine", "/tmp/a"]), table)
    assert given_form("file:/tmp/a", table) == "file:///tmp/a"


@pytest.mark.parametrize(
    ("table", "location"),
    [
        ("s3://b/t/", "s3://b/t/a"),
        ("/wh/t", "/wh/t/a"),
        ("file:///", "file:///a"),
        ("/", "/a"),
    ],
)
def test_a_table_location_may_be_a_path_or_end_with_a_slash(table: str, location: str) -> None:
    assert stored_form(location, table) == "a"
    assert absolute("a", table) == location


@pytest.mark.parametrize(
    ("table", "path", "place"),
    [
        ("/wh/t", "/wh/t/a", "/wh/t/a"),
        ("file:/wh/t", "/wh/x", "file:/wh/x"),
        ("file:///wh/t", "/wh/x", "file:///wh/x"),
        ("s3://b/t", "/x", "s3://b/x"),
    ],
)
def test_a_path_without_a_scheme_is_one_where_the_table_is(
    table: str, path: str, place: str
) -> None:
    assert absolute(path, table) == place
    assert absolute_array(pa.array([path, "a", None]), table)[0].as_py() == place


def test_chunked_large_and_sliced_columns_work_too() -> None:
    chunked = pa.chunked_array([["s3://b/t/a"], ["s3://c/d"]])
    assert stored_form_array(chunked, TABLE).to_pylist() == ["a", "s3://c/d"]
    large = pa.array(["a", "s3://c/d"], pa.large_string())
    assert absolute_array(large, TABLE).to_pylist() == ["s3://b/t/a", "s3://c/d"]
    sliced = pa.array(["../x", "a", "b", None, "/y"])[1:4]
    assert stored_form_array(sliced, TABLE) is sliced
    assert stored_form_array(pa.array([], pa.string()), TABLE).to_pylist() == []


def test_a_table_that_is_spelt_with_dots_still_has_its_files() -> None:
    assert stored_form("/wh/../t/data/a", "/wh/../t") == "data/a"


_NAMES = st.text(alphabet="ab:/.=ü\n", max_size=12)
_STARTS = st.sampled_from(
    [
        "",
        "/",
        "s3://b/t/",
        "S3a://b/",
        "s3a:/b/",
        "S3N:/",
        "file:/",
        "file:///wh/t/",
        "/wh/t/",
        "file://h/",
        "x+y:/",
        "GS://b/t/",
        "gcs:/",
        "abfs://c@a.dfs.z/t/",
        "wasbs://c@a.blob.z/",
        "abfss://c/",
        "abfs://c@a.blob.",
        "azure://c/t/",
    ]
)


def _or_refused(ask: Callable[[], object]) -> object:
    try:
        return ask()
    except InvalidInput:
        return "refused"


@given(st.lists(st.none() | st.tuples(_STARTS, _NAMES).map("".join)), st.sampled_from(PLACES))
def test_a_column_of_locations_is_told_as_each_of_them(
    locations: list[str | None], table: str
) -> None:
    column = pa.array(locations, pa.string())
    for one, many in ((stored_form, stored_form_array), (given_form, given_form_array)):
        assert _or_refused(lambda many=many: many(column, table).to_pylist()) == _or_refused(
            lambda one=one: [each if each is None else one(each, table) for each in locations]
        )
    full = [each if each is None else absolute(each, table) for each in locations]
    assert absolute_array(column, table).to_pylist() == full


@given(st.tuples(_STARTS, _NAMES).map("".join), st.sampled_from(PLACES))
def test_a_stored_form_stays_and_means_the_same_place(location: str, table: str) -> None:
    try:
        stored = stored_form(location, table)
    except InvalidInput:
        return
    assert stored_form(stored, table) == stored
    assert stored_form(absolute(stored, table), table) == stored


@pytest.mark.parametrize(
    ("table", "bounds", "known"),
    [
        (TABLE, ("s3a://b/t/a", "s3a://b/t/c"), ("s3://b/t/a", "s3://b/t/c")),
        (TABLE, ("/t/a", "/t/c"), ("s3://b/t/a", "s3://b/t/c")),
        (TABLE, ("s3a://buck", "s3a://buct"), ("s3://buck", "s3://buct")),
        ("/wh/t", ("file:/wh/t//a", "file:/wh/t//a"), ("file:///wh/t/a", "file:///wh/t/a")),
        # Between these may be what no other spelling is between.
        ("/wh/t", ("file:/wh/t/a", "file:/wh/t/c"), (None, None)),
        (TABLE, ("/t/a", "s3://b/t/c"), (None, None)),
        (TABLE, ("s3://b/t/a", "s3a://b/t/c"), (None, None)),
        (TABLE, ("s3", "s4"), (None, None)),
        (TABLE, ("s3://b/t/a", None), (None, None)),
        (
            "abfss://c@a.dfs.z/t",
            ("wasb://c@a.blob.z/a", "wasb://c@a.blob.z/c"),
            ("abfss://c@a.dfs.z/a", "abfss://c@a.dfs.z/c"),
        ),
        ("abfss://c@a.dfs.z/t", ("wasb://c@a.bl", "wasb://c@a.bm"), (None, None)),
    ],
)
def test_bounds_of_locations_count_only_where_no_spelling_is_lost(
    table: str, bounds: tuple[str | None, str | None], known: tuple[str | None, str | None]
) -> None:
    lower, upper = (pa.array([bound], pa.string()) for bound in bounds)
    found = canonical_range(lower, upper, table)
    assert tuple(each[0].as_py() for each in found) == known
