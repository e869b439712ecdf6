"""Times before 1970 in a new ORC file, told as other writers of ORC tell them.

A time is stored as seconds, cut towards 1970, and nanoseconds, counted upwards from the second below;
readers take a second more off where both say that it is before 1970. Arrow writes nanoseconds below 0
instead, which it reads itself, and which ORC Java reads a second early. So streams of times are written
anew, with their places in the index of rows and their bounds. All else stays as Arrow wrote it.

In the last second before 1970 the seconds are 0, and no nanoseconds above 0 are read as such a time: there
Arrow's own way stays, and so it does in the first second that nanoseconds count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from icetree.codec.orc.footer import FOOTER_BYTES, METADATA_BYTES, STRIPES, unpacked
from icetree.codec.orc.protobuf import fields_of, message_of, numbers_of, varint
from icetree.codec.orc.runs import Stream, packed, stream_of, zigzag

Fields = list[tuple[int, Any]]
Numbers = np.ndarray[Any, Any]
#: The times of a stripe that are not null, in nanoseconds, by the number of their column.
Times = Mapping[int, Numbers]

_SECOND: Final = 10**9
_MILLI: Final = 10**6
#: Seconds are counted from 2015 on.
_BASE: Final = 1_420_070_400
#: From here on, up to 1970, the seconds are 0.
_LAST: Final = -999 * _MILLI
#: Before this, Arrow cannot count the nanoseconds of the second below.
_FIRST: Final = -(2**63 // _SECOND) * _SECOND
#: Numbers of fields: of the footer, of a stripe, of its own footer, of a stream.
_CONTENT_BYTES, _TYPES, _STATISTICS = 2, 4, 7
_OFFSET, _INDEX_BYTES, _DATA_BYTES, _STRIPE_FOOTER_BYTES = 1, 2, 3, 4
_STREAM, _KIND, _COLUMN, _LENGTH = 1, 1, 2, 3
#: Of statistics, of their bounds in milliseconds and what is below these, of an entry of an index.
_VALUES, _BOUNDS = 1, 9
_LOWEST, _HIGHEST, _BELOW_LOWEST, _BELOW_HIGHEST = 3, 4, 5, 6
_POSITIONS, _ENTRY_STATISTICS = 1, 2
#: Kinds of streams, and of types.
_SECONDS_STREAM, _NANOS_STREAM, _INDEX_STREAM = 1, 5, 6
_MOMENTS: Final = (9, 18)


def may_have_early_times(content: memoryview) -> bool:
    """Tell whether the bounds of a file allow for times that are to be told anew."""
    _, _, footer = _tail(content)
    types = [_known(value) for number, value in footer if number == _TYPES]
    known = [_known(value) for number, value in footer if number == _STATISTICS]
    for type, each in zip(types, known, strict=True):
        if type.get(_KIND) in _MOMENTS and _BOUNDS in each:
            lowest: int = _known(each[_BOUNDS]).get(_LOWEST, 0)
            if (lowest >> 1) ^ -(lowest & 1) <= _LAST // _MILLI:
                return True
    return False


def is_early(times: Numbers) -> bool:
    """Tell whether any time is before 1970 and its last second, with a fraction of a second."""
    return bool(((times < _LAST) & (times % _SECOND != 0)).any())


def with_early_times(content: memoryview, stripes: Callable[[int], Times]) -> bytes:
    """Return a file that Arrow wrote with its times told anew; each stripe's are asked for."""
    told, metadata, footer = _tail(content)
    made = bytearray(content[: _start(footer)])
    seen: list[Times] = []
    new_footer: Fields = []
    for number, value in footer:
        if number == STRIPES:
            seen.append(stripes(len(seen)))
            value = _add_stripe(made, content, _known(value), seen[-1], told)
        new_footer.append((number, value))
    whole = {
        column: np.array(
            [edge(each[column]) for each in seen if len(each[column]) for edge in _EDGES]
        )
        for column in (seen[0] if seen else ())
    }
    new_footer = _with_bounds(new_footer, _STATISTICS, whole)
    length = len(made) - _start(footer)
    new_footer = [(at, length if at == _CONTENT_BYTES else value) for at, value in new_footer]
    of_stripes = [value for number, value in metadata if number == _STREAM]
    new_metadata = [
        (1, message_of(_with_bounds(_fields(value), 1, times)))
        for value, times in zip(of_stripes, seen, strict=True)
    ]
    tails = [packed(message_of(each), told) for each in (new_metadata, new_footer)]
    lengths = {METADATA_BYTES: len(tails[0]), FOOTER_BYTES: len(tails[1])}
    script = message_of((number, lengths.get(number, value)) for number, value in told.items())
    return b"".join([made, *tails, script, bytes([len(script)])])


_EDGES: Final = (np.min, np.max)


def _fields(message: bytes) -> Fields:
    return list(fields_of(message))


def _known(message: bytes) -> dict[int, Any]:
    return dict(fields_of(message))


def _tail(content: memoryview) -> tuple[dict[int, Any], Fields, Fields]:
    """Return the postscript, the statistics of stripes, and the footer."""
    end = len(content) - 1 - content[-1]
    told = _known(bytes(content[end:-1]))
    start = end - told[FOOTER_BYTES]
    before = start - told.get(METADATA_BYTES, 0)
    parts = (content[before:start], content[start:end])
    metadata, footer = (_fields(unpacked(bytes(part), told)) for part in parts)
    return told, metadata, footer


