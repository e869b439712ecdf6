"""Changes of every intent and commits of every kind, and which of them conflict."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import And, EqualTo, LessThan
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icetree.spec.entry.entry import Content, Entries, Entry, empty, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.expressions import Expression
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes, Intent, Operation, removal
from icetree.tree.conflict.conflict import Conflict, Isolation, Lookup, OtherCommit, find_conflicts
from icetree.tree.diff.diff import Diff

ID, DAY = 1, 2


UNPARTITIONED, BY_DAY = 0, 1


SHAPE = Shape(
    schema=Schema(
        NestedField(ID, "id", LongType(), required=True), NestedField(DAY, "day", LongType())
    ),
    expressions={101: Expression(expr_id=101, source_ids=(DAY,), transform="identity", name="day")},
    specs={UNPARTITIONED: (), BY_DAY: (101,)},
    default_spec_id=BY_DAY,
)


FILTER = And(EqualTo("day", 1), LessThan("id", 10))


def stats(ids: tuple[int, int] | None, day: int | None) -> dict[int, FieldStats]:
    found = {}
    if ids is not None:
        found[ID] = FieldStats(lower=ids[0], upper=ids[1], values=10, nulls=0)
    if day is not None:
        found[DAY] = FieldStats(lower=day, upper=day, values=10, nulls=0)
    return found


def data(name: str, ids: tuple[int, int], day: int, *, age: int | None = None) -> Entry:
    return Entry(
        location=name,
        sequence_number=age,
        partition_spec_id=BY_DAY,
        record_count=10,
        file_size_in_bytes=100,
        stats=stats(ids, day),
    )


def data_dv(of: str, day: int, *, rows: int = 1) -> Entry:
    return Entry(
        content_type=Content.POSITION_DELETES,
        location="vectors.puffin",
        file_format="puffin",
        sequence_number=2,
        dv_offset=4,
        dv_size_in_bytes=40,
        partition_spec_id=BY_DAY,
        record_count=rows,
        file_size_in_bytes=100,
        referenced_file=of,
        stats=stats(None, day),
    )


def equality(name: str, ids: tuple[int, int], day: int | None) -> Entry:
    """Deletes of a day, or without a day those of the whole table."""
    return Entry(
        content_type=Content.EQUALITY_DELETES,
        location=name,
        sequence_number=2,
        partition_spec_id=UNPARTITIONED if day is None else BY_DAY,
        record_count=1,
        file_size_in_bytes=100,
        equality_ids=[ID],
        stats=stats(ids, day),
    )


def entries(*rows: Entry) -> Entries:
    return to_table(rows, SHAPE) if rows else empty()


A = data("A", (0, 9), 1, age=1)


NEIGHBOUR = data("neighbour", (0, 9), 1, age=1)


C = data("C", (0, 9), 2, age=1)


NEW = data("new", (0, 9), 1)


def live(locations: pa.Array) -> Entries:
    table = entries(A, NEIGHBOUR, C)
    return table.filter(pc.is_in(table["location"], value_set=locations))


CHANGES = {
    Intent.APPEND: Changes(intent=Intent.APPEND, added=entries(NEW)),
    Intent.DELETE_FILES: Changes(intent=Intent.DELETE_FILES, removed=removal(["A"])),
    Intent.DELETE_BY_FILTER: Changes(
        intent=Intent.DELETE_BY_FILTER, removed=removal(["A"]), filter=FILTER
    ),
    Intent.OVERWRITE_FILES: Changes(
        intent=Intent.OVERWRITE_FILES, removed=removal(["A"]), added=entries(NEW), filter=FILTER
    ),
    Intent.OVERWRITE_BY_FILTER: Changes(
        intent=Intent.OVERWRITE_BY_FILTER, removed=removal(["A"]), added=entries(NEW), filter=FILTER
    ),
    Intent.REPLACE_PARTITIONS: Changes(
        intent=Intent.REPLACE_PARTITIONS, removed=removal(["A", "neighbour"]), added=entries(NEW)
    ),
    Intent.ROW_DELTA: Changes(
        intent=Intent.ROW_DELTA, added=entries(data_dv("A", 1), NEW), filter=FILTER
    ),
    Intent.REWRITE: Changes(
        intent=Intent.REWRITE,
        removed=removal(["A"]),
        added=entries(data("rewritten", (0, 9), 1, age=1)),
    ),
}


def other(
    operation: Operation, *, added: tuple[Entry, ...] = (), removed: tuple[Entry, ...] = ()
) -> OtherCommit:
    diff = Diff(added=entries(*added), removed=entries(*removed))
    return OtherCommit(snapshot_id=7, operation=operation, diff=diff)


OTHERS = {
    "nothing": other(Operation.APPEND),
    "data there": other(Operation.APPEND, added=(data("X", (5, 5), 1),)),
    "data elsewhere": other(Operation.APPEND, added=(data("X", (50, 59), 2),)),
    "A removed": other(Operation.DELETE, removed=(A,)),
    "neighbour removed": other(Operation.DELETE, removed=(NEIGHBOUR,)),
    "C removed": other(Operation.DELETE, removed=(C,)),
    "A compacted": other(Operation.REPLACE, removed=(A,), added=(data("A2", (0, 9), 1, age=1),)),
    "neighbour compacted": other(
        Operation.REPLACE, removed=(NEIGHBOUR,), added=(data("N2", (0, 9), 1, age=1),)
    ),
    "DV on A": other(Operation.DELETE, added=(data_dv("A", 1),)),
    "DV on A rewritten": other(
        Operation.REPLACE, added=(data_dv("A", 1),), removed=(data_dv("A", 1),)
    ),
    "DV of A removed": other(Operation.OVERWRITE, removed=(data_dv("A", 1),)),
    "DV of A shrunk": other(
        Operation.OVERWRITE, added=(data_dv("A", 1),), removed=(data_dv("A", 1, rows=2),)
    ),
    "DV on neighbour": other(Operation.DELETE, added=(data_dv("neighbour", 1),)),
    "DV on C": other(Operation.DELETE, added=(data_dv("C", 2),)),
    "equality on A": other(Operation.DELETE, added=(equality("E", (3, 4), 1),)),
    "equality on all": other(Operation.DELETE, added=(equality("E", (3, 4), None),)),
    "equality beside A": other(Operation.DELETE, added=(equality("E", (50, 59), 1),)),
    "equality on C": other(Operation.DELETE, added=(equality("E", (3, 4), 2),)),
}


def conflicts(
    changes: Changes,
    *others: OtherCommit,
    isolation: Isolation = Isolation.SERIALIZABLE,
    lookup: Lookup | None = live,
    beside: Entries | None = None,
) -> list[Conflict]:
    return find_conflicts(
        changes, isolation=isolation, since=others, shape=SHAPE, lookup=lookup, beside=beside
    )


def names(found: list[Conflict]) -> set[str]:
    return {each.check for each in found}
