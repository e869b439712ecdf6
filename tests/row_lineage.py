"""Which rows of a table are the same as before: their ids and ages, beside what a player did to them."""

from __future__ import annotations

from typing import Any

from tests.chance_columns import as_told
from tests.plain_table import comparable
from tests.row_player import Player

AGE = "_last_updated_sequence_number"
#: The row id, the age and the values of each row, by its own id.
Lineage = dict[int, tuple[int, int, Any]]


def lineage(player: Player) -> Lineage:
    """Return the lineage of every row that there is."""
    columns = player.model.columns
    found = player.handle().scan(columns=[*columns, "_row_id", AGE]).to_arrow()
    return {
        row["id"]: (row["_row_id"], row[AGE], comparable([row], columns))
        for row in as_told(found, player.model.drawn)
    }


def require_same_rows(player: Player, before: Lineage, now: Lineage) -> None:
    """Rows that were there stay the same rows; those updated, and no others, are of this age."""
    snapshot = player.handle().metadata.current_snapshot()
    assert len({row_id for row_id, _, _ in now.values()}) == len(now)
    for id, (row_id, age, values) in before.items():
        if id in now and id not in player.replaced:
            assert now[id][0] == row_id
            assert now[id][1] == (snapshot.sequence_number if id in player.updated else age)
            assert now[id][2] == values or id in player.updated
