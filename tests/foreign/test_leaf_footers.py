"""Leaves of several row groups whose own footers lie: what scans pass over by these is named."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.table.table import Table
from tests.foreign.by_hand import Hand
from tests.foreign.columns import Json
from tests.foreign.drawn import plain_layout
from tests.foreign.dress import Dress
from tests.foreign.judge import require_sound
from tests.foreign.model import File
from tests.foreign.parquet import manifest
from tests.foreign.tree import ADDED, DELETED

#: Larger leaves are read in parts, and footers met so often say what parts.
_LARGE = 20_000
_OFTEN = 3
_FAR = 0x1122334455667788
_EACH_ROWS = 2
_ALL = f"id > -{_FAR}"


class Lied:
    """A table of one leaf of three row groups, whose footer may say other than its entries."""

    def __init__(self) -> None:
        # Plans that need no partition's value read a leaf's columns one after the other.
        self.hand = Hand(layout=replace(plain_layout(), specs={0: ()}))
        self.id = self.hand.layout.column("id").id
        self.price = self.hand.layout.column("price").id
        self.files: list[File] = []
        while len(self.files) < 3 * _EACH_ROWS:
            first = sum(file.record_count for file in self.files)
            file = self.hand.data(first_row_id=first)
            ids = sorted(row["id"] for row in file.rows)
            if ids:
                file.stats = {self.id: {"lower_bound": ids[0], "upper_bound": ids[-1]}}
                self.files.append(file)
        self.leaf = self.hand.leaf(*((file, ADDED) for file in self.files))
        self.leaf.stats = {}
        self.entries = [self.hand.file_row(file) for file in self.files]

    def bounds(self, at: int) -> Json:
        """Return what the entry of a file tells of its ids."""
        found: Json = self.entries[at]["content_stats"][self.id]
        return found

    def stored(self, entries: list[Json], **how: Any) -> bytes:
        """Return a leaf as plain as can be: values of as many bytes stand where others do."""
        dress = Dress(key_values={"padding": "-" * _LARGE})
        content = manifest(entries, "data", self.hand.layout, dress)
        file = pq.ParquetFile(pa.BufferReader(content))
        out = pa.BufferOutputStream()
        how |= {"use_dictionary": False, "compression": "none", "store_schema": False}
        with pq.ParquetWriter(out, file.schema_arrow, **how) as writer:
            writer.add_key_value_metadata(file.metadata.metadata)
            writer.write_table(file.read(), row_group_size=_EACH_ROWS)
        return out.getvalue().to_pybytes()

    def table(self, content: bytes) -> Table:
        leaf = self.leaf
        leaf.location = self.hand.writer.shop.store("metadata", "-forged.parquet", content)
        leaf.size = len(content)
        self.hand.snapshot([self.hand.leaf_row(leaf, ADDED)], self.files)
        return self.hand.open()

    @property
    def rows(self) -> int:
        return sum(file.record_count for file in self.files)


def _start(content: bytes) -> int:
    """Return where the footer begins."""
    return len(content) - 8 - int.from_bytes(content[-8:-4], "little")


def _swapped(pages: bytes, footer: bytes) -> bytes:
    """Return a file with the pages of one and the footer of another."""
    assert len(pages) == len(footer)
    return pages[: _start(footer)] + footer[_start(footer) :]


def _put(content: bytes, old: bytes, new: bytes) -> bytes:
    """Return a file whose footer has other bytes somewhere."""
    pages, footer = content[: _start(content)], content[_start(content) :]
    assert len(old) == len(new)
    assert old in footer
    return pages + footer.replace(old, new)


def _found(lied: Lied, where: str) -> int:
    """Return how many rows a scan finds once the leaf was met often."""
    return [lied.hand.open().scan(where).to_arrow().num_rows for _ in range(_OFTEN)][-1]


def _said(table: Table) -> str:
    """Return what is wrong with a table, which needs no look at its data files."""
    return "\n".join(str(each) for each in table.verify().findings)


@pytest.mark.parametrize("tells", [True, False])
def test_the_truth_is_clean(tells: bool) -> None:
    lied = Lied()
    table = lied.table(lied.stored(lied.entries, write_statistics=tells))
    assert _found(lied, _ALL) == lied.rows
    assert [_found(lied, f"id = {lied.bounds(at)['upper_bound']}") for at in (2, 3)] == [1, 1]
    require_sound(table)


@pytest.mark.parametrize(("stat", "lie"), [("upper_bound", -_FAR), ("lower_bound", _FAR)])
def test_a_bound_that_makes_scans_pass_over_files_is_named(stat: str, lie: int) -> None:
    lied = Lied()
    pages, real = lied.stored(lied.entries), lied.bounds(2)[stat]
    for at in (2, 3):
        lied.bounds(at)[stat] = lie
    table = lied.table(_swapped(pages, lied.stored(lied.entries)))
    assert _found(lied, f"id = {real}") == 0, "the lie is believed"
    side = stat.removesuffix("_bound")
    assert f"its footer says of row group 1: {side} bound of id is {lie}, but it has" in _said(
        table
    )


def test_a_count_of_nulls_that_makes_scans_pass_over_files_is_named() -> None:
    lied = Lied()
    most, real = (lied.bounds(at).pop("upper_bound") for at in (2, 3))
    lied.bounds(2)["upper_bound"] = most
    value = most.to_bytes(8, "little")
    honest = lied.stored(lied.entries)
    # Thrift's way to tell of a number of nulls, which stands after the least value.
    table = lied.table(_put(honest, value + b"\x16\x02", value + b"\x16\x00"))
    assert _found(lied, f"id = {real}") == 0, "the lie is believed"
    assert "row group 1: upper bound of id is there for every entry, but one has none" in _said(
        table
    )


def test_a_column_that_is_not_the_same_throughout_is_named() -> None:
    lied = Lied()
    pages = lied.stored(lied.entries)
    for entry in lied.entries:
        entry["tracking_info"]["status"] = DELETED
    table = lied.table(_swapped(pages, lied.stored(lied.entries)))
    assert _found(lied, _ALL) == 0, "the lie is believed"
    assert "its footer says that status is 2 throughout, but it has 1" in _said(table)


def test_a_bound_that_is_nan_says_nothing() -> None:
    lied = Lied()
    for entry in lied.entries:
        told = {"lower_bound": -1e301, "upper_bound": 1.25e301}
        entry["content_stats"] = entry["content_stats"] | {lied.price: told}
    most, nan = (struct.pack("<d", each) for each in (1.25e301, math.nan))
    require_sound(lied.table(_put(lied.stored(lied.entries), most, nan)))


def test_a_row_group_of_another_size_than_it_says_is_named() -> None:
    lied = Lied()
    content = lied.stored(lied.entries)
    groups = pq.ParquetFile(pa.BufferReader(content)).metadata
    for at, says in ((0, _EACH_ROWS + 1), (1, _EACH_ROWS - 1)):
        # Thrift's way to tell of a number of rows, which stands after the number of bytes.
        sized = b"\x16" + _number(groups.row_group(at).total_byte_size) + b"\x16"
        content = _put(content, sized + _number(_EACH_ROWS), sized + _number(says))
    assert "its row groups do not have 3 rows" in _said(lied.table(content))


def _number(value: int) -> bytes:
    """Return a number that is not negative as Thrift's compact protocol has it."""
    value, found = 2 * value, b""
    while value >= 128:
        found, value = found + bytes([value % 128 + 128]), value // 128
    return found + bytes([value])
