"""Options of the data source: each face works with what it is told, or refuses it with a way out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceReader
from pyspark.sql.types import StructType

import icetree
from icetree.errors import IcetreeError, InvalidInput
from icetree.spark.source.options import OPTIONS, Face, options
from icetree.spark.source.source import IcetreeSource
from icetree.table.lake import Lake
from tests.spark.test_stream_read import _some

#: What each option says in a walk over all of them.
SAID: Final = {
    "path": "db.t",
    "columns": "id",
    "where": "v = 'b'",
    "push-filters": "true",
    "at": "first",
    "since": "first",
    "upto": "first",
    "branch": "side",
    "images": "true",
    "skip": "overwrite",
    "max-snapshots-per-trigger": "1",
    "overwrite-mode": "dynamic",
    "key": "once",
    "query-id": "mine",
    "catalog-name": "other",
}
#: What is said beside it.
BESIDE: Final[Mapping[Face, Mapping[str, str]]] = {
    Face.CHANGES: {"changes": "true"},
    Face.CHANGE_STREAM: {"changes": "true"},
    Face.STREAM: {"skip": "overwrite"},
    Face.STREAM_WRITE: {"query-id": "mine"},
}
#: What makes no difference by itself: where new tables go, and what Spark says of its own.
IDLE: Final = frozenset({"warehouse", "queryname"})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _made(tmp_path)


def _made(folder: Path, *others: str) -> Path:
    """Return a folder with a catalog, maybe under several names, and a table in it that had a life."""
    folder.mkdir(exist_ok=True)
    for name in ("default", *others):
        with _lake(folder, name) as lake:
            lake.create_namespace("db")
            table = lake.create_table("db.t", [("id", "long"), ("v", "string")], partition_by=["v"])
            table.append(_some((1, "a"), (2, name)))
            table.create_tag("first")
            table.create_branch("side")
            table.append(_some((3, "b")))
            table.update({"v": "'c'"}, "id = 1")
    place = folder / "checkpoint"
    place.mkdir()
    (place / "metadata").write_text(json.dumps({"id": "mine"}))
    return folder


def _lake(folder: Path, name: str = "default") -> Lake:
    return icetree.connect(
        f"sqlite:///{folder}/c.db", warehouse=str(folder / name), properties={"name": name}
    )


def _given(folder: Path, face: Face) -> dict[str, str]:
    return {"catalog": f"sqlite:///{folder}/c.db", "path": "db.t", **BESIDE.get(face, {})}


def _rows(reader: Any, parts: Any) -> list[str]:
    batches = [batch for part in parts for batch in reader.read(part)]
    # A commit's id is another one each time.
    rows = [row for batch in batches for row in batch.to_pylist()]
    return sorted(
        repr({n: v for n, v in row.items() if not n.startswith("_commit")}) for row in rows
    )


def _read(source: IcetreeSource, _: Path) -> Any:
    reader = source.reader(source.schema())
    assert isinstance(reader, DataSourceReader)
    return type(reader).__name__, _rows(reader, reader.partitions())


def _stream(source: IcetreeSource, _: Path) -> Any:
    reader = source.streamReader(source.schema())
    try:
        start: Any = reader.initialOffset()
        return _rows(reader, reader.partitions(start, reader.latestOffset()))
    finally:
        reader.stop()


def _written(make: Callable[[], Any], folder: Path, *batch: int) -> Any:
    """Write the same twice, as when nobody knows whether it was done."""
    for _ in range(2):
        writer = make()
        writer.commit([writer.write(iter(_some((9, "b")).to_batches()))], *batch)
    with _lake(folder) as lake:
        table = lake.table("db.t")
        rows = [table.scan(at=at).to_arrow().to_pylist() for at in ("main", "side")]
        return [sorted(map(repr, each)) for each in rows], len([*table.history()])


_SCHEMA: Final = StructType().add("id", "long").add("v", "string")
DONE: Final[Mapping[Face, Callable[[IcetreeSource, Path], Any]]] = {
    Face.READ: _read,
    Face.CHANGES: _read,
    Face.STREAM: _stream,
    Face.CHANGE_STREAM: _stream,
    Face.APPEND: lambda source, at: _written(lambda: source.writer(_SCHEMA, False), at),
    Face.OVERWRITE: lambda source, at: _written(lambda: source.writer(_SCHEMA, True), at),
    Face.STREAM_WRITE: lambda source, at: _written(
        lambda: source.streamWriter(_SCHEMA, False), at, 0
    ),
}


def _outcome(face: Face, given: dict[str, str], folder: Path) -> Any:
    return DONE[face](IcetreeSource(given), folder)


_TAKEN: Final = [
    (face, name) for name, option in OPTIONS.items() for face in Face if face in option.faces
]


_CASES: Final = [
    pytest.param(face, name, id=f"{face.name}-{name}".lower())
    for face, name in _TAKEN
    if name not in IDLE | {"changes"}
]


@pytest.mark.parametrize(("face", "name"), _CASES)
def test_an_option_that_is_taken_makes_a_difference(face: Face, name: str, tmp_path: Path) -> None:
    folder = _made(tmp_path / "said", *(["other"] if name == "catalog-name" else []))
    given = _given(folder, face)
    said = {**SAID, **given, "checkpointlocation": str(folder / "checkpoint")}
    # Either says the same.
    without = {name, "query-id"} if name == "checkpointlocation" else {name}
    plain = {key: value for key, value in given.items() if key not in without}
    done = _outcome(face, {**plain, name: said[name]}, folder)
    if plain != given:
        # What is said beside all others is what they would not do without.
        with pytest.raises(IcetreeError):
            _outcome(face, plain, _made(tmp_path / "unsaid"))
        return
    if face not in _PLAIN:
        folder = _made(tmp_path / "plain")
        _PLAIN[face] = _outcome(face, _given(folder, face), folder)
    assert done != _PLAIN[face]


#: What each face does when no more is said than it needs.
_PLAIN: dict[Face, Any] = {}


@pytest.mark.parametrize("face", Face)
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_taken_or_refused_with_a_way_out(face: Face, name: str) -> None:
    if (face, name) in _TAKEN:
        assert options({name: "1"}, face).values == {name: "1"}
        return
    with pytest.raises(InvalidInput, match=f"^option '{name}' means nothing to ") as refused:
        options({name: "1"}, face)
    way_out = str(refused.value).partition(f"{face.value}: ")[2]
    assert names_what_to_do(way_out), way_out


def names_what_to_do(way_out: str) -> bool:
    """Tell whether a sentence names what to do, or for what the option is."""
    return any(
        way_out.startswith(verb)
        for verb in (
            "say ",
            "it is for ",
            "it says ",
            "select ",
            "filter ",
            "a stream goes on: ",
            "changes are all told: ",
        )
    )


@pytest.mark.parametrize("face", Face)
def test_what_a_face_does_not_take_ends_it(face: Face, folder: Path) -> None:
    """The faces themselves ask, not only whoever reads options."""
    given = _given(folder, face)
    for name, option in OPTIONS.items():
        if face not in option.faces and name != "changes":
            with pytest.raises(InvalidInput, match=f"option '{name}' means nothing to "):
                _outcome(face, {**given, name: SAID.get(name, "true")}, folder)


def test_an_overwrite_replaces_the_rows_that_match_and_no_others(folder: Path) -> None:
    given = {**_given(folder, Face.OVERWRITE), "where": "v = 'b' and id < 10"}
    _outcome(Face.OVERWRITE, given, folder)
    with _lake(folder) as lake:
        rows = lake.table("db.t").scan(columns=["id"]).to_arrow()["id"].to_pylist()
        assert sorted(rows) == [1, 2, 9]


def test_an_overwrite_with_a_row_that_does_not_match_is_refused(folder: Path) -> None:
    given = {**_given(folder, Face.OVERWRITE), "where": "v = 'b' and id < 9"}
    with pytest.raises(InvalidInput, match=r"a new row does not match .*: filter the rows first$"):
        _outcome(Face.OVERWRITE, given, folder)
    with pytest.raises(InvalidInput, match="did you mean 'id'"):
        _outcome(Face.OVERWRITE, {**given, "where": "idd < 9"}, folder)
    both = {**given, "overwrite-mode": "dynamic"}
    with pytest.raises(InvalidInput, match="exclude each other"):
        _outcome(Face.OVERWRITE, both, folder)


def test_an_overwrite_without_rows_deletes_those_that_match(folder: Path) -> None:
    given = {**_given(folder, Face.OVERWRITE), "where": "v = 'b'"}
    writer: Any = IcetreeSource(given).writer(_SCHEMA, True)
    writer.commit([writer.write(iter([pa.record_batch({"id": [], "v": []})]))])
    with _lake(folder) as lake:
        assert sorted(lake.table("db.t").scan().to_arrow()["id"].to_pylist()) == [1, 2]
