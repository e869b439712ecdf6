"""Times before 1970 in ORC files: Iceberg Java reads ours, whole and by the index of their rows."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import icetree
from tests.java import EVERYTHING, IcebergJava
from tests.java_copy import CopyingJava

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 (of a column without a zone)
#: Groups of rows of which an index tells are smaller.
_ROWS = 35_000


def _time(micros: int) -> str:
    return (_EPOCH + timedelta(microseconds=micros)).isoformat()


@pytest.mark.parametrize("codec", ["none", "zlib", "zstd"])
def test_java_reads_our_times_before_1970_and_finds_them_by_their_index(
    java: IcebergJava, tmp_path: Path, codec: str
) -> None:
    chance = np.random.default_rng(7)
    micros = np.sort(chance.integers(-(3 * 10**15), -999_001, _ROWS))
    properties = {"write.format.default": "orc", "write.orc.compression-codec": codec}
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        columns = {"id": "int", "t": "timestamp", "s": "struct<t: timestamp>"}
        table = lake.create_table("db.t", columns, properties=properties)
        times = pa.array(micros, pa.timestamp("us"))
        nested = pa.StructArray.from_arrays([times], ["t"], mask=pa.array(micros % 7 == 0))
        ids = pa.array(np.arange(_ROWS), pa.int32())
        table.append(pa.table({"id": ids, "t": times, "s": nested}))
        theirs = java.table(table.export().metadata_location)
        model = {str(id): at for id, at in enumerate(micros.tolist())}
        found = dict(java.rows(theirs, ["id", "t"], EVERYTHING) or [])
        assert {id: _parsed(text) for id, text in found.items()} == model
        for at in (100, 15_000, 29_999):
            low, high = int(micros[at]), int(micros[at + 50])
            for name in ("t", "s.t"):
                parts = [
                    {"type": kind, "term": name, "value": _time(value)}
                    for kind, value in (("gt-eq", low), ("lt-eq", high))
                ]
                where = json.dumps({"type": "and", "left": parts[0], "right": parts[1]})
                found = dict(java.rows(theirs, ["id", "t"], where) or [])
                wanted = {
                    id: each
                    for id, each in model.items()
                    if low <= each <= high and (name == "t" or each % 7)
                }
                assert {id: _parsed(text) for id, text in found.items()} == wanted


def _parsed(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)


def test_filters_find_nanoseconds_that_java_wrote(java: IcebergJava, tmp_path: Path) -> None:
    """Java's bounds of them count microseconds in files of ORC."""
    nanos = [1_700_000_000_123_456_789, -1_700_000_000_123_456_789, 5]
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")) as lake:
        lake.create_namespace("db")
        columns = {"id": "int", "n": "timestamp_ns", "z": "timestamptz_ns"}
        ours = lake.create_table("db.ours", columns)
        kinds = (pa.timestamp("ns"), pa.timestamp("ns", "UTC"))
        parts = {name: pa.array(nanos, kind) for name, kind in zip("nz", kinds, strict=True)}
        ours.append(pa.table({"id": pa.array(range(3), pa.int32()), **parts}))
        made = CopyingJava(java).copied(
            java.table(ours.export().metadata_location), str(tmp_path / "theirs"), "orc"
        )
        theirs = lake.register_table("db.theirs", made)
        for upgraded in (False, True):
            if upgraded:
                theirs.upgrade()
            for name, zone in (("n", ""), ("z", "+00:00")):
                for id, text in enumerate(
                    (
                        "2023-11-14T22:13:20.123456789",
                        "1916-02-18T01:46:39.876543211",
                        "1970-01-01T00:00:00.000000005",
                    )
                ):
                    found = theirs.scan(f"{name} = '{text}{zone}'").to_arrow()
                    assert found["id"].to_pylist() == [id]
        assert theirs.verify(deep=True).is_clean
