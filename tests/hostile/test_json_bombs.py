"""JSON of few bytes that would become objects of many, wherever icetree reads JSON of a file."""

from __future__ import annotations

import gzip
import json
import os
import re
import resource
import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from icetree.codec import limits, metadata, puffin, view
from icetree.codec.avro.avro import open_avro
from icetree.codec.avro.container import open_container
from icetree.codec.json_text import require_modest
from icetree.errors import CorruptTable, TooLarge
from tests.apart import apart
from tests.hostile.avro_files import FILE, with_schema_text

MB = 1024**2
ALLOWED = 2 * MB
#: What any of the texts below may take: objects, and some copies of the text.
_MOST = 8 * ALLOWED


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(limits.METADATA.name, str(ALLOWED))


#: What is repeated in a list, each in its own way much more than its text.
MANY = {
    "objects": "{},",
    "lists": "[],",
    "lists of lists": "[[]],",
    "objects of one": '{"":{}},',
    "objects of a number": '{"a":999},',
    "texts": '"ab",',
    "texts of two bytes a character": '"é",',
    "texts of four bytes a character": '"🎉",',
    "numbers": "999,",
    "fractions": "0.5,",
}
#: What nests, or goes on: refused for another reason.
LONG = {
    "lists without end": "[" * (ALLOWED - 1000),
    "objects without end": '{"":' * (ALLOWED // 5),
    "a number": "1" * (ALLOWED - 1000),
    "a fraction": "0." + "1" * (ALLOWED - 1000),
    "a number of some digits, often": "12345678901234567890123," * (ALLOWED // 25) + "1",
    "a number of many digits, often": ("1" * 4000 + ",") * (ALLOWED // 4100) + "1",
}


def members(text: str, count: int) -> str:
    """Return members of an object, each with another name."""
    return ",".join(f'"{at:x}":{text.rstrip(",")}' for at in range(count))


def elements(text: str, size: int = ALLOWED - 1000) -> str:
    return text * (size // len(text.encode())) + "0"


def read_metadata(text: str) -> None:
    metadata.decode(gzip.compress(f'{{"format-version":4,"x":[{text}]}}'.encode(), 1), file=FILE)


def read_plain_metadata(text: str) -> None:
    metadata.decode(f'{{"format-version":4,"schemas":[{text}]}}'.encode(), file=FILE)


def read_page(text: str) -> None:
    metadata.decode_page(gzip.compress(f'{{"snapshots":[{text}]}}'.encode(), 1), file=FILE)


def read_view(text: str) -> None:
    view.decode(f'{{"view-uuid":"u","format-version":1,"x":[{text}]}}'.encode(), file=FILE)


def read_puffin(text: str) -> None:
    payload = f'{{"blobs":[],"properties":{{}},"x":[{text}]}}'.encode()
    packed = pa.compress(payload, codec="lz4", asbytes=True)
    tail = struct.pack("<i4s4s", len(packed), b"\1\0\0\0", puffin.MAGIC)
    data = puffin.MAGIC + puffin.MAGIC + packed + tail
    puffin.read_footer(lambda at, size: data[at : at + size], len(data), file=FILE)


def read_manifest(text: str) -> None:
    open_avro(with_schema_text(f"[{text}]", b""), file=FILE)


def read_avro_rows(text: str) -> None:
    open_container(pa.BufferReader(with_schema_text(f"[{text}]", b"")), file=FILE)


READERS: dict[str, Callable[[str], None]] = {
    "metadata": read_metadata,
    "plain metadata": read_plain_metadata,
    "a page": read_page,
    "a view": read_view,
    "a Puffin footer": read_puffin,
    "a manifest of Avro": read_manifest,
    "rows in Avro": read_avro_rows,
}


def growths(texts: dict[str, str]) -> dict[tuple[str, str], tuple[int, str]]:
    """Have each text read by all; return by how much the process grew, and what was said."""
    os.environ[limits.METADATA.name] = str(ALLOWED)
    for read in READERS.values():
        # What is loaded at the first use is none of it.
        _growth(read, "0")
    return {
        (what, how): _growth(read, text)
        for what, text in texts.items()
        for how, read in READERS.items()
    }


def _growth(read: Callable[[str], None], text: str) -> tuple[int, str]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    said = "nothing"
    try:
        read(text)
    except CorruptTable as error:
        said = str(error)
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024, said


def test_many_values_are_refused_before_they_take_memory() -> None:
    texts = {name: elements(text) for name, text in MANY.items()}
    way_out = rf"{FILE}: its [\d,]+ values of JSON would take more than the limit of {ALLOWED:,} "
    way_out += "bytes: .*set ICETREE_MAX_"
    for what, (grown, said) in apart(growths, texts).items():
        assert grown < _MOST, what
        assert re.match(way_out, said), (what, said)


def test_names_that_are_all_others_are_refused_too() -> None:
    # Not as many as go into what is allowed, and more than enough.
    texts = {name: f"{{{members(text, 60_000)}}}" for name, text in MANY.items()}
    for what, (grown, said) in apart(growths, texts).items():
        assert grown < _MOST, what
        assert "values of JSON would take more" in said, (what, said)


def test_what_goes_on_without_end_takes_no_memory() -> None:
    for what, (grown, said) in apart(growths, LONG).items():
        assert grown < _MOST, what
        # A Puffin footer may say more than anybody asks for.
        assert said.startswith(f"{FILE}: ") or (said == "nothing" and "Puffin" in what[1]), what


# --- what is let through -------------------------------------------------------------------------


def _most(text: str) -> int:
    """Return how often a text may be repeated so that it is just let through."""
    marks = sum(text.count(each) for each in ",:[{")
    return 4 * ALLOWED // 96 // marks - 1


@pytest.mark.parametrize("name", MANY)
def test_what_is_let_through_takes_about_four_times_the_limit_at_the_most(name: str) -> None:
    each = MANY[name]
    for text in (
        f"[{each * _most(each)}0]",
        f"{{{members(each, _most(f'x:{each}'))}}}",
    ):
        require_modest(text.encode(), file=FILE)
        with pytest.raises(TooLarge):
            require_modest(text.encode() * 2, file=FILE)
        tracemalloc.start()
        kept = msgspec.json.decode(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept
        assert peak < 5 * ALLOWED


def test_text_alone_may_take_all_that_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"snapshots": [], "pad": "x" * (ALLOWED - 100)}).encode()
    metadata.decode_page(text, file=FILE)
    monkeypatch.setenv(limits.METADATA.name, str(MB))
    with pytest.raises(TooLarge):
        metadata.decode_page(gzip.compress(text), file=FILE)


def ordinary() -> dict[str, Any]:
    summary = {"operation": "append", "added-data-files": "4", "added-records": "4000"}
    summary |= {"added-files-size": "123456", "total-records": "98765", "total-data-files": "77"}
    snapshot = {
        "snapshot-id": 3051729675574597004,
        "parent-snapshot-id": 3055729675574597004,
        "sequence-number": 34,
        "timestamp-ms": 1515100955770,
        "manifest-list": "s3://bucket/warehouse/db/table/metadata/snap-3051729675574597004.avro",
        "schema-id": 0,
        "summary": summary,
    }
    return {"snapshots": [snapshot] * 6000}


def test_ordinary_metadata_may_be_half_as_large_as_text_may(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = json.dumps(ordinary(), separators=(",", ":")).encode()
    monkeypatch.setenv(limits.METADATA.name, str(2 * len(text)))
    require_modest(text, file=FILE)
