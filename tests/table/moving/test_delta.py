"""Delta tables as tables of the lake: files, partition values and deleted rows as their log has them."""

from __future__ import annotations

import base64
import datetime as dt
import json
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from icetree.codec.puffin import encode_dv
from icetree.errors import CorruptTable, InvalidInput, NotFound, Unsupported
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.table.moving.old_tables import everything, lake_on

Make = Callable[[Lake, str, str], Table]
BOTH = pytest.mark.parametrize(
    "make",
    [
        lambda lake, name, source: lake.snapshot_table(name, source),
        lambda lake, name, source: lake.migrate_table(name, source),
    ],
    ids=["snapshot", "migrate"],
)


def rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    when = dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [None if id % 5 == 0 else f"n{id}" for id in ids],
            "amount": pa.array([Decimal(id).scaleb(-2) for id in ids], pa.decimal128(9, 2)),
            "at": pa.array([when + dt.timedelta(hours=id) for id in ids]),
            "tags": [[f"t{id}"] for id in ids],
            "day": pa.array([dt.date(2024, 1, 1 + id % 2) for id in ids], pa.date32()),
            "place": [None if id % 4 == 0 else "a b/c=%d" for id in ids],
        }
    )


def delta_table(folder: Path, *parts: str) -> Path:
    """Write a Delta table of three commits, the last of which deletes some rows by rewriting."""
    place = folder / "delta"
    for start in (0, 10):
        deltalake.write_deltalake(
            str(place), rows(start, 10), partition_by=[*parts] or None, mode="append"
        )
    deltalake.DeltaTable(str(place)).delete("id = 3")
    return place


#: The letters that Python writes 85 values with, and those that Delta does: ZeroMQ's.
_TO_Z85 = str.maketrans(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~",
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#",
)


def z85(content: bytes) -> str:
    return base64.b85encode(content, pad=True).decode().translate(_TO_Z85)


def stored(place: Path, form: str, blob: bytes) -> dict[str, Any]:
    """Store a vector, and say where it is: by a path, by a relative name, or in the log itself."""
    if form == "i":
        return {"pathOrInlineDv": z85(blob[4:-4])}
    id = uuid.uuid4()
    prefix = "a" if form == "u" else ""
    vector = place / prefix / f"deletion_vector_{id}.bin"
    vector.parent.mkdir(exist_ok=True)
    vector.write_bytes(b"\x01" + blob)
    where = f"{prefix}{z85(id.bytes)}" if form == "u" else vector.as_uri()
    return {"pathOrInlineDv": where, "offset": 1}


def hide(place: Path, hidden: Iterable[int], form: str = "p") -> dict[str, int]:
    """Add deletion vectors to every file, as Spark does; return how many rows of each are hidden."""
    table = deltalake.DeltaTable(str(place))
    version = table.version() + 1
    log = place / "_delta_log"
    adds = [
        json.loads(line)["add"]
        for file in sorted(log.glob("*.json"))
        for line in file.read_text().splitlines()
        if "add" in json.loads(line)
    ]
    live = {*pa.table(table.get_add_actions())["path"].to_pylist()}
    features = ["deletionVectors"]
    lines: list[dict[str, Any]] = [
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}}
    ]  # fmt: skip
    counts = {}
    for add in (each for each in adds if each["path"] in live):
        size = json.loads(add["stats"])["numRecords"]
        gone = BitMap64([each for each in hidden if each < size])
        counts[add["path"]] = len(gone)
        if not gone:
            continue
        blob = encode_dv(gone)
        told = {
            "storageType": form,
            **stored(place, form, blob),
            "sizeInBytes": len(blob) - 8,
            "cardinality": len(gone),
        }
        lines.append({"remove": {"path": add["path"], "deletionTimestamp": 1, "dataChange": True}})
        lines.append({"add": {**add, "deletionVector": told}})
    text = "\n".join(map(json.dumps, lines))
    (log / f"{version:020d}.json").write_text(text)
    return counts


def told(table: pa.Table) -> list[Any]:
    return table.sort_by("id").to_pylist()


@BOTH
@pytest.mark.parametrize("parts", [(), ("day",), ("place", "day")])
def test_a_delta_table_has_the_same_rows(tmp_path: Path, make: Make, parts: tuple[str]) -> None:
    place = delta_table(tmp_path, *parts)
    before = everything(place)
    theirs = deltalake.DeltaTable(str(place)).to_pyarrow_table()
    with lake_on(tmp_path) as lake:
        table = make(lake, "new.t", str(place))
        assert table.spec == parts
        ours = table.scan().to_arrow()
        assert told(ours.select(theirs.column_names)) == told(theirs)
        assert ours.num_rows == 19
        assert table.scan("day = '2024-01-02'").count() == 9
        table.delete("id = 7")
        table.append(rows(100, 2))
        assert table.scan().count() == 20
        assert table.verify(deep=True).findings == ()
    assert everything(place).items() >= before.items()


