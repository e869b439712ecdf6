"""Blocks of Avro as columns: what a few bytes claim is not believed."""

from __future__ import annotations

import pytest

from icetree.codec.avro.columns import ArrowColumns
from icetree.codec.avro.lanes import Lanes
from icetree.codec.avro.pieces import varint

NOTHINGS = {
    "type": "record",
    "name": "r",
    "fields": [{"name": "n", "type": {"type": "array", "items": "null"}}],
}


def test_a_list_of_items_without_bytes_does_not_last_for_ever() -> None:
    def read(count: int) -> list[list[None]]:
        block = varint(count) + varint(0)
        lanes = Lanes(ArrowColumns(NOTHINGS), [block], {"n"})
        found: list[list[None]] = lanes.read([1])["n"].to_pylist()
        return found

    assert read(100) == [[None] * 100]
    with pytest.raises(ValueError, match="items that take no bytes"):
        read(2**60)
