"""Avro files whose schemas claim more than their bytes hold."""

from __future__ import annotations

from typing import Any

import pytest

from icetree.codec.avro.avro import open_avro
from icetree.errors import CorruptTable
from icetree.rows.read.files import open_file
from icetree.store.memory import MemoryStore
from tests.apart import apart
from tests.codec import avro_manifests as avro
from tests.hostile.avro_files import FILE, read_avro, varint, with_schema


def test_an_array_of_nothing_is_refused() -> None:
    nothing = avro.record("nothing")
    for items in ("null", nothing, {"type": "fixed", "name": "f", "size": 0}):
        schema = avro.record(
            "r", avro.field(1, "a", {"type": "array", "items": items}, required=True)
        )
        many = with_schema(schema, varint(2**40 << 1) + b"\0")
        with pytest.raises(CorruptTable, match="elements of an Avro array take no bytes"):
            read_avro(many)


#: What an inner record may call itself, and what is said of the namespaces of both.
WITHIN: dict[str, tuple[dict[str, str], str, dict[str, str]]] = {
    "no namespace": ({}, "r", {}),
    "one that is inherited": ({"namespace": "x"}, "x.r", {}),
    "one that is inherited and left out": ({"namespace": "x"}, "r", {}),
    "one in the outer's name": ({"name": "x.outer"}, "x.r", {}),
    "one of its own": ({"namespace": "x"}, "y.r", {"namespace": "y"}),
    "one in its own name": ({"namespace": "x"}, "y.r", {"name": "y.r"}),
    "none, inside of one": ({"namespace": "x"}, "r", {"namespace": ""}),
}


def nested_rows(outer: dict[str, str], named: str, inner: dict[str, str]) -> str:
    """Read a row that nests a million times; return what was said."""
    within = avro.record("r", {"name": "next", "type": ["null", named]}) | inner
    schema = avro.record("outer", {"name": "first", "type": within}) | outer
    try:
        read_avro(with_schema(schema, b"\x02" * 1_000_000 + b"\0"))
    except CorruptTable as error:
        return error.rule
    return "read"


def nested_by_every_name() -> dict[str, str]:
    """Return what was said, by how an inner record is named."""
    return {name: nested_rows(*how) for name, how in WITHIN.items()}


def test_a_type_within_itself_is_refused_by_whatever_name() -> None:
    assert apart(nested_by_every_name) == {
        name: f"the Avro type {named!r} is within itself" for name, (_, named, _) in WITHIN.items()
    }


def test_an_array_of_nothing_is_refused_by_whatever_name() -> None:
    def fixed(name: str, size: int, **more: str) -> Any:
        return {
            "name": f"f{size}",
            "type": {"type": "fixed", "name": name, "size": size, **more},
        }

    for types, named in (
        ([fixed("z", 0)], "x.z"),
        ([fixed("z", 0)], "z"),
        ([fixed("z", 0, namespace="y")], "y.z"),
        # One that takes bytes does not vouch for others that end alike.
        ([fixed("y.z", 0), fixed("w.z", 4)], "y.z"),
        ([fixed("y.null", 4)], "null"),
    ):
        many = {"name": "many", "type": {"type": "array", "items": named}}
        schema = avro.record("outer", *types, many) | {"namespace": "x"}
        data = with_schema(schema, bytes(8) + varint(2**40 << 1) + b"\0")
        with pytest.raises(CorruptTable, match="elements of an Avro array take no bytes"):
            read_avro(data)


def test_a_type_that_is_named_again_after_it_ended_is_read() -> None:
    two = {"type": "fixed", "name": "two", "size": 2}
    pair = avro.record("pair", {"name": "a", "type": two}, {"name": "b", "type": "x.two"})
    many = {"name": "many", "type": {"type": "array", "items": "x.pair"}}
    schema = avro.record("outer", {"name": "p", "type": pair}, many) | {"namespace": "x"}
    file = open_avro(with_schema(schema, b"aabb" + b"\x02ccdd\0"), file=FILE)
    first = {"a": b"aa", "b": b"bb"}
    assert list(file.rows()) == [{"p": first, "many": [{"a": b"cc", "b": b"dd"}]}]


def test_rows_that_take_no_bytes_are_not_counted_out() -> None:
    nothing = {
        "type": "record",
        "name": "row",
        "fields": [avro.field(1, "a", "null", required=True)],
    }
    content = avro.write(nothing, [])
    sync = content[-16:]
    # A block of 2^40 records in no byte at all.
    content += bytes([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01, 0x00]) + sync
    store = MemoryStore()
    store.write_new(FILE, content)
    with pytest.raises(CorruptTable, match="its rows take no bytes"):
        open_file(store, FILE, "avro", mapping=None)
