"""The verbs by which tables come to a lake and leave it: no data file is copied or changed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from icetree.catalog.base import Catalog, TableName, parse_name
from icetree.errors import AlreadyExists
from icetree.files.table_files import TableFiles, read_metadata
from icetree.keys.base import Keeper
from icetree.keys.ring import ring_of
from icetree.spec.edit.new_columns import SchemaLike
from icetree.spec.spelled import spelled
from icetree.spec.texts import text
from icetree.store.aside import AsideStore
from icetree.store.base import Store
from icetree.table.commit.adopting import Progress
from icetree.table.movable import settle
from icetree.table.moving.apart import require_all_inside, require_beside, require_none_inside
from icetree.table.moving.contents import Contents
from icetree.table.moving.downgrade import Downgraded, downgrade
from icetree.table.moving.folders import foreign_at
from icetree.table.moving.making import make
from icetree.table.moving.source import Source, folder_of, is_place, place_of, table_at
from icetree.table.moving.trial import SHARING, trial
from icetree.table.moving.upgrade import Upgraded, upgrade, upgrade_elsewhere
from icetree.table.nearest import namespaces_told
from icetree.table.rehearsal import catalog_of
from icetree.table.state import State
from icetree.table.table import Table


@spelled
class LakeMoving(ABC):
    """What a lake can do to tables that are elsewhere, or in another format version."""

    if TYPE_CHECKING:
        catalog: Catalog
        keeper: Keeper | None

    @abstractmethod
    def table(self, name: str) -> Table:
        """Return a table's handle, on its newest state."""

    @abstractmethod
    def _beside(self, location: str) -> Store:
        """Return the stores that a table at a location may name files in."""

    @abstractmethod
    def _place(self, table: TableName, location: str | None) -> str:
        """Return where a new table goes."""

    @abstractmethod
    def _exists(self, table: TableName) -> bool:
        """Tell whether a table has this name."""

    def upgrade_table(
        self, name: str, source: str | None = None, *, dry_run: bool = False
    ) -> Upgraded:
        """Make a table of v1 to v3 one of v4; with `dry_run` only tell what comes of it.

        Without a `source` it is a table of the lake, whichever client made it. A source is a table
        that gets its name here: a metadata file, or a folder with numbered ones (`v3.metadata.json`).
        Where another catalog has it too, drop it there: only one may go on.
        """
        if source is None:
            return upgrade(self.table(name), dry_run=dry_run)
        table = self._new_name(name, namespace=not dry_run)
        place = place_of(source)
        store = self._beside(place)
        found = self._settled(table, table_at(place, store), store)
        told, at = upgrade_elsewhere(
            str(table), found, place, store, keeper=self.keeper, dry_run=dry_run
        )
        if not dry_run:
            self.catalog.create(table, at)
        return told

    def downgrade_table(self, name: str, *, dry_run: bool = False) -> Downgraded:
        """Make a table of v4 one of v3, in place; with `dry_run` only tell what comes of it.

        Rows, row ids and sequence numbers stay as they are, of the snapshots that branches and tags
        point to; others are forgotten. Data files are shared, and no file is deleted.
        """
        return downgrade(self.table(name), dry_run=dry_run)

    def trial_table(
        self, name: str, source: str, *, location: str | None = None, dry_run: bool = False
    ) -> Table:
        """Make a table of v4 beside one of v1 to v3, to try it out and drop it again.

        The source is a table of the lake, a metadata file, or a folder with numbered ones; it stays
        as it is, and so do its files, whatever is done to the trial. Files are shared: what the
        source's own maintenance deletes, the trial lacks. With `dry_run` nothing is written, and
        what is returned is the table as it would be.
        """
        table = self._new_name(name, namespace=not dry_run)
        found, store = self._source(text(source, what="source"))
        self._settled(table, found, store)
        place = self._place(table, None if location is None else folder_of(location))
        kept = AsideStore(store) if dry_run else store
        return self._named(table, trial(found, place, kept, self.keeper), kept, dry_run=dry_run)

    def snapshot_table(
        self,
        name: str,
        source: str,
        *,
        schema: SchemaLike | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Table:
        """Make a table of a folder's files, which stay where they are and are never deleted.

        The source is a folder of Parquet files, in folders such as `country=DE` or not, or of a
        Delta table. What is done to it later, the table does not see; what is deleted there, it
        lacks. A `schema` says what the columns of Parquet files are, where files and folders do not
        tell it right. With `dry_run` every file is looked at and nothing is written: what is returned
        is the table as it would be.
        """
        table, place = self._new_name(name, namespace=not dry_run), place_of(source)
        at = self._place(table, None if location is None else folder_of(location))
        require_beside(at, place)
        store = self._beside(place)
        found = foreign_at(place, store, schema)
        require_none_inside(at, found.files)
        told = {**(properties or {}), **SHARING}
        return self._made(table, found, at, store, told, progress, dry_run=dry_run)

    def migrate_table(
        self,
        name: str,
        source: str,
        *,
        schema: SchemaLike | None = None,
        properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Table:
        """Make a folder of Parquet files, or of a Delta table, a table of the lake, where it is.

        Its files are the table's own from then on: whoever wrote to the folder before must not any
        more, nor clean it up. `dry_run` is as for `snapshot_table`.
        """
        table = self._new_name(name, namespace=not dry_run)
        place, at = place_of(source), folder_of(source)
        store = self._beside(place)
        found = foreign_at(place, store, schema)
        require_all_inside(at, found.files)
        return self._made(table, found, at, store, properties or {}, progress, dry_run=dry_run)

    # --- within ----------------------------------------------------------------------------

    def _new_name(self, name: str, *, namespace: bool = True) -> TableName:
        """Return a name that no table has, in a namespace that is there."""
        table = parse_name(name)
        if self._exists(table):
            raise AlreadyExists(f"table {table} exists: choose another name, or drop it")
        if namespace:
            # Told of before anything is written.
            with namespaces_told(table.namespace, self.catalog):
                self.catalog.namespace_properties(table.namespace)
        return table

    def _settled(self, table: TableName, found: Source, store: Store) -> Source:
        """Refuse a table that is not where its metadata says: its files are named in full."""
        if found.metadata.format_version < 4:
            state = State(
                name=table, metadata=found.metadata, metadata_location=found.metadata_location
            )
            settle(state, store)
        return found

    def _made(
        self,
        table: TableName,
        found: Contents,
        at: str,
        store: Store,
        properties: Mapping[str, str],
        progress: Progress | None,
        *,
        dry_run: bool,
    ) -> Table:
        kept = AsideStore(store) if dry_run else store
        made = make(table, found, at, kept, properties=properties, progress=progress)
        return self._named(table, made, kept, dry_run=dry_run)

    def _named(self, table: TableName, at: str, store: Store, *, dry_run: bool) -> Table:
        """Give a table its name; with `dry_run` return it without one, of files in memory."""
        if not dry_run:
            self.catalog.create(table, at)
            return self.table(str(table))
        metadata = read_metadata(store, at)
        state = State(name=table, metadata=metadata, metadata_location=at)
        files = TableFiles(
            store=store, location=metadata.location, ring=ring_of(metadata, self.keeper)
        )
        return Table(catalog=catalog_of(state), files=files, state=state)

    def _source(self, source: str) -> tuple[Source, Store]:
        """Return a table of Iceberg's by its name in the lake, or by its place."""
        if not is_place(source):
            table = self.table(source)
            state = table.state
            found = Source(metadata=state.metadata, metadata_location=state.metadata_location)
            return found, table.files.store
        place = place_of(source)
        store = self._beside(place)
        return table_at(place, store), store
