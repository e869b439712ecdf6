"""Avro files that differ in nothing but their rows, so that they can be read as one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import accumulate
from typing import TypeVar

from icetree.codec.avro.avro import AvroFile
from icetree.spec.entry.entry import Entries

T = TypeVar("T")


def gathered(items: Iterable[T], key: Callable[[T], Hashable]) -> Iterable[list[T]]:
    """Return items of the same key together, in the order of the first of each."""
    found: dict[Hashable, list[T]] = {}
    for each in items:
        found.setdefault(key(each), []).append(each)
    return found.values()


def told_header(avro: AvroFile) -> tuple[str | None, ...]:
    """Return what a file's header says of how its rows are read: schema and format version."""
    return tuple(avro.metadata.get(each) for each in ("avro.schema", "format-version"))


def parted(entries: Entries, counts: Sequence[int]) -> list[Entries]:
    """Return entries in parts of so many."""
    ends = accumulate(counts)
    return [entries.slice(end - count, count) for end, count in zip(ends, counts, strict=True)]
