"""Positions survive their bytes, and bytes that break a rule are refused."""

from __future__ import annotations

import random
import struct

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyroaring import BitMap, BitMap64

from icetree.codec import bitmap
from icetree.errors import CorruptTable, InvalidInput
from tests.effort import law

FILE = "metadata/root.parquet"

# Written out by hand from the format: cookie, count, (key, cardinality - 1), offset, content.
ARRAY = bytes.fromhex("3a300000 01000000 0000 0200 10000000 0100 0200 0500")
# Cookie with count - 1, run flags, (key, cardinality - 1), run count, (start, length - 1).
RUN = bytes.fromhex("3b300000 01 0000 6300 0100 0a00 6300")
BITSET = bytes.fromhex("3a300000 01000000 0000 ff7f 10000000") + b"\x55" * 8192
TWO_KEYS = bytes.fromhex("3a300000 02000000 0000 0000 0100 0000 18000000 1a000000 0000 0000")
EMPTY = bytes.fromhex("3a300000 00000000")
# Four containers with runs among them: the shortest such bitmap that has an offset header.
RUNS_WITH_OFFSETS = bytes.fromhex(
    "3b300300 05"
    "0000 0900 0100 0000 0200 0900 0300 0000"
    "25000000 2b000000 2d000000 33000000"
    "0100 0000 0900  0700  0100 0500 0900  0000"
)
# Count of keys, then under each key a bitmap: here {3} under the keys 0 and 2.
THREE = bytes.fromhex("3a300000 01000000 0000 0000 10000000 0300")
TWO_HALVES = struct.pack("<Q", 2) + b"\0\0\0\0" + THREE + b"\2\0\0\0" + THREE

GOLDEN = {
    "empty": (EMPTY, []),
    "array": (ARRAY, [1, 2, 5]),
    "run": (RUN, range(10, 110)),
    "bitset": (BITSET, range(0, 65536, 2)),
    "two keys": (TWO_KEYS, [0, 65536]),
    "runs with offsets": (
        RUNS_WITH_OFFSETS,
        [*range(10), 65543, *range(131077, 131087), 3 * 65536],
    ),
}


@st.composite
def position_sets(draw: st.DrawFn) -> set[int]:
    """Sets with each kind of container, under keys that need not be next to one another."""
    found: set[int] = set()
    for key in draw(st.sets(st.sampled_from([0, 1, 2, 7, 40000, 65535]), max_size=4)):
        base = key << 16
        kind = draw(st.sampled_from(["array", "bitset", "run", "full"]))
        if kind == "array":
            found |= {base + low for low in draw(st.sets(st.integers(0, 65535), max_size=20))}
        elif kind == "bitset":
            found |= {base + low for low in random.Random(key).sample(range(65536), 5000)}
        elif kind == "run":
            start = draw(st.integers(0, 65535))
            found |= set(range(base + start, min(base + start + 300, base + 65536)))
        else:
            found |= set(range(base, base + 65536))
    return found


@pytest.mark.parametrize(("data", "positions"), GOLDEN.values(), ids=GOLDEN.keys())
def test_each_kind_of_container_has_the_bytes_of_the_format(
    data: bytes, positions: list[int]
) -> None:
    assert bitmap.encode(BitMap(positions)) == data
    assert bitmap.decode(data, file=FILE) == BitMap(positions)


@given(position_sets())
@law(40)
def test_positions_survive_their_bytes(positions: set[int]) -> None:
    assert bitmap.decode(bitmap.encode(BitMap(positions)), file=FILE) == BitMap(positions)


@given(position_sets(), st.sampled_from([1 << 32, 5 << 32, (1 << 63) - (1 << 32)]))
@law(25)
def test_64_bit_positions_survive_their_bytes(positions: set[int], above: int) -> None:
    both = BitMap64(positions) | BitMap64(position + above for position in positions)
    assert bitmap.decode64(bitmap.encode64(both), file=FILE) == both


def test_64_bit_positions_are_32_bit_bitmaps_under_ascending_keys() -> None:
    positions = BitMap64([3, (2 << 32) + 3])
    assert bitmap.encode64(positions) == TWO_HALVES
    assert bitmap.decode64(TWO_HALVES, file=FILE) == positions


def test_an_empty_bitmap_under_a_key_is_read_as_nothing() -> None:
    data = struct.pack("<QI", 2, 0) + EMPTY + struct.pack("<I", 1) + THREE
    assert list(bitmap.decode64(data, file=FILE)) == [(1 << 32) + 3]


def test_encoding_leaves_the_bitmap_as_it_was() -> None:
    positions = BitMap(list(range(10_000)), optimize=False)
    wide = BitMap64(list(range(10_000)), optimize=False)
    before = positions.get_statistics(), wide.get_statistics()
    assert len(bitmap.encode(positions)) < len(positions.serialize())
    assert len(bitmap.encode64(wide)) < len(wide.serialize())
    assert (positions.get_statistics(), wide.get_statistics()) == before


