"""What the pages of a column say of themselves.

A footer only claims. What Arrow allocates by is in the headers of pages: what each unpacks to, how many
values it has, and how they are told. So these are looked at before Arrow is.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import pyarrow as pa

from icetree.codec.parquet import hadoop_lz4
from icetree.codec.parquet.deltas import count_of, read_deltas
from icetree.codec.parquet.footer import Chunk, Column
from icetree.codec.parquet.thrift import (
    BOOLEAN,
    I32,
    STRUCT,
    Broken,
    Data,
    Fields,
    Struct,
    Wanted,
    read_struct,
    skip_struct,
)

_DATA, _DICTIONARY, _DATA_V2 = 0, 2, 3
_DELTA_LENGTH, _FRONT_CODED = 6, 7
_BY_DICTIONARY: Final = (2, 8)
_RLE: Final = 3
_LENGTH_BYTES: Final = 4
#: Codecs by their numbers, as pyarrow calls them.
CODECS: Final = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
LZO: Final = 3
_LZ4_OF_HADOOP: Final = 5

# Field ids of the Parquet format.
_KIND, _UNPACKED, _PACKED = 1, 2, 3
_HEADS: Final = {_DATA: 5, _DICTIONARY: 7, _DATA_V2: 8}
_VALUES, _ENCODING, _LEVELS, _MORE_LEVELS = 1, 2, 3, 4
_V2_ENCODING, _V2_LEVEL_BYTES, _V2_MORE_BYTES, _V2_COMPRESSED = 4, 5, 6, 7
_NUMBER: Final = Wanted(I32)
_PAGE: Final[Fields] = {
    **dict.fromkeys((_KIND, _UNPACKED, _PACKED), _NUMBER),
    5: Wanted(STRUCT, fields=dict.fromkeys((1, 2, 3, 4), _NUMBER)),
    7: Wanted(STRUCT, fields=dict.fromkeys((1, 2), _NUMBER)),
    8: Wanted(STRUCT, fields={**dict.fromkeys((1, 4, 5, 6), _NUMBER), 7: Wanted(BOOLEAN)}),
}

# Nearly every header is one of these two, and an expression sees that much sooner.
_SIZE: Final = rb"([\x80-\xff]{0,4}[\x00-\x7f])"
_SIZES: Final = rb"\x15" + _SIZE + rb"\x15" + _SIZE
_CHECKSUM: Final = rb"\x15[\x80-\xff]{0,4}[\x00-\x7f]"
_STATISTICS: Final = b"\x1c"
_SMALL: Final = rb"\x15([\x00-\x7f])"
_USUAL_DATA: Final = re.compile(
    rb"\x15\x00%s(?:%s\x1c|\x2c)\x15%s%s\x15\x06\x15\x06(\x00\x00|\x1c)"
    % (_SIZES, _CHECKSUM, _SIZE, _SMALL),
    re.DOTALL,
)
_USUAL_DICTIONARY: Final = re.compile(
    rb"\x15\x04%s(?:%s\x3c|\x4c)\x15%s%s[\x11\x12]?\x00\x00" % (_SIZES, _CHECKSUM, _SIZE, _SMALL),
    re.DOTALL,
)


class Page(NamedTuple):
    """A page: what its header says, and where its content is."""

    kind: int
    unpacked_bytes: int
    packed_bytes: int
    values: int
    encoding: int
    at: int
    #: What else the header says, None of the usual one, whose levels are in runs.
    head: Struct | None


class Pages(NamedTuple):
    """What a column of a row group holds, by its pages."""

    values: int
    #: What the largest page unpacks to.
    largest: int
    #: What pages unpack to that tell their values one by one.
    told: int
    #: Values that are told by the dictionary.
    looked_up: int
    dictionary: Page | None
    dictionary_bytes: int
    #: Pages that say more about lengths in their content.
    with_lengths: list[Page]
    #: Whether Hadoop left one in a way that Arrow does not unpack.
    in_parts: bool


def read_pages(data: Data, chunk: Chunk, column: Column) -> Pages:
    """Return what the pages of a column say, which begin with the data: those that Arrow would read."""
    at = values = largest = told = looked_up = dictionary_bytes = 0
    dictionary, with_lengths, in_parts = None, [], False
    while values < chunk.values:
        if at >= len(data):
            raise Broken(f"pages have {values} values, the footer says {chunk.values}")
        page = _page(data, at)
        kind, unpacked, packed, held, encoding, at, _ = page
        at += packed
        if unpacked < 0 or packed < 0 or held < 0 or at > len(data):
            raise Broken("a page has a negative size or passes the end of its column")
        size = max(packed, unpacked)
        in_parts = in_parts or _is_in_parts(data, page, chunk.codec)
        if kind == _DICTIONARY:
            if dictionary is not None:
                raise Broken("a column has two dictionaries")
            if held * (_LENGTH_BYTES if column.width is None else column.width) > size:
                raise Broken(f"a dictionary of {held} values does not fit its page")
            dictionary, dictionary_bytes = page, size
        elif kind in _HEADS:
            values += held
            largest = max(largest, size)
            if encoding in _BY_DICTIONARY:
                looked_up += held
            else:
                told += size
            if encoding in (_DELTA_LENGTH, _FRONT_CODED):
                with_lengths.append(page)
    found = values, largest, told, looked_up, dictionary, dictionary_bytes, with_lengths, in_parts
    return Pages(*found)


def _is_in_parts(data: Data, page: Page, codec: int) -> bool:
    if codec != _LZ4_OF_HADOOP or page.kind not in _HEADS:
        return False
    return hadoop_lz4.is_in_parts(*_packed_content(data, page))


def _page(data: Data, at: int) -> Page:
    usual = _USUAL_DATA.match(data, at)
    if usual is not None:
        unpacked, packed, values, encoding, last = usual.groups()
        end = usual.end()
        if last == _STATISTICS:
            end = skip_struct(data, end)
            if data[end : end + 2] != b"\0\0":
                return _unusual_page(data, at)
            end += 2
        return Page(
            _DATA, _size(unpacked), _size(packed), _size(values), encoding[0] >> 1, end, None
        )
    usual = _USUAL_DICTIONARY.match(data, at)
    if usual is not None:
        unpacked, packed, values, encoding = usual.groups()
        sizes = _size(unpacked), _size(packed), _size(values)
        return Page(_DICTIONARY, *sizes, encoding[0] >> 1, usual.end(), None)
    return _unusual_page(data, at)


def _size(varint: bytes) -> int:
    number = shift = 0
    for byte in varint:
        number |= (byte & 0x7F) << shift
        shift += 7
    return number >> 1 ^ -(number & 1)


def _unusual_page(data: Data, at: int) -> Page:
    said, at = read_struct(data, at, _PAGE)
    try:
        kind, unpacked, packed = said[_KIND], said[_UNPACKED], said[_PACKED]
        if kind not in _HEADS:
            return Page(kind, unpacked, packed, 0, 0, at, said)
        head = said[_HEADS[kind]]
        encoding = head[_V2_ENCODING if kind == _DATA_V2 else _ENCODING]
        return Page(kind, unpacked, packed, head[_VALUES], encoding, at, head)
    except KeyError as error:
        raise Broken(f"a page lacks field {error}") from None


# --- lengths within pages ------------------------------------------------------------------------


def repeated_bytes(data: Data, page: Page, codec: int, levels: tuple[int, int]) -> int:
    """Return how many bytes a page repeats of the values before, having checked its counts of lengths.

    `levels` are the highest levels of repetition and of definition that the column has.
    """
    content = _content(data, page, codec, levels)
    if not content:
        return 0
    if page.encoding == _DELTA_LENGTH:
        count_of(content, 0, page.values)
        return 0
    prefixes, at = read_deltas(content, 0, page.values)
    count_of(content, at, page.values)
    if prefixes.size and prefixes.min() < 0:
        raise Broken("a length is negative")
    return int(prefixes.sum())


def longest_text(data: Data, page: Page, codec: int) -> int:
    """Return how long the longest text of a dictionary is."""
    content = _unpacked(data[page.at : page.at + page.packed_bytes], page.unpacked_bytes, codec)
    at = longest = 0
    for _ in range(page.values):
        length = int.from_bytes(content[at : at + _LENGTH_BYTES], "little")
        longest = max(longest, length)
        at += _LENGTH_BYTES + length
    if at > len(content):
        raise Broken("a dictionary ends in the middle")
    return longest


def _content(data: Data, page: Page, codec: int, levels: tuple[int, int]) -> bytes:
    """Return the values of a page as they are encoded, without levels."""
    content, size = _packed_content(data, page)
    head: dict[int, Any] = page.head or {}
    if page.kind == _DATA_V2:
        return _unpacked(content, size, codec if head.get(_V2_COMPRESSED, True) else 0)
    content = _unpacked(content, size, codec)
    if head and {head.get(_LEVELS), head.get(_MORE_LEVELS)} != {_RLE} and any(levels):
        raise Broken("levels are told in a way that does not go with lengths")
    at = 0
    for highest in levels:
        if highest:
            length = int.from_bytes(content[at : at + _LENGTH_BYTES], "little")
            at += _LENGTH_BYTES + length
    if at > len(content):
        raise Broken("levels do not fit their page")
    return content[at:]


def _packed_content(data: Data, page: Page) -> tuple[Data, int]:
    """Return what is compressed of a page, and what it unpacks to."""
    content, size = data[page.at : page.at + page.packed_bytes], page.unpacked_bytes
    if page.kind == _DATA_V2:
        head: dict[int, Any] = page.head or {}
        before = head.get(_V2_LEVEL_BYTES, 0) + head.get(_V2_MORE_BYTES, 0)
        if not 0 <= before <= min(size, len(content)):
            raise Broken("levels do not fit their page")
        return content[before:], size - before
    return content, size


def _unpacked(content: Data, size: int, codec: int) -> bytes:
    if codec == _LZ4_OF_HADOOP:
        return hadoop_lz4.unpacked(content, size)
    if codec not in CODECS:
        raise Broken(f"pages under codec {codec} are not looked into")
    name = CODECS[codec]
    if name is None or not content:
        return bytes(content)
    return bytes(pa.Codec(name).decompress(content, size))
