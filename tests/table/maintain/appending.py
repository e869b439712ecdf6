"""A writer in a process of its own: appends and deletes rows of its own, and tells which are left."""

from __future__ import annotations

import json
import sys

import pyarrow as pa

import icetree
from icetree.errors import CommitConflict
from icetree.table.table import Table


def write(folder: str, first: int, commits: int) -> list[int]:
    """Append two rows a commit and delete one of them with the next; return those that are left."""
    left: list[int] = []
    with icetree.connect(f"sqlite:///{folder}/c.db", warehouse=f"{folder}/lake") as lake:
        table = lake.table("db.t")
        for number in range(commits):
            ids = [first + 2 * number, first + 2 * number + 1]
            table.append(pa.table({"id": pa.array(ids, pa.int64())}))
            _delete(table, ids[0])
            left.append(ids[1])
    return left


def _delete(table: Table, id: int) -> None:
    """Delete a row, again and again while others change the same files, or expire what it saw."""
    for _ in range(50):
        try:
            table.refresh().delete(f"id = {id}")
        except CommitConflict:
            continue
        return
    raise AssertionError(f"row {id} could not be deleted")


if __name__ == "__main__":
    folder, first, commits = sys.argv[1:]
    print(json.dumps(write(folder, int(first), int(commits))))  # noqa: T201
