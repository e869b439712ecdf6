"""Where the catalog is: arguments, environment variables and `.pyiceberg.yaml`, as in PyIceberg."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

from icetree.catalog.base import Catalog
from icetree.catalog.memory import MemoryCatalog
from icetree.catalog.patience import CONNECT_TIMEOUT_S, REQUEST_TIMEOUT_S
from icetree.catalog.sql_layout import LAYOUT_PROPERTIES
from icetree.errors import InvalidInput, NotFound, Unsupported
from icetree.spec.properties.values import seconds

#: The properties that say which catalog is meant, and where its tables are.
WHICH: Final = frozenset({"name", "uri", "warehouse"})
CONNECT_TIMEOUT: Final = "catalog.connect-timeout"
REQUEST_TIMEOUT: Final = "catalog.request-timeout"
#: Every property of a connection that a catalog reads.
CATALOG_PROPERTIES: Final = frozenset(
    {CONNECT_TIMEOUT, REQUEST_TIMEOUT, "type", "py-catalog-impl"} | LAYOUT_PROPERTIES
)
_POSTGRES = re.compile(r"(?:postgresql|postgres)(?:\+\w+)?://")
_SQLITE = re.compile(r"sqlite(?:\+\w+)?://")
#: What may be the name of a catalog, and is no address or list of options by mistake.
_NAME = re.compile(r"[^:@=/?]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A catalog's name, address, the place of its tables, and everything else about it.

    The name is also the one under which its rows are kept, so it decides what is seen. Address
    and properties may hold secrets and stay out of the text form.
    """

    name: str
    uri: str = field(repr=False)
    warehouse: str | None
    properties: Mapping[str, str] = field(repr=False)
    #: The names of the properties that were given here and now, not found in a configuration that
    #: other clients share.
    given: frozenset[str] = frozenset()


def resolve(uri_or_name: str | None, properties: Mapping[str, Any]) -> Config:
    """Find out which catalog is meant, from an address, a configured name, or nothing at all.

    Without either it is the `default-catalog`, or else the one named `default`. Arguments win
    over `PYICEBERG_CATALOG__<NAME>__…` variables, and those over the first `.pyiceberg.yaml` in
    `PYICEBERG_HOME`, the home folder and the current one. An address takes its name from the
    property `name`, and what is configured for that name, unless that is for another address.
    """
    if not isinstance(uri_or_name, str | None):
        # What was given is not shown here, nor anywhere below: an address may hold a password.
        raise InvalidInput(
            f"{type(uri_or_name).__name__} is no kind of catalog: give an address, such as "
            "sqlite:///catalog.db, or the name of a configured one"
        )
    given = dict(_flat(properties))
    configured = _configured()
    name = given.pop("name", None)
    is_uri = uri_or_name is not None and "://" in uri_or_name
    if uri_or_name is not None and not is_uri:
        if not _NAME.fullmatch(uri_or_name):
            raise InvalidInput(
                "that is neither a catalog's address, such as sqlite:///catalog.db or "
                "postgresql://user:password@host/database, nor the name of a configured one"
            )
        name = uri_or_name
    try:
        name = name or configured.get_default_catalog_name()
        found = dict(_flat(configured.get_catalog_config(name) or {}))
    except ValueError as error:
        raise InvalidInput(f"PyIceberg's configuration cannot be used: {error}") from error
    if is_uri:
        if found.get("uri", uri_or_name) != uri_or_name:
            found = {}
        given["uri"] = str(uri_or_name)
    merged = {**found, **given}
    uri = merged.pop("uri", None)
    if not uri:
        known = ", ".join(configured.get_known_catalogs()) or "none"
        raise NotFound(
            f"no address is known for the catalog {name!r} (configured: {known}): give one, such "
            f"as sqlite:///catalog.db, or set PYICEBERG_CATALOG__{name.upper()}__URI"
        )
    warehouse = merged.pop("warehouse", None)
    here = frozenset(given.keys() & merged.keys())
    return Config(name=name, uri=uri, warehouse=warehouse, properties=merged, given=here)


