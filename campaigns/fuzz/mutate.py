"""Damage: how an input is made of sound ones, by chance that a seed decides."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

#: Numbers at which something changes in some format.
_TELLING: Final = (0, 1, 2, 7, 8, 15, 16, 63, 64, 127, 128, 255)
_WIDE: Final = (0, 1, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
_MOST_CHANGES: Final = 6
_PARQUET: Final = b"PAR1"


def mutated(seeds: Sequence[bytes], chance: Random) -> bytes:
    """Return one of the sound inputs with some damage, mostly little."""
    data = bytearray(chance.choice(seeds))
    start = _footer_start(data) if chance.random() < 0.6 else 0
    for _ in range(1 + min(_MOST_CHANGES, int(chance.expovariate(0.7)))):
        chance.choice(_CHANGES)(data, start, chance, seeds)
    if start:
        _fit_footer(data, start)
    return bytes(data)


def _footer_start(data: bytearray) -> int:
    """Return where the footer of a Parquet file begins, since most of what can break is there."""
    if len(data) < 12 or data[-4:] != _PARQUET:
        return 0
    length: int = struct.unpack_from("<I", data, len(data) - 8)[0]
    return max(0, len(data) - 8 - length)


def _fit_footer(data: bytearray, start: int) -> None:
    """Let the file say how long its footer is now, so that the damage is looked at."""
    if len(data) >= start + 8 and data[-4:] == _PARQUET:
        struct.pack_into("<I", data, len(data) - 8, len(data) - 8 - start)


def _place(data: bytearray, start: int, chance: Random) -> int:
    return chance.randrange(min(start, max(0, len(data) - 1)), max(1, len(data)))


def _flip(data: bytearray, start: int, chance: Random, _: Sequence[bytes]) -> None:
    if data:
        data[_place(data, start, chance)] ^= 1 << chance.randrange(8)


def _set(data: bytearray, start: int, chance: Random, _: Sequence[bytes]) -> None:
    if data:
        data[_place(data, start, chance)] = (
            chance.choice(_TELLING) if chance.random() < 0.5 else chance.randrange(256)
        )


def _set_wide(data: bytearray, start: int, chance: Random, _: Sequence[bytes]) -> None:
    at, form = _place(data, start, chance), chance.choice(("<H", "<I", "<Q", ">I", ">Q"))
    number = chance.choice(_WIDE) & (2 ** (8 * struct.calcsize(form)) - 1)
    data[at : at + struct.calcsize(form)] = struct.pack(form, number)


def _insert_varint(data: bytearray, start: int, chance: Random, _: Sequence[bytes]) -> None:
    number, made = chance.choice(_WIDE), bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    at = _place(data, start, chance)
    data[at : at + chance.randrange(2)] = made


def _cut(data: bytearray, start: int, chance: Random, _: Sequence[bytes]) -> None:
    at = _place(data, start, chance)
    del data[at : at + 1 + int(chance.expovariate(0.1))]


def _end(data: bytearray, start: int, chance: Random, _: Sequence[bytes]) -> None:
    if chance.random() < 0.2:
        del data[_place(data, start, chance) :]


def _repeat(data: bytearray, start: int, chance: Random, _: Sequence[bytes]) -> None:
    at = _place(data, start, chance)
    part = data[at : at + 1 + int(chance.expovariate(0.05))]
    data[at:at] = part * chance.choice((1, 1, 1, 2, 20))


def _splice(data: bytearray, start: int, chance: Random, seeds: Sequence[bytes]) -> None:
    other = chance.choice(seeds)
    if not other:
        return
    at, from_ = _place(data, start, chance), chance.randrange(len(other))
    part = other[from_ : from_ + 1 + int(chance.expovariate(0.03))]
    data[at : at + len(part) * chance.randrange(2)] = part


_CHANGES: Final[tuple[Callable[[bytearray, int, Random, Sequence[bytes]], None], ...]] = (
    *(_flip,) * 4,
    *(_set,) * 3,
    _set_wide,
    _insert_varint,
    _cut,
    _end,
    _repeat,
    _splice,
)
