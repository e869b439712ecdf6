"""Parquet footers as writers old and new leave them: the pages stay, what tells of them is another's.

Lists of two levels, annotations of the old kind alone or of the new, statistics by the order of signed
bytes, columns that are told by their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.foreign.thrift import BINARY, I32, I64, LIST, STRUCT, Fields, read, written

#: Of a file: who made it, and by which order bounds are told.
_SCHEMA, _GROUPS, _PAIRS, _MADE_BY, _ORDERS = 2, 4, 5, 6, 7
#: Of an element of the schema.
_TYPE, _REPEATS, _NAME, _CHILDREN, _CONVERTED, _SCALE, _PRECISION, _ID, _LOGICAL = (
    1,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
)
#: Of a column in a row group; in the first two cases of what lies around its metadata.
_CHUNK_OFFSET, _META, _INDEX = 2, 3, (4, 5, 6, 7)
_PATH, _PAGES, _DICTIONARY, _STATS = 3, 9, 11, 12
_COUNTED = (13, 16)
_OLD_MOST, _OLD_LEAST, _NULLS, _MOST, _LEAST = 1, 2, 3, 5, 6
_BOUNDS = (_OLD_MOST, _OLD_LEAST, _MOST, _LEAST, 7, 8)
#: Of a row group: how many rows, and what is told of its place and size.
_ROWS, _SIZES = 3, (5, 6, 7)
_REQUIRED, _REPEATED = 0, 2
_DECIMAL, _MAP, _MAP_OF_OLD, _LIST = 5, 1, 2, 3
_BYTE_ARRAY, _TIMESTAMP = 6, 8
_MAKERS = (
    b"parquet-mr version 1.8.2 (build c6522788629e590a53eb79874b95f6c3ff11f16c)",
    b"parquet-mr version 1.13.1 (build db4183109d5b734ec5930d870cdae161e408ddba)",
    b"impala version 2.9.0-cdh5.12.0",
    b"DuckDB version v1.3.0",
    b"another writer",
)


@dataclass(slots=True)
class _Node:
    """An element of the schema, and those below."""

    own: Fields
    below: list[_Node] = field(default_factory=list)

    def walk(self) -> Iterator[_Node]:
        yield self
        for each in self.below:
            yield from each.walk()

    def paths(self, before: tuple[bytes, ...] = ()) -> Iterator[tuple[bytes, ...]]:
        """Yield the names that lead to each column that has values."""
        for each in self.below:
            path = (*before, each.own[_NAME][1])
            if each.below:
                yield from each.paths(path)
            else:
                yield path


def rewritten(
    content: bytes,
    rng: Random,
    *,
    texts: Mapping[str, Sequence[str | bytes | None]],
    decimals: Mapping[str, tuple[int, int]],
    named: bool = False,
    is_manifest: bool = False,
) -> bytes:
    """Return a file with another footer, which means the same.

    `texts` are the values of columns that are no numbers, by their names; `decimals` have numbers as
    bytes: precision and scale. Where columns are `named`, nothing else tells which they are.
    """
    length = int.from_bytes(content[-8:-4], "little")
    pages, footer = content[: -8 - length], read(content[-8 - length : -8])
    root, _ = _tree(footer[_SCHEMA][1][1], 0)
    groups = list(footer[_GROUPS][1][1]) if _GROUPS in footer else []
    for name, (precision, scale) in decimals.items():
        _call_decimal(
            next(e for e in root.below if e.own[_NAME][1] == name.encode()), precision, scale
        )
    if rng.random() < 0.5:
        _rename(root, rng)
    _annotate(root, rng, times=not is_manifest)
    if named:
        for each in root.walk():
            each.own.pop(_ID, None)
    _untell(footer, groups, root, rng, texts, set(decimals))
    paths = list(root.paths())
    for group in groups:
        for path, chunk in zip(paths, group[1][1][1], strict=True):
            chunk[_META][1][_PATH] = (LIST, (BINARY, list(path)))
    footer[_SCHEMA] = (LIST, (STRUCT, [each.own for each in root.walk()]))
    told = written(footer)
    return pages + told + len(told).to_bytes(4, "little") + b"PAR1"


def _tree(elements: list[Fields], at: int) -> tuple[_Node, int]:
    node, count = _Node(elements[at]), elements[at].get(_CHILDREN, (I32, 0))[1]
    at += 1
    for _ in range(count):
        below, at = _tree(elements, at)
        node.below.append(below)
    return node, at


def _call_decimal(node: _Node, precision: int, scale: int) -> None:
    node.own[_CONVERTED], node.own[_SCALE] = (I32, _DECIMAL), (I32, scale)
    node.own[_PRECISION] = (I32, precision)
    told = {1: (I32, scale), 2: (I32, precision)}
    node.own[_LOGICAL] = (STRUCT, {_DECIMAL: (STRUCT, told)})


# --- the schema ------------------------------------------------------------------------------


def _rename(node: _Node, rng: Random) -> None:
    """Call what is within lists and maps otherwise, or leave a level of lists out."""
    for each in node.below:
        _rename(each, rng)
    kind = node.own.get(_CONVERTED, (I32, None))[1]
    if kind == _LIST:
        [middle] = node.below
        [element] = middle.below
        if element.own[_REPEATS][1] == _REQUIRED and rng.random() < 0.6:
            element.own[_REPEATS] = (I32, _REPEATED)
            tuple_of = node.own[_NAME][1] + b"_tuple"
            element.own[_NAME] = (BINARY, rng.choice((b"array", tuple_of)))
            node.below = [element]
        else:
            middle.own[_NAME] = (BINARY, rng.choice((b"bag", b"list", b"elements")))
            element.own[_NAME] = (BINARY, rng.choice((b"array_element", b"item", b"element")))
    elif kind == _MAP:
        [pair] = node.below
        pair.own[_NAME] = (BINARY, rng.choice((b"map", b"key_value", b"entries")))
        if rng.random() < 0.5:
            node.own[_CONVERTED] = (I32, _MAP_OF_OLD)
            node.own.pop(_LOGICAL, None)


def _annotate(root: _Node, rng: Random, *, times: bool) -> None:
    """Tell what columns mean in the old way alone, in the new one, or in both.

    The old way has no `times` but those of UTC.
    """
    gone = rng.choice((_LOGICAL, _CONVERTED, None))
    for each in root.walk():
        if gone == _LOGICAL and not times and _TIMESTAMP in each.own.get(_LOGICAL, (0, {}))[1]:
            continue
        if gone is not None and {_LOGICAL, _CONVERTED} <= each.own.keys():
            if gone == _CONVERTED:
                # Numbers of digits go with it, and are told in the new one.
                each.own.pop(_SCALE, None)
                each.own.pop(_PRECISION, None)
            del each.own[gone]


# --- what is told of pages -------------------------------------------------------------------


def _untell(
    footer: Fields,
    groups: list[Fields],
    root: _Node,
    rng: Random,
    texts: Mapping[str, Sequence[str | bytes | None]],
    decimals: set[str],
) -> None:
    """Leave out what may be left out, and tell bounds, or where pages begin, as of old."""
    maker = rng.choice((None, *_MAKERS))
    footer.pop(_MADE_BY, None)
    if maker is not None:
        footer[_MADE_BY] = (BINARY, maker)
    pairs = footer.get(_PAIRS, (LIST, (STRUCT, [])))[1][1]
    # A key may have no value.
    footer[_PAIRS] = (LIST, (STRUCT, [*pairs, {1: (BINARY, b"made.by.another")}]))
    ways = _Ways(*(rng.random() < 0.5 for _ in range(3)))
    if ways.old:
        footer.pop(_ORDERS, None)
    first = 0
    for group in groups:
        rows = group[_ROWS][1]
        for path, chunk in zip(root.paths(), group[1][1][1], strict=True):
            name = path[0].decode()
            values = texts.get(name, ()) if len(path) == 1 else ()
            without = name in decimals or rng.random() < 0.1
            _untell_chunk(chunk, values[first : first + rows], ways, without=without)
        if ways.unsized:
            _drop(group, _SIZES)
        first += rows


@dataclass(frozen=True, slots=True)
class _Ways:
    """How bounds are told, where pages begin, and whether it is told how large things are."""

    old: bool
    no_dictionaries: bool
    unsized: bool


def _untell_chunk(
    chunk: Fields, values: Sequence[str | bytes | None], ways: _Ways, *, without: bool
) -> None:
    """Tell of a column in a row group; of bounds and nulls nothing, where it is to be without."""
    meta: Fields = chunk[_META][1]
    chunk[_CHUNK_OFFSET] = (I64, 0)
    if ways.old or without:
        _drop(chunk, _INDEX)
    if _STATS in meta and without:
        _drop(meta[_STATS][1], (*_BOUNDS, _NULLS))
    elif _STATS in meta and ways.old:
        _retell(meta[_STATS][1], meta[_TYPE][1], values)
    if ways.no_dictionaries and meta.get(_DICTIONARY, (I64, 0))[1]:
        # Of writers of old, pages begin where the dictionary does.
        meta[_PAGES] = meta.pop(_DICTIONARY)
    if ways.unsized:
        _drop(meta, _COUNTED)


def _drop(fields: Fields, ids: Sequence[int]) -> None:
    for id in ids:
        fields.pop(id, None)


def _retell(stats: Fields, type: int, values: Sequence[str | bytes | None]) -> None:
    """Tell bounds as before there were orders: bytes are signed."""
    least, most = stats.get(_LEAST), stats.get(_MOST)
    _drop(stats, _BOUNDS)
    if least is None or most is None:
        return
    if type >= _BYTE_ARRAY:
        present = [e.encode() if isinstance(e, str) else e for e in values if e is not None]
        if not present:
            return
        ordered = sorted(present, key=lambda each: [byte ^ 0x80 for byte in each])
        least, most = (BINARY, ordered[0]), (BINARY, ordered[-1])
    stats[_OLD_LEAST], stats[_OLD_MOST] = least, most
