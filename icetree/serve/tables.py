"""Tables: list them, tell whether one is there, show one, give it another name, drop it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeVar
from urllib.parse import quote

from icetree.catalog.base import TableName, ViewName
from icetree.errors import CommitUnknown, IcetreeError, InvalidInput, NotFound, Unsupported
from icetree.serve.call import Call
from icetree.serve.config import PLANNED_HERE
from icetree.serve.files.delegation import delegated, delegation_tag
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.names import SEPARATOR, Identifier
from icetree.serve.protocol.pages import page
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import NOTHING, Answer
from icetree.serve.showing.showing import Shown, as_json
from icetree.serve.showing.stock import VERSION_HEADER, stock_of
from icetree.spec.metadata.encryption import is_encrypted
from icetree.spec.metadata.metadata import TableMetadata
from icetree.table.export.places import FORMAT_VERSIONS
from icetree.table.export.shown import shown as as_older
from icetree.table.table import Table

T = TypeVar("T")


class Rename(Body, frozen=True, kw_only=True):
    """A table's name and the one it is to have."""

    source: Identifier
    destination: Identifier


_rename = reads(Rename)


def list_tables(call: Call) -> Answer:
    """Tell the tables of a namespace."""
    return listing(call, call.lake.catalog.tables(call.namespace))


def listing(call: Call, found: Iterable[TableName | ViewName]) -> Answer:
    """Return names of a namespace, in pages to who pages."""
    listed, following = page([each.name for each in found], call.request.query)
    return Answer(
        document={
            "identifiers": [{"namespace": call.namespace, "name": each} for each in listed],
            "next-page-token": following,
        }
    )


def table_exists(call: Call) -> Answer:
    """Tell by the status whether a table is there."""
    call.lake.catalog.load(call.table_name)
    return NOTHING


def load_table(call: Call) -> Answer:
    """Show a table; a client that has it as it is need not read it again."""
    snapshots = call.request.query.get("snapshots", "all")
    if snapshots not in ("all", "refs"):
        raise InvalidInput(f"snapshots={snapshots[:20]!r}: ask for all or for refs")
    # The place of the newest metadata tells the version, and is a question to the catalog alone.
    tag = _etag(call, call.lake.catalog.load(call.table_name), snapshots)
    if call.request.has(tag):
        return Answer(status=304, headers={"etag": tag})
    return shown(call, call.table(), snapshots=snapshots)


def drop_table(call: Call) -> Answer:
    """Remove a table's name; its files too, where that is asked for."""
    purge = call.request.query.get("purgeRequested", "false").lower()
    if purge not in ("true", "false"):
        raise InvalidInput(f"purgeRequested={purge[:20]!r}: say true or false")
    call.lake.catalog.load(call.table_name)
    call.lake.drop_table(str(call.table_name), purge=purge == "true")
    return NOTHING


def rename_table(call: Call) -> Answer:
    """Give a table another name, in another namespace too."""
    asked = _rename(call.request.body)
    source, destination = asked.source.table, asked.destination.table
    for each in (source, destination):
        call.require_write(each.namespace)
    try:
        call.lake.catalog.load(source)
    except NotFound as error:
        raise Refused(404, "NoSuchTableException", str(error)) from None
    try:
        call.lake.catalog.namespace_properties(destination.namespace)
    except NotFound as error:
        raise Refused(404, "NoSuchNamespaceException", str(error)) from None
    call.lake.rename_table(str(source), str(destination))
    return NOTHING


def shown(
    call: Call,
    table: Table,
    *,
    snapshots: str = "all",
    landed: bool = False,
    together: bool = False,
) -> Answer:
    """Return a table as an answer: its metadata as older readers know it, and how to reach it.

    Who has `landed` a snapshot, `together` with others' or not, may be shown the table as it is later.
    """
    showing = call.serving.showing

    def show(version: int) -> Shown:
        if landed:
            return showing.show_landed(table, version, together=together)
        return showing.show(table, version, snapshots)

    seen = _in_first(call, show)
    return Answer(
        document={
            "metadata-location": seen.metadata_location,
            "metadata": seen.document,
            **_files(call, table),
        },
        headers={"etag": _etag(call, seen.metadata_location, snapshots)},
    )


def shown_after(
    call: Call,
    name: TableName,
    table: Table | None,
    *,
    landed: bool = False,
    together: bool = False,
) -> Answer:
    """Do `shown` for who has changed a table, or made it; where its handle cannot, as it is now.

    The change is there. Whoever were told of anything else than doubt would take it for refused, and
    delete the files that it brought.
    """
    try:
        if table is not None:
            with suppress(IcetreeError, Refused):
                return shown(call, table, landed=landed, together=together)
        return shown(call, call.table(name), landed=landed, together=together)
    except (IcetreeError, Refused) as error:
        raise CommitUnknown(
            f"table {name}: the change was made, and cannot be shown ({error}): load the table"
        ) from error


def shown_staged(call: Call, metadata: TableMetadata) -> Answer:
    """Return a table that is not made yet as an answer."""
    seen = _in_first(call, lambda version: as_older(metadata, format_version=version))
    return Answer(document={"metadata": as_json(seen), "config": {}})


def as_clients_see(metadata: TableMetadata) -> TableMetadata:
    """Return a table's metadata as its clients know it; ids are the same in every version."""
    return as_older(metadata)


def _files(call: Call, table: Table) -> dict[str, Any]:
    namespace = quote(SEPARATOR.join(table.name.namespace), safe="")
    path = f"namespaces/{namespace}/tables/{quote(table.name.name, safe='')}"
    told = delegated(call, path, table.state.metadata_location)
    if is_encrypted(table.metadata):
        # There are no manifests of it for who has no keys: whatever a client has set, it is planned here.
        told["config"] = {**told["config"], **PLANNED_HERE}
    return told


def require_version(call: Call) -> None:
    """Refuse a version that no table is shown in: for who is to be shown one, before it is changed."""
    _versions(call)


def _versions(call: Call) -> tuple[int, ...]:
    """Return the format versions that a client is shown a table in: the first that can be.

    PyIceberg reads v3 but writes none, so it is shown v2 where v2 can say all of a table.
    """
    asked = call.request.headers.get(VERSION_HEADER)
    if asked is None:
        return (3,) if stock_of(call.request.headers).writes_v3 else (2, 3)
    if asked not in map(str, FORMAT_VERSIONS):
        raise InvalidInput(f"{VERSION_HEADER}: {asked[:20]!r}: a table can be shown as v3 or v2")
    return (int(asked),)


def _in_first(call: Call, show: Callable[[int], T]) -> T:
    """Return a table in the first of the client's versions that it can be shown in; Unsupported."""
    *others, last = _versions(call)
    for version in others:
        with suppress(Unsupported):
            return show(version)
    return show(last)


def _etag(call: Call, metadata_location: str, snapshots: str) -> str:
    """Return what tells a version of a table, as it is shown, from all others."""
    told = f"{snapshots} {_versions(call)} {metadata_location} {delegation_tag(call)}"
    return f'"{hashlib.sha256(told.encode()).hexdigest()[:32]}"'
