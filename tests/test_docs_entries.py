"""The bytes of an entry that a page spells out are those of a file, read by other means."""

from __future__ import annotations

import struct
from datetime import date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from docs.make.entry_parts import columns, files_of_one_entry

ROOT, _ = files_of_one_entry()


@pytest.mark.parametrize("group", ["tracking_info", "content_stats"])
def test_bytes_of_a_page_are_those_of_the_value_that_a_reader_finds(group: str) -> None:
    found = list(columns(ROOT, group))
    assert found
    for path, _, value, content in found:
        match value:
            case bool():
                meant = bytes([value])
            case datetime():
                micros = (value - datetime(1970, 1, 1)).total_seconds() * 1_000_000  # noqa: DTZ001
                meant = struct.pack("<q", int(micros))
            case date():
                meant = struct.pack("<i", (value - date(1970, 1, 1)).days)
            case _:
                meant = struct.pack("<i" if path.endswith(".status") else "<q", value)
        assert content == meant, path


def test_every_stat_and_all_of_the_tracking_that_has_a_value_is_told() -> None:
    (entry,) = pq.read_table(pa.BufferReader(ROOT)).to_pylist()
    told = [
        path for group in ("tracking_info", "content_stats") for path, *_ in columns(ROOT, group)
    ]
    stats = {f"content_stats.{name}.{stat}" for name, each in entry["content_stats"].items() for stat, value in each.items() if value is not None}  # fmt: skip
    tracking = {f"tracking_info.{name}" for name, value in entry["tracking_info"].items() if value is not None}  # fmt: skip
    assert set(told) == stats | tracking
    assert {"content_stats.at_day.lower_bound", "tracking_info.first_row_id"} <= set(told)