def test_positions_beyond_signed_64_bits_are_refused() -> None:
    with pytest.raises(InvalidInput, match="9223372036854775808"):
        bitmap.encode64(BitMap64([1 << 63]))


@given(position_sets())
@law(20)
def test_narrow_undoes_widen(positions: set[int]) -> None:
    narrow = BitMap(positions)
    wide = bitmap.widen(narrow)
    assert wide == BitMap64(positions)
    assert bitmap.narrow(wide, file=FILE) == narrow


def test_a_position_that_needs_more_than_32_bits_cannot_be_narrowed() -> None:
    with pytest.raises(CorruptTable, match="4294967296 does not fit"):
        bitmap.narrow(BitMap64([1, 1 << 32]), file=FILE)


@pytest.mark.parametrize(
    "positions",
    [
        pa.array([7, 1, 70_000, 7]),
        pa.array([7, 1, 70_000], pa.uint64()),
        pa.array([99, 7, 1, 70_000, 98])[1:4],
        pa.chunked_array([[7], [], [1, 70_000]], pa.int32()),
        pa.chunked_array([pa.array([99, 7], pa.uint32())[1:], pa.array([1, 70_000], pa.uint32())]),
        [7, 1, 70_000],
        {7, 1, 70_000},
        BitMap([7, 1, 70_000]),
        iter([7, 1, 70_000]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_bitmap_is_made_of_any_positions_in_any_order(positions: object) -> None:
    assert bitmap.of(positions) == BitMap([1, 7, 70_000])


@pytest.mark.parametrize(
    "positions", [[], pa.array([], pa.int64()), pa.chunked_array([], pa.int64())]
)
def test_no_positions_make_an_empty_bitmap(positions: object) -> None:
    assert bitmap.of(positions) == BitMap()
    assert bitmap.to_array(BitMap()).equals(pa.array([], pa.int64()))


@pytest.mark.parametrize(
    "positions",
    [
        [-1],
        [1 << 32],
        ["1"],
        [None],
        pa.array([-1]),
        pa.array([1 << 32]),
        pa.array([1, None]),
        pa.array([1.0]),
        pa.array(["1"]),
        pa.chunked_array([[1], [-1]]),
    ],
)
def test_positions_outside_32_bits_are_refused(positions: object) -> None:
    with pytest.raises(InvalidInput, match="positions must be"):
        bitmap.of(positions)


@given(position_sets())
@law(20)
def test_positions_come_out_ascending_as_64_bit_integers(positions: set[int]) -> None:
    expected = pa.array(sorted(positions), pa.int64())
    assert bitmap.to_array(BitMap(positions)).equals(expected)
    assert bitmap.to_array(BitMap64(positions)).equals(expected)
    assert bitmap.of(expected) == BitMap(positions)


@given(st.sets(st.integers(0, 199)), st.integers(0, 30))
@example(set(), 0)
@law(50)
def test_a_mask_is_true_at_each_position_and_nowhere_else(positions: set[int], more: int) -> None:
    size = max(positions, default=-1) + 1 + more
    found = bitmap.mask(BitMap(positions), size, file=FILE)
    assert found.type == pa.bool_()
    assert found.to_pylist() == [index in positions for index in range(size)]


@pytest.mark.parametrize("size", [0, 3, 5])
def test_a_mask_refuses_a_position_past_the_end(size: int) -> None:
    rule = rf"position 5 past the end \({size} entries\)"
    with pytest.raises(CorruptTable, match=rule) as caught:
        bitmap.mask(BitMap([1, 5]), size, file=FILE)
    assert caught.value.file == FILE


def array_of(values: list[int]) -> bytes:
    head = struct.pack("<IIHHI", 12346, 1, 0, len(values) - 1, 16)
    return head + struct.pack(f"<{len(values)}H", *values)


def runs_of(pairs: list[tuple[int, int]], cardinality: int) -> bytes:
    head = struct.pack("<IBHHH", 12347, 1, 0, cardinality - 1, len(pairs))
    return head + b"".join(struct.pack("<HH", start, length - 1) for start, length in pairs)


BROKEN = {
    "no bytes": (b"", "cut short"),
    "another cookie": (b"\x39" + ARRAY[1:], "cookie"),
    "too many containers": (
        struct.pack("<II", 12346, 65537) + bytes(9 * 65537),
        "65537 containers",
    ),
    "containers without bytes": (struct.pack("<II", 12346, 65536), "cut short"),
    "bytes after the end": (ARRAY + b"\0", "bytes follow"),
    "two bitmaps": (ARRAY + ARRAY, "bytes follow"),
    "keys that repeat": (TWO_KEYS.replace(b"\1\0\0\0\x18", b"\0\0\0\0\x18"), "keys do not ascend"),
    "an offset that lies": (ARRAY.replace(b"\x10\0\0\0", b"\x12\0\0\0"), "offset says 18"),
    "a short array out of order": (array_of([1, 5, 2]), "do not ascend"),
    "a short array with a repeat": (array_of([1, 2, 2]), "do not ascend"),
    "a long array out of order": (array_of([*range(1, 1000), 0]), "do not ascend"),
    "a long array with a repeat": (array_of([*range(1000), 999]), "do not ascend"),
    "a bitset with a bit too few": (BITSET[:-1] + b"\x54", "holds 32767 positions"),
    "a bitset with a bit too many": (BITSET[:-1] + b"\x57", "holds 32769 positions"),
    "runs that overlap": (runs_of([(0, 10), (5, 10)], 20), "overlap or touch"),
    "runs that touch": (runs_of([(0, 10), (10, 10)], 20), "overlap or touch"),
    "runs out of order": (runs_of([(50, 10), (0, 10)], 20), "overlap or touch"),
    "a run past the container": (runs_of([(65530, 10)], 10), "past the container"),
    "runs of another cardinality": (runs_of([(0, 10)], 11), "holds 10 positions"),
    "no runs": (runs_of([], 1), "holds 0 positions"),
}


@pytest.mark.parametrize(("data", "rule"), BROKEN.values(), ids=BROKEN.keys())
def test_bytes_that_break_a_rule_are_refused(data: bytes, rule: str) -> None:
    with pytest.raises(CorruptTable, match=rule) as caught:
        bitmap.decode(data, file=FILE)
    assert caught.value.file == FILE


def test_runs_one_apart_and_up_to_the_end_of_a_container_are_accepted() -> None:
    data = runs_of([(0, 10), (11, 10), (65530, 6)], 26)
    expected = [*range(10), *range(11, 21), *range(65530, 65536)]
    assert list(bitmap.decode(data, file=FILE)) == expected


@pytest.mark.parametrize("name", [name for name in GOLDEN if name != "bitset"])
def test_every_truncation_is_refused(name: str) -> None:
    data, _ = GOLDEN[name]
    for length in range(len(data)):
        with pytest.raises(CorruptTable):
            bitmap.decode(data[:length], file=FILE)


def test_a_truncated_bitset_is_refused() -> None:
    for length in (17, 4000, len(BITSET) - 1):
        with pytest.raises(CorruptTable, match="cut short"):
            bitmap.decode(BITSET[:length], file=FILE)


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        *((TWO_HALVES[:length], "cut short") for length in range(len(TWO_HALVES))),
        (TWO_HALVES + b"\0", "bytes follow"),
        (b"\1" + TWO_HALVES[1:], "bytes follow"),
        (b"\xff" * 8 + TWO_HALVES[8:], "cut short"),
        (struct.pack("<QI", 2, 0) + THREE + struct.pack("<I", 0) + THREE, "key 0 must ascend"),
        (struct.pack("<QI", 2, 3) + THREE + struct.pack("<I", 1) + THREE, "key 1 must ascend"),
        (struct.pack("<QI", 1, 1 << 31) + THREE, "below"),
        (struct.pack("<QI", 1, 0) + array_of([2, 1]), "do not ascend"),
    ],
)
def test_64_bit_bytes_that_break_a_rule_are_refused(data: bytes, rule: str) -> None:
    with pytest.raises(CorruptTable, match=rule) as caught:
        bitmap.decode64(data, file=FILE)
    assert caught.value.file == FILE


def assert_sound(data: bytes) -> None:
    """Whatever is accepted must be a set: ascending, as many as counted, and stable."""
    try:
        found = bitmap.decode(data, file=FILE)
    except CorruptTable:
        return
    if len(found) < 1_000_000:
        positions = found.to_array().tolist()
        assert positions == sorted(set(positions))
        assert len(positions) == len(found)
    assert bitmap.decode(bitmap.encode(found), file=FILE) == found


@given(st.binary(max_size=60), st.sampled_from([b"", EMPTY[:4], EMPTY[:4] + b"\1\0\0\0", RUN[:5]]))
@law(60)
def test_random_bytes_are_refused_or_are_a_set(data: bytes, start: bytes) -> None:
    assert_sound(start + data)


@given(
    st.sampled_from([data for data, _ in GOLDEN.values()]),
    st.lists(st.tuples(st.integers(0, 80), st.integers(0, 255)), min_size=1, max_size=3),
    st.integers(0, 4),
)
@law(100)
def test_mutated_bytes_are_refused_or_are_a_set(
    data: bytes, changes: list[tuple[int, int]], cut: int
) -> None:
    mutated = bytearray(data)
    for at, byte in changes:
        mutated[at % len(data)] = byte
    assert_sound(bytes(mutated[: len(mutated) - cut]))
