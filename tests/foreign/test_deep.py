"""What data files say of themselves: lies of footers and entries that deep verification names."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from icetree.table.scan.told import End
from icetree.table.scan.told import told as metadata_tells
from tests.foreign.by_hand import Hand, findings, plain_file
from tests.foreign.columns import Json
from tests.foreign.drawn import draw_rows, plain_layout
from tests.foreign.layout import Partition
from tests.foreign.model import File
from tests.foreign.tree import EXISTING

_FAR = 0x1122334455667788


def _told_by_footer(hand: Hand, price: Sequence[float | None] = (None, None)) -> File:
    """Return a file of two rows whose footer tells the larger id, in some of the usual ways."""
    rows = draw_rows(Random(5), 1, 2, hand.layout, 0)
    for row, each in zip(rows, price, strict=True):
        row["price"] = each
    rows[1]["id"] = _FAR
    while True:
        file = hand.writer.shop.data(rows, 0)
        footer = _footer(hand.writer.shop.stored[file.location])
        if _FAR.to_bytes(8, "little") in footer:
            file.snapshot_id = file.sequence_number = file.file_sequence_number = hand.number
            file.first_row_id = 0
            return file


def _footer(content: bytes) -> bytes:
    return content[len(content) - 8 - int.from_bytes(content[-8:-4], "little") :]


@pytest.mark.parametrize("lies", [False, True])
def test_a_footer_that_makes_scans_pass_over_rows_is_named(lies: bool) -> None:
    hand = Hand()
    file = _told_by_footer(hand)
    stored = hand.writer.shop.stored
    if lies:
        content = stored[file.location]
        footer = _footer(content)
        lied = footer.replace(_FAR.to_bytes(8, "little"), (1).to_bytes(8, "little"))
        stored[file.location] = content.removesuffix(footer) + lied
    hand.snapshot([hand.file_row(file)], [file])
    table = hand.open()
    assert table.scan(f"id = {_FAR}").count() == (0 if lies else 1)
    said = findings(table)
    assert ("upper bound of id is 1, but it has" in said) == lies
    assert lies or said == ""


def test_a_footer_with_a_bound_that_is_nan_says_nothing() -> None:
    hand = Hand()
    file = _told_by_footer(hand, price=[1.5, 33.75])
    stored = hand.writer.shop.stored
    content, most = stored[file.location], struct.pack("<d", 33.75)
    footer = _footer(content)
    assert most in footer
    nan = footer.replace(most, struct.pack("<d", math.nan))
    stored[file.location] = content.removesuffix(footer) + nan
    hand.snapshot([hand.file_row(file)], [file])
    assert findings(hand.open()) == ""


@pytest.mark.parametrize("nulls", [{}, {"null_value_count": 4}])
def test_a_tight_bound_of_no_value_is_named(nulls: Json) -> None:
    hand = Hand()
    n = hand.layout.column("n").id
    some, none = plain_file(hand, 4), plain_file(hand, 4, first=4)
    none = hand.writer.shop.data([row | {"n": None} for row in none.rows], 0)
    none.snapshot_id = none.sequence_number = none.file_sequence_number = hand.number
    none.first_row_id = 4
    values = [row["n"] for row in some.rows]
    honest = {"lower_bound": min(values), "upper_bound": max(values), "null_value_count": 0}
    lie = {"lower_bound": -7, "upper_bound": -7, **nulls}
    rows = []
    for file, told in ((some, honest), (none, lie)):
        row = hand.file_row(file)
        told |= {"value_count": 4, "tight_bounds": True}
        rows.append(row | {"content_stats": row["content_stats"] | {n: told}})
    hand.snapshot(rows, [some, none])
    table = hand.open()
    least = End(what="min", field_id=n)
    found = metadata_tells(table.scan(), [least])
    assert found is not None
    assert found.ends[least].as_py() == (min(values) if nulls else -7)
    assert "lower bound of n is tight at -7, but it has no value" in findings(table)


@pytest.mark.parametrize("lies", [False, True])
def test_a_bucket_of_several_columns_that_is_another_is_named(lies: bool) -> None:
    layout = plain_layout()
    name, n = layout.column("name"), layout.column("n")
    part = Partition(
        expr_id=101,
        partition_field_id=1001,
        source_id=name.id,
        source="name",
        transform="bucket[3]",
        name="of_several",
        others=((n.id, "n"),),
    )
    hand = Hand(replace(layout, specs={0: (), 1: (part,)}))
    file = hand.data(spec_id=1)
    while (bucket := part.value(file.rows[0])) is None:
        file = hand.data(spec_id=1)
    row, told = hand.file_row(file), (bucket + lies) % 3
    row["content_stats"] |= {101: {"lower_bound": told, "upper_bound": told}}
    hand.snapshot([row], [file])
    assert ("bound of of_several" in findings(hand.open())) == lies


def test_equality_ids_that_differ_between_snapshots_are_named() -> None:
    hand = Hand()
    file = hand.data()
    hand.snapshot([hand.file_row(file)], [file])
    deletes = hand.writer.shop.equality(file)
    while len(deletes.keys) < 2:
        deletes = hand.writer.shop.equality(file)
    deletes.snapshot_id = deletes.sequence_number = deletes.file_sequence_number = 2
    deletes.stats = {}
    hand.snapshot([hand.file_row(file, EXISTING), hand.file_row(deletes)], [file, deletes])
    less = hand.file_row(deletes, EXISTING) | {"equality_ids": deletes.equality_ids[:1]}
    hand.snapshot([hand.file_row(file, EXISTING), less], [file, deletes])
    assert "its equality ids are" in findings(hand.open())
