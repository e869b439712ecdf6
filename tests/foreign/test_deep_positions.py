"""Position delete files of v2: lies that only files show, which deep verification names."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.table.table import Table
from icetree.table.verify.findings import Kind
from tests.foreign.by_hand import Hand, findings, short
from tests.foreign.judge import require_read_right
from tests.table.damage import flipped

Named = list[tuple[str | None, int | None]]


class Old:
    """A table that was of v2: a data file of four rows, and position deletes of them."""

    def __init__(self) -> None:
        self.hand = Hand()
        rows: list[Any] = []
        while len(rows) != 4:
            self.file = self.hand.writer.shop.new_data(0)
            rows = self.file.rows

    def table(self, named: Named, **told: Any) -> Table:
        writer = self.hand.writer
        gone = frozenset(row for _, row in named if row in range(4))
        deletes = writer.shop.position_file(self.file, named, ((self.file, gone),), **told)
        self.deletes = deletes
        writer.upgrade_from(2, [self.file, deletes])
        writer.commit("append", added=[])
        return self.hand.open()


def test_sound_position_deletes_are_clean_and_read() -> None:
    old = Old()
    path = old.file.location
    table = old.table([(path, 0), (path, 3)], path_bounds=(path, path), only_of=old.file)
    require_read_right(old.hand.world(), table)
    assert table.scan().count() == 2


def test_a_file_may_have_many_position_delete_files_and_a_dv() -> None:
    old = Old()
    writer, path = old.hand.writer, old.file.location
    files = [
        writer.shop.position_file(
            old.file, [(path, row)], ((old.file, frozenset({row})),), only_of=old.file
        )
        for row in (0, 3)
    ]
    writer.upgrade_from(2, [old.file, *files])
    writer.commit("append", added=[])
    require_read_right(old.hand.world(), old.hand.open())
    writer.commit("overwrite", added=writer.shop.vectors({0: (old.file, frozenset({0, 1, 3}))}))
    table = old.hand.open()
    require_read_right(old.hand.world(), table)
    assert table.scan().count() == 1


def test_position_deletes_of_a_file_that_has_gone_are_legal() -> None:
    old = Old()
    table = old.table([(old.file.location, 0), ("memory://foreign/db/t/data/gone.parquet", 999)])
    assert findings(table) == ""


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (("own", 4), "it deletes row 4 of data/1.parquet, which has 4"),
        (("own", -1), "a position delete names row -1"),
        (("own", None), "a position delete names no row: its position is null"),
        ((None, 1), "a position delete names no data file: its path is null"),
    ],
)
def test_a_position_delete_of_what_cannot_be_is_named(
    row: tuple[str | None, int | None], says: str
) -> None:
    old = Old()
    path, number = row
    table = old.table([(old.file.location, 1), (path and old.file.location, number)])
    assert old.deletes.location.endswith("positions.parquet")
    assert says.replace("data/1.parquet", short(old.file)) in findings(table)


def test_path_bounds_that_leave_a_position_delete_out_are_named() -> None:
    old = Old()
    bounds = ("memory://foreign/zz", "memory://foreign/zzz")
    table = old.table([(old.file.location, 1)], path_bounds=bounds)
    assert table.scan().count() == 4, "the deleted row is back"
    assert "lower bound of file_path is" in findings(table)


def test_position_deletes_of_other_files_than_their_entry_says_are_named() -> None:
    old = Old()
    other = old.hand.writer.shop.new_data(0)
    table = old.table([(old.file.location, 1)], only_of=other)
    assert f"it deletes rows of {short(old.file)}, but its entry says" in findings(table)


def test_a_damaged_page_of_position_deletes_is_named_by_its_checksum() -> None:
    old = Old()
    table = old.table([(old.file.location, 77), (old.file.location, 1)])
    store, place = table.files.store, old.deletes.location
    sink = pa.BufferOutputStream()
    plain = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    rows = pq.read_table(pa.BufferReader(store.read(place)))
    pq.write_table(rows, sink, write_page_checksum=True, store_schema=False, **plain)
    content = sink.getvalue().to_pybytes()
    store.delete([place])
    store.write_new(place, flipped(content, content.index((77).to_bytes(8, "little"))))
    told = [f for f in table.verify(deep=True).findings if f.file == short(old.deletes)]
    assert Kind.CHECKSUM in {each.kind for each in told}
