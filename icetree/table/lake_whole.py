"""The verbs of a lake for whole tables: rename, copy, back up and drop them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Literal, overload

from icetree.catalog.base import Catalog, TableName, parse_name
from icetree.errors import AlreadyExists, NotFound
from icetree.spec.spelled import spelled
from icetree.store.base import Store
from icetree.surroundings import new_uuid
from icetree.table.moving.source import folder_of
from icetree.table.nearest import instead_of, namespaces_told
from icetree.table.place import own_place
from icetree.table.progress import Progress

if TYPE_CHECKING:
    from icetree.table.maintain.copying import Copied
    from icetree.table.maintain.purge import Purged
    from icetree.table.table import Table


@spelled
class LakeWhole(ABC):
    """What a lake can do to tables as wholes; each verb has a `dry_run`."""

    if TYPE_CHECKING:
        catalog: Catalog
        store: Store

        def _require_free(self, name: TableName) -> None: ...

        def _missing(self, name: TableName, to: TableName) -> str: ...

    @abstractmethod
    def table(self, name: str) -> Table:
        """Return a table's handle, on its newest state."""

    @abstractmethod
    def _exists(self, table: TableName) -> bool:
        """Tell whether a table has this name."""

    @abstractmethod
    def _named_place(self, table: TableName) -> str:
        """Return the folder in the warehouse that has a table's name."""

    def rename_table(self, name: str, to: str, *, dry_run: bool = False) -> None:
        """Give a table another name; its files stay where they are.

        With `dry_run` nothing changes, but what would be refused is.
        """
        table, target = parse_name(name), parse_name(to)
        try:
            if dry_run:
                self.catalog.load(table)
                self.catalog.namespace_properties(target.namespace)
                self._require_free(target)
            else:
                self.catalog.rename(table, target)
        except NotFound as error:
            raise NotFound(f"{error}{self._missing(table, target)}") from None

    @overload
    def copy_table(
        self,
        name: str,
        to: str,
        *,
        location: str | None = ...,
        metadata_only: bool = ...,
        dry_run: Literal[False] = ...,
        progress: Progress | None = ...,
    ) -> Table: ...

    @overload
    def copy_table(
        self,
        name: str,
        to: str,
        *,
        location: str | None = ...,
        metadata_only: bool = ...,
        dry_run: Literal[True],
        progress: Progress | None = ...,
    ) -> Copied: ...

    def copy_table(
        self,
        name: str,
        to: str,
        *,
        location: str | None = None,
        metadata_only: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Table | Copied:
        """Copy a table with its history to another name, and return that: a table of its own.

        Writers may go on: the copy is the table as it is when the copy begins. Cut off, it goes on
        where it stopped when it is asked for again with the same location. With `dry_run` it tells
        how many files it would copy. With `metadata_only` data files are shared: the copy never
        deletes one of them, and lacks what the table's own maintenance deletes.
        """
        from icetree.table.maintain.copying import copy, is_begun, would_copy
        from icetree.table.moving.sharing import copy_metadata, would_copy_metadata

        source, target = self.table(name), parse_name(to)
        if self._exists(target):
            raise AlreadyExists(f"table {target} exists: choose another name, or drop it")
        if not dry_run:
            # Told of before anything is copied.
            with namespaces_told(target.namespace, self.catalog):
                self.catalog.namespace_properties(target.namespace)
        if location is not None:
            place = folder_of(location)
        elif metadata_only or not is_begun(source, self._named_place(target), self.store):
            place = own_place(self.store, self._named_place(target))
        else:
            place = self._named_place(target)
        if dry_run:
            would = would_copy_metadata if metadata_only else would_copy
            return would(source, place, self.store, progress=progress)
        do = copy_metadata if metadata_only else copy
        at = do(source, place, self.store, uuid=new_uuid(), progress=progress)
        self.catalog.create(target, at)
        return self.table(to)

    @overload
    def backup_table(
        self,
        name: str,
        location: str,
        *,
        dry_run: Literal[False] = ...,
        progress: Progress | None = ...,
    ) -> str: ...

    @overload
    def backup_table(
        self,
        name: str,
        location: str,
        *,
        dry_run: Literal[True],
        progress: Progress | None = ...,
    ) -> Copied: ...

    def backup_table(
        self,
        name: str,
        location: str,
        *,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> str | Copied:
        """Copy a table's files with its history elsewhere, and return where its metadata is there.

        Only what is not there yet is copied. `register_table` gives a backup a name again. With
        `dry_run` it tells how many files it would copy.
        """
        from icetree.table.maintain.copying import copy, would_copy

        table, place = self.table(name), folder_of(location)
        if dry_run:
            return would_copy(table, place, self.store, progress=progress)
        return copy(table, place, self.store, progress=progress)

    def drop_table(
        self,
        name: str,
        *,
        purge: bool = False,
        missing_ok: bool = False,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Purged | None:
        """Remove a table's name; its files stay where they are.

        With `purge` those in its own folder are deleted, of old snapshots too. Cut off, it is taken
        up again by registering the newest metadata file that is there, and dropping that. With
        `missing_ok`, a name that no table has is fine. With `dry_run` nothing changes, and it tells
        how many files would go.
        """
        table = parse_name(name)
        try:
            if purge:
                from icetree.table.maintain.purge import purge as drop_with_files

                return drop_with_files(self.table(name), dry_run=dry_run, progress=progress)
            if dry_run:
                self.catalog.load(table)
            else:
                self.catalog.drop(table)
        except NotFound as error:
            # A table whose metadata is missing is there all the same.
            if self._exists(table):
                raise
            if not missing_ok:
                # Whoever looked at the files has told already.
                hint = "" if purge else instead_of(table, self.catalog)
                raise NotFound(f"{error}{hint}") from None
        return None
