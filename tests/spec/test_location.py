"""File locations: relative under the table, absolute elsewhere."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from icetree.errors import InvalidInput
from icetree.spec.location import absolute, absolute_array, relative, relative_array

TABLE = "s3://b/t"


@pytest.mark.parametrize(
    ("location", "stored"),
    [
        ("s3://b/t/data/a.parquet", "data/a.parquet"),
        ("s3://b/t/data/../a", "data/../a"),
        ("s3://b/t//a", "/a"),
        ("s3://b/t/ts=10:00/a", "ts=10:00/a"),
        ("s3://b/t/ü/x", "ü/x"),
        ("s3://b/t2/a", "s3://b/t2/a"),
        ("s3://b/t", "s3://b/t"),
        ("s3://b/t/", "s3://b/t/"),
        ("file:/tmp/a", "file:/tmp/a"),
        ("gs://b/t/a", "gs://b/t/a"),
        # What would read back as a URI of its own stays whole.
        ("s3://b/t/x:/a", "s3://b/t/x:/a"),
    ],
)
def test_a_location_is_stored_relative_only_under_the_table(location: str, stored: str) -> None:
    assert relative(location, TABLE) == stored
    assert absolute(stored, TABLE) == location
    assert relative_array(pa.array([location, None]), TABLE).to_pylist() == [stored, None]
    assert absolute_array(pa.array([stored, None]), TABLE).to_pylist() == [location, None]


@pytest.mark.parametrize("location", ["/tmp/a", "data/a.parquet", "", "1:/a"])
def test_a_path_outside_the_table_without_a_scheme_is_refused(location: str) -> None:
    with pytest.raises(InvalidInput, match="nor a URI with a scheme"):
        relative(location, TABLE)
    with pytest.raises(InvalidInput, match="nor a URI with a scheme"):
        relative_array(pa.array(["s3://b/t/fine", location]), TABLE)


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
    assert relative(location, table) == "a"
    assert absolute("a", table) == location


def test_chunked_and_large_columns_work_too() -> None:
    chunked = pa.chunked_array([["s3://b/t/a"], ["s3://c/d"]])
    assert relative_array(chunked, TABLE).to_pylist() == ["a", "s3://c/d"]
    large = pa.array(["a", "s3://c/d"], pa.large_string())
    assert absolute_array(large, TABLE).to_pylist() == ["s3://b/t/a", "s3://c/d"]


@given(st.text(alphabet="ab:/.=ü", min_size=1))
def test_every_location_under_the_table_comes_back(name: str) -> None:
    location = f"{TABLE}/{name}"
    stored = relative(location, TABLE)
    assert absolute(stored, TABLE) == location
    assert relative_array(pa.array([location]), TABLE).to_pylist() == [stored]
    assert absolute_array(pa.array([stored]), TABLE).to_pylist() == [location]


def test_a_name_that_is_relative_already_is_taken_as_it_is() -> None:
    from icetree.spec.location import stored_form, stored_form_array

    given = ["data/x", "s3://b/t/data/y", "s3://c/z", None]
    want = ["data/x", "data/y", "s3://c/z", None]
    assert stored_form_array(pa.array(given), "s3://b/t").to_pylist() == want
    assert [g and stored_form(g, "s3://b/t") for g in given] == want
