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


@pytest.mark.parametrize("nothing", ["null", {"type": "null"}])
@pytest.mark.parametrize("long", ["long", {"type": "long"}, {"type": {"type": "long"}}])
def test_a_type_may_be_spelt_as_a_name_or_as_an_object(nothing: object, long: object) -> None:
    schema = {"type": "record", "name": "r", "fields": [{"name": "n", "type": [nothing, long]}]}
    lanes = Lanes(ArrowColumns(schema), [varint(0) + varint(1) + varint(7)], {"n"})
    assert lanes.read([2])["n"].to_pylist() == [None, 7]


def test_an_object_may_name_a_type_that_was_told_before() -> None:
    two = {"type": "fixed", "name": "two", "size": 2}
    fields = [{"name": "a", "type": two}, {"name": "b", "type": {"type": "two"}}]
    schema = {"type": "record", "name": "r", "fields": fields}
    found = Lanes(ArrowColumns(schema), [b"abcd"], {"a", "b"}).read([1])
    assert [found[name].to_pylist() for name in "ab"] == [[b"ab"], [b"cd"]]
