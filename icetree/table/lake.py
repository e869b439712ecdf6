"""The front door: a catalog, a store and a warehouse, and the tables in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Final

from typing_extensions import Self, override

from icetree.catalog.base import (
    Catalog,
    TableName,
    every_table,
    parse_name,
    parse_namespace,
    parse_view_name,
)
from icetree.catalog.config import CATALOG_PROPERTIES, WHICH, Config, open_catalog, resolve
from icetree.errors import AlreadyExists, InvalidInput, NotFound
from icetree.files.cache import DEFAULT_LIMIT_BYTES, Cache
from icetree.files.table_files import TableFiles, read_metadata
from icetree.keys.base import Keeper
from icetree.keys.open import KEY_PROPERTIES, open_keeper
from icetree.keys.ring import ring_of
from icetree.spec.edit.create import table_metadata
from icetree.spec.edit.new_columns import SchemaLike
from icetree.spec.location import absolute, scheme_of
from icetree.spec.metadata.encryption import KEY_PROPERTY, is_encrypted
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.properties.values import whole_number
from icetree.spec.spelled import spelled
from icetree.spec.texts import did_you_mean, text
from icetree.store.base import Store
from icetree.store.open import KINDS, STORE_PROPERTIES, EveryStore, check_store_properties
from icetree.store.places import local_folder
from icetree.surroundings import new_uuid, now_ms
from icetree.table.arguments import texts
from icetree.table.commit.attempt import metadata_file
from icetree.table.lake_rows import LakeRows
from icetree.table.lake_whole import LakeWhole
from icetree.table.moving.moving import LakeMoving
from icetree.table.moving.pointing import point, pointed
from icetree.table.naming import discard, give_name
from icetree.table.nearest import instead_of, namespaces_told
from icetree.table.place import own_place
from icetree.table.properties import check_properties
from icetree.table.state import State, read_newest
from icetree.table.table import Table
from icetree.table.views.lake_views import LakeViews

#: How many bytes of manifests a connection keeps at most.
CACHE_BYTES: Final = "io.manifest.cache.max-total-bytes"
#: The kinds of store that any table may name files in, beside the one that it lies in.
STORES: Final = "io.stores"

#: Every property that a connection may be given.
CONNECTION_PROPERTIES: Final = (
    CATALOG_PROPERTIES | STORE_PROPERTIES | KEY_PROPERTIES | {CACHE_BYTES, STORES}
)


@spelled
class Lake(LakeRows, LakeMoving, LakeViews, LakeWhole):
    """A catalog with the stores its tables live in; `icetree.connect` makes one.

    A table may be anywhere; its files are in the kind of store that it is in, or in `stores`.
    """

    def __init__(
        self,
        *,
        catalog: Catalog,
        store: Store,
        warehouse: str | None = None,
        cache: Cache | None = None,
        stores: Iterable[str] = (),
        keeper: Keeper | None = None,
    ) -> None:
        self.catalog = catalog
        self.store = store
        self.warehouse = warehouse.rstrip("/") if warehouse else None
        #: Kinds of store that any table may name files in.
        self.stores = frozenset(stores)
        #: Who keeps the keys of encrypted tables.
        self.keeper = keeper
        #: Tables share the limit of what is kept of manifests.
        self.manifests = Cache() if cache is None else cache

    def __repr__(self) -> str:
        place = f", warehouse={self.warehouse!r}" if self.warehouse else ""
        return f"{type(self).__name__}({self.catalog.name!r}{place})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the catalog's connections."""
        self.catalog.close()

    # --- namespaces ------------------------------------------------------------------------

    def namespaces(self, parent: str = "") -> list[str]:
        """Return the namespaces below another, or the outermost ones."""
        above = parse_namespace(parent) if parent else ()
        with namespaces_told(above, self.catalog):
            return [".".join(each) for each in self.catalog.namespaces(above)]

    def create_namespace(
        self, name: str, properties: Mapping[str, str] | None = None, *, exist_ok: bool = False
    ) -> None:
        """Make a namespace."""
        try:
            self.catalog.create_namespace(parse_namespace(name), properties or {})
        except AlreadyExists:
            if not exist_ok:
                raise

    def namespace_properties(self, name: str) -> dict[str, str]:
        """Return a namespace's properties."""
        namespace = parse_namespace(name)
        with namespaces_told(namespace, self.catalog):
            return self.catalog.namespace_properties(namespace)

    def update_namespace(
        self, name: str, properties: Mapping[str, str] | None = None, remove: Iterable[str] = ()
    ) -> None:
        """Set and remove properties of a namespace in one step."""
        namespace, gone = parse_namespace(name), frozenset(texts(remove, what="remove"))
        with namespaces_told(namespace, self.catalog):
            self.catalog.update_namespace(namespace, put=properties or {}, remove=gone)

    def drop_namespace(self, name: str) -> None:
        """Remove an empty namespace."""
        namespace = parse_namespace(name)
        with namespaces_told(namespace, self.catalog):
            self.catalog.drop_namespace(namespace)

    # --- tables ----------------------------------------------------------------------------

    def tables(self, namespace: str | None = None) -> list[str]:
        """Return the full names of the tables in a namespace; without one, of all tables."""
        if namespace is not None:
            inside = parse_namespace(namespace)
            with namespaces_told(inside, self.catalog):
                return [str(each) for each in self.catalog.tables(inside)]
        return [str(each) for each in every_table(self.catalog)]

    def create_table(
        self,
        name: str,
        schema: SchemaLike,
        *,
        partition_by: Iterable[str] | str = (),
        order_by: Iterable[str] | str = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        exist_ok: bool = False,
    ) -> Table:
        """Make an empty table; with `exist_ok`, one that has the name already is fine as it is.

        `schema` is a PyIceberg or Arrow schema, names with types, or text; `partition_by` and `order_by` take transforms
        as text: `day(ts)`, `bucket(16, id)`, `country`, one or a list of them.
        """
        table = parse_name(name)
        metadata = table_metadata(
            schema,
            location=self._place(table, location),
            partition_by=texts(partition_by, what="partition_by"),
            order_by=texts(order_by, what="order_by"),
            properties=properties or {},
            at_ms=now_ms(),
            uuid=new_uuid(),
        )
        check_properties(metadata.properties, metadata)
        try:
            self._require_free(table)
            made = self.stage_table(name, metadata)
            give_name(self.catalog, table, made.state.metadata_location, self.store)
        except AlreadyExists:
            # Also when it came to be a moment ago.
            if exist_ok and self._exists(table):
                return self.table(name)
            raise
        return made

    def stage_table(self, name: str, metadata: TableMetadata) -> Table:
        """Write the first metadata of a table to be, and return its handle; no catalog has it yet."""
        if is_encrypted(metadata):
            ring_of(metadata, self.keeper).require(metadata.properties[KEY_PROPERTY])
        first = metadata_file(metadata, after=None)
        at = absolute(first.location, metadata.location)
        try:
            self.store.write_new(at, first.content)
        except BaseException:
            # Nothing names it, whatever became of writing it.
            discard(self.store, at)
            raise
        return self._table(State(name=parse_name(name), metadata=metadata, metadata_location=at))

    @override
    def table(self, name: str) -> Table:
        """Return a table's handle, on its newest state."""
        table = parse_name(name)

        def load() -> str:
            try:
                return self.catalog.load(table)
            except NotFound as error:
                raise NotFound(f"{error}{instead_of(table, self.catalog)}") from None

        found = read_newest(load, self._beside)
        assert found is not None  # nothing is known before
        metadata, at = found
        return self._table(State(name=table, metadata=metadata, metadata_location=at))

    def table_exists(self, name: str) -> bool:
        """Tell whether a table has this name."""
        return self._exists(parse_name(name))

    def register_table(
        self, name: str, metadata_location: str, *, overwrite: bool = False, dry_run: bool = False
    ) -> Table:
        """Give a name to a table that is there already, by its newest metadata file.

        The table's location becomes the folder that holds its `metadata` folder, so a table
        that was copied elsewhere is registered where it now is. With `overwrite` a name that stands
        for a table stands for this one from then on, be it the same as it was before or another;
        no file goes. Of the same table in another state new metadata is written, so that no id is
        given to a second column. With `dry_run` nothing is written, and what is returned is the table
        as it would be.
        """
        from icetree.table.movable import settle

        table, metadata_location = (
            parse_name(name),
            text(metadata_location, what="metadata_location"),
        )
        store = self._beside(metadata_location)
        state = settle(
            State(
                name=table,
                metadata=read_metadata(store, metadata_location),
                metadata_location=metadata_location,
            ),
            store,
            self.keeper,
            dry_run=dry_run,
        )
        if overwrite and dry_run:
            self._require_none(parse_view_name(name))
            state = pointed(self.catalog, state, self._beside)
        elif overwrite:
            state = point(self.catalog, state, self._beside)
        elif dry_run:
            self._require_free(table)
        else:
            with namespaces_told(table.namespace, self.catalog):
                self.catalog.create(table, state.metadata_location)
        return self._table(state)

    # --- within ----------------------------------------------------------------------------

    def _table(self, state: State) -> Table:
        # Where the catalog says that the table is, whatever its metadata says of other places.
        store = self._beside(state.metadata_location)
        metadata = state.metadata
        cache = self.manifests.of(metadata.table_uuid)
        ring = ring_of(metadata, self.keeper)
        files = TableFiles(store=store, location=metadata.location, cache=cache, ring=ring)
        return Table(catalog=self.catalog, files=files, state=state)

    @override
    def _beside(self, location: str) -> Store:
        """Return the stores that a table at a location may name files in."""
        if isinstance(self.store, EveryStore):
            return self.store.beside(location, self.stores)
        return self.store

    @override
    def _exists(self, table: TableName) -> bool:
        return self._has(table)

    @override
    def _place(self, table: TableName, location: str | None) -> str:
        if location:
            return text(location, what="location").rstrip("/")
        return own_place(self.store, self._named_place(table))

    @override
    def _named_place(self, table: TableName) -> str:
        if self.warehouse is None:
            raise InvalidInput(
                f"no place for table {table}: give the table a location, or the connection a warehouse"
            )
        return "/".join((self.warehouse, *table.namespace, table.name))


