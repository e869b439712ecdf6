"""Procedures of Iceberg's that stock Spark calls on a tree: what moves refs, and what would delete files.

What moves a branch is told of a conflict where icetree was faster, or lands after it. What deletes files by
what a client sees of them is refused, and no file goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.transforms import IdentityTransform
from typing_extensions import override

import icetree
from icetree.serve.protocol.request import Answer, Request
from icetree.serve.server import Server
from icetree.table.lake import Lake
from icetree.table.table import Table
from tests.effort import usually
from tests.serve.listening import listening
from tests.serve.overtaken import (
    CONFLICTS,
    FEW,
    MEANWHILE,
    Meanwhile,
    Rows,
    World,
    new_world,
    some,
    wrong_with,
)
from tests.serve.stock_spark import ran

NAME = "db.t"


@dataclass(frozen=True, slots=True, kw_only=True)
class Procedure:
    """A procedure that moves `main`, and what it makes of a model of it."""

    calls: str
    leaves: Callable[[Rows], Rows]
    #: What is said before it.
    first: Sequence[str] = ()
    #: How Java says that it cannot be, with what is there now.
    refuses: str | None = None


_STAGED = (
    "ALTER TABLE {t} SET TBLPROPERTIES ('write.wap.enabled' = 'true')",
    "SET spark.wap.id = staged",
    "INSERT INTO {t} VALUES (40, CAST(7 AS INT))",
)


def _back(_: Rows) -> Rows:
    return dict.fromkeys(range(10), 0)


def _with_40(rows: Rows) -> Rows:
    return {**rows, 40: 7}


PROCEDURES = {
    "rollback_to_snapshot": Procedure(
        calls="CALL lake.system.rollback_to_snapshot('{t}', {oldest})", leaves=_back
    ),
    "set_current_snapshot": Procedure(
        calls="CALL lake.system.set_current_snapshot('{t}', {oldest})", leaves=_back
    ),
    "set_current_snapshot of a ref": Procedure(
        calls="CALL lake.system.set_current_snapshot(table => '{t}', ref => 'ahead')",
        leaves=lambda _: {**{id: 0 for id in range(30) if id != 1}, 50: 0},
    ),
    "fast_forward": Procedure(
        calls="CALL lake.system.fast_forward('{t}', 'main', 'ahead')",
        leaves=lambda _: {**{id: 0 for id in range(30) if id != 1}, 50: 0},
        refuses="not an ancestor",
    ),
    "cherrypick_snapshot": Procedure(
        first=_STAGED,
        calls="CALL lake.system.cherrypick_snapshot('{t}', {staged})",
        leaves=_with_40,
    ),
    "publish_changes": Procedure(
        first=_STAGED, calls="CALL lake.system.publish_changes('{t}', 'staged')", leaves=_with_40
    ),
}
FIRST = {
    **{
        each: MEANWHILE[each]
        for each in ("deletes another row", "deletes and compacts", "overwrites")
    },
    "appends": Meanwhile(
        does=lambda t: t.append(some(range(60, 61), 0)), leaves=lambda rows: {**rows, 60: 0}
    ),
    "nothing": Meanwhile(does=lambda _: None, leaves=lambda rows: rows),
}
USUAL = [
    ("rollback_to_snapshot", "deletes another row"),
    ("fast_forward", "appends"),
    ("cherrypick_snapshot", "deletes and compacts"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with new_world(tmp_path_factory.mktemp("procedures")) as world:
        yield world


def _filled(lake: Lake, name: str) -> Table:
    table = lake.create_table(
        name, "id long, n int", properties={"commit.retry.num-retries": "2", **FEW}
    )
    for start in (0, 10, 20):
        table.append(some(range(start, start + 10), 0))
    table.delete("id = 1")
    return table


@pytest.mark.law
@pytest.mark.parametrize(
    ("name", "first"), usually([(p, f) for p in PROCEDURES for f in FIRST], *USUAL)
)
def test_a_branch_moves_after_what_icetree_did_or_stays(
    name: str, first: str, world: World
) -> None:
    procedure, meanwhile = PROCEDURES[name], FIRST[first]
    table = _filled(world.lake, f"db.{name}_{first}".replace(" ", "_"))
    told = {"t": str(table.name), "oldest": table.metadata.snapshots[0].snapshot_id}
    table.create_branch("ahead")
    table.append(some(range(50, 51), 0), branch="ahead")
    world.then = None
    staging = [each.format(**told) for each in procedure.first]
    if staging:
        assert wrong_with(world, *staging) is None
        table.refresh()
        (told["staged"],) = (
            each.snapshot_id
            for each in table.metadata.snapshots
            if (each.summary or {}).get("wap.id") == "staged"
        )
    world.word = b"set-snapshot-ref"
    world.then = lambda: meanwhile.does(world.lake.table(str(table.name)))
    world.statuses.clear()
    refusal = wrong_with(world, procedure.calls.format(**told))
    assert world.then is None
    left = meanwhile.leaves({id: 0 for id in range(30) if id != 1})
    found = table.refresh().scan().to_arrow().to_pylist()
    rows = {each["id"]: each["n"] for each in found}
    assert len(rows) == len(found)
    if refusal is None:
        assert world.statuses[-1] == 200
        assert rows == procedure.leaves(left)
    else:
        known = (*CONFLICTS, *filter(None, [procedure.refuses]))
        assert any(each in refusal for each in known), refusal
        assert first != "nothing"
        assert 200 not in world.statuses
        assert rows == left
    assert table.verify(deep=True).findings == ()


# --- what would delete files -------------------------------------------------------------------

#: What deletes by what a client sees, and what Java says of it.
_DELETING = {
    "CALL lake.system.expire_snapshots(table => '{t}', older_than => TIMESTAMP '2100-01-01 00:00:00', "
    "retain_last => 1)": "GC is disabled",
    "CALL lake.system.remove_orphan_files(table => '{t}')": "GC is disabled",
    "CALL lake.system.remove_orphan_files(table => '{t}', dry_run => true)": "GC is disabled",
    "DROP TABLE {t} PURGE": "GC is disabled",
}


def _files(folder: str) -> set[Path]:
    return {each for each in Path(folder).rglob("*") if each.is_file()}


def test_no_file_goes_by_what_a_client_sees_whatever_it_sets(world: World) -> None:
    table = _filled(world.lake, "db.deleting")
    world.then = None
    before = _files(table.location)
    for how in ("SET TBLPROPERTIES ('gc.enabled' = 'true')", "UNSET TBLPROPERTIES ('gc.enabled')"):
        for statement, wanted in _DELETING.items():
            assert wanted in (wrong_with(world, statement.format(t="db.deleting")) or "")
        assert wrong_with(world, f"ALTER TABLE db.deleting {how}") is None
        assert before <= _files(table.location)
    assert table.refresh().scan().count() == 29
    assert table.verify(deep=True).findings == ()


def test_files_of_elsewhere_are_refused_and_stay(world: World, tmp_path: Path) -> None:
    table = _filled(world.lake, "db.adding")
    world.then = None
    other = tmp_path / "other" / "some.parquet"
    other.parent.mkdir()
    pq.write_table(some(range(70, 80), 0), other)
    refusal = wrong_with(
        world, f"CALL lake.system.add_files('db.adding', '`parquet`.`{other.parent}`')"
    )
    assert refusal is not None
    assert "is outside the table: what lies elsewhere is added by icetree alone" in refusal
    assert "`icetree add-files`" in refusal
    assert other.exists()
    table.add_files(str(other))
    assert table.scan().count() == 39


class Upgrading(Server):
    """Has something done before a table is shown for the second time."""

    def __init__(self, lake: Lake, then: Callable[[], None]) -> None:
        super().__init__(lake)
        self._shown, self._then = 0, then

    @override
    def answer(self, request: Request) -> Answer:
        if request.method == "GET" and request.path.endswith("/tables/t"):
            self._shown += 1
            if self._shown == 2:
                self._then()
        return super().answer(request)


#: A table that is held since before it was a tree, when it was Java's to expire.
_HELD = """
from pyspark.sql import SparkSession
spark = SparkSession._instantiatedSession
lake = "spark.sql.catalog.held"
spark.conf.set(lake, "org.apache.iceberg.spark.SparkCatalog")
spark.conf.set(f"{lake}.type", "rest")
spark.conf.set(f"{lake}.uri", "<uri>")
spark.conf.set(f"{lake}.cache-enabled", "false")
java = spark._jvm
java.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
table = java.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "held.db.t")
table.expireSnapshots().expireOlderThan(4102444800000).retainLast(1).commit()
"""


def test_a_client_that_holds_a_table_since_before_its_upgrade_deletes_none_of_its_files(
    tmp_path: Path,
) -> None:
    """The tree has manifests of before, of which some entries are gone: exports name others for them."""
    rows = pa.table({"id": [*range(20)], "p": [each // 10 for each in range(20)]})
    address = f"sqlite:///{tmp_path}/c.db"
    theirs = SqlCatalog("main", uri=address, warehouse=f"file://{tmp_path}/theirs")
    theirs.create_namespace("db")
    made = theirs.create_table(NAME, rows.schema)
    with made.update_spec() as spec:
        spec.add_field("p", IdentityTransform(), "p")
    for _ in range(3):
        made.append(rows)
    theirs.engine.dispose()
    with icetree.connect(
        address, warehouse=str(tmp_path / "lake"), properties={"name": "main"}
    ) as lake:

        def upgrade() -> None:
            lake.upgrade_table(NAME)
            table = lake.table(NAME)
            table.delete("p = 0")
            table.append(rows)

        with listening(Upgrading(lake, upgrade)) as at:
            program = _HELD.replace("<uri>", f"http://127.0.0.1:{at.port}")
            with pytest.raises(AssertionError, match=r"run `icetree expire db\.t`"):
                ran(tmp_path, program, [])
        table = lake.table(NAME)
        assert table.metadata.format_version == 4
        assert len(table.metadata.snapshots) == 5
        assert table.verify(deep=True).findings == ()
        assert table.scan().count() == 50
