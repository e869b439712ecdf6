"""The one door to the data: tables of a catalog as DataFrames of a Spark session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from typing_extensions import Self, override

from icetree.errors import InvalidInput
from icetree.filters.filter import Filter
from icetree.spark.cache import Cache
from icetree.spark.read.metadata_tables import metadata_kind, metadata_table
from icetree.spark.read.scan import dataframe
from icetree.spark.rows.change import delete, update
from icetree.spark.rows.merge import Merge, upsert
from icetree.spark.session import READ_SETTINGS, local_session
from icetree.spark.wap import branch_to_read
from icetree.spark.writer import Write
from icetree.store.places import local_folder
from icetree.table.commit.commit import Committed
from icetree.table.connection import Connection, open_connection
from icetree.table.point import Point

if TYPE_CHECKING:
    from icetree.spark.sql.views import View
    from icetree.table.table import Table


class Lake:
    """A catalog's tables on a Spark session.

    Between calls it keeps the texts of temporary views, and what `CACHE TABLE` asked to keep.
    """

    #: Whether rows that are kept may be read in place of a table's own.
    reads_cache = False

    def __init__(self, spark: SparkSession, catalog: Connection | str, **properties: Any) -> None:
        self.spark = spark
        for name, value in READ_SETTINGS.items():
            spark.conf.set(name, value)
        #: What opens the same catalog elsewhere, such as on an executor; none where it was given open.
        self.address = None if isinstance(catalog, Connection) else catalog
        self.properties = properties
        #: Tables without Spark: create, evolve, inspect, verify.
        self.connection = (
            catalog if isinstance(catalog, Connection) else open_connection(catalog, properties)
        )
        #: Where names without a namespace are looked for.
        self.namespace: str | None = None
        #: Temporary views over the lake's tables, by their marks in Spark's catalog.
        self.views: dict[str, View] = {}
        self.cache = Cache()

    def __repr__(self) -> str:
        connection = self.connection
        place = f", warehouse={connection.warehouse!r}" if connection.warehouse else ""
        return f"Lake({connection.catalog.name!r}{place})"

    @classmethod
    def local(cls, folder: str | Path, *, spark: SparkSession | None = None) -> Self:
        """Open a lake in a folder of this machine: local Spark, SQLite, files beside it."""
        place = Path(local_folder(folder))
        place.mkdir(parents=True, exist_ok=True)
        session = local_session() if spark is None else spark
        return cls(session, f"sqlite:///{place}/catalog.db", warehouse=str(place / "warehouse"))

    # --- read ------------------------------------------------------------------------------

    def table(
        self,
        name: str,
        *,
        where: Filter | None = None,
        columns: Iterable[str] | None = None,
        at: Point | None = None,
    ) -> DataFrame:
        """Return a table's rows; `where` prunes files, as no later `.where` can.

        `db.t.snapshots`, `db.t.files` and their like are the table's metadata, as `inspect` has it.

        Beside the table's own columns there are `_file`, `_pos`, `_spec_id`, `_row_id` and
        `_last_updated_sequence_number`, where they are asked for.
        """
        metadata = metadata_kind(self, name)
        if metadata is not None:
            if where is not None:
                raise InvalidInput(f"table {name}: where= chooses rows of tables; use .where here")
            found = metadata_table(self, *metadata, at=at)
            return found if columns is None else found.select(*columns)
        handle = self.handle(name)
        at = branch_to_read(self.spark, handle) if at is None else at
        return dataframe(self.spark, handle.scan(where, columns=columns, at=at))

    def sql(self, text: str) -> DataFrame:
        """Carry out a statement of SQL on the lake's tables, and Spark's own views beside them.

        What it finds comes back; nothing does, of a statement that changes something.
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
        images: bool = True,
        columns: Iterable[str] | None = None,
    ) -> DataFrame:
        """Return the rows that changed after `since`, up to and with `upto`.

        Each is a snapshot id, a branch or tag, or a time. Rows have `_change_type`,
        `_change_ordinal` and `_commit_snapshot_id` beside their own columns.
        """
        from icetree.spark.changes.feed import changes

        return changes(self, name, since, upto, net=net, images=images, columns=columns)

    def read_stream(self, name: str, **how: Any) -> DataFrame:
        """Return a stream of a table's appended rows, or of its changes; see `stream.read`."""
        from icetree.spark.stream.read import read_stream

        return read_stream(self, name, **how)

    # --- write -----------------------------------------------------------------------------

    def write_stream(
        self, rows: DataFrame, name: str, *, checkpoint: str | Path, **how: Any
    ) -> StreamingQuery:
        """Commit each micro-batch of a stream, exactly once; see `stream.write`."""
        from icetree.spark.stream.write import write_stream

        return write_stream(self, rows, name, checkpoint=checkpoint, **how)

    def write(self, rows: DataFrame, name: str) -> Write:
        """Say what to write to a table; `append` or one of its kin then does it."""
        return Write(self, rows, name)

    def delete(
        self,
        name: str,
        condition: str | Column | None = None,
        *,
        alias: str | None = None,
        branch: str | None = None,
    ) -> Committed:
        """Delete the rows that the condition is true of, as one snapshot; all without one.

        The condition may call the table `alias`, or else by the last part of its name.
        """
        return delete(self, name, condition, alias=alias, branch=branch)

    def update(
        self,
        name: str,
        to: Mapping[str, str | Column],
        condition: str | Column | None = None,
        *,
        alias: str | None = None,
        branch: str | None = None,
    ) -> Committed:
        """Set columns of the rows that the condition is true of, as one snapshot.

        Condition and values may call the table `alias`, or else by the last part of its name.
        """
        return update(self, name, to, condition, alias=alias, branch=branch)

    def merge(
        self,
        name: str,
        source: DataFrame,
        on: str | Column | Sequence[str],
        *,
        target_alias: str = "target",
        source_alias: str = "source",
        branch: str | None = None,
    ) -> Merge:
        """Say how to merge rows into a table; clauses follow, then `run`.

        `on` is a condition over the two aliases, or the columns that must be equal.
        """
        return Merge(
            self,
            name,
            source,
            on,
            target_alias=target_alias,
            source_alias=source_alias,
            branch=branch,
        )

    def upsert(
        self,
        rows: DataFrame,
        name: str,
        *,
        by: Iterable[str] | None = None,
        branch: str | None = None,
        key: str | None = None,
    ) -> Committed:
        """Replace the rows with equal keys by these, and add the others, as one snapshot.

        Without `by`, the table's identifier fields are the key.
        """
        return upsert(self, name, rows, by=by, branch=branch, key=key)

    # --- tables ----------------------------------------------------------------------------

    def handle(self, name: str) -> Table:
        """Return a table's handle, on its newest state."""
        return self.watched(self.connection.table(name))

    def watched(self, table: Table) -> Table:
        """Return a handle whose commits outdate what is kept of the table."""
        table.after_commit = partial(self.cache.outdate, str(table.name))
        return table

    def moment(self, *, reads_cache: bool = False) -> Moment:
        """Return this lake as one statement sees it; `reads_cache` where kept rows may answer."""
        return Moment(self, reads_cache=reads_cache)


class Moment(Lake):
    """A lake as one statement sees it: every table at the version in which it was found first.

    Whatever the statement asks of a table, once or often, is asked of one handle: what it reads of
    the table is of one version, and what it commits is checked against all that came after that.
    """

    def __init__(self, lake: Lake, *, reads_cache: bool = False) -> None:
        # Nothing is opened anew: it has what the lake has.
        vars(self).update(vars(lake))
        self._lake = lake
        self.reads_cache = reads_cache
        self._tables: dict[str, Table] = {}

    @property
    def namespace(self) -> str | None:
        """Where names without a namespace are looked for: in the lake's own."""
        return self._lake.namespace

    @namespace.setter
    def namespace(self, name: str | None) -> None:
        self._lake.namespace = name

    @override
    def handle(self, name: str) -> Table:
        """Return the one handle of a table."""
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = self._lake.handle(name)
        return found
