"""The groups of a compaction: how the live rows of some files become new files, and many side by side."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.schema import Schema

from icetree.errors import IcetreeError
from icetree.files.parallel import results
from icetree.rows.read.read import read_tasks
from icetree.rows.write.fit import fitted
from icetree.rows.write.layout import Layout
from icetree.rows.write.order import in_order
from icetree.rows.write.pack import PackedSize, layout_of, write_packed
from icetree.rows.write.write import in_portions
from icetree.spec.entry.entry import Entries
from icetree.spec.metadata.encryption import data_key_bytes
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.columns import holders
from icetree.store.base import Store
from icetree.surroundings import new_pool
from icetree.table.maintain.compact.options import Arrangement, CompactOptions
from icetree.tree.compaction import file_count
from icetree.tree.plan.tasks import Plan

#: Rows come to a file in portions of so many bytes.
_PORTION_BYTES: Final = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriting:
    """How the live rows of a group of files become new files, here or in another process."""

    name: str
    metadata: TableMetadata
    store: Store
    options: CompactOptions
    arrangement: Arrangement

    def attempt(self, plan: Plan) -> Entries | IcetreeError:
        """Write the files of a group; an error is returned, so that others go on."""
        try:
            return self._files(plan)
        except IcetreeError as error:
            return error

    def _files(self, plan: Plan) -> Entries:
        rules = self.options.rules
        layout = layout_of(self.metadata, self.options.spec_id)
        read = partial(self._read, plan, layout)
        order = self.arrangement.order
        if order is None:
            portions = in_portions(read(None), _PORTION_BYTES)
        else:
            portions = in_order(read, order, key_bytes=data_key_bytes(self.metadata.properties))
        return write_packed(
            portions,
            layout,
            PackedSize(
                rows=live_rows(plan.tasks),
                count=lambda size: file_count(size, rules),
                max_bytes=rules.max_bytes,
            ),
            store=self.store,
            sort_order_id=self.arrangement.sort_order_id,
        )

    def _read(
        self, plan: Plan, layout: Layout, fields: frozenset[int] | None
    ) -> Iterator[pa.RecordBatch]:
        """Yield live rows: columns that hold some fields, or all with the rows' lineage."""
        wanted = layout.fields if fields is None else holders(layout.fields, fields)
        batches = read_tasks(
            plan, store=self.store, metadata=self.metadata, columns=Schema(*wanted)
        )
        return fitted(batches, wanted, table=self.name)


#: What came of a group: new files, why there are none, or None for one that was not begun.
Came = Entries | IcetreeError | None
#: Carries out groups, and yields what came of each in their order; of those that it has begun.
Runner = Callable[[Rewriting, list[Plan]], Generator[Came, None, None]]


def side_by_side(
    rewriting: Rewriting, groups: list[Plan], *, begins: Callable[[Plan], bool] | None = None
) -> Generator[Came, None, None]:
    """Carry out groups in threads of this process; none is begun after one that spoils them all.

    `begins` is asked right before a group is, and may leave it.
    """
    failed = False

    def jobs() -> Iterator[Callable[[], Came]]:
        for each in groups:
            if failed and not rewriting.options.partial:
                return
            left = begins is not None and not begins(each)
            yield _nothing if left else partial(rewriting.attempt, each)

    pool = new_pool(rewriting.options.concurrent, "icetree-compact")
    try:
        for made in results(pool, jobs(), ahead=rewriting.options.concurrent):
            failed = failed or isinstance(made, IcetreeError)
            yield made
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _nothing() -> None:
    return None


def live_rows(tasks: pa.Table) -> int:
    """Return how many rows files hold, those left out that DVs delete."""
    rows: int = pc.sum(tasks["record_count"]).as_py() or 0
    return rows - (pc.sum(tasks["dv_cardinality"]).as_py() or 0)
