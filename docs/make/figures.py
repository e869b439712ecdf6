"""Draw the figures anew: `python -m docs.make.figures`, and `--measured` also what is measured.

Trees are drawn by icetree itself, of tables that it made; nothing in them is by chance. What is measured,
beside PyIceberg, takes a minute and needs `make bench-commit`'s packages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa

import icetree
from docs.make.still import Still, lake_in_memory
from icetree.picture.svg import to_svg
from icetree.picture.tree import picture
from icetree.spec.entry.entry import Content, Entry
from icetree.surroundings import within
from icetree.table.table import Table

FIGURES: Final = Path(__file__).parents[1] / "figures"
_COLUMNS: Final = pa.schema([("id", pa.int64())])
#: Every new file goes to a leaf of its own commit, as large operations do.
_LARGE: Final = {"write.root.max-data-entries": "0", "write.root.max-delete-entries": "0"}
_SMALL: Final = {"write.root.max-data-entries": "64", "write.root.max-delete-entries": "100"}
_NO_MERGE: Final = {"write.commit.compact-max-entries": "0"}

Drawn = Iterator[tuple[str, Table]]


def _table(**properties: str) -> Table:
    return lake_in_memory().create_table("db.t", _COLUMNS, properties=_NO_MERGE | properties)


def _data(*numbers: int) -> list[Entry]:
    return [
        Entry(location=f"data/D{at}.parquet", record_count=100, file_size_in_bytes=120_000)
        for at in numbers
    ]


def _dv(number: int, of: int, positions: int) -> Entry:
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=f"data/DV{number}.puffin",
        file_format="puffin",
        file_size_in_bytes=90,
        dv_offset=4,
        dv_size_in_bytes=50,
        record_count=positions,
        referenced_file=f"data/D{of}.parquet",
    )


def _one_leaf() -> Table:
    table = _table(**_LARGE)
    table.append_files(_data(1, 2, 3))
    table.set_properties(_SMALL)
    return table


def appends() -> Drawn:
    """Appends to the root."""
    table = _one_leaf()
    yield "append-1", table
    table.append_files(_data(4))
    yield "append-2", table
    table.append_files(_data(5))
    yield "append-3", table


def large_append() -> Drawn:
    """An append that brings a leaf of its own."""
    table = _one_leaf()
    table.set_properties(_LARGE)
    table.append_files(_data(4, 5, 6))
    yield "append-leaf", table


def removals() -> Drawn:
    """Files that go, from the root and from a leaf."""
    table = _table()
    table.append_files(_data(1, 2))
    table.delete_files(["data/D1.parquet"])
    yield "remove-root", table
    table = _one_leaf()
    table.delete_files(["data/D2.parquet"])
    yield "remove-leaf", table
    table.delete_files(["data/D3.parquet"])
    yield "remove-leaf-again", table


def overwrite() -> Drawn:
    """A file in place of another."""
    table = _one_leaf()
    table.overwrite_files(["data/D2.parquet"], _data(4))
    yield "overwrite-leaf", table


def row_delta() -> Drawn:
    """Rows that go, and new ones."""
    table = _table()
    table.append_files(_data(1))
    table.row_delta([*_data(2), _dv(1, 1, 2)])
    yield "row-delta", table


def replaced_dv() -> Drawn:
    """A data DV that a leaf tracks, replaced."""
    table = _table(**_LARGE)
    table.append_files(_data(1, 2))
    table.row_delta([_dv(1, 1, 1), _dv(2, 2, 1)])
    table.row_delta([*_data(3), _dv(4, 1, 2)])
    yield "row-delta-replaced", table


def compaction() -> Drawn:
    """Worn leaves that an append merges, as it goes by."""
    table = _table(**_LARGE)
    table.append_files(_data(1, 2, 3))
    table.append_files(_data(4, 5, 6))
    table.delete_files(["data/D1.parquet"])
    table.delete_files(["data/D5.parquet"])
    yield "compaction-before", table
    table.set_properties(
        _SMALL
        | {"write.commit.compact-max-entries": "1000", "write.commit.compact-min-leaves": "2"}
    )
    table.append_files(_data(7))
    yield "compaction-after", table


STORIES: Final[tuple[Callable[[], Drawn], ...]] = (
    appends,
    large_append,
    removals,
    overwrite,
    row_delta,
    replaced_dv,
    compaction,
)


def drawn(table: Table, caption: str = "") -> str:
    """Return a table's current tree as SVG."""
    shape, found = table.metadata.shape(), table.current_snapshot
    assert found is not None
    told = caption or f"snapshot {found.sequence_number} · {found.operation}"
    root = table.files.counted_root(found, shape)
    list_of = found.snapshot_id if found.root_manifest is None else None
    return to_svg(picture(root, table.files.reader(shape), shape, caption=told, list_of=list_of))


def before_v4() -> str:
    """Return the tree of a table of v2 that PyIceberg committed three files to, one by one."""
    from pyiceberg.catalog.sql import SqlCatalog

    with TemporaryDirectory() as folder:
        uri, warehouse = f"sqlite:///{folder}/v2.db", f"file://{folder}/v2"
        theirs = SqlCatalog("default", uri=uri, warehouse=warehouse)
        theirs.create_namespace("db")
        table = theirs.create_table("db.t", _COLUMNS)
        for at in range(3):
            table.append(pa.table([[at]], schema=_COLUMNS))
        theirs.close()
        with icetree.connect(uri, warehouse=warehouse) as lake:
            made = drawn(lake.table("db.t"), "snapshot 3 · append, of v2")
    return _renamed(made)


def _renamed(drawing: str) -> str:
    """Return a drawing in which PyIceberg's random names are numbers, of the same length.

    The newest is named first.
    """
    for sign, pattern in (("M", r"\b[0-9a-f]{8}-m0\b"), ("D", r"\b\d{5}-\d-[0-9a-f]{8}\b")):
        found = list(dict.fromkeys(re.findall(pattern, drawing)))
        for number, name in zip(range(len(found), 0, -1), found, strict=True):
            drawing = drawing.replace(name, f"{sign}{number}")
    return re.sub(r"<title>[^<]*</title>", "", drawing)


def trees() -> dict[str, str]:
    """Return every drawing of a tree, by its name."""
    made = {}
    for story in STORIES:
        with within(Still(story.__name__)):
            for name, table in story():
                made[name] = drawn(table)
    made["before-v4"] = before_v4()
    return made


def main(arguments: list[str]) -> None:
    """Write the figures anew."""
    made = {f"tree-{name}": text for name, text in trees().items()}
    if "--measured" in arguments:
        from docs.make.measured import figures

        made |= figures()
    for name, text in made.items():
        (FIGURES / f"{name}.svg").write_text(text, "utf-8")
        print(f"{name}.svg: {len(text):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
