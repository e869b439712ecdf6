"""Commits to several tables that are seen together: one swap of all heads, in one catalog."""

from __future__ import annotations

from icetree.catalog.base import TableName
from icetree.errors import InvalidInput
from icetree.serve.call import Call
from icetree.serve.commit.commit import (
    Commit,
    anew,
    check_size,
    land_all,
    made_before,
    unless_made,
)
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.request import NOTHING, Answer

#: How many tables a transaction may change.
_MOST = 100


class CommitTransaction(Body, frozen=True, kw_only=True):
    """Commits to several tables."""

    table_changes: list[Commit]


_read = reads(CommitTransaction)


def commit_transaction(call: Call) -> Answer:
    """Change several tables at once, or none of them."""
    asked = _read(call.request.body).table_changes
    names = [_named(each) for each in asked]
    if len(set(names)) < len(names):
        raise InvalidInput("a transaction names each table once")
    if not 0 < len(names) <= _MOST:
        raise InvalidInput(f"a transaction changes between one and {_MOST} tables")
    for name, each in zip(names, asked, strict=True):
        call.require_write(name.namespace)
        check_size(each)
    changes = [*zip(names, asked, strict=True)]
    if not made_before(call, changes):
        unless_made(call, changes, lambda: anew(lambda: land_all(call, changes)))
    return NOTHING


def _named(asked: Commit) -> TableName:
    if asked.identifier is None:
        raise InvalidInput("every change of a transaction names its table: send an identifier")
    return asked.identifier.table
