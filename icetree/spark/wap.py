"""Write, audit, publish: a session may say that rows go to a branch, or are staged, to be looked at.

As Iceberg has it: `spark.wap.branch` names a branch, which the first write makes, and which reads
are of once it is there. `spark.wap.id` has each write leave a snapshot that no branch knows of until
somebody publishes it. Both count for tables with `write.wap.enabled` alone.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession
from typing_extensions import Unpack

from icetree.errors import InvalidInput
from icetree.spec.metadata.snapshot import MAIN
from icetree.spec.properties.names import WAP_ENABLED
from icetree.spec.properties.values import flag
from icetree.table.commit.options import CommitOptions
from icetree.table.evolve.refs import WAP_ID
from icetree.table.table import Table
from icetree.table.transaction import Transaction

BRANCH: Final = "spark.wap.branch"
ID: Final = "spark.wap.id"


def branch_to_read(spark: SparkSession, table: Table, branch: str | None = None) -> str | None:
    """Return the branch to read where nobody asks for a version, or `branch` is; None for main."""
    if branch is not None:
        # One that is not there yet starts where the table is.
        return branch if branch != MAIN and branch in table.refs else None
    chosen = _setting(spark, table, BRANCH)
    return chosen if chosen in table.refs else None


def begin(
    spark: SparkSession,
    table: Table,
    **how: Unpack[CommitOptions],
) -> Transaction:
    """Start a transaction on a branch, or else where the session says that writes go."""
    return table.transaction(**settled(spark, table, how))


def settled(spark: SparkSession, table: Table, how: CommitOptions) -> CommitOptions:
    """Return how to commit, on a branch or else where the session says that writes go."""
    chosen, id = audited(spark, table)
    if (chosen or id) and "branch" in how:
        word = f"{BRANCH}={chosen}" if chosen else f"{ID}={id}"
        raise InvalidInput(
            f"table {table.name}: the write is for branch {how['branch']!r}, but the session has {word}: "
            "leave out one of them"
        )
    if chosen:
        return {**how, "branch": chosen, "create_branch": True}
    if id:
        return {**how, "branch": None, "summary": {**(how.get("summary") or {}), WAP_ID: id}}
    return how


def audited(spark: SparkSession, table: Table) -> tuple[str | None, str | None]:
    """Return the branch or the id under which a session's writes to the table are to be audited."""
    chosen, id = (_setting(spark, table, name) for name in (BRANCH, ID))
    if chosen and id:
        raise InvalidInput(
            f"table {table.name}: the session has {BRANCH}={chosen} and {ID}={id}: unset one of them, "
            "rows go to a branch or are staged"
        )
    return chosen, id


def require_unaudited(spark: SparkSession, table: Table, *, verb: str) -> None:
    """Refuse what is for everybody to see at once."""
    chosen, id = audited(spark, table)
    if chosen or id:
        name = BRANCH if chosen else ID
        raise InvalidInput(
            f"table {table.name} {verb}: unset {name}, or {WAP_ENABLED} of the table"
        )


def _setting(spark: SparkSession, table: Table, name: str) -> str | None:
    enabled = flag(table.properties, WAP_ENABLED, default=False)
    return (spark.conf.get(name, None) or None) if enabled else None
