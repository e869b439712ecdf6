"""A small manifest that was met before is told as it would be decoded."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import data
from icetree.codec import manifest
from icetree.codec.inherit import Inherited
from icetree.codec.manifest import remembered
from icetree.errors import CorruptTable, TooLarge
from icetree.spec.entry.entry import DATA, Entries, Status, with_columns
from icetree.spec.recent import Recent

SHAPE = data.shape_of(2)
TRACKING = Inherited(snapshot_id=7, sequence_number=5, first_row_id=100)
NARROW = ("location", "first_row_id", "1:lower", "dv_offset")


@pytest.fixture(autouse=True)
def _met_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_KNOWN", Recent(most=8))


@pytest.fixture(scope="module")
def content() -> bytes:
    files = data.new_files(np.arange(3), SHAPE)
    return manifest.encode(with_columns(files, status=int(Status.ADDED)), DATA, SHAPE)


def again(content: bytes, **more: object) -> Entries:
    more = {"file": "m", "tracking": TRACKING, **more}
    return manifest.decode_again(content, DATA, SHAPE, **more)  # type: ignore[arg-type]


def afresh(content: bytes, **more: object) -> Entries:
    more = {"file": "m", "tracking": TRACKING, **more}
    return manifest.decode(content, DATA, SHAPE, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("first", [None, NARROW, ("location",)])
@pytest.mark.parametrize("then", [None, NARROW, ("status", "location")])
def test_it_reads_the_same_whatever_was_asked_for_before(
    content: bytes, first: tuple[str, ...] | None, then: tuple[str, ...] | None
) -> None:
    again(content, columns=first)
    for _ in range(2):
        assert again(content, columns=then).equals(afresh(content, columns=then))


def test_the_same_bytes_are_decoded_once(content: bytes) -> None:
    assert again(content) is again(bytes(bytearray(content)))


def test_what_is_inherited_and_where_the_table_is_count_too(content: bytes) -> None:
    again(content)
    other = Inherited(snapshot_id=8, sequence_number=6, first_row_id=200)
    assert again(content, tracking=other).equals(afresh(content, tracking=other))
    assert again(content, table_location="s3://b/t").equals(afresh(content))


def test_what_its_columns_mean_now_counts_too(content: bytes) -> None:
    again(content)
    renamed = data.shape_of(1)
    found = manifest.decode_again(content, DATA, renamed, file="m", tracking=TRACKING)
    assert found.equals(manifest.decode(content, DATA, renamed, file="m", tracking=TRACKING))


def test_a_lower_limit_refuses_what_was_met_before(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    again(content)
    monkeypatch.setenv("ICETREE_MAX_METADATA_BYTES", "1")
    with pytest.raises(TooLarge):
        again(content)


def test_what_is_broken_is_refused_each_time(content: bytes) -> None:
    for _ in range(2):
        with pytest.raises(CorruptTable):
            again(content[:-1])


def test_a_large_one_is_not_kept() -> None:
    many = data.new_files(np.arange(remembered._FEW_ENTRIES + 1), SHAPE)
    content = manifest.encode(with_columns(many, status=int(Status.ADDED)), DATA, SHAPE)
    assert again(content) is not again(content)
