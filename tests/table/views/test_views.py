"""Views of a lake: made, looked at, replaced, renamed, dropped; and what becomes of races."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icetree
from icetree.catalog.base import parse_view_name
from icetree.errors import AlreadyExists, CommitConflict, CorruptTable, InvalidInput, NotFound
from icetree.table.lake import Lake


@pytest.fixture(params=["memory", "sqlite"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    uri = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/c.db"
    with icetree.connect(uri, warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        yield lake


def test_a_view_is_made_listed_and_loaded(lake: Lake) -> None:
    lake.create_namespace("other")
    made = lake.create_view(
        "db.v",
        {"spark": "SELECT id FROM t", "trino": "SELECT id FROM t"},
        pa.schema([("id", pa.int64())]),
        namespace="db",
        properties={"comment": "ids"},
        summary={"engine-name": "icetree"},
    )
    lake.create_view("other.w", "SELECT 1", "a int")
    assert (lake.views(), lake.views("db")) == (["db.v", "other.w"], ["db.v"])
    assert lake.tables("db") == []
    assert (lake.view_exists("db.v"), lake.view_exists("db.w")) == (True, False)
    assert lake.table_exists("db.v") is False
    found = lake.view("db.v")
    assert found.metadata == made.metadata
    assert (found.text, found.namespace) == ("SELECT id FROM t", "db")
    assert found.texts.keys() == {"spark", "trino"}
    assert [field.name for field in found.schema.fields] == ["id"]
    assert found.properties == {"comment": "ids"}
    assert repr(found) == "View('db.v', spark, trino)"


def test_a_name_that_a_table_or_a_view_has_is_refused_before_anything_is_written(
    lake: Lake, tmp_path: Path
) -> None:
    lake.create_table("db.t", "id long")
    lake.create_view("db.v", "SELECT 1", "a int")
    files = sorted(tmp_path.rglob("*.json"))
    with pytest.raises(AlreadyExists, match=r"table db\.t exists"):
        lake.create_view("db.t", "SELECT 1", "a int", exist_ok=True)
    with pytest.raises(AlreadyExists, match=r"view db\.v exists"):
        lake.create_view("db.v", "SELECT 2", "a int")
    with pytest.raises(AlreadyExists, match=r"view db\.v exists"):
        lake.create_table("db.v", "id long", exist_ok=True)
    with pytest.raises(NotFound, match="namespace no"):
        lake.create_view("no.v", "SELECT 1", "a int")
    assert lake.create_view("db.v", "SELECT 2", "a int", exist_ok=True).text == "SELECT 1"
    assert sorted(tmp_path.rglob("*.json")) == files


def test_a_view_replaced_keeps_what_it_was_and_goes_back_to_it(lake: Lake) -> None:
    view = lake.create_view("db.v", "SELECT 1", "a int", properties={"comment": "x"})
    uuid = view.metadata.view_uuid
    view.replace("SELECT 2L", "b long", namespace="db")
    found = lake.view("db.v")
    assert (found.text, found.metadata.view_uuid) == ("SELECT 2L", uuid)
    assert found.properties == {"comment": "x"}
    assert [field.name for field in found.schema.fields] == ["b"]
    assert [each.texts["spark"] for each in found.metadata.versions] == ["SELECT 1", "SELECT 2L"]
    view.rollback(to=1)
    assert lake.view("db.v").text == "SELECT 1"
    view.replace("SELECT 3", "a int", properties={"owner": "ann"})
    assert lake.view("db.v").properties == {"comment": "x", "owner": "ann"}
    view.remove_properties("owner", "comment", "missing")
    assert lake.view("db.v").properties == {}


def test_changes_of_two_holders_of_a_view_both_last(lake: Lake) -> None:
    one = lake.create_view("db.v", "SELECT 1", "a int")
    other = lake.view("db.v")
    one.set_properties({"a": "1"})
    other.set_properties({"b": "2"})
    one.replace("SELECT 2", "a int")
    assert other.refresh().text == "SELECT 2"
    assert lake.view("db.v").properties == {"a": "1", "b": "2"}


def test_a_change_of_a_view_that_is_gone_or_another_now_is_a_conflict(lake: Lake) -> None:
    held = lake.create_view("db.v", "SELECT 1", "a int")
    lake.drop_view("db.v")
    with pytest.raises(CommitConflict, match=r"no view db\.v"):
        held.set_properties({"a": "1"})
    lake.create_view("db.v", "SELECT 2", "a int")
    with pytest.raises(CommitConflict, match="another view now"):
        held.replace("SELECT 3", "a int")
    with pytest.raises(CommitConflict):
        held.refresh()
    assert lake.view("db.v").text == "SELECT 2"


def test_a_change_that_changes_nothing_writes_nothing(lake: Lake, tmp_path: Path) -> None:
    view = lake.create_view("db.v", "SELECT 1", "a int", properties={"a": "1"})
    files = sorted(tmp_path.rglob("*.json"))
    view.set_properties({"a": "1"})
    view.remove_properties("b")
    view.replace("SELECT 1", "a int")
    assert sorted(tmp_path.rglob("*.json")) == files


def test_a_view_is_renamed_dropped_and_registered_again(lake: Lake) -> None:
    lake.create_view("db.v", "SELECT 1", "a int")
    lake.rename_view("db.v", "db.w")
    at = lake.view("db.w").state.metadata_location
    lake.drop_view("db.w")
    with pytest.raises(NotFound, match=r"no view db\.w"):
        lake.drop_view("db.w")
    lake.drop_view("db.w", missing_ok=True)
    assert lake.register_view("db.x", at).text == "SELECT 1"
    assert lake.views() == ["db.x"]
    lake.create_table("db.t", "id long")
    with pytest.raises(NotFound, match="it is a table"):
        lake.drop_view("db.t")
    with pytest.raises(NotFound, match="it is a view"):
        lake.table("db.x")


def test_a_table_metadata_file_is_no_view(lake: Lake) -> None:
    at = lake.create_table("db.t", "id long").state.metadata_location
    with pytest.raises(CorruptTable):
        lake.register_view("db.v", at)
    assert lake.views() == []


def test_no_table_has_its_folder_where_the_files_of_a_view_are(lake: Lake) -> None:
    """A purge of a table that has got the former name of a view leaves the view as it is."""
    lake.create_view("db.v", "SELECT 1", "a int")
    lake.rename_view("db.v", "db.w")
    lake.create_table("db.v", "id long")
    lake.drop_table("db.v", purge=True)
    lake.create_view("db.v", "SELECT 2", "a int")
    assert [lake.view(name).text for name in ("db.v", "db.w")] == ["SELECT 2", "SELECT 1"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"text": ""}, "text"),
        ({"text": "SELECT \ud800"}, "half of a character"),
        ({"schema": 3}, "3"),
        ({"namespace": "a..b"}, "namespace"),
        ({"properties": {"a": 1}}, "string"),
        ({"properties": {"version.history.num-entries": "none"}}, "num-entries"),
        ({"location": "/a/../b"}, r"\.\."),
        ({"name": "v"}, "namespace"),
    ],
)
def test_what_cannot_be_a_view_is_refused(lake: Lake, given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        lake.create_view(**{"name": "db.v", "text": "SELECT 1", "schema": "a int", **given})
    assert lake.views() == []


def test_the_text_of_another_dialect_alone_is_not_given_for_sparks(lake: Lake) -> None:
    view = lake.create_view("db.v", {"trino": "SELECT 1", "hive": "SELECT 1"}, "a int")
    with pytest.raises(InvalidInput, match="only in that of trino, hive"):
        _ = view.text


def test_a_view_whose_file_is_damaged_is_told_by_the_file(lake: Lake) -> None:
    at = lake.create_view("db.v", "SELECT 1", "a int").state.metadata_location
    Path(at.removeprefix("file://")).write_bytes(b"{}")
    with pytest.raises(CorruptTable, match=r"metadata\.json"):
        lake.view("db.v")
    lake.drop_view("db.v")
    assert lake.catalog.views(("db",)) == []
    assert str(parse_view_name("db.v")) == "db.v"
