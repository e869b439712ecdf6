"""Stock Spark changes a data file that icetree changes first, between Spark's load and its commit.

Java's own validation goes by what exports tell of the snapshots in between: either it sees a conflict, and
the table is as icetree left it, or Spark's change lands on top of icetree's. No deleted row comes back.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.effort import usually
from tests.serve.overtaken import (
    CONFLICTS,
    FEW,
    MEANWHILE,
    Rows,
    World,
    new_world,
    shown_as,
    some,
    wrong_with,
)

#: Spark's statements, all of the table's first file, by verb.
STATEMENTS = {
    "delete": "DELETE FROM {} WHERE id = 3",
    "update": "UPDATE {} SET n = 99 WHERE id = 3",
    "merge": (
        "MERGE INTO {} t USING (SELECT explode(array(3L, 6L, 40L)) id) s ON t.id = s.id "
        "WHEN MATCHED AND s.id = 6 THEN DELETE WHEN MATCHED THEN UPDATE SET n = 99 "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, 7)"
    ),
}


def with_statement(verb: str, rows: Rows) -> Rows:
    """Return the rows after a statement that finds these."""
    if verb == "delete":
        return {id: n for id, n in rows.items() if id != 3}
    found = {id: 99 if id == 3 else n for id, n in rows.items()}
    if verb == "update":
        return found
    new = {id: 7 for id in (3, 6, 40) if id not in rows}
    return {**{id: n for id, n in found.items() if id != 6}, **new}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with new_world(tmp_path_factory.mktemp("same")) as world:
        yield world


#: How Spark writes, what it is shown, and how much it minds.
WAYS = {
    "merge": ("merge-on-read", 3, "snapshot"),
    "copy": ("copy-on-write", 3, "snapshot"),
    "merge, strictly": ("merge-on-read", 3, "serializable"),
    "copy, strictly": ("copy-on-write", 3, "serializable"),
    "merge, as v2": ("merge-on-read", 2, "snapshot"),
    "copy, as v2": ("copy-on-write", 2, "snapshot"),
}
CASES = [(way, verb, does) for way in WAYS for verb in STATEMENTS for does in MEANWHILE]
USUAL = [
    ("merge", "delete", "deletes another row"),
    ("merge", "delete", "deletes the file"),
    ("merge", "update", "compacts"),
    ("merge", "merge", "overwrites"),
    ("copy", "delete", "deletes another row"),
    ("copy", "update", "deletes and compacts"),
    ("copy", "merge", "deletes the same row"),
    ("merge, as v2", "delete", "deletes another row"),
    ("merge, as v2", "delete", "deletes the file"),
    ("copy", "update", "deletes elsewhere"),
]


@pytest.mark.law
@pytest.mark.parametrize(("way", "verb", "meanwhile"), usually(CASES, *USUAL))
def test_no_row_comes_back_where_icetree_was_faster(
    way: str, verb: str, meanwhile: str, world: World
) -> None:
    mode, version, level = WAYS[way]
    table = world.lake.create_table(
        f"db.{way}_{verb}_{meanwhile}".replace(" ", "_").replace(",", ""),
        "id long, n int",
        properties={
            f"write.{verb}.mode": mode,
            f"write.{verb}.isolation-level": level,
            "commit.retry.num-retries": "2",
            **FEW,
        },
    )
    for start in (0, 10, 20):
        table.append(some(range(start, start + 10), 0))
    table.delete("id = 1")
    left = MEANWHILE[meanwhile].leaves({id: 0 for id in range(30) if id != 1})
    name = str(table.name)
    world.then = lambda: MEANWHILE[meanwhile].does(world.lake.table(name))
    world.statuses.clear()
    refusal = wrong_with(world, STATEMENTS[verb].format(name), settings=shown_as(version))
    assert world.then is None
    assert {*world.statuses} <= {409, 200}
    assert world.statuses[0] == 409
    found = table.refresh().scan().to_arrow().to_pylist()
    assert len({each["id"] for each in found}) == len(found)
    rows = {each["id"]: each["n"] for each in found}
    if refusal is None:
        assert world.statuses[-1] == 200
        assert rows == with_statement(verb, left)
    else:
        assert any(each in refusal for each in CONFLICTS), refusal
        # Java's UPDATE and MERGE mind deletes by vectors of whichever file.
        is_minded = mode == "merge-on-read" and verb != "delete"
        assert meanwhile != "deletes elsewhere" or is_minded
        assert 200 not in world.statuses
        assert rows == left
    assert table.verify(deep=True).findings == ()
