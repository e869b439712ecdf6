"""A scan: which rows of which snapshot, as a plan, as Arrow data, or as a count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.schema import Schema, index_by_id
from pyiceberg.types import NestedField

from icetree.errors import InvalidInput, NotFound
from icetree.files.parallel import in_order
from icetree.filters.filter import Filter, parse_filter
from icetree.filters.text import predicate_text
from icetree.rows.read.read import read_tasks
from icetree.rows.schema import arrow_schema
from icetree.spec.schema.metadata_columns import (
    METADATA_COLUMNS,
    NAMES,
    PARTITION_FIELD,
    metadata_columns,
)
from icetree.spec.schema.shape import Shape
from icetree.spec.spelled import spelled
from icetree.spec.texts import did_you_mean, shortened
from icetree.table.arguments import texts, whole
from icetree.table.frames import Frames
from icetree.table.point import Point, resolve, snapshot_at
from icetree.table.scan.planning import planner
from icetree.tree.plan.kinds import Kinds, kinds, spec_ids
from icetree.tree.plan.plan import Planner, Run
from icetree.tree.plan.tasks import Plan
from icetree.tree.splits import sizes_of

if TYPE_CHECKING:
    from icetree.table.scan.explain import Explanation
    from icetree.table.table import Table


@spelled
class Scan(Frames):
    """What to read of a table. Nothing is read until one asks for a plan, rows or a count."""

    def __init__(
        self,
        table: Table,
        *,
        where: Filter | None = None,
        columns: Iterable[str] | None = None,
        at: Point | None = None,
        case_sensitive: bool = True,
        limit: int | None = None,
    ) -> None:
        self.files = table.files
        self.metadata = table.metadata
        self._name = table.name
        self.where = AlwaysTrue() if where is None else parse_filter(where)
        self.case_sensitive = case_sensitive
        self.limit = None if limit is None else whole(limit, what="limit", least=0)
        point = None if at is None else resolve(table.metadata, at, what="at")
        self.snapshot = (
            table.metadata.current_snapshot()
            if point is None
            else snapshot_at(table.metadata, table.files, point)
        )
        goes_back = point is not None and not point.is_branch
        #: The schema that the filter and the columns are of: that of the time, when going back.
        self.schema = self.metadata.schema(
            self.snapshot.schema_id if goes_back and self.snapshot else None
        )
        #: What comes out.
        self.columns = _selected(
            self.metadata.shape(self.schema.schema_id), columns, case_sensitive
        )

    def __repr__(self) -> str:
        where = (
            "" if isinstance(self.where, AlwaysTrue) else f", where={predicate_text(self.where)!r}"
        )
        at = f", snapshot={self.snapshot.snapshot_id}" if self.snapshot else ", empty"
        limit = "" if self.limit is None else f", limit={self.limit}"
        names = [field.name for field in self.columns.fields]
        return f"Scan({str(self._name)!r}{where}, columns={shortened(names)}{at}{limit})"

    @property
    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of the rows."""
        return arrow_schema(self.columns)

    @cached_property
    def _plan(self) -> Plan:
        return self.planner().whole()

    def planner(self, *, run: Run | None = None, where: BooleanExpression | None = None) -> Planner:
        """Return what plans the scan; `run` says where leaves are read, here if not given.

        `where` takes the place of the scan's own filter.
        """
        # Files from Hive lack their partition columns, which the stats then tell.
        expressions = self.metadata.partitioning[0]
        told_by_stats = any(expression.is_identity for expression in expressions) or any(
            field.field_id == PARTITION_FIELD for field in self.columns.fields
        )
        return planner(
            self.files,
            self.metadata,
            self.snapshot,
            self.where if where is None else where,
            schema_id=self.schema.schema_id,
            case_sensitive=self.case_sensitive,
            stats_columns=told_by_stats,
            run=run,
        )

    def kinds(self) -> Kinds:
        """Return which kinds of files the snapshot has; its leaves are read only if nothing else tells."""
        shape = self.metadata.shape(self.schema.schema_id)
        snapshot, files = self.snapshot, self.files
        if snapshot is None:
            return Kinds(
                formats=frozenset(), data_dvs=False, equality_deletes=False, position_delete_bytes=0
            )

        def make() -> Kinds:
            root = files.root(snapshot, shape, keep=True, stats_columns=frozenset())
            return kinds(root, files.reader(shape), snapshot.summary, run=in_order)

        key = ("kinds", files.location, snapshot.root_file, snapshot.snapshot_id, shape.meaning)
        return files.cache.derive(key, make, most=64)

    def spec_ids(self) -> frozenset[int]:
        """Return the partition specs that files of the snapshot have; its leaves are read once for it."""
        shape = self.metadata.shape(self.schema.schema_id)
        snapshot, files = self.snapshot, self.files
        if snapshot is None:
            return frozenset()

        def make() -> frozenset[int]:
            root = files.root(snapshot, shape, keep=True, stats_columns=frozenset())
            reader, name = files.reader(shape), snapshot.root_file or "root"
            return spec_ids(root, reader, root_file=name, run=in_order)

        key = ("specs", files.location, snapshot.root_file, snapshot.snapshot_id, shape.meaning)
        return files.cache.derive(key, make, most=64)

    def plan(self) -> Plan:
        """Return the files to read, each with its deletes and what is left to check on rows."""
        return self._plan

    def plan_parts(self) -> Iterator[Plan]:
        """Yield the plan leaf by leaf, the first part before the last leaf is read.

        Memory stays the same however large the table is.
        """
        return self.planner().parts()

    def splits(
        self,
        *,
        target_bytes: int | None = None,
        open_cost_bytes: int | None = None,
        lookback: int | None = None,
    ) -> pa.Table:
        """Return the plan as shares of work of about one size; see `Plan.splits`.

        What is not given is as the table's properties have it: `read.split.target-size`,
        `read.split.open-file-cost` and `read.split.planning-lookback`.
        """
        usual = sizes_of(self.metadata.properties)
        return self._plan.splits(
            target_bytes=usual.target_bytes if target_bytes is None else target_bytes,
            open_cost_bytes=usual.open_cost_bytes if open_cost_bytes is None else open_cost_bytes,
            lookback=usual.lookback if lookback is None else lookback,
        )

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, a batch at a time, in the order of the plan."""
        return self._batches(self._plan, self.columns)

    def _batches(self, found: Plan, columns: Schema) -> Iterator[pa.RecordBatch]:
        left = self.limit
        if left == 0:
            return
        batches = read_tasks(
            found,
            store=self.files.store,
            metadata=self.metadata,
            columns=columns,
            schema=self.schema,
            case_sensitive=self.case_sensitive,
        )
        for batch in batches:
            if left is None:
                yield batch
                continue
            yield batch.slice(0, min(left, batch.num_rows))
            left -= batch.num_rows
            if left <= 0:
                batches.close()  # type: ignore[attr-defined]
                return

    def explain(self, *, row_groups: bool = False, objects: int = 1_000) -> Explanation:
        """Tell what the scan skips, at the root, in its leaves, and why.

        With `row_groups` the footers of the data files that are left are looked at too. At most
        `objects` are told of one by one.
        """
        from icetree.table.scan.explain import explain_scan

        return explain_scan(self, row_groups=row_groups, objects=objects)

    def count(self, *, metadata_only: bool = False) -> int:
        """Return how many rows there are, reading only what metadata alone cannot tell.

        With `metadata_only` no data is read, and `InvalidInput` says why where that is not enough.
        """
        tasks = self._plan.tasks
        sure = self._counted()
        rows = tasks.filter(sure)
        total = (pc.sum(rows["record_count"]).as_py() or 0) - (
            pc.sum(rows["dv_cardinality"]).as_py() or 0
        )
        unsure = tasks.filter(pc.invert(sure))
        if unsure.num_rows and (self.limit is None or total < self.limit):
            if metadata_only:
                raise InvalidInput(
                    f"table {self._name}: {unsure.num_rows} of {tasks.num_rows} files may match in part "
                    "or have deletes that only their rows can tell, such as "
                    f"{unsure['location'][0]}: count without metadata_only"
                )
            rest = replace(self._plan, tasks=unsure)
            position = Schema(METADATA_COLUMNS["_pos"])
            total += sum(batch.num_rows for batch in self._batches(rest, position))
        return total if self.limit is None else min(total, self.limit)

    def _counted(self) -> pa.Array:
        """Tell of which files metadata says how many rows match."""
        found = self._plan
        sure = found.match_whole()
        for name in ("equality_deletes", "position_deletes"):
            none = pc.equal(pc.fill_null(pc.list_value_length(found.tasks[name]), 0), 0)
            sure = pc.and_(sure, none)
        return sure


def _selected(shape: Shape, columns: Iterable[str] | None, case_sensitive: bool) -> Schema:
    """Return the columns asked for, in the order asked for; `_file` and the like among them."""
    schema = shape.schema
    if columns is None:
        return schema
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise InvalidInput(f"columns={columns!r}: give a list of names")
    names = texts(columns, what="columns")
    own = [name for name in names if name not in NAMES or _has(schema, name)]
    try:
        picked = schema.select(*own, case_sensitive=case_sensitive) if own else Schema()
    except ValueError:
        known = ", ".join((*schema.column_names, *NAMES))
        missing = [name for name in own if not _known(schema, name, case_sensitive)]
        hint = did_you_mean(missing[0], (*schema.column_names, *NAMES)) if missing else ""
        raise NotFound(
            f"no column {missing[0] if missing else own!r}; there are: {known}{hint}"
        ) from None
    fields: dict[int, NestedField] = {}
    by_id = {field.field_id: field for field in picked.fields}
    made = metadata_columns(shape) if len(own) < len(names) else {}
    for name in names:
        if name in made and name not in own:
            field = made[name]
        else:
            wanted = schema.find_field(name, case_sensitive=case_sensitive)
            field = next(each for each in by_id.values() if _within(each, wanted.field_id))
        fields.setdefault(field.field_id, field)
    return Schema(*fields.values(), schema_id=schema.schema_id)


def _has(schema: Schema, name: str) -> bool:
    return any(field.name == name for field in schema.fields)


def _known(schema: Schema, name: str, case_sensitive: bool) -> bool:
    try:
        schema.find_field(name, case_sensitive=case_sensitive)
    except ValueError:
        return False
    return True


def _within(field: NestedField, field_id: int) -> bool:
    return field_id in index_by_id(Schema(field))
