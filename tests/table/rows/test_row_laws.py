"""Whatever is done to rows in one process, the table reads like a list to which it was done."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pyarrow.compute as pc
import pytest

from icetree.table.commit.commit import Committed
from icetree.table.scan.told import EXACT, End, told
from tests.chance_columns import as_told
from tests.effort import EFFORT, SEED, length
from tests.plain_table import LASTING, Row, within
from tests.row_lineage import lineage, require_same_rows
from tests.row_player import Change, Player
from tests.rows.lake import new_table

SEQUENCES, OPERATIONS = 2 * EFFORT, 18


class ArrowPlayer(Player):
    """Does everything on Arrow, in this process."""

    #: How often metadata told the ends of a column.
    told = 0

    def create(
        self, columns: list[tuple[str, str]], partition_by: list[str], order_by: list[str]
    ) -> None:
        self.table = new_table(columns, partition_by=partition_by, order_by=order_by)

    def handle(self) -> Any:
        return self.table

    def add(self, rows: list[Row]) -> Committed:
        return self.table.append(self.arrow(rows))

    def delete_where(self, where: str) -> Committed:
        return self.table.delete(where)

    def set_where(self, to: dict[str, str], where: str) -> Committed:
        return self.table.update(to, where)

    def begin_merge(self, rows: list[Row]) -> Any:
        return self.table.merge(self.arrow(rows), on=["id"])

    def put(self, rows: list[Row]) -> Committed:
        return self.table.upsert(self.arrow(rows), on=None if self.identified else ["id"])

    def replace_where(self, where: str, rows: list[Row]) -> Committed:
        return self.table.overwrite(where, self.arrow(rows))

    def changes(self) -> list[Change]:
        return [
            (
                {"day": "day + 1", "s": "case when s is null then null else 'u' end"},
                lambda row: {"day": row["day"] + 1, "s": None if row["s"] is None else "u"},
            ),
            (
                {"day": "cast(day + 1.5 as long)", "s": "cast(id as string)"},
                lambda row: {"day": row["day"] + 1, "s": str(row["id"])},
            ),
            (
                {f"st.{self.model.inner}": "id"},
                lambda row: {"st": (row["id"], within(row, 1))},
            ),
        ]

    def rows(self, snapshot_id: int | None = None) -> tuple[list[str], list[Row]]:
        found = self.table.scan(at=snapshot_id).to_arrow()
        return found.column_names, as_told(found, set(found.column_names) - set(LASTING))

    # --- what metadata tells ---------------------------------------------------------------

    def compare_told(self) -> None:
        """What metadata tells of the rows that match is what those that are read have."""
        for where in (None, self.chance.choice(self._filters())):
            scan = self.table.scan(where)
            rows = scan.to_arrow()
            known = told(scan)
            assert known is None or known.rows == rows.num_rows
            for field in scan.schema.fields:
                if isinstance(field.field_type, EXACT):
                    ends = [End(what=what, field_id=field.field_id) for what in ("min", "max")]
                    known = told(scan, ends)
                    found = pc.min_max(rows[field.name]).as_py()
                    wanted = {end: found[end.what] for end in ends}
                    if known is not None:
                        assert {end: each.as_py() for end, each in known.ends.items()} == wanted
                        self.told += len(rows) > 0

    def _filters(self) -> list[str]:
        drawn, number = self.chance.choice([*self.model.drawn, "s"]), self.chance.randrange(60)
        return [
            *(f"day {op} {number % 4}" for op in ("=", "<=", ">", "!=")),
            *(f"{name} is {null}" for name in (drawn, "g") for null in ("null", "not null")),
            *(f"s {op} '{word}'" for op in ("=", ">") for word in ("a", "long text long")),
            *(f"id {op} {number}" for op in ("<", ">=")),
            *("g > 4", "g <= 0", "g is nan", "g is not nan", "g != 4"),
            f"id < {number} or day = {number % 3}",
        ]


@pytest.mark.law
@pytest.mark.parametrize("seed", range(SEED * SEQUENCES, SEED * SEQUENCES + SEQUENCES))
def test_any_sequence_of_statements_reads_like_a_list_of_rows(seed: int) -> None:
    player = ArrowPlayer(random.Random(seed), seed)
    for step in count():
        before, columns = lineage(player), list(player.model.columns)
        player.step()
        player.compare()
        if step % 3 == 0:
            player.compare_told()
        if columns == player.model.columns:
            require_same_rows(player, before, lineage(player))
        if step % 10 == 9:
            player.compare_past()
        if player.is_done(length(seed, OPERATIONS)):
            break
    assert player.told
    assert player.handle().verify(deep=True).findings == ()
