"""A table that means harm by its names: what it is called would act on a terminal."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

import pyarrow as pa

import icetree
from icetree.spec.entry.entry import Entry
from icetree.spec.entry.stats import FieldStats
from icetree.table.lake import Lake
from icetree.table.table import Table

#: Retitles, clears, rings, returns, deletes, does the same in C1, turns the writing around, and
#: begins a line of its own.
HOSTILE = (
    "a\x1b]0;got you\x07\x1b[2J\r\x08\x7f\x9b2J\x85\x9d0;x\x9c\u202eb\u2066c\u2028d\te\nforged"
)
NAME = HOSTILE.replace(".", "")


def hostile_lake(folder: Path) -> Lake:
    return icetree.connect(f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "lake"))


def hostile_table(folder: Path, *, is_damaged: bool = True) -> Table:
    """Make a table whose every name and value is hostile, and lose one of its files or none."""
    lake = hostile_lake(folder)
    lake.create_namespace(NAME)
    table = lake.create_table(
        f"{NAME}.{NAME}",
        pa.schema([pa.field(NAME, pa.string()), pa.field("n", pa.int64())]),
        partition_by=["n"],
        location=str(folder / "lake" / "t"),
        properties={HOSTILE: HOSTILE, "write.root.max-data-entries": "1"},
    )
    for n in range(4):
        table.append(pa.table({NAME: [HOSTILE, "b"], "n": [n, n]}), summary={HOSTILE: HOSTILE})
    if is_damaged:
        n = {2: FieldStats(lower=5, upper=5, values=1, nulls=0)}
        place = f"data/{HOSTILE}.parquet"
        table.append_files([Entry(location=place, record_count=1, file_size_in_bytes=9, stats=n)])
    with table.edit_spec() as spec:
        spec.add(NAME)
    table.append(pa.table({NAME: [HOSTILE], "n": [9]}))
    table.delete("n = 1")
    table.create_branch(NAME)
    table.create_tag(f"{NAME}2")
    if is_damaged:
        lost = table.scan().plan().tasks["location"][0].as_py()
        Path(f"{table.location}/{lost}").unlink()
    return table


def acting(text: str) -> set[str]:
    """Return the characters of a text that would act on a terminal; a newline of ours may."""
    found = {
        each
        for each in text
        if each != "\n"
        and (unicodedata.category(each) in ("Cc", "Zl", "Zp") or each in "\u202e\u2066")
    }
    return found | ({"\n"} if re.search("^forged", text, re.MULTILINE) else set())
