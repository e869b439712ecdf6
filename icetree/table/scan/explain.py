"""Explaining a scan: what was skipped at which level, and which part of the filter did it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from icetree.errors import Unsupported
from icetree.filters.filter import Filter
from icetree.filters.text import predicate_text
from icetree.rows.read.files import name_mapping, open_file
from icetree.rows.read.row_groups import groups_that_may_match
from icetree.spec.entry.entry import (
    MANIFESTS,
    POSITION,
    Content,
    Entries,
    is_content,
    is_data_dv,
    is_data_file,
    is_live,
)
from icetree.spec.location import absolute
from icetree.spec.locations import absolute_array
from icetree.spec.notebook import grid_html
from icetree.table.arguments import whole
from icetree.tree.manifest_dvs import read_manifest_dvs
from icetree.tree.plan.delete_stats import judged
from icetree.tree.prune.bind import bind
from icetree.tree.prune.predicates import Predicate
from icetree.tree.prune.prune import columns_needed, conjunct_masks
from icetree.tree.reading import Leaf, leaves_in
from icetree.visible import visible

if TYPE_CHECKING:
    from icetree.spec.schema.shape import Shape
    from icetree.table.point import Point
    from icetree.table.scan.scan import Scan
    from icetree.table.table import Table

#: What stands in `by` where no part of the filter is the reason.
NO_ROWS: Final = "it holds no rows"
OWNER_SKIPPED: Final = "its data manifest is skipped"

_DATA_VECTOR: Final = -1
KINDS: Final[dict[int, str]] = {
    _DATA_VECTOR: "data DV",
    Content.DATA: "data file",
    Content.POSITION_DELETES: "position delete file",
    Content.EQUALITY_DELETES: "equality delete file",
    Content.DATA_MANIFEST: "data manifest",
    Content.DELETE_MANIFEST: "delete manifest",
}

#: What opens a data file.
_OPENED: Final = ("location", "file_format", "key_metadata")
#: Columns of `Explanation.groups`: all objects of a level that share their fate.
GROUPS: Final = pa.schema(
    [
        pa.field("level", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("kept", pa.bool_()),
        pa.field("by", pa.list_(pa.string())),
        pa.field("objects", pa.int64()),
        pa.field("entries", pa.int64()),
    ]
)
#: Columns of `Explanation.objects`: one root entry, leaf entry or row group each; locations are
#: absolute.
OBJECTS: Final = pa.schema(
    [
        pa.field("level", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("within", pa.string()),
        pa.field("object", pa.string()),
        pa.field("kept", pa.bool_()),
        pa.field("by", pa.list_(pa.string())),
        pa.field("entries", pa.int64()),
    ]
)
_FACTS: Final = (
    "content_type",
    "location",
    "status",
    "record_count",
    "referenced_file",
    "partition_spec_id",
    "equality_ids",
)
_MOST_CONJUNCTS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What became of everything that a scan could have read."""

    #: The filter, and the parts of it that must all hold.
    where: str
    conjuncts: tuple[str, ...]
    #: As `GROUPS` tells: small, whatever the table's size. `entries` counts the entries of
    #: manifests and the rows of files.
    groups: pa.Table
    #: As `OBJECTS` tells; the first ones, where the table has more than were asked for.
    objects: pa.Table
    total_objects: int

    def __repr__(self) -> str:
        return f"Explanation(where={self.where!r}, objects={self.total_objects})"

    def __str__(self) -> str:
        return self.text()

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        printer.text(self.text())

    def _repr_html_(self) -> str:
        rows = [
            (each["level"], each["kind"], "may match" if each["kept"] else "skipped", _cause(each),
             each["objects"], each["entries"])
            for each in self.groups.to_pylist()
        ]  # fmt: skip
        headings = ("level", "kind", "", "by", "objects", "entries or rows")
        return grid_html(f"where {self.where}", headings, rows)

    def text(self) -> str:
        """Return the explanation in words."""
        lines = [f"where {self.where}"]
        rows = self.groups.to_pylist()
        for level, kind in dict.fromkeys((row["level"], row["kind"]) for row in rows):
            mine = [row for row in rows if (row["level"], row["kind"]) == (level, kind)]
            total = sum(row["objects"] for row in mine)
            kept = sum(row["objects"] for row in mine if row["kept"])
            lines.append(f"{level}: {kept:,} of {total:,} {_plural(kind, total)} may match")
            lines += [
                f"  {row['objects']:,} skipped: {_reason(row['by'])} ({row['entries']:,} {_of(kind)})"
                for row in mine
                if not row["kept"]
            ]
        idle = [part for part in self.conjuncts if not any(part in row["by"] for row in rows)]
        lines += [f"nothing is skipped by {part}" for part in idle]
        return "\n".join(map(visible, lines))