@BOTH
@pytest.mark.parametrize(
    ("parts", "form"), [((), "p"), (("place", "day"), "u"), ((), "u"), ((), "i")]
)
def test_rows_that_deletion_vectors_hide_stay_hidden(
    tmp_path: Path, make: Make, parts: tuple[str], form: str
) -> None:
    place = delta_table(tmp_path, *parts)
    hidden = hide(place, [0, 2, 5], form)
    assert sum(hidden.values()) > 3
    with lake_on(tmp_path) as lake:
        table = make(lake, "new.t", str(place))
        assert table.scan().count() == 19 - sum(hidden.values())
        # Nor were they ever to be seen.
        assert len([*table.history()]) == 1
        everywhere = deltalake.DeltaTable(str(place), version=2).to_pyarrow_table()
        kept = {row["id"] for row in told(table.scan().to_arrow())}
        assert kept < {row["id"] for row in told(everywhere)}
        assert table.inspect.delete_files().num_rows == len([n for n in hidden.values() if n])
        assert table.verify(deep=True).findings == ()
        table.delete(f"id = {min(kept)}")
        assert table.scan().count() == len(kept) - 1


def test_an_empty_delta_table_is_an_empty_table(tmp_path: Path) -> None:
    place = tmp_path / "delta"
    deltalake.DeltaTable.create(str(place), schema=rows(0, 2).schema)
    with lake_on(tmp_path) as lake:
        table = lake.snapshot_table("new.t", str(place))
        assert table.scan().to_arrow().num_rows == 0
        table.append(rows(0, 2))
        assert table.scan().count() == 2


def _protocol(place: Path, feature: str, configuration: dict[str, str] | None = None) -> None:
    log = min((place / "_delta_log").glob("*.json"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        if "protocol" in line:
            line["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [feature], "writerFeatures": [feature]}  # fmt: skip
        if "metaData" in line:
            line["metaData"]["configuration"] = configuration or {}
            schema = json.loads(line["metaData"]["schemaString"])
            for id, field in enumerate(schema["fields"], start=1):
                names = {"delta.columnMapping.id": id, "delta.columnMapping.physicalName": f"c{id}"}
                field["metadata"] = names if configuration else {}
            line["metaData"]["schemaString"] = json.dumps(schema)
    log.write_text("\n".join(map(json.dumps, lines)))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (
            lambda place: _protocol(place, "columnMapping", {"delta.columnMapping.mode": "name"}),
            "columns mapped",
        ),
        (lambda place: _protocol(place, "rowsInverted"), "rowsInverted"),
        (
            lambda place: min((place / "_delta_log").glob("*.json")).write_text("{"),
            "Delta table",
        ),
    ],
)
def test_a_delta_table_that_cannot_be_told_in_full_is_refused(
    tmp_path: Path, harm: Callable[[Path], None], why: str
) -> None:
    place = delta_table(tmp_path)
    harm(place)
    before = everything(place)
    with lake_on(tmp_path) as lake:
        with pytest.raises((Unsupported, CorruptTable), match=why):
            lake.snapshot_table("new.t", str(place))
        assert not lake.table_exists("new.t")
    assert everything(place) == before


def shallow_clone(folder: Path, of: Path) -> Path:
    """Make a table whose log names the files of another in full, as Spark's SHALLOW CLONE does."""
    place = folder / "clone"
    (place / "_delta_log").mkdir(parents=True)
    for file in sorted((of / "_delta_log").glob("*.json")):
        actions = [json.loads(line) for line in file.read_text().splitlines()]
        for each in actions:
            for kind in ("add", "remove"):
                if kind in each:
                    each[kind]["path"] = f"{of.as_uri()}/{each[kind]['path']}"
        (place / "_delta_log" / file.name).write_text("\n".join(map(json.dumps, actions)))
    return place


def test_a_shallow_clone_never_takes_the_files_of_the_other_table(tmp_path: Path) -> None:
    theirs = delta_table(tmp_path)
    place = shallow_clone(tmp_path, theirs)
    before = everything(tmp_path)
    with lake_on(tmp_path) as lake:
        with pytest.raises(InvalidInput, match=r"outside .*snapshot_table"):
            lake.migrate_table("new.t", str(place))
        with pytest.raises(InvalidInput, match="is a file of the other table"):
            lake.snapshot_table("new.t", str(place), location=str(theirs))
        assert not lake.table_exists("new.t")
        table = lake.snapshot_table("new.t", str(place))
        assert table.scan().count() == 19
        table.truncate()
        table.maintenance.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
        lake.drop_table("new.t", purge=True)
    after = everything(tmp_path)
    assert {name: after.get(name) for name in before if "catalog.db" not in name} == {
        name: held for name, held in before.items() if "catalog.db" not in name
    }


def test_a_file_that_the_log_names_and_is_gone_is_told_of(tmp_path: Path) -> None:
    place = delta_table(tmp_path)
    for each in place.glob("*.parquet"):
        each.unlink()
    with lake_on(tmp_path) as lake:
        with pytest.raises(NotFound, match=r"\.parquet"):
            lake.snapshot_table("new.t", str(place))
        assert not lake.table_exists("new.t")
