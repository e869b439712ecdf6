"""Tables: list them, tell whether one is there, and show one."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from icetree.codec import metadata as metadata_codec
from icetree.errors import InvalidInput
from icetree.serve.call import Call
from icetree.serve.pages import page
from icetree.serve.request import NOTHING, Answer
from icetree.table.table import Table


def list_tables(call: Call) -> Answer:
    """Tell the tables of a namespace."""
    found = call.lake.catalog.tables(call.namespace)
    shown, following = page([each.name for each in found], call.request.query)
    return Answer(
        document={
            "identifiers": [{"namespace": call.namespace, "name": each} for each in shown],
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
    known = {each.strip() for each in call.request.headers.get("if-none-match", "").split(",")}
    tag = etag(call.lake.catalog.load(call.table_name), snapshots)
    if known & {tag, "*"}:
        return Answer(status=304, headers={"etag": tag})
    return shown(call, call.table(), snapshots=snapshots)


def shown(call: Call, table: Table, *, snapshots: str = "all") -> Answer:
    """Return a table as an answer: its metadata as older readers know it, and how to reach it."""
    del call
    return Answer(
        document={
            "metadata-location": table.state.metadata_location,
            "metadata": metadata_of(table, snapshots=snapshots),
            "config": {},
        },
        headers={"etag": etag(table.state.metadata_location, snapshots)},
    )


def metadata_of(table: Table, *, snapshots: str = "all") -> Any:
    """Return a table's metadata as clients are shown it."""
    del snapshots
    return msgspec.Raw(metadata_codec.encode(table.metadata, compress=False))


def etag(metadata_location: str, snapshots: str) -> str:
    """Return what tells a version of a table, as it is shown, from all others."""
    told = hashlib.sha256(f"{snapshots} {metadata_location}".encode()).hexdigest()
    return f'"{told[:32]}"'