def explain(
    table: Table,
    where: Filter,
    *,
    at: Point | None = None,
    case_sensitive: bool = True,
    row_groups: bool = False,
    objects: int = 1_000,
) -> Explanation:
    """Tell what a scan with this filter skips, at the root, in its leaves, and why.

    Reads only the leaves that the scan would. With `row_groups` the footers of the data files
    that are left are looked at too. At most `objects` are told of one by one.
    """
    scan = table.scan(where, at=at, case_sensitive=case_sensitive)
    return explain_scan(scan, row_groups=row_groups, objects=objects)


def explain_scan(scan: Scan, *, row_groups: bool = False, objects: int = 1_000) -> Explanation:
    """Tell what a scan skips; see `explain`."""
    objects = whole(objects, what="objects", least=0)
    expression, snapshot = scan.where, scan.snapshot
    shape = scan.metadata.shape(scan.schema.schema_id)
    bound = bind(expression, shape, case_sensitive=scan.case_sensitive)
    if len(bound.conjuncts) > _MOST_CONJUNCTS:
        raise Unsupported(f"a filter of more than {_MOST_CONJUNCTS} parts cannot be explained")
    account = _Account(
        conjuncts=tuple(predicate_text(part.expression) for part in bound.conjuncts),
        wanted=objects,
        shape=shape,
        table_location=scan.metadata.location,
    )
    root = scan.files.counted_root(snapshot, shape)
    reader = scan.files.reader(shape)
    kept, left = _root_level(root, bound, account)
    vectors = read_manifest_dvs(root, reader)
    columns = {*_FACTS, *_OPENED, POSITION, *columns_needed(bound)}
    for leaf in kept:
        entries = reader.leaf(leaf, columns=columns)
        alive = is_live(entries).to_numpy()
        gone = vectors.get(leaf.location)
        if gone:
            alive &= ~np.isin(entries[POSITION].to_numpy(), np.array(gone, np.int64))
        entries = entries.filter(pa.array(alive))
        fate = account.judge(entries, bound)
        account.add("leaf", entries, fate, within=leaf.location)
        left.append(entries.filter(pa.array(fate == 0)).select(["content_type", *_OPENED]))
    if row_groups:
        _row_groups(scan, left, bound, shape, account)
    return Explanation(
        where=predicate_text(expression),
        conjuncts=account.conjuncts,
        groups=account.groups(),
        objects=account.objects(),
        total_objects=account.total,
    )


_Fates = npt.NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class _Account:
    """Counts objects by their fate: a bit for each part of the filter that rules one out."""

    conjuncts: tuple[str, ...]
    wanted: int
    shape: Shape
    table_location: str
    total: int = 0
    counts: dict[tuple[str, str, int], list[int]] = field(default_factory=dict)
    shown: list[pa.Table] = field(default_factory=list)

    @property
    def no_rows(self) -> int:
        return 1 << len(self.conjuncts)

    @property
    def owner_skipped(self) -> int:
        return 2 << len(self.conjuncts)

    def judge(self, entries: pa.Table, predicate: Predicate) -> _Fates:
        """Return the fate of each entry; 0 is kept."""
        fate = np.zeros(entries.num_rows, np.int64)
        told = judged(entries, self.shape)
        for at, (_, may) in enumerate(conjunct_masks(told, predicate)):
            fate |= (~may.to_numpy(zero_copy_only=False)).astype(np.int64) << at
        if predicate.conjuncts:
            empty = entries["record_count"].to_numpy() == 0
            fate |= np.where(empty & (fate == 0), self.no_rows, 0)
        return fate

    def add(self, level: str, entries: pa.Table, fate: _Fates, *, within: str | None) -> None:
        """Take in the entries of a level, with their fates."""
        content = entries["content_type"].to_numpy()
        # A data DV and a position delete file of v2 have one content type, but are two things.
        vectors = is_data_dv(entries).to_numpy()
        content = np.where(vectors, _DATA_VECTOR, content)
        rows = entries["record_count"].to_numpy()
        for kind in np.unique(content).tolist():
            mine = content == kind
            for code in np.unique(fate[mine]).tolist():
                same = mine & (fate == code)
                self.count(level, KINDS[kind], code, int(same.sum()), int(rows[same].sum()))
        room = self.wanted - sum(each.num_rows for each in self.shown)
        if room > 0:
            names = [KINDS[kind] for kind in content[:room].tolist()]
            places = absolute_array(entries["location"][:room], self.table_location)
            place = None if within is None else absolute(within, self.table_location)
            self._show(level, names, place, places, fate[:room], rows[:room])

    def count(self, level: str, kind: str, code: int, objects: int, entries: int) -> None:
        """Count objects that share a fate."""
        so_far = self.counts.setdefault((level, kind, code), [0, 0])
        so_far[0] += objects
        so_far[1] += entries
        self.total += objects

    def add_row_group(self, file: str, ordinal: int, code: int, rows: int) -> None:
        """Take in a row group of a data file, whose location is absolute."""
        self.count("row group", "row group", code, 1, rows)
        if sum(each.num_rows for each in self.shown) < self.wanted:
            fate, sizes = np.array([code]), np.array([rows])
            self._show("row group", ["row group"], file, pa.array([str(ordinal)]), fate, sizes)

    def _show(
        self,
        level: str,
        kinds: list[str],
        within: str | None,
        names: pa.Array,
        fate: _Fates,
        sizes: npt.NDArray[np.int64],
    ) -> None:
        count = len(kinds)
        columns = {
            "level": pa.array([level] * count, pa.string()),
            "kind": pa.array(kinds, pa.string()),
            "within": pa.array([within] * count, pa.string()),
            "object": names,
            "kept": pa.array(fate == 0),
            "by": pa.array([self.reasons(code) for code in fate.tolist()], pa.list_(pa.string())),
            "entries": pa.array(sizes, pa.int64()),
        }
        self.shown.append(pa.table(columns, schema=OBJECTS))

    def reasons(self, code: int) -> list[str]:
        """Return a fate in words."""
        found = [part for at, part in enumerate(self.conjuncts) if code >> at & 1]
        found += [NO_ROWS] if code & self.no_rows else []
        return found + ([OWNER_SKIPPED] if code & self.owner_skipped else [])

    def groups(self) -> pa.Table:
        levels = ("root", "leaf", "row group")
        # What is kept comes first, then what most were skipped for.
        order = sorted(
            self.counts.items(),
            key=lambda item: (levels.index(item[0][0]), item[0][1], item[0][2] != 0, -item[1][0]),
        )
        rows = [
            {
                "level": level,
                "kind": kind,
                "kept": code == 0,
                "by": self.reasons(code),
                "objects": objects,
                "entries": entries,
            }
            for (level, kind, code), (objects, entries) in order
        ]
        return pa.Table.from_pylist(rows, GROUPS)

    def objects(self) -> pa.Table:
        return pa.concat_tables([OBJECTS.empty_table(), *self.shown])