def open_catalog(config: Config) -> Catalog:
    """Connect to a catalog; InvalidInput, Unsupported, Unavailable."""
    kind = config.properties.get("type", "sql")
    if kind not in ("sql", "in-memory") or "py-catalog-impl" in config.properties:
        raise Unsupported(f"catalog {config.name!r} is of type {kind}: icetree knows only sql")
    if _POSTGRES.match(config.uri):
        return _open_postgres(config)
    if _SQLITE.match(config.uri):
        return _open_sqlite(config)
    if config.uri == "memory://":
        return MemoryCatalog(config.name)
    scheme = re.match(r"[\w+.-]*", config.uri)
    raise Unsupported(
        f"{scheme[0] if scheme else ''}:// is no catalog that icetree knows: sqlite:///… and postgresql://… are"
    )


def _open_postgres(config: Config) -> Catalog:
    try:
        from icetree.catalog.postgres import PostgresDatabase
    except ImportError as error:
        raise Unsupported(
            f"PostgreSQL catalogs need psycopg: install icetree[postgres] ({error})"
        ) from error
    from icetree.catalog.sql import SqlCatalog

    # The driver named in an address is SQLAlchemy's business; libpq knows none.
    database = PostgresDatabase(
        _POSTGRES.sub("postgresql://", config.uri, count=1),
        connect_timeout_s=seconds(config.properties, CONNECT_TIMEOUT, default=CONNECT_TIMEOUT_S),
        request_timeout_s=_request_timeout_s(config),
    )
    return _opened(SqlCatalog, config, database)


def _open_sqlite(config: Config) -> Catalog:
    from icetree.catalog.sql import SqlCatalog
    from icetree.catalog.sqlite import SqliteDatabase

    path = database_file(config)
    if path is None:
        return MemoryCatalog(config.name)
    _, _, query = config.uri.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    timeout_s = seconds(options, "timeout", default=_request_timeout_s(config))
    if options.keys() - {"timeout"}:
        raise InvalidInput("the one option of a SQLite address is timeout, in seconds")
    return _opened(SqlCatalog, config, SqliteDatabase(path, timeout_s=timeout_s))


def _request_timeout_s(config: Config) -> float:
    return seconds(config.properties, REQUEST_TIMEOUT, default=REQUEST_TIMEOUT_S)


def database_file(config: Config) -> Path | None:
    """Return the file of a SQLite catalog, which may not be there yet; None for any other."""
    if not _SQLITE.match(config.uri):
        return None
    path = _SQLITE.sub("", config.uri, count=1).partition("?")[0]
    if path in ("", "/", "/:memory:"):
        return None
    if not path.startswith("/"):
        raise InvalidInput("write sqlite:///relative.db or sqlite:////absolute.db: three slashes")
    return Path(path[1:])


def _opened(catalog: Any, config: Config, database: Any) -> Catalog:
    try:
        opened: Catalog = catalog(config.name, database, config.properties)
    except BaseException:
        database.close()
        raise
    return opened


def _configured() -> Any:
    # Late: PyIceberg takes long to import.
    from pyiceberg.utils.config import Config as PyIcebergConfig
    from strictyaml import YAMLError  # type: ignore[import-untyped]

    try:
        return PyIcebergConfig()
    except YAMLError as error:
        # The error's own words quote the file, secrets and all: where it is must do.
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f", near line {line + 1}"
        raise InvalidInput(
            f"PyIceberg's configuration is no YAML of the strict kind{where}: see .pyiceberg.yaml"
        ) from None
    except (ValueError, OSError) as error:
        raise InvalidInput(f"PyIceberg's configuration cannot be read: {error}") from error


def _flat(properties: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield properties as strings, nested ones under dotted names."""
    for key, value in properties.items():
        if not isinstance(key, str):
            raise InvalidInput(f"{key!r} is no property of a connection: names are texts")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        elif isinstance(value, bool):
            yield prefix + key, str(value).lower()
        elif value is not None:
            yield prefix + key, str(value)