def _start(footer: Fields) -> int:
    """Return where the first stripe may begin."""
    return int(dict(footer)[1])


def _add_stripe(
    made: bytearray, content: memoryview, known: dict[int, Any], times: Times, told: dict[int, Any]
) -> bytes:
    """Add a stripe with its times told anew; return what the footer says of it."""
    at, end = known[_OFFSET], known[_OFFSET] + known[_INDEX_BYTES] + known[_DATA_BYTES]
    tail_bytes = bytes(content[end : end + known[_STRIPE_FOOTER_BYTES]])
    tail = _fields(unpacked(tail_bytes, told))
    streams = {column: _streams(each, told) for column, each in times.items()}
    start, new_tail, data_at = len(made), [], None
    for number, value in tail:
        if number == _STREAM:
            stream = {_KIND: 0, _COLUMN: 0, _LENGTH: 0} | _known(value)
            kind, column = stream[_KIND], stream[_COLUMN]
            part = bytes(content[at : at + stream[_LENGTH]])
            at += stream[_LENGTH]
            if data_at is None and kind < _INDEX_STREAM:
                data_at = len(made)
            if column in times and kind in (_SECONDS_STREAM, _NANOS_STREAM):
                part = streams[column][kind == _NANOS_STREAM].content
            elif column in times and kind == _INDEX_STREAM:
                index = _fields(unpacked(part, told))
                part = packed(_index(index, times[column], streams[column]), told)
            made += part
            value = message_of((stream | {_LENGTH: len(part)}).items())
        new_tail.append((number, value))
    data_at = len(made) if data_at is None else data_at
    lengths = {_OFFSET: start, _INDEX_BYTES: data_at - start, _DATA_BYTES: len(made) - data_at}
    footer = packed(message_of(new_tail), told)
    made += footer
    return message_of((known | lengths | {_STRIPE_FOOTER_BYTES: len(footer)}).items())


def _streams(times: Numbers, told: dict[int, Any]) -> tuple[Stream, Stream]:
    """Return the streams of seconds and of nanoseconds."""
    nanos = times % _SECOND
    seconds = times // _SECOND
    # Seconds cut towards 1970, and what is left: Arrow's own way, where there is no other.
    cut = seconds + ((times < 0) & (nanos != 0))
    keeps = (times < 0) & ((times >= _LAST) | (times < _FIRST))
    # Readers take a second off where there are more nanoseconds than this, and seconds below 0.
    seconds = np.where(keeps, cut, seconds + ((times < 0) & (nanos >= _MILLI)))
    nanos = np.where(keeps, times - cut * _SECOND, nanos)
    return stream_of(zigzag(seconds - _BASE), told), stream_of(_shortened(nanos), told)


def _shortened(nanos: Numbers) -> Numbers:
    """Return nanoseconds without the zeros at their ends, of which three bits tell."""
    zeros = np.zeros_like(nanos)
    for count in range(2, 9):
        power = 10**count
        zeros[(nanos % power == 0) & (nanos != 0)] = count
    kept = np.where(zeros > 0, nanos // 10**zeros, nanos)
    stored: Numbers = (kept << 3) | np.maximum(zeros - 1, 0)
    return stored.view(np.uint64)


def _index(entries: Fields, times: Numbers, streams: tuple[Stream, Stream]) -> bytes:
    """Return the index of a column: where each group of rows begins in its streams, and its bounds."""
    made, at = [], 0
    for number, value in entries:
        known = _known(value)
        places = numbers_of(known.get(_POSITIONS, b""))
        new = [place for stream in streams for place in stream.place(at)]
        # What comes before tells of the marks of nulls, which stay.
        new = places[: len(places) - len(new)] + new
        statistics = _fields(known[_ENTRY_STATISTICS])
        count = dict(statistics).get(_VALUES, 0)
        told = {
            _POSITIONS: b"".join(map(varint, new)),
            _ENTRY_STATISTICS: _bounded(statistics, times[at : at + count]),
        }
        made.append((number, message_of(told.items())))
        at += count
    assert at == len(times), "an index of rows counts other times"
    return message_of(made)


def _with_bounds(fields: Fields, number: int, times: Times) -> Fields:
    """Return fields of which some are statistics, a column each, with the bounds of times."""
    made, column = [], 0
    for at, value in fields:
        if at == number:
            if column in times:
                value = _bounded(_fields(value), times[column])
            column += 1
        made.append((at, value))
    return made


def _bounded(statistics: Fields, times: Numbers) -> bytes:
    """Return statistics with the bounds of times, in milliseconds and what is below them."""
    if not len(times):
        return message_of(statistics)
    edges = np.array([times.min(), times.max()])
    lowest, highest = zigzag(edges // _MILLI).tolist()
    # One more, so that 0 says that nothing is known.
    below = (edges % _MILLI + 1).tolist()
    bounds = {_LOWEST: lowest, _HIGHEST: highest, _BELOW_LOWEST: below[0], _BELOW_HIGHEST: below[1]}
    return message_of(
        (number, message_of(bounds.items()) if number == _BOUNDS else value)
        for number, value in statistics
    )
