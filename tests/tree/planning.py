"""Trees to plan over: leaves on a shelf that notes what is read of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyiceberg import expressions as ice
from pyroaring import BitMap

from icetree.codec import bitmap
from icetree.spec.entry import entry
from icetree.spec.entry.entry import Content, Entries, Entry, Status, to_table
from icetree.spec.entry.stats import FieldStats
from icetree.spec.schema.shape import Shape
from icetree.tree.aggregate import aggregate
from icetree.tree.plan.plan import plan
from icetree.tree.plan.tasks import Plan
from icetree.tree.reading import Keep, Leaf
from tests.tree import rows as r

I = r.IDS["i"]  # noqa: E741


SHAPE = Shape(schema=r.SHAPE.schema, expressions=r.EXPRESSIONS, specs={0: (), 1: (101,)})


GROUP = 2


@dataclass
class Shelf:
    """A reader over tables in memory, in row groups of two, that notes what it is asked."""

    leaves: dict[str, Entries] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    reads: list[str] = field(default_factory=list)
    columns: dict[str, Collection[str] | None] = field(default_factory=dict)

    def leaf(
        self, leaf: Leaf, *, columns: Collection[str] | None = None, keep: Keep | None = None
    ) -> Entries:
        self.reads.append(leaf.location)
        self.columns[leaf.location] = columns
        table = self.leaves[leaf.location]
        table = table.append_column("position", pa.array(range(table.num_rows), pa.int64()))
        if keep is not None and table.num_rows > GROUP:
            starts = range(0, table.num_rows, GROUP)
            groups = [table.slice(start, GROUP) for start in starts]
            kept = keep(pa.concat_tables(map(_group_stats, groups), promote_options="default"))
            table = pa.concat_tables(
                [group for group, keeps in zip(groups, kept.to_pylist(), strict=True) if keeps]
                or [table.slice(0, 0)]
            )
        if columns is None:
            return table
        for name in set(columns) - set(table.column_names):
            table = table.append_column(name, pa.nulls(table.num_rows))
        return table.select(list(columns))

    def blob(
        self,
        location: str,
        *,
        offset: int,
        size_bytes: int,
        key: bytes | None = None,  # noqa: ARG002
    ) -> bytes:
        return self.blobs[location][offset : offset + size_bytes]


def _group_stats(group: Entries) -> pa.Table:
    known = aggregate(group)
    bounds = {name: [known[name]] for name in known if name.endswith(("lower", "upper"))}
    return pa.table({"group": [0]} | {name: pa.array(value) for name, value in bounds.items()})


def one(name: str, low: int | None = None, high: int | None = None, **more: Any) -> Entry:
    stats = {}
    if low is not None:
        stats[I] = FieldStats(lower=low, upper=low if high is None else high, values=10, nulls=0)
    given: dict[str, Any] = {
        "location": name,
        "sequence_number": 1,
        "file_size_in_bytes": 9,
        "record_count": 10,
        "status": Status.EXISTING,
        "stats": stats,
    }
    return Entry(**given | more)


def data_dv(target: str, **more: Any) -> Entry:
    given: dict[str, Any] = {
        "content_type": Content.POSITION_DELETES,
        "file_format": "puffin",
        "referenced_file": target,
        "dv_offset": 4,
        "dv_size_in_bytes": 40,
        "sequence_number": 2,
        "record_count": 3,
    }
    return one(more.pop("name", f"dv-{target}"), **given | more)


def equality(name: str, low: int, high: int, **more: Any) -> Entry:
    given: dict[str, Any] = {"sequence_number": 5, "equality_ids": (I,)}
    return one(name, low, high, content_type=Content.EQUALITY_DELETES, **given | more)


def gone(leaf: str, positions: list[int], **more: Any) -> Entry:
    given: dict[str, Any] = {
        "content_type": Content.MANIFEST_DV,
        "location": None,
        "file_size_in_bytes": None,
        "file_format": "puffin",
        "referenced_file": leaf,
        "dv_inline_content": bitmap.encode(BitMap(positions)),
        "record_count": len(positions),
    }
    return one("", **given | more)


@dataclass
class Tree:
    """A root under construction, with the shelf its leaves are on."""

    entries: list[Entry] = field(default_factory=list)
    shape: Shape = SHAPE
    roots: list[Entries] = field(default_factory=list)
    shelf: Shelf = field(default_factory=Shelf)

    def add(self, *entries: Entry) -> Tree:
        self.roots.append(to_table(entries, SHAPE))
        return self

    def leaf(self, name: str, *entries: Entry, target: str | None = None) -> Tree:
        is_data = all(each.content_type == Content.DATA for each in entries)
        table = to_table(entries, SHAPE)
        self.shelf.leaves[name] = table
        top = one(
            name,
            content_type=Content.DATA_MANIFEST if is_data else Content.DELETE_MANIFEST,
            record_count=len(entries),
            referenced_file=target,
        )
        live = table.filter(pa.array([each.status != Status.DELETED for each in entries]))
        row = to_table([top], SHAPE)
        for column, value in aggregate(live).items():
            row = row.append_column(column, pa.array([value.as_py()], value.type))
        self.roots.append(row)
        return self

    def plan(self, predicate: ice.BooleanExpression | None = None, **more: Any) -> Plan:
        root = entry.concat([entry.empty(), *self.roots])
        return plan(root, self.shelf, self.shape, predicate or ice.AlwaysTrue(), **more)


def locations(found: Plan) -> list[str]:
    return found.tasks["location"].to_pylist()


def deletes_of(found: Plan, kind: str) -> dict[str, list[str]]:
    names = found.deletes["location"].to_pylist()
    lists = found.tasks[kind].to_pylist()
    return {
        location: [names[at] for at in rows]
        for location, rows in zip(locations(found), lists, strict=True)
    }