def _root_level(
    root: Entries, predicate: Predicate, account: _Account
) -> tuple[list[Leaf], list[pa.Table]]:
    """Judge the root's entries; return the leaves to read, and the files that are left."""
    here = root.filter(is_live(root))
    here = here.filter(pc.invert(is_content(here, Content.MANIFEST_DV)))
    # Leaves first: where not all can be told, what is told is of the most.
    is_leaf = is_content(here, *MANIFESTS).to_numpy()
    here = here.take(pa.array(np.argsort(~is_leaf, kind="stable")))
    fate = account.judge(here, predicate)
    content = here["content_type"].to_numpy()
    kept = here["location"].filter(pa.array((fate == 0) & (content == int(Content.DATA_MANIFEST))))
    owner = here["referenced_file"]
    orphaned = pc.and_(
        is_content(here, Content.DELETE_MANIFEST),
        pc.and_(pc.is_valid(owner), pc.invert(pc.is_in(owner, value_set=kept.combine_chunks()))),
    )
    skipped = orphaned.to_numpy().astype(bool) & (fate == 0)
    fate |= np.where(skipped, account.owner_skipped, 0)
    account.add("root", here, fate, within=None)
    left = here.filter(pa.array(fate == 0))
    return leaves_in(left), [left.select(["content_type", *_OPENED])]


def _row_groups(
    scan: Scan, left: list[pa.Table], predicate: Predicate, shape: Shape, account: _Account
) -> None:
    mapping = name_mapping(scan.metadata.properties)
    for file, format, key in _data_files(left):
        place = absolute(file, scan.metadata.location)
        opened = open_file(scan.files.store, place, format, mapping=mapping, key=key)
        codes = dict.fromkeys((group.ordinal for group in opened.groups), 0)
        for at, part in enumerate(predicate.conjuncts):
            may = groups_that_may_match(opened, part.expression, shape, scan.case_sensitive)
            for ordinal in codes.keys() - {group.ordinal for group in may}:
                codes[ordinal] |= 1 << at
        for group in opened.groups:
            account.add_row_group(place, group.ordinal, codes[group.ordinal], group.rows)


def _data_files(left: list[pa.Table]) -> Iterator[tuple[str, str, bytes | None]]:
    for part in left:
        data = part.filter(is_data_file(part))
        yield from zip(*(data[name].to_pylist() for name in _OPENED), strict=True)


def _cause(group: dict[str, Any]) -> str:
    return "" if group["kept"] else _reason(group["by"])


def _plural(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind}s"


def _of(kind: str) -> str:
    return "entries" if kind.endswith("manifest") else "rows"


def _reason(by: list[str]) -> str:
    return (
        " and by ".join(["by " + by[0], *by[1:]])
        if by
        and by[0]
        not in (
            NO_ROWS,
            OWNER_SKIPPED,
        )
        else "; ".join(by)
    )
