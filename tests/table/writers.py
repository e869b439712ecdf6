"""Writers that run as processes of their own, against one table."""

from __future__ import annotations

import json
import multiprocessing
import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import icetree
from icetree.errors import CommitConflict
from icetree.spec.entry.entry import Content, Entry, is_content, is_data_dv
from icetree.table.table import Table
from icetree.tree.live import live_files


def run_all(work: Callable[..., None], arguments: Sequence[tuple[object, ...]]) -> None:
    """Run the function in a process for each set of arguments; all must end well."""
    # Spawned, not forked: threads of Arrow and the catalog do not survive a fork.
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=work, args=each) for each in arguments]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=300)
    for process in processes:
        if process.is_alive():
            process.kill()
    assert [process.exitcode for process in processes] == [0] * len(processes)


def data_file(name: str, rows: int = 10) -> Entry:
    return Entry(location=f"data/{name}.parquet", record_count=rows, file_size_in_bytes=1000)


def data_vector(name: str, of: str) -> Entry:
    return Entry(
        content_type=Content.POSITION_DELETES,
        location=f"data/{name}.puffin",
        file_format="puffin",
        file_size_in_bytes=100,
        dv_offset=4,
        dv_size_in_bytes=40,
        record_count=1,
        referenced_file=of,
    )


def append_many(uri: str, warehouse: str, writer: int, count: int) -> None:
    """Append files one commit at a time, with the retries a table has by default."""
    with icetree.connect(uri, warehouse=warehouse) as lake:
        table = lake.table("db.t")
        for number in range(count):
            table.append_files([data_file(f"{writer}-{number}")])


def mix(uri: str, warehouse: str, writer: int, count: int, log: str) -> None:
    """Commit random changes; write down what each commit that landed meant to do."""
    choose = random.Random(writer)
    with icetree.connect(uri, warehouse=warehouse) as lake, Path(log).open("w") as journal:
        table = lake.table("db.t")
        for number in range(count):
            try:
                entry = _one_change(table.refresh(), choose, f"{writer}-{number}")
            except CommitConflict:
                continue
            if entry is not None:
                journal.write(json.dumps(entry) + "\n")


def _one_change(table: Table, choose: random.Random, name: str) -> dict[str, object] | None:
    shape = table.metadata.shape()
    root = table.files.root(table.metadata.current_snapshot(), shape)
    files = live_files(root, table.files.reader(shape))
    data = files["location"].filter(is_content(files, Content.DATA)).to_pylist()
    held = set(files["referenced_file"].filter(is_data_dv(files)).to_pylist())
    kind = choose.choice(["append", "append", "row delta", "delete", "rewrite"])
    if kind == "append" or len(data) < 4:
        done = table.append_files([data_file(name)])
        added, removed = [f"data/{name}.parquet"], []
    elif kind == "row delta":
        target = choose.choice(data)
        done = table.row_delta([data_vector(name, target), data_file(name)])
        added = [f"data/{name}.parquet", f"dv {target}"]
        removed = [f"dv {target}"] if target in held else []
    elif kind == "delete":
        target = choose.choice(data)
        done = table.delete_files([target])
        added, removed = [], [target, *([f"dv {target}"] if target in held else [])]
    else:
        targets = choose.sample(data, 2)
        done = table.rewrite(targets, [data_file(name, rows=20)])
        added = [f"data/{name}.parquet"]
        removed = [*targets, *(f"dv {target}" for target in targets if target in held)]
    assert done.snapshot is not None
    snapshot = done.snapshot.snapshot_id
    change = {"kind": kind, "added": sorted(added), "removed": sorted(removed)}
    return {"snapshot": snapshot, **change}


if __name__ == "__main__":
    append_many(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
