"""What a commit is told beside its changes: branch, key, summary and isolation, each checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from typing_extensions import TypedDict

from icetree.errors import InvalidInput, NotFound
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import MAIN
from icetree.spec.properties.names import ISOLATION
from icetree.spec.texts import did_you_mean, storable, text
from icetree.table.commit.validate import KEY
from icetree.tree.conflict.conflict import Isolation
from icetree.tree.grow.cherry_pick import REPLACE_PARTITIONS, SOURCE_SNAPSHOT
from icetree.tree.summary import OWN_NAMES

#: Iceberg's summary key of what was staged and is published.
PUBLISHED_WAP_ID: Final = "published-wap-id"
#: What icetree notes in summaries, and reads there again.
_TAKEN: Final = OWN_NAMES | {KEY, REPLACE_PARTITIONS, SOURCE_SNAPSHOT, PUBLISHED_WAP_ID}


class CommitOptions(TypedDict, total=False):
    """What every commit may be told beside its changes; `Table.transaction` says what each means.

    A branch that is None is none: the snapshot is staged, to be published later.
    """

    branch: str | None
    isolation: Isolation | str
    key: str | None
    summary: Mapping[str, str] | None
    create_branch: bool


def isolated(how: CommitOptions, verb: str, properties: Mapping[str, str]) -> CommitOptions:
    """Return how to commit a statement: what is a conflict, the table's properties may say."""
    level = properties.get(ISOLATION.format(verb))
    return how if level is None else {"isolation": level.lower(), **how}


def branch_of(branch: Any, metadata: TableMetadata, *, create: bool) -> str | None:
    """Return a branch, None to stage; a tag is refused, and a branch to be made unless told so."""
    if branch is None:
        return None
    name = text(branch, what="branch")
    ref = metadata.refs.get(name)
    if ref is not None and ref.type != "branch":
        raise InvalidInput(f"{name!r} is a tag: commit to a branch, tags never move")
    if ref is None and not create and name != MAIN:
        raise NotFound(
            f"there is no branch {name!r}: make it with create_branch, or commit with "
            f"create_branch=True{did_you_mean(name, metadata.refs)}"
        )
    return name


def key_of(key: Any) -> str | None:
    """Return the key of a commit, None for none."""
    return None if key is None else text(key, what="key")


def summary_of(given: Any) -> dict[str, str]:
    """Return what a caller adds to a snapshot's summary; names that mean something are refused."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidInput(f"summary={given!r}: give a mapping of names to texts")
    for name, value in given.items():
        if not (isinstance(name, str) and isinstance(value, str)):
            raise InvalidInput(f"summary has texts only, not {name!r}: {value!r}")
        if name in _TAKEN:
            raise InvalidInput(f"{name!r} in a summary is icetree's own: choose another name")
        storable(name, what="a name in the summary")
        storable(value, what=f"{name} in the summary")
    return dict(given)


def of_clients(summary: Mapping[str, str]) -> dict[str, str]:
    """Return what of a client's own summary a snapshot is to say: not what icetree counts itself."""
    return {name: value for name, value in summary.items() if name not in _TAKEN}


def isolation_of(isolation: Isolation | str) -> Isolation:
    """Return an isolation level, by its name or itself."""
    try:
        return Isolation(isolation)
    except ValueError:
        known = " or ".join(repr(each.value) for each in Isolation)
        raise InvalidInput(f"{isolation!r} is no isolation level: use {known}") from None
