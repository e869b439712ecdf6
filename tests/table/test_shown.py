"""How things look to whoever prints them: one short line, and words where words are asked for."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pyarrow as pa
import pytest

import icetree
from icetree.spec.edit.partitioning import SpecEdit
from icetree.spec.edit.schema import SchemaEdit
from icetree.spec.edit.sort import SortEdit
from icetree.spec.metadata.update import AddSchema, AddSnapshot, RemoveSnapshots, SetProperties
from icetree.spec.schema.expressions import Expression
from icetree.table.lake import Lake
from icetree.table.table import Table
from icetree.table.verify.findings import Finding, Kind, Severity
from tests.public_names import held

ROWS = pa.table({"n": range(10), "name": [f"n{each}" for each in range(10)]})


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "w"))
    lake.create_namespace("db")
    return lake


@pytest.fixture
def table(lake: Lake) -> Table:
    table = lake.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    return table


def test_every_public_object_has_a_repr_of_one_short_line(lake: Lake, table: Table) -> None:
    snapshot = table.current_snapshot
    assert snapshot is not None
    committed = table.append(ROWS)
    shown = {
        "Lake": lake,
        "Table": table,
        "Scan": table.scan("n < 3", columns=["n"], limit=2),
        "ChangeRange": table.changes(),
        "AppendScan": table.scan_appends(where="n < 3"),
        "Transaction": table.transaction(),
        "Committed": committed,
        "Report": committed.report,
        "Inspect": table.inspect,
        "Explanation": table.explain("n < 3"),
        "Repair": table.repair(),
        "Plan": table.scan("n < 3").plan(),
        "Snapshot": snapshot,
        "Expired": table.maintenance.expire_snapshots(retain_last=1, dry_run=True),
        "SchemaEdit": SchemaEdit(table.metadata),
        "SpecEdit": SpecEdit(table.metadata),
        "SortEdit": SortEdit(table.metadata),
    }
    for name, each in {**shown, "Report ": table.verify()}.items():
        said = repr(each)
        assert said.startswith(f"{name.strip()}(")
        assert "\n" not in said
        assert len(said) < 160
        assert " object at 0x" not in said
        if name in ("Table", "Scan", "ChangeRange", "AppendScan", "Transaction", "Inspect"):
            assert "'db.t'" in said
    assert 'where="n < 3"' in repr(shown["Scan"]).replace("'", '"')
    assert "columns=['n']" in repr(shown["Scan"])


def test_every_class_that_one_can_hold_tells_itself_shortly() -> None:
    """By a repr of its own, or as a record of nothing but numbers and names."""
    long = []
    # An expression is told in full: that is what tells shapes of tables apart.
    for each in held() - {Expression}:
        if issubclass(each, Enum) or inspect.isabstract(each):
            continue
        told = each.__repr__
        if told is object.__repr__:
            long.append(each)
        elif "__create_fn__" in told.__qualname__:  # as dataclasses make one
            kinds = {str(field.type) for field in dataclasses.fields(each) if field.repr}
            if not kinds <= {"int", "int | None", "str", "bool", "Namespace"}:
                long.append(each)
    assert long == []


def test_a_record_is_one_short_line_however_much_it_holds(lake: Lake, table: Table) -> None:
    with table.edit_schema() as edit:
        for number in range(200):
            edit.add(f"column_{number}", "string", doc="what it is for" * 20)
    for number in range(60):
        table.create_tag(f"tag-{number}")
    with table.transaction() as transaction:
        transaction.set_properties({f"key-{number}": "value" * 50 for number in range(100)})
        transaction.commit()
    plain = Path(table.location.removeprefix("file://"))
    for number in range(200):
        stray = plain / "data" / f"stray-{number}.parquet"
        stray.write_bytes(b"x")
        os.utime(stray, (1, 1))
    table.delete("n = 3")
    table.maintenance.compute_table_stats()
    view = lake.create_view("db.v", f"SELECT {'1 + ' * 500} 1 AS n", "n int")
    metadata, upkeep = table.refresh().metadata, table.maintenance
    [diff, *_] = [each for _, each in table.changes().diffs()]
    shown = [
        metadata,
        view.metadata,
        *view.metadata.versions,
        *view.metadata.versions[0].representations,
        metadata.partition_specs[0],
        metadata.snapshot_log[0],
        metadata.metadata_log[0],
        metadata.refs["tag-1"],
        *metadata.statistics,
        AddSchema(schema=metadata.schemas[-1]),
        SetProperties(updates=metadata.properties),
        AddSnapshot(snapshot=metadata.snapshots[0]),
        RemoveSnapshots(snapshot_ids=tuple(range(1_000))),
        table.changes().plan(),
        diff,
        table.scan().plan().metrics,
        table.export(format_version=2),
        upkeep.remove_orphan_files(dry_run=True),
        upkeep.optimize(dry_run=True),
        upkeep.optimize(dry_run=True).health,
        *upkeep.optimize(dry_run=True).steps,
        upkeep.rewrite_data_files(dry_run=True),
        upkeep.rewrite_manifests(dry_run=True),
        upkeep.rewrite_position_delete_files(dry_run=True),
        upkeep.compute_table_stats(dry_run=True),
        lake.copy_table("db.t", "db.copy", dry_run=True),
        lake.downgrade_table("db.t", dry_run=True),
        lake.upgrade_table("db.t", dry_run=True),
        lake.drop_table("db.t", purge=True, dry_run=True),
        Finding(severity=Severity.ERROR, kind=Kind.METADATA, file="f" * 300, rule="r" * 300),
    ]
    for each in shown:
        said = repr(each)
        assert said.startswith(f"{type(each).__name__}("), said
        assert len(said) < 160, said
        assert "\n" not in said
    assert "schemas=<2>" in repr(metadata) or "…" in repr(metadata)
    assert repr(shown[17]) == "Orphans(orphan_file_location=<200>, dry_run=True)"


def test_a_long_list_is_told_by_its_start(table: Table) -> None:
    for number in range(5):
        table.append(ROWS.slice(number, 1))
    assert "… 7 in all" in repr(table.changes())


def test_answers_print_as_people_read(table: Table) -> None:
    committed = table.append(ROWS)
    assert str(committed).startswith("table db.t: append, snapshot ")
    assert "added-records 10" in str(committed)
    assert str(table.explain("n < 3")) == table.explain("n < 3").text()
    assert str(table.verify()) == table.verify().text()
    assert str(table.repair()) == "nothing to repair"
    assert str(table.set_properties({"a": "b"})) == "table db.t: no snapshot"


def test_a_table_tells_its_layout_in_the_words_that_made_it(lake: Lake) -> None:
    schema = pa.schema([("ts", pa.timestamp("us")), ("id", pa.int64()), ("name", pa.string())])
    spec = ("day(ts)", "bucket(16, id)", "truncate(4, name)")
    order = ("ts desc", "id", "bucket(4, name) nulls last", "name desc nulls first")
    made = lake.create_table("db.made", schema, partition_by=spec, order_by=order)
    assert made.spec == spec
    assert made.sort_order == order
    assert made.current_snapshot is None
    again = lake.create_table(
        "db.again", made.schema, partition_by=made.spec, order_by=made.sort_order
    )
    assert (again.spec, again.sort_order) == (spec, order)


def test_the_package_shows_what_is_public_and_nothing_else() -> None:
    code = "import icetree; print(*dir(icetree)); print(icetree.errors.NotFound.__name__)"
    found = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split("\n")
    assert found[0].split() == ["__version__", "connect", "errors", "spark"]
    assert found[1] == "NotFound"
    with pytest.raises(AttributeError, match="no attribute 'conect'"):
        icetree.conect  # type: ignore[attr-defined]  # noqa: B018


def test_errors_name_a_table_one_way() -> None:
    """`table db.t`, wherever a message starts with a table's name."""
    package = Path(icetree.__file__).parent
    whose = r"(?:self\.|target\.)?_?(?:(?:table|base|state|head|found)\.name|(?:transaction\.)?table(?:_name)?)"
    verbs = "(?:append|delete|update|overwrite|merge|upsert|write) (?:of|in|to|into|from)"
    bare = re.compile(
        rf'f"\{{{whose}\}}(?=[: ])(?! ·)[^"]*"'
        r'|f"\{(?:name|of)\} (?:has no (?:column|ident)|takes \{)[^"]*"'
        # What is done to a table is no name of it.
        rf'|f"{verbs} \{{(?:name|table|self\._(?:name|table))\}}:[^"]*"'
        rf'|(?:metadata|tag|branch|part) of \{{{whose}\}}[^"]*"'
        # What Spark raises is told by its class.
        r'|f"[\w.]+: \{table\.name\}[^"]*"'
        # Of all rooms, these have a `_name` that is a table's.
        r'|(?:raise \w+\(|^ +)f"\{self\._name\}[: ][^"]*"',
        re.MULTILINE,
    )
    found = [
        f"{path.relative_to(package)}: {hit}"
        for room in ("catalog", "rows", "table", "explore", "spark", "serve")
        for path in sorted((package / room).rglob("*.py"))
        for hit in bare.findall(path.read_text())
    ]
    assert found == []


def test_a_column_that_is_not_there_is_told_with_the_nearest(table: Table) -> None:
    for ask in (lambda: table.scan("nme = 'x'").count(), lambda: table.scan(columns=["nme"])):
        with pytest.raises(icetree.errors.IcetreeError, match="did you mean 'name'"):
            ask()


def test_names_that_are_not_there_are_told_with_the_nearest(lake: Lake, table: Table) -> None:
    asked = {
        "'name'": lambda: table.append(pa.table({"nme": ["x"]})),
        "db.t": lambda: lake.drop_table("db.tt"),
        "db": lambda: lake.tables("dbb"),
        "'binpack'": lambda: table.maintenance.rewrite_data_files(strategy="binpak"),
        "'rewrite-all'": lambda: table.maintenance.rewrite_data_files(options={"rewrite-al": "1"}),
    }
    for near, ask in asked.items():
        with pytest.raises(icetree.errors.IcetreeError, match=rf"did you mean {near}\?"):
            ask()
    with pytest.raises(icetree.errors.IcetreeError, match=r"^table db\.t has no column 'nme'"):
        asked["'name'"]()
