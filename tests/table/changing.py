"""A table of rows to change in every way there is, and its changes as plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema
from pyiceberg.types import ListType, LongType, NestedField, StringType

from icetree.rows.write.deletes import write_data_vectors, write_equality_deletes
from icetree.rows.write.write import write_files
from icetree.table.commit.commit import Committed
from icetree.table.table import Table
from tests.rows.lake import new_table

ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("v", pa.string()),
        pa.field("tags", pa.list_(pa.field("element", pa.int64()))),
    ]
)
LEAFY = {
    "write.root.max-data-entries": "1",
    "write.root.max-delete-entries": "1",
    "write.flush.affinity-min-entries": "1",
}


def changing_table(*, identified: bool = True, **how: Any) -> Table:
    """A table of `id`, `v` and `tags`, identified by `id` unless told otherwise."""
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "v", StringType(), required=False),
        NestedField(3, "tags", ListType(4, LongType(), element_required=False), required=False),
        identifier_field_ids=[1] if identified else [],
    )
    return new_table(schema, **how)


def some(*rows: tuple[int, str | None]) -> pa.Table:
    """Rows as Arrow data; each one's tags follow from its id."""
    found = [{"id": id, "v": v, "tags": [id, None] if id % 2 else None} for id, v in rows]
    return pa.Table.from_pylist(found, ARROW)


def now(table: Table) -> int:
    """The current snapshot's id."""
    found = table.metadata.current_snapshot_id
    assert found is not None
    return found


def delete_rows(table: Table, ids: Iterable[int]) -> Committed | None:
    """Delete rows by their ids, through data DVs; nothing happens where there are none."""
    wanted = pa.array(list(ids), pa.int64())
    found = table.scan(columns=["id", "_file", "_pos"]).to_arrow()
    found = found.filter(pc.is_in(found["id"], value_set=wanted))
    positions: dict[str, list[int]] = {}
    for row in found.to_pylist():
        stored = row["_file"].removeprefix(table.location + "/")
        positions.setdefault(stored, []).append(row["_pos"])
    if not positions:
        return None
    vectors = write_data_vectors(
        positions,
        tasks=table.scan().plan().tasks,
        metadata=table.metadata,
        store=table.files.store,
    )
    return table.row_delta(vectors)


def delete_equal(table: Table, ids: Iterable[int], add: pa.Table | None = None) -> Committed:
    """Delete rows by an equality delete on `id`; rows to add come in the same commit."""
    keys = pa.table({"id": pa.array(list(ids), pa.int64())})
    deletes = write_equality_deletes(keys, ["id"], metadata=table.metadata, store=table.files.store)
    with table.transaction() as tx:
        tx.row_delta(deletes)
        if add is not None:
            tx.append(add)
        return tx.commit()


def written(table: Table, data: pa.Table, *, keep_lineage: bool = False) -> pa.Table:
    """Write data files without adding them."""
    return write_files(
        data, metadata=table.metadata, store=table.files.store, keep_lineage=keep_lineage
    )


def data_files(table: Table) -> list[str]:
    """The stored locations of the live data files, in the order of a plan."""
    found: list[str] = table.scan().plan().tasks["location"].to_pylist()
    return found


def compact(table: Table, *, keep_lineage: bool = True) -> Committed:
    """Rewrite all rows as new files."""
    lineage = ["_row_id", "_last_updated_sequence_number"] if keep_lineage else []
    rows = table.scan(columns=[*ARROW.names, *lineage]).to_arrow()
    return table.rewrite(data_files(table), written(table, rows, keep_lineage=keep_lineage))


def feed(changes: pa.Table) -> list[tuple[str, int, str | None]]:
    """Changes as (change type, id, v), in order."""
    return [(row["_change_type"], row["id"], row["v"]) for row in changes.to_pylist()]


def bag(rows: pa.Table) -> Counter[str]:
    """Rows, and how often each is there."""
    return Counter(map(repr, rows.select(ARROW.names).to_pylist()))


def replayed(before: Counter[str], changes: pa.Table) -> Counter[str]:
    """Carry out changes in order; what is deleted must be there."""
    state = Counter(before)
    for row in changes.to_pylist():
        key = repr({name: row[name] for name in ARROW.names})
        if row["_change_type"] in ("INSERT", "UPDATE_AFTER"):
            state[key] += 1
        else:
            assert state[key] > 0, f"deleted but not there: {key}"
            state[key] -= 1
    return +state
