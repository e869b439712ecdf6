"""The one door to the data: tables of a catalog as DataFrames of a Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from typing_extensions import Unpack, override

from icetree.catalog.base import parse_name
from icetree.errors import InvalidInput, NotFound
from icetree.filters.filter import Filter
from icetree.rows.write.fit import ArrowData
from icetree.spark.cache import Cache
from icetree.spark.kept import Kept
from icetree.spark.maintain.maintain import LakeMaintenance
from icetree.spark.names import quoted
from icetree.spark.read.metadata_tables import metadata_kind, metadata_table
from icetree.spark.read.scan import dataframe
from icetree.spark.read.where import rows_where
from icetree.spark.rows.change import delete, update
from icetree.spark.rows.merge import Merge, upsert
from icetree.spark.session import READ_SETTINGS, make_room, require_java
from icetree.spark.wap import branch_to_read, settled
from icetree.spark.writer import Write
from icetree.spec.spelled import spelled, spelled_out
from icetree.table.commit.commit import Committed
from icetree.table.commit.options import CommitOptions
from icetree.table.lake import Lake
from icetree.table.point import Point
from icetree.table.rows.clauses import Clauses
from icetree.table.state import State

if TYPE_CHECKING:
    from icetree.spark.stream.write import Batch
    from icetree.table.table import Table
    from icetree.table.views.view import View


@spelled
class SparkLake(LakeMaintenance):
    """A lake on a Spark session: all that a lake can do, and rows at scale.

    A DataFrame is written by Spark; rows in Arrow are in this process, as on any lake.
    Between calls it keeps the texts of temporary views, and what `CACHE TABLE` asked to keep.
    """

    #: Whether rows that are kept may be read in place of a table's own.
    reads_cache = False

    def __init__(self, spark: SparkSession, lake: Lake, *, kept: Kept | None = None) -> None:
        require_java(spark)
        # Nothing is opened twice: it has what the lake has.
        super().__init__(
            catalog=lake.catalog,
            store=lake.store,
            warehouse=lake.warehouse,
            cache=lake.manifests,
            stores=lake.stores,
            keeper=lake.keeper,
        )
        self.spark = spark
        for name, value in READ_SETTINGS.items():
            spark.conf.set(name, value)
        make_room(spark)
        self.kept = Kept() if kept is None else kept

    @property
    def namespace(self) -> str | None:
        """Where names without a namespace are looked for."""
        return self.kept.namespace

    @namespace.setter
    def namespace(self, name: str | None) -> None:
        self.kept.namespace = name

    @property
    def cache(self) -> Cache:
        """The rows that Spark keeps in memory."""
        return self.kept.cache

    # --- read ------------------------------------------------------------------------------

    def read(
        self,
        name: str,
        where: Filter | Column | None = None,
        *,
        columns: Iterable[str] | None = None,
        at: Point | None = None,
    ) -> DataFrame:
        """Return a table's rows as they are now; files are planned when Spark asks for them.

        Conditions that Spark pushes down prune files, whether `where` has them or a later `.where`,
        a join or a query on a view. `where` means to Spark what it says, as text or as a column; a PyIceberg expression means what it
        means to a scan. `at` is a snapshot id, a branch or tag, or a time. `db.t.snapshots`,
        `db.t.files` and their like are the table's metadata, as `inspect` has it. Of a view it is
        what its query finds.

        Beside the table's own columns there are `_file`, `_pos`, `_spec_id`, `_row_id` and
        `_last_updated_sequence_number`, where they are asked for.
        """
        metadata = metadata_kind(self, name)
        if metadata is not None:
            if where is not None:
                raise InvalidInput(f"table {name}: where= chooses rows of tables; use .where here")
            found = metadata_table(self, *metadata, at=at)
            return found if columns is None else found.select(*columns)
        try:
            table = self.table(name)
        except NotFound:
            if not self.view_exists(name):
                raise
            from icetree.spark.sql.statement import read_view

            return read_view(self, name, where, columns=columns, at=at)
        at = branch_to_read(self.spark, table) if at is None else at
        if isinstance(where, str | Column):
            return rows_where(self.spark, table, where, columns=columns, at=at)
        return dataframe(self.spark, table.scan(where, columns=columns, at=at))

    def temp_view(self, name: str, *, alias: str | None = None) -> None:
        """Make a table, or what a view finds, a temporary view of Spark's: its name's last part, or `alias`.

        It is pruned by whatever Spark pushes down. It stays at the snapshot of its making, so that a
        query that names it twice reads one version: ask again to have it follow.
        """
        called = alias or parse_name(name).name
        self.read(name).createOrReplaceTempView(quoted(called))

    def temp_views(self, namespace: str) -> None:
        """Make every table of a namespace a temporary view, as `temp_view` does."""
        for name in self.tables(namespace):
            self.temp_view(str(name))

    def sql(self, text: str) -> DataFrame:
        """Carry out a statement of SQL on the lake's tables, and Spark's own views beside them.

        What it finds comes back. Of one that changes rows it is how many, of any other that
        changes something it is nothing.
        """
        from icetree.spark.sql.statement import run_sql

        return run_sql(self, text)

    def changes(
        self,
        name: str,
        since: Point | None = None,
        upto: Point | None = None,
        *,
        net: bool = False,
        images: bool = False,
        columns: Iterable[str] | None = None,
    ) -> DataFrame:
        """Return the rows that changed after `since`, up to and with `upto`.

        Each is a snapshot id, a branch or tag, or a time. Rows have `_change_type`,
        `_change_ordinal` and `_commit_snapshot_id` beside their own columns.
        """
        from icetree.spark.changes.feed import changes

        return changes(self, name, since, upto, net=net, images=images, columns=columns)

    def read_stream(
        self,
        name: str,
        since: Point | None = None,
        *,
        changes: bool = False,
        images: bool = False,
        columns: Iterable[str] | None = None,
        skip: Iterable[str] = (),
        branch: str | None = None,
        max_snapshots_per_trigger: int | None = None,
    ) -> DataFrame:
        """Return a stream of a table's appended rows, or of its changes; see `stream.read`."""
        from icetree.spark.stream.read import read_stream

        return read_stream(
            self,
            name,
            since,
            changes=changes,
            images=images,
            columns=columns,
            skip=skip,
            branch=branch,
            max_snapshots_per_trigger=max_snapshots_per_trigger,
        )

    # --- write -----------------------------------------------------------------------------

    def write_stream(
        self,
        name: str,
        rows: DataFrame,
        *,
        checkpoint: str | Path,
        trigger: str | None = None,
        mode: Literal["append", "upsert"] = "append",
        deletes: Literal["vectors", "equality"] = "vectors",
        latest_by: str | Column | None = None,
        branch: str | None = None,
        query_name: str | None = None,
        on_batch: Callable[[Batch], None] | None = None,
    ) -> StreamingQuery:
        """Commit each micro-batch of a stream, exactly once; see `stream.write`."""
        from icetree.spark.stream.write import write_stream

        return write_stream(
            self,
            name,
            rows,
            checkpoint=checkpoint,
            trigger=trigger,
            mode=mode,
            deletes=deletes,
            latest_by=latest_by,
            branch=branch,
            query_name=query_name,
            on_batch=on_batch,
        )

    def write(self, name: str, rows: DataFrame) -> Write:
        """Say what to write to a table; `append` or one of its kin then does it."""
        return Write(self, name, rows)

    @override
    @spelled_out(CommitOptions)
    def append(
        self, name: str, rows: DataFrame | ArrowData, **how: Unpack[CommitOptions]
    ) -> Committed:
        """Add rows."""
        if not isinstance(rows, DataFrame):
            return super().append(name, rows, **how)
        return Write(self, name, rows, **how).append()

    @override
    @spelled_out(CommitOptions)
    def overwrite(
        self,
        name: str,
        where: Filter | Column,
        rows: DataFrame | ArrowData,
        *,
        strict: bool = True,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Replace the rows that match by these, which must match too, unless `strict` is false."""
        if not isinstance(rows, DataFrame):
            if isinstance(where, Column):
                raise InvalidInput(
                    f"table {name}: where= of an overwrite is a Column of Spark's, but the rows are no "
                    "DataFrame: give one, or the condition as text"
                )
            return super().overwrite(name, where, rows, strict=strict, **how)
        return Write(self, name, rows, **how).overwrite(where, strict=strict)

    @override
    @spelled_out(CommitOptions)
    def replace_partitions(
        self, name: str, rows: DataFrame | ArrowData, **how: Unpack[CommitOptions]
    ) -> Committed:
        """Replace every partition that the rows are in."""
        if not isinstance(rows, DataFrame):
            return super().replace_partitions(name, rows, **how)
        return Write(self, name, rows, **how).replace_partitions()

    @override
    @spelled_out(CommitOptions)
    def delete(
        self,
        name: str,
        where: Filter | Column | None = None,
        *,
        alias: str | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Delete the rows that match; all without `where`.

        It may call the table `alias`, or else by the last part of its name.
        """
        return delete(self, name, where, alias=alias, **how)

    @override
    @spelled_out(CommitOptions)
    def update(
        self,
        name: str,
        set: Mapping[str, Any],
        where: Filter | Column | None = None,
        *,
        alias: str | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Set columns of the rows that match, of all without `where`.

        A text is an expression of Spark's, as is a column; any other value is itself. All may call
        the table `alias`, or else by the last part of its name.
        """
        return update(self, name, set, where, alias=alias, **how)

    @override
    @spelled_out(CommitOptions)
    def upsert(
        self,
        name: str,
        rows: DataFrame | ArrowData,
        on: Iterable[str] | None = None,
        **how: Unpack[CommitOptions],
    ) -> Committed:
        """Replace the rows that are equal in the columns `on` by these, and add the others.

        Without `on`, the table's identifier fields are meant.
        """
        if not isinstance(rows, DataFrame):
            return super().upsert(name, rows, on, **how)
        return upsert(self, name, rows, on, **how)

    @override
    @spelled_out(CommitOptions)
    def merge(
        self,
        name: str,
        rows: DataFrame | ArrowData,
        on: str | Column | Iterable[str],
        *,
        target_alias: str = "target",
        source_alias: str = "source",
        **how: Unpack[CommitOptions],
    ) -> Clauses[Any, Committed]:
        """Say how to merge rows into a table; clauses follow, then `run`.

        `on` names the columns that must be equal, or, for a DataFrame, is a condition over the two
        aliases.
        """
        if isinstance(rows, DataFrame):
            aliases = {"target_alias": target_alias, "source_alias": source_alias}
            return Merge(self, name, rows, on, **aliases, **how)
        if isinstance(on, Column) or (target_alias, source_alias) != ("target", "source"):
            raise InvalidInput(
                f"table {name}: rows that are no DataFrame match by names of columns, and the "
                "sides are called target and source"
            )
        return super().merge(name, rows, on, **how)

    # --- tables ----------------------------------------------------------------------------

    @override
    def _table(self, state: State) -> Table:
        """Return a handle whose commits outdate what is kept of the table, and go where the session says."""
        table = super()._table(state)
        table.settle = partial(settled, self.spark, table)
        table.after_commit = partial(self.cache.outdate, str(table.name))
        return table

    def moment(self, *, reads_cache: bool = False) -> Moment:
        """Return this lake as one statement sees it; `reads_cache` where kept rows may answer."""
        return Moment(self, reads_cache=reads_cache)


class Moment(SparkLake):
    """A lake as one statement sees it: every table at the version in which it was found first.

    Whatever the statement asks of a table, once or often, is asked of one handle: what it reads of
    the table is of one version, and what it commits is checked against all that came after that.
    """

    def __init__(self, lake: SparkLake, *, reads_cache: bool = False) -> None:
        super().__init__(lake.spark, lake, kept=lake.kept)
        self._lake = lake
        self.reads_cache = reads_cache
        self._tables: dict[str, Table] = {}
        self._views: dict[str, View] = {}

    @override
    def table(self, name: str) -> Table:
        """Return the one handle of a table."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = self._lake.table(name)
        return found

    @override
    def view(self, name: str) -> View:
        """Return the one handle of a view."""
        found = self._views.get(name)
        if found is None:
            found = self._views[name] = self._lake.view(name)
        return found
