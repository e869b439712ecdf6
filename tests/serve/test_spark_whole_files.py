"""Stock Spark replaces, removes and rewrites whole files and partitions that icetree changes first.

What becomes of it is what Spark's statement does to the table as icetree left it, or a conflict, and then
nothing has happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from icetree.table.table import Table
from tests.effort import usually
from tests.serve.overtaken import (
    CONFLICTS,
    FEW,
    MEANWHILE,
    Meanwhile,
    Rows,
    World,
    new_world,
    shown_as,
    some,
    without,
    wrong_with,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A statement of Spark's about a table, and what it makes of a model of one."""

    says: str
    leaves: Callable[[Rows], Rows]
    settings: dict[str, str] = field(default_factory=dict)
    #: Whether there may be nothing to do, and then no commit.
    may_rest: bool = False
    #: What a client that is shown v3 is told, where no conflict is: it cannot be.
    refused: str | None = None


_NEW = "SELECT id, CAST(7 AS INT) n FROM range(3, 6)"
_THREE = {3: 7, 4: 7, 5: 7}
_BY_MANIFESTS = {"spark.sql.catalog.lake.scan-planning-mode": "client"}
_DYNAMIC = {"spark.sql.sources.partitionOverwriteMode": "dynamic"}
#: How much an overwrite minds what came since a snapshot.
_STRICTLY = "WITH (`isolation-level` = 'serializable', `validate-from-snapshot-id` = '{at}')"
_ALL = "table => '{table}', options => map('rewrite-all', 'true')"


def _same(rows: Rows) -> Rows:
    return rows


def _first_replaced(rows: Rows) -> Rows:
    return {**without(*range(10))(rows), **_THREE}


#: The table has a partition for each ten ids: all statements are of its first, or of all.
VERBS = {
    "replaces all": Verb(says=f"INSERT OVERWRITE {{table}} {_NEW}", leaves=lambda _: dict(_THREE)),
    "replaces partitions": Verb(
        says=f"INSERT OVERWRITE {{table}} {_NEW}", leaves=_first_replaced, settings=_DYNAMIC
    ),
    "replaces partitions, strictly": Verb(
        says=f"INSERT OVERWRITE {{table}} {_STRICTLY} {_NEW}",
        leaves=_first_replaced,
        settings=_DYNAMIC,
    ),
    "replaces where": Verb(
        says=f"INSERT INTO {{table}} REPLACE WHERE id < 10 {_NEW}", leaves=_first_replaced
    ),
    "replaces where, strictly": Verb(
        says=f"INSERT INTO {{table}} {_STRICTLY} REPLACE WHERE id < 10 {_NEW}",
        leaves=_first_replaced,
    ),
    "deletes a partition": Verb(
        says="DELETE FROM {table} WHERE id < 10", leaves=without(*range(10))
    ),
    "truncates": Verb(says="TRUNCATE TABLE {table}", leaves=lambda _: {}),
    "rewrites data files": Verb(
        says=f"CALL lake.system.rewrite_data_files({_ALL})",
        leaves=_same,
        refused="run `icetree rewrite-data-files`, or set scan-planning-mode to client",
    ),
    "rewrites data files by manifests": Verb(
        says=f"CALL lake.system.rewrite_data_files({_ALL})", leaves=_same, settings=_BY_MANIFESTS
    ),
    "rewrites data files bit by bit": Verb(
        says=(
            "CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true', "
            "'partial-progress.enabled', 'true', 'remove-dangling-deletes', 'true'))"
        ),
        leaves=_same,
        settings=_BY_MANIFESTS,
    ),
    "rewrites manifests": Verb(
        says="CALL lake.system.rewrite_manifests(table => '{table}')", leaves=_same
    ),
    "rewrites deletes": Verb(
        says=f"CALL lake.system.rewrite_position_delete_files({_ALL})",
        leaves=_same,
        # A vector is never two.
        may_rest=True,
    ),
}


def _forget(table: Table) -> None:
    table.delete("id = 4")
    table.maintenance.expire_snapshots(older_than="2100-01-01T00:00:00Z", retain_last=1)
    table.maintenance.remove_orphan_files()


def _rewrite_manifests_without_4(table: Table) -> None:
    table.delete("id = 4")
    table.maintenance.rewrite_manifests()


FIRST = {
    **MEANWHILE,
    "appends": Meanwhile(
        does=lambda t: t.append(some(range(1, 2), 50)), leaves=lambda rows: {**rows, 1: 50}
    ),
    "deletes and rewrites manifests": Meanwhile(
        does=_rewrite_manifests_without_4, leaves=without(4)
    ),
    "deletes and expires": Meanwhile(does=_forget, leaves=without(4)),
}
VERSIONS = (3, 2)
CASES = [(version, verb, first) for version in VERSIONS for verb in VERBS for first in FIRST]
USUAL = [
    (3, "replaces all", "deletes and expires"),
    (3, "replaces partitions, strictly", "deletes another row"),
    (3, "replaces where", "deletes another row"),
    (3, "truncates", "deletes elsewhere"),
    (3, "rewrites data files", "appends"),
    (3, "rewrites data files by manifests", "appends"),
    (2, "replaces partitions", "appends"),
    (2, "rewrites deletes", "deletes another row"),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with new_world(tmp_path_factory.mktemp("whole")) as world:
        yield world


@pytest.mark.law
@pytest.mark.parametrize(("version", "verb", "first"), usually(CASES, *USUAL))
def test_whole_files_go_as_if_one_came_after_the_other_or_not_at_all(
    version: int, verb: str, first: str, world: World
) -> None:
    does, meanwhile = VERBS[verb], FIRST[first]
    table = world.lake.create_table(
        f"db.v{version}_{verb}_{first}".replace(" ", "_").replace(",", ""),
        "id long, n int",
        partition_by=["truncate(10, id)"],
        properties={"commit.retry.num-retries": "2", **FEW},
    )
    for start in (0, 10, 20):
        table.append(some(range(start, start + 10), 0))
    table.delete("id = 1")
    before = {id: 0 for id in range(30) if id != 1}
    name = str(table.name)
    world.then = lambda: meanwhile.does(world.lake.table(name))
    world.statuses.clear()
    says = does.says.format(table=name, at=table.metadata.current_snapshot_id)
    refusal = wrong_with(world, says, settings={**does.settings, **shown_as(version)})
    if world.then is not None:
        assert does.may_rest, refusal
        assert refusal is None
        assert not world.statuses
        world.then = None
        left = before
    else:
        left = meanwhile.leaves(before)
        assert {*world.statuses} <= ({409, 400} if does.refused and version == 3 else {409, 200})
        assert world.statuses[0] == 409
    found = table.refresh().scan().to_arrow().to_pylist()
    assert len({each["id"] for each in found}) == len(found)
    rows = {each["id"]: each["n"] for each in found}
    if refusal is None:
        assert version == 2 or does.refused is None
        assert rows == does.leaves(left)
    else:
        known = [*CONFLICTS, *filter(None, [does.refused])]
        assert any(each in refusal for each in known), refusal
        assert 200 not in world.statuses
        assert rows == left
    assert table.verify(deep=True).findings == ()
