"""UPSERT and MERGE take memory for their source and for a part of the table, not for all that matches."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from icetree.errors import InvalidInput
from icetree.rows.matching import keys, source
from icetree.table.rows import matching
from icetree.table.table import Table
from tests.rows.lake import new_table
from tests.table.rows.test_row_laws import ArrowPlayer

MIB = 1 << 20


def _table(rows: int, *, keys: int, file_rows: int = 20_000) -> Table:
    table = new_table([("k", "long"), ("n", "long")])
    for start in range(0, rows, file_rows):
        numbers = np.arange(start, start + file_rows)
        table.append(pa.table({"k": numbers % keys, "n": numbers}))
    return table


def _source(rows: int, *, keys: int) -> pa.Table:
    return pa.table({"k": np.arange(rows) % keys, "n": np.arange(rows)})


def _peak(do: Callable[[], Any]) -> int:
    """Return how many bytes numpy and Python had at most while something was done."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_many_rows_for_many_are_refused_before_they_are_paired() -> None:
    """A thousand million pairs would be of these."""
    table, rows = _table(40_000, keys=1), _source(25_000, keys=1)

    def refused() -> None:
        with pytest.raises(InvalidInput, match="matches more than one row of the source"):
            table.upsert(rows, on=["k"])

    assert _peak(refused) < 16 * MIB


def test_pairs_are_looked_at_a_part_after_the_other() -> None:
    table, rows = _table(20_000, keys=1), _source(500, keys=1)
    merge = table.merge(rows, on=["k"]).when_matched_update({"n": "-1"}, "source.n = target.n")
    done = []
    assert _peak(lambda: done.append(merge.run())) < 32 * MIB
    assert done[0].rows.updated == 500


@pytest.mark.parametrize("others", [False, True], ids=["matched", "all"])
def test_what_is_kept_of_matches_does_not_grow_with_the_table(
    monkeypatch: pytest.MonkeyPatch, others: bool
) -> None:
    monkeypatch.setattr(matching, "_MATCHES", 30_000)
    peaks = []
    for rows in (60_000, 480_000):
        merge = _table(rows, keys=5).merge(_source(5, keys=5), on=["k"])
        merge.when_matched_delete("source.n >= 0")
        if others:
            merge.when_not_matched_by_source_delete()
        done = []
        peaks.append(_peak(lambda: done.append(merge.run())))  # noqa: B023
        assert done[0].rows.deleted == rows
    small, large = peaks
    assert large < small + 2 * MIB


def _tiny(patch: pytest.MonkeyPatch) -> None:
    """Let every part be of a few rows, and every text of a source one of very many."""
    patch.setattr(source, "_ROOM", 0)
    patch.setattr(matching, "_MATCHES", 3)
    patch.setattr(matching, "_BYTES", 64)
    for module in (keys, matching):
        patch.setattr(module, "MANY", 4)


@pytest.mark.law
@pytest.mark.parametrize("seed", range(3))
def test_statements_that_go_in_tiny_parts_do_what_they_do_at_once(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    _tiny(monkeypatch)
    player = ArrowPlayer(random.Random(seed), seed)
    for _ in range(12):
        player.step()
        player.compare()


@pytest.mark.parametrize("seed", range(20))
def test_pairs_in_tiny_parts_are_those_of_a_join(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Rows of one key on both sides; at most one of the source's acts on each."""
    _tiny(monkeypatch)
    chance = random.Random(seed)
    table = new_table([("k", "long"), ("n", "long")])
    held = []
    for _ in range(3):
        some = [(chance.choice([None, *range(4)]), chance.randrange(9)) for _ in range(12)]
        held += some
        table.append(pa.table({"k": [k for k, _ in some], "n": [n for _, n in some]}))
    given = [(chance.choice([None, *range(6)]), place) for place in range(chance.randrange(1, 25))]
    rows = pa.table({"k": pa.array([k for k, _ in given], pa.int64()), "p": range(len(given))})
    acting, added = chance.randrange(len(given)), {k for k, _ in given} - {k for k, _ in held}
    merge = table.merge(rows, on=["k"])
    merge.when_matched_update({"n": "100 + source.p"}, f"source.p = {acting} and target.n > 3")
    merge.when_not_matched_insert({"k": "k", "n": "p"}, "p % 2 = 0").run()
    key = given[acting][0]
    wanted = [(k, 100 + acting if k is not None and k == key and n > 3 else n) for k, n in held]
    wanted += [(k, p) for k, p in given if p % 2 == 0 and (k is None or k in added)]
    found = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)


def test_texts_of_very_long_sources_are_held_with_room_wherever_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More than 2 GiB of them are in a column then, which would take minutes here."""
    _tiny(monkeypatch)
    texts = pa.list_(pa.string())
    columns = pa.schema(
        {
            "k": pa.string(),
            "b": pa.binary(),
            "l": texts,
            "s": pa.struct({"t": texts}),
            "m": pa.map_(pa.string(), texts),
        }
    )

    def some(*numbers: int) -> pa.Table:
        made = [[f"{n}", "", None] for n in numbers]
        return pa.table(
            {
                "k": [f"k{n % 100}" for n in numbers],
                "b": [b"%d" % n for n in numbers],
                "l": made,
                "s": [{"t": each} for each in made],
                "m": [{"a": each, "b": None} for each in made],
            },
            columns,
        )

    assert source.held(some(1), {}, table="t").schema.field("m").type == pa.map_(
        pa.large_string(), pa.large_list(pa.large_string())
    )
    table = new_table(columns)
    table.append(some(*range(8)))
    table.upsert(some(*range(105, 120)).to_reader(max_chunksize=2), on=["k"])
    found = table.scan().to_arrow().sort_by("k").to_pylist()
    assert found == some(*range(5), *range(105, 120)).sort_by("k").to_pylist()
