"""A table of small files with deletes of all kinds, and others that go on changing its rows."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from icetree.table.table import Table
from icetree.table.transaction import Transaction
from tests.rows.lake import rows
from tests.table.changing import (
    ARROW,
    LEAFY,
    changing_table,
    data_files,
    delete_equal,
    delete_rows,
    some,
    written,
)

LINEAGE = ["_row_id", "_last_updated_sequence_number"]
MODES = ("merge-on-read", "copy-on-write")


def told(table: Table) -> list[str]:
    """All that a row is: its values, its id, its age."""
    return rows(table.refresh().scan(columns=[*ARROW.names, *LINEAGE]).to_arrow())


def another(table: Table) -> Table:
    """A handle that has seen as much as this one."""
    return Table(catalog=table.catalog, files=table.files, state=table.state)


class World:
    """A table of small files with deletes of all kinds, as a seed decides."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)
        leafy = LEAFY if self.choose.random() < 0.5 else {}
        parted = self.choose.choice([None, ["truncate(4, id)"], ["bucket(2, id)"]])
        self.table = changing_table(properties=leafy, partition_by=parted or ())
        self.next_id = 0
        self.parted = parted is not None
        for _ in range(self.choose.randint(3, 6)):
            self.append(self.table)
        for _ in range(self.choose.randint(0, 3)):
            self.change(self.table)

    def append(self, table: Table) -> None:
        count = self.choose.randint(1, 5)
        table.append(some(*((self.next_id + at, "a") for at in range(count))))
        self.next_id += count

    def some_ids(self) -> list[int]:
        return self.choose.sample(range(self.next_id), min(self.next_id, self.choose.randint(1, 4)))

    def change(self, table: Table, *, equality: bool = True) -> None:
        """Change rows in some way, as the table has them now."""
        table.refresh()
        verbs: list[Callable[[Table], object]] = [self.append, self.marks, self.drops]
        verbs += [self.statement] * 4
        if equality and not self.parted:
            verbs.append(lambda table: delete_equal(table, self.some_ids()))
        self.choose.choice(verbs)(table)

    def marks(self, table: Table) -> None:
        delete_rows(table, self.some_ids())

    def drops(self, table: Table) -> None:
        if files := data_files(table):
            table.delete_files([self.choose.choice(files)])

    def statement(self, table: Table) -> None:
        verb = self.choose.choice(["delete", "update", "merge"])
        table.set_properties({f"write.{verb}.mode": self.choose.choice(MODES)})
        with table.transaction() as tx:
            self.state(tx, verb)

    def state(self, tx: Transaction, verb: str) -> None:
        ids = self.some_ids()
        if verb == "delete":
            tx.delete(f"id in ({', '.join(map(str, ids))})")
        elif verb == "update":
            tx.update({"v": "'u'"}, where=f"id in ({', '.join(map(str, ids))})")
        else:
            tx.upsert(some(*((id, "m") for id in [*ids, self.next_id])), on=["id"])
            self.next_id += 1

    def rewriting(self, table: Table) -> tuple[list[str], Transaction] | None:
        """Write the rows of some files anew, in a transaction to be committed later."""
        files = data_files(table)
        if not files:
            return None
        chosen = self.choose.sample(files, self.choose.randint(1, len(files)))
        found = table.scan(columns=[*ARROW.names, *LINEAGE, "_file"]).to_arrow()
        mine = pa.array([f"{table.location}/{each}" for each in chosen])
        held = found.filter(pc.is_in(found["_file"], value_set=mine)).drop_columns("_file")
        tx = table.transaction()
        added = tx.adopt(written(table, held, keep_lineage=True))
        tx.rewrite(chosen, added)
        return chosen, tx
