"""Equality deletes of other writers by what is inside structs, and by what has gone since."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tests.effort import usually
from tests.foreign.by_hand import Hand
from tests.foreign.columns import PLAIN, Field, Struct, dig, plain
from tests.foreign.drawn import plain_layout
from tests.foreign.judge import require_read_right
from tests.foreign.layout import Layout, Partition, Schema
from tests.foreign.model import File
from tests.foreign.tree import EXISTING

_MEMBERS = tuple(
    Field(id=id, key=name, name=name, type=plain(type))
    for id, name, type in ((21, "a", "long"), (22, "b", "string"))
)
_S = Field(id=20, key="s", name="s", type=Struct(_MEMBERS))


def _layout(transform: str) -> Layout:
    """Return a table that has a struct, and a second spec by a part of it."""
    layout = plain_layout()
    part = Partition(
        expr_id=100,
        partition_field_id=1000,
        source_id=22,
        source="s.b",
        transform=transform,
        name="by_b",
    )
    schema = Schema(0, (*layout.columns, _S))
    return replace(layout, schemas=(schema,), specs={0: (), 1: (part,)})


def _with_delete(hand: Hand, keys: tuple[str, ...]) -> list[File]:
    """Commit a file and, for its partition, a delete by some of its columns; return both."""
    file = hand.data(spec_id=1)
    while any(dig(row, "s.b") is None for row in file.rows):
        file = hand.data(spec_id=1)
    hand.snapshot([hand.file_row(file)], [file])
    delete = hand.writer.shop.equality(file)
    while delete.keys != keys or not delete.partition:
        delete = hand.writer.shop.equality(file)
    delete.snapshot_id = delete.sequence_number = delete.file_sequence_number = 2
    hand.snapshot([hand.file_row(file, EXISTING), hand.file_row(delete)], [file, delete])
    return [file, delete]


@pytest.mark.parametrize("keys", [("s.a",), ("s.a", "s.b")])
@pytest.mark.parametrize("transform", ["identity", "truncate[2]"])
def test_a_delete_by_one_part_of_a_struct_in_a_partition_by_another_is_sound(
    transform: str, keys: tuple[str, ...]
) -> None:
    hand = Hand(_layout(transform))
    _with_delete(hand, keys)
    require_read_right(hand.world(), hand.open())


@pytest.mark.parametrize("keys", [("price_of",), ("s.a",)])
def test_a_delete_by_what_was_dropped_since_still_deletes(keys: tuple[str, ...]) -> None:
    layout = _layout("identity")
    extra = Field(id=30, key="price_of", name="price_of", type=plain("long"))
    layout = replace(layout, schemas=(Schema(0, (*layout.columns, extra)),))
    hand = Hand(layout)
    live = _with_delete(hand, keys)
    left = [
        replace(each, type=Struct(_MEMBERS[1:])) if each.key == "s" else each
        for each in layout.columns
        if each.key != "price_of"
    ]
    after = replace(layout, schemas=(*layout.schemas, Schema(1, tuple(left))))
    hand.writer.layout = hand.writer.shop.layout = after
    new = hand.data(first_row_id=20)
    rows = [*(hand.file_row(each, EXISTING) for each in live), hand.file_row(new)]
    hand.snapshot(rows, [*live, new])
    hand.writer.snapshots[-1] = replace(hand.writer.snapshots[-1], schema_id=1)
    require_read_right(hand.world(), hand.open())


@pytest.mark.parametrize(
    ("type", "format"),
    [
        *((type, "parquet") for type in sorted(set(PLAIN) - {"float", "double"})),
        *usually(
            itertools.product(("uuid", "time", "fixed[3]", "decimal(9, 2)"), ("orc", "avro")),
            ("uuid", "orc"),
            ("decimal(9, 2)", "avro"),
        ),
    ],
)
def test_a_delete_by_a_column_of_any_type_in_any_format_deletes(type: str, format: str) -> None:
    layout = plain_layout()
    key = Field(id=30, key="k", name="k", type=plain(type))
    hand = Hand(replace(layout, schemas=(Schema(0, (*layout.columns, key)),)))
    hand.writer.shop.formats = (format,)
    file = hand.data()
    while len({repr(row["k"]) for row in file.rows}) < 3:
        file = hand.data()
    hand.snapshot([hand.file_row(file)], [file])
    delete = hand.writer.shop.equality(file, by=("k",))
    delete.snapshot_id = delete.sequence_number = delete.file_sequence_number = 2
    hand.snapshot([hand.file_row(file, EXISTING), hand.file_row(delete)], [file, delete])
    require_read_right(hand.world(), hand.open())


def test_a_delete_may_tell_that_a_void_field_of_its_partition_is_null() -> None:
    layout = _layout("identity")
    void = replace(layout.specs[1][0], expr_id=101, transform="void", name="void", source="n")
    void = replace(void, partition_field_id=1001, source_id=layout.column("n").id)
    hand = Hand(replace(layout, specs={0: (), 1: (*layout.specs[1], void)}))
    _, delete = _with_delete(hand, ("id",))
    assert delete.stats[void.expr_id]["lower_bound"] is None
    require_read_right(hand.world(), hand.open())
