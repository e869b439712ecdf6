"""Whatever a table calls its things: what an object, an error or a line of a log says of it is only seen."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icetree
from icetree.errors import CorruptTable, IcetreeError
from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.edit.sort import SortEdit
from icetree.table.table import Table
from icetree.visible import log_of
from tests.hostile_table import HOSTILE, NAME, acting, hostile_lake, hostile_table


def said_of(table: Table, folder: Path) -> Iterator[Any]:
    """Yield what a user may be given of a table, and print."""
    where = f"\"{NAME}\" = '{HOSTILE}'"
    lake = hostile_lake(folder)
    maintenance = table.maintenance
    # `table.schema` is a class of PyIceberg's, which prints itself.
    yield from (lake, table, table.current_snapshot, table.refs, table.spec)
    yield from (table.scan(where, columns=[NAME]), table.scan(where).plan(), table.explain(where))
    yield from (table.changes(), table.scan_appends(where=where), table.transaction())
    yield from (table.inspect, table.tree(), table.verify(), table.repair(), maintenance)
    yield from (SchemaEdit(table.metadata), SpecEdit(table.metadata), SortEdit(table.metadata))
    yield table.append(pa.table({NAME: [HOSTILE], "n": [1]}))
    yield table.set_properties({HOSTILE: "b"})
    yield maintenance.expire_snapshots(retain_last=1, dry_run=True)
    yield maintenance.remove_orphan_files(dry_run=True)
    yield maintenance.rewrite_data_files(dry_run=True)
    yield maintenance.optimize(dry_run=True)
    yield maintenance.rewrite_manifests()
    yield maintenance.rewrite_position_delete_files()
    yield maintenance.compute_table_stats()
    yield maintenance.compute_partition_stats()
    yield table.export()
    yield table.merge(pa.table({NAME: [HOSTILE], "n": [1]}), on=[NAME])
    yield lake.drop_table(str(table.name), purge=True, dry_run=True)
    yield lake.copy_table(
        str(table.name), f"{NAME}.c{NAME}", location=str(folder / NAME), dry_run=True
    )
    yield lake.create_view(f"{NAME}.v{NAME}", "SELECT 1 AS n", pa.schema([("n", pa.int32())]))
    yield lake.downgrade_table(str(table.name), dry_run=True)


def refused(table: Table, folder: Path) -> Iterator[Callable[[], Any]]:
    """Yield what cannot be done, for what it is asked with."""
    lake = hostile_lake(folder)
    wrong = f"no{NAME}"
    yield lambda: lake.table(f"{NAME}.{wrong}")
    yield lambda: lake.tables(wrong)
    yield lambda: lake.create_table(str(table.name), pa.schema([("n", pa.int64())]))
    yield lambda: table.scan(f'"{wrong}" = 1').count()
    yield lambda: table.scan(columns=[wrong]).count()
    yield lambda: table.scan(at=wrong).count()
    yield lambda: table.append(pa.table({wrong: [1]}))
    yield lambda: table.scan().to_arrow()
    yield lambda: table.set_properties({"write.root.max-data-entries": HOSTILE})
    yield lambda: table.create_branch(NAME)
    yield lambda: icetree.connect(wrong)


def test_no_object_says_what_would_act_on_a_terminal(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    whole, broken = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("broken")
    objects = [*said_of(hostile_table(whole, is_damaged=False), whole)]
    damaged = hostile_table(broken)
    objects += [damaged.verify(deep=True), *damaged.verify(deep=True).findings, damaged.repair()]
    objects += damaged.repair().actions
    told = [(type(each).__name__, repr(each), str(each)) for each in objects]
    assert [each for each in told if acting("".join(each))] == []
    assert sum("got you" in text for _, *texts in told for text in texts) > 20


def test_no_error_says_what_would_act_on_a_terminal(tmp_path: Path) -> None:
    table = hostile_table(tmp_path)
    said = []
    for ask in refused(table, tmp_path):
        with pytest.raises(IcetreeError) as caught:
            ask()
        said += [str(caught.value), repr(caught.value)]
    assert [each for each in said if acting(each)] == []
    assert sum("got you" in each for each in said) >= len(said) - 2


def test_no_line_of_a_log_says_what_would_act_on_a_terminal(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "icetree")
    table = hostile_table(tmp_path, is_damaged=False)
    for _ in said_of(table, tmp_path):
        pass
    hostile_lake(tmp_path).drop_table(str(table.name), purge=True)
    lines = [
        logging.Formatter().format(each)
        for each in caplog.records
        if each.name.startswith("icetree")
    ]
    assert any("got you" in each for each in lines)
    assert [each for each in lines if acting(each) or "\n" in each] == []


def test_nor_does_a_traceback_whoever_raised_what_it_is_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = log_of("icetree.some")
    try:
        try:
            raise pa.ArrowInvalid(f"no column {HOSTILE}")
        except pa.ArrowInvalid as error:
            raise CorruptTable("f", str(error)) from error
    except CorruptTable:
        log.exception("a plan failed")
    (record,) = caplog.records
    told = logging.Formatter().format(record)
    assert "got you" in told
    assert told.count("Traceback") == 2
    # It is a text of lines, whatever an error of another library says.
    assert not acting(told.replace("\n", ""))
