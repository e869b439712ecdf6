"""Branches and tags on another writer's tree: each keeps its rows, whatever happens on others."""

from __future__ import annotations

import datetime as dt
from random import Random

from icetree.table.table import Table
from tests.foreign.columns import Row
from tests.foreign.judge import require_refs, require_rows, require_sound
from tests.foreign.ours import Ours, ours_on
from tests.foreign.world import World


def require_branches(world: World, table: Table) -> None:
    """Require that commits to branches, picks, moves and expiry leave the rows that they should."""
    rng = Random(f"{world.seed} branches")
    at = rng.randrange(len(world.writer.snapshots))
    old = world.writer.snapshots[at].id
    table.create_branch("side", at=old)
    table.create_tag("mark", at=old)
    main = ours_on(world, table)
    side = ours_on(world, table, branch="side", at=at)
    side.commit(2)
    main.commit(1)
    _pick(side, main)
    _forward(world, main)
    _require_own(world, table, rng, at, main=main.rows, side=side.rows)
    # A point in time that all of it is older than.
    later = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1)
    table.maintenance.expire_snapshots(older_than=later, retain_last=1)
    _require_own(world, table, rng, at, main=main.rows, side=side.rows)
    main.commit(1)
    require_sound(table)


def _pick(side: Ours, main: Ours) -> None:
    """Append to a branch, and pick that for main: the rows are new there."""
    before, since = side.rows, side.head()
    side.append()
    new = side.rows[len(before) :]
    side.settle(before, since)
    before, since = main.rows, main.head()
    main.table.cherry_pick(side.head(), branch=main.branch)
    main.rows = [*before, *new]
    main.settle(before, since)


def _forward(world: World, main: Ours) -> None:
    """Commit ahead of main on a branch of its own, and let main follow."""
    main.table.create_branch("ahead", at=main.head())
    ahead = ours_on(world, main.table, branch="ahead")
    ahead.rows = main.rows
    ahead.next_id += 10_000
    ahead.commit(1)
    main.table.fast_forward("main", to="ahead")
    main.table.remove_branch("ahead")
    main.rows = ahead.rows


def _require_own(world: World, table: Table, rng: Random, at: int, **rows: list[Row]) -> None:
    """Require the rows of branches, of a tag that has the columns of its time, and of older refs."""
    for ref, expected in rows.items():
        require_rows(table, world.layout.schema, expected, rng, at=ref)
    then = world.layout.schemas[world.writer.snapshots[at].schema_id]
    require_rows(table, then, world.rows(at), rng, at="mark")
    require_refs(world, table, rng)
