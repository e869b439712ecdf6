"""Times before 1970 in ORC files, as their bytes tell them: to Arrow, and by the rule of ORC Java."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import orc

from icetree.codec.orc.protobuf import fields_of
from icetree.rows.formats.orc import with_old_times
from tests.effort import law
from tests.table.lake import connection

_SECOND, _MILLI = 10**9, 10**6
#: What no nanoseconds above 0 can tell: Java writes the time a second later, and so reads it.
_LOST = range(-999 * _MILLI, 0)
_WIDTHS = (*range(1, 25), 26, 28, 30, 32, 40, 48, 56, 64)

_EDGES = [
    at + beside
    for at in (0, -1, -_MILLI, -999 * _MILLI, -_SECOND, -2 * _SECOND, -(10**18))
    for beside in (-_MILLI, -1000, -1, 0, 1, 1000, 500 * _MILLI)
]
_TIMES = st.sampled_from(_EDGES) | st.integers(-(2**63) + _SECOND, 2**63 - 1)
_CODECS = ("uncompressed", "zlib", "zstd", "snappy", "lz4")


def _made(data: pa.Table, **how: Any) -> bytes:
    sink = io.BytesIO()
    orc.write_table(data, sink, **how)
    return with_old_times(pa.py_buffer(sink.getvalue())).to_pybytes()


def _numbers(stream: bytes) -> list[int]:
    """Return numbers of runs, each told as it is or once for all: what short columns have."""
    found: list[int] = []
    at = 0
    while at < len(stream):
        head = stream[at]
        if head >> 6 == 0:
            width = (head >> 3 & 7) + 1
            found += [int.from_bytes(stream[at + 1 : at + 1 + width], "big")] * ((head & 7) + 3)
            at += 1 + width
            continue
        assert head >> 6 == 1
        width, count = _WIDTHS[head >> 1 & 31], ((head & 1) << 8 | stream[at + 1]) + 1
        size = (width * count + 7) // 8
        bits = int.from_bytes(stream[at + 2 : at + 2 + size], "big") >> (8 * size - width * count)
        found += [bits >> width * (count - 1 - each) & (1 << width) - 1 for each in range(count)]
        at += 2 + size
    return found


def _stored(content: bytes) -> list[tuple[int, int]]:
    """Return seconds and nanoseconds of the only column of a file that is not packed."""
    script = dict(fields_of(content[-1 - content[-1] : -1]))
    end = len(content) - 1 - content[-1]
    footer = list(fields_of(content[end - int(script[1]) : end]))
    [stripe] = [dict(fields_of(value)) for number, value in footer if number == 3]
    at = int(stripe[1])
    after = at + int(stripe[2]) + int(stripe[3])
    streams = {}
    for number, value in fields_of(content[after : after + int(stripe[4])]):
        if number == 1:
            told = dict(fields_of(value))
            streams[told.get(1, 0), told.get(2, 0)] = content[at : at + int(told.get(3, 0))]
            at += int(told.get(3, 0))
    seconds = [(each >> 1 ^ -(each & 1)) + 1_420_070_400 for each in _numbers(streams[1, 1])]
    nanos = []
    for each in _numbers(streams[5, 1]):
        signed = each - (each >> 63 << 64)
        nanos.append((signed >> 3) * 10 ** ((each & 7) + 1 if each & 7 else 0))
    return list(zip(seconds, nanos, strict=True))


def _read_by_java(seconds: int, nanos: int) -> int:
    """Return the time that ORC Java 1.9 and Iceberg Java 1.11 make of what is stored."""
    millis = seconds * 1000 + int(nanos / _MILLI)
    if millis < 0 and nanos > 999_999:
        millis -= 1000
    return millis // 1000 * _SECOND + nanos


def _written_by_java(time: int) -> tuple[int, int]:
    return int(time // _MILLI / 1000), time % _SECOND


@law(40)
@given(st.lists(_TIMES, min_size=1, max_size=20), st.sampled_from([None, "UTC"]))
def test_times_are_stored_as_java_stores_them_and_reads_them(
    times: list[int], zone: str | None
) -> None:
    content = _made(
        pa.table({"t": pa.array(times, pa.timestamp("ns", zone))}), compression="uncompressed"
    )
    found = orc.ORCFile(pa.BufferReader(content)).read()["t"].cast(pa.int64()).to_pylist()
    assert found == times
    for time, stored in zip(times, _stored(content), strict=True):
        if time in _LOST:
            assert stored == (0, time)
        else:
            assert _read_by_java(*stored) == time
            assert stored == _written_by_java(time)


def test_what_java_stores_of_the_last_second_is_a_time_after_it_to_java_itself() -> None:
    for time in (*_LOST[:: 10**7], -1):
        assert _read_by_java(*_written_by_java(time)) == time + _SECOND


@law(10)
@given(st.data(), st.sampled_from(_CODECS), st.integers(1, 3), st.booleans())
def test_nothing_else_of_a_file_changes(
    data: st.DataObject, codec: str, rounds: int, large: bool
) -> None:
    """However times are nested, wherever nulls are, over stripes, groups of rows and blocks."""
    chance = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    count = 12_000 * rounds if large else data.draw(st.integers(1, 1100))

    def times(size: int) -> Any:
        drawn = chance.integers(-(3 * 10**18), 3 * 10**18, size)
        return np.where(chance.random(size) < 0.5, chance.choice(_EDGES, size), drawn)

    def column(size: int, zone: str | None = None) -> pa.Array:
        kind = pa.timestamp("ns", zone)
        return pa.array(times(size), kind, mask=chance.random(size) < chance.choice([0, 0.3, 1]))

    lengths = chance.integers(0, 3, count)
    starts = pa.array([0, *np.cumsum(lengths).tolist()], pa.int32())
    inner = int(lengths.sum())
    keys = pa.array([str(each) for each in range(inner)])
    table = pa.table(
        {
            "id": pa.array(np.arange(count)),
            "t": column(count),
            "l": pa.ListArray.from_arrays(starts, column(inner)),
            "m": pa.MapArray.from_arrays(starts, keys, column(inner, "UTC")),
            "s": pa.StructArray.from_arrays(
                [column(count, "UTC"), pa.array(chance.random(count))],
                ["z", "x"],
                mask=pa.array(chance.random(count) < 0.2),
            ),
        }
    )
    how = {"stripe_size": 2**16, "compression_block_size": 2**16} if large else {}
    content = _made(table, compression=codec, **how)
    file = orc.ORCFile(pa.BufferReader(content))
    found = file.read()
    assert found.equals(table.cast(found.schema))
    for stripe in range(file.nstripes):
        for name in ("t", "m"):
            assert file.read_stripe(stripe, [name]).num_rows > 0


@pytest.mark.parametrize("times", [[0, 5], [None], [-5 * _SECOND], [-1, 7], [-999 * _MILLI]])
def test_a_file_without_such_times_stays_as_it_is(times: list[int | None]) -> None:
    sink = io.BytesIO()
    orc.write_table(pa.table({"t": pa.array(times, pa.timestamp("ns"))}), sink)
    assert with_old_times(pa.py_buffer(sink.getvalue())).to_pybytes() == sink.getvalue()


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_the_first_times_that_there_are_can_be_read_again(unit: str) -> None:
    least = -(2**63) if unit == "ns" else -(2**63) // 1000 + 1
    steps = [0, 1, 10**3, 854_774_000, 854_775_808, 854_775_809, 10**10]
    values = [least + (step if unit == "ns" else step // 1000) for step in steps]
    rows = pa.table({"t": pa.array(values, pa.timestamp(unit))})
    table = connection().create_table(
        "db.t", rows.schema, properties={"write.format.default": "orc"}
    )
    table.append(rows)
    assert table.scan().to_arrow()["t"].cast(pa.int64()).to_pylist() == values