def open_lake(uri: str | None, properties: Mapping[str, Any]) -> Lake:
    """Open what an address or a configured name stands for; see `icetree.connect`.

    A property that is given here and means nothing is refused; one of a configuration may be
    another client's.
    """
    config = resolve(uri, properties)
    _check_given(config)
    warehouse = config.warehouse
    if warehouse is not None and not scheme_of(warehouse):
        warehouse = local_folder(warehouse)
    store = EveryStore(config.properties)
    if warehouse is not None:
        store.prepare(warehouse)
    cache_bytes = whole_number(config.properties, CACHE_BYTES, default=DEFAULT_LIMIT_BYTES, least=0)
    return Lake(
        catalog=open_catalog(config),
        store=store,
        warehouse=warehouse,
        cache=Cache(cache_bytes),
        stores=_stores(config.properties),
        keeper=open_keeper(config.properties),
    )


def connection_properties(
    warehouse: str | None, properties: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return all that a connection was given by name, as properties."""
    if properties is not None and not isinstance(properties, Mapping):
        raise InvalidInput(f"properties={properties!r}: give a mapping of names to values")
    given = dict(properties or {})
    return given if warehouse is None else {**given, "warehouse": warehouse}


def _check_given(config: Config) -> None:
    for name in sorted(config.given - CONNECTION_PROPERTIES):
        hint = (
            did_you_mean(name, WHICH | CONNECTION_PROPERTIES)
            or "; docs/connecting.md lists them all"
        )
        raise InvalidInput(f"{name!r} is no property of a connection{hint}")
    check_store_properties(config.properties, config.given)


def _stores(properties: Mapping[str, str]) -> frozenset[str]:
    named = [each.strip() for each in properties.get(STORES, "").split(",")]
    for each in filter(None, named):
        if each not in KINDS:
            raise InvalidInput(
                f"{STORES} has {each!r}: give kinds of store, with commas between: "
                f"{', '.join(KINDS)}{did_you_mean(each, KINDS)}"
            )
    return frozenset(filter(None, named))
