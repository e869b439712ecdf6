"""Queries of every form, drawn as text."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from pyspark.sql import types as t

from campaigns.statements.conditions import Asking, Place, places
from campaigns.statements.values import is_single


def query(
    chance: random.Random,
    tables: Mapping[str, t.StructType],
    table: str,
    other: str,
    versions: Sequence[str],
) -> str:
    """Return a query on a table, the other one, or what the table was.

    Rows come in no order, so that no limit is without one that tells all.
    """
    columns = tables[table]
    others = [(other, tables[other]), (table, columns)]
    asking = Asking(chance=chance, places=places(columns), others=others)
    # An old schema is told by the rows alone.
    if versions and chance.random() < 0.25:
        version = chance.choice(versions)
        return chance.choice((f"SELECT * FROM {version}", f"SELECT count(*) AS n FROM {version}"))
    forms = (_plain, _plain, _plain, _counted, _counted, _grouped, _joined, _named, _sets, _nearby)
    return chance.choice(forms)(chance, asking, table, other, tables)


_Tables = Mapping[str, t.StructType]


def _listed(chance: random.Random, some: Sequence[Place], most: int = 3) -> str:
    chosen = chance.sample(list(some), min(len(some), chance.randrange(1, most + 1)))
    return ", ".join(f"{each.text} AS r{at}" for at, each in enumerate(chosen))


def _plain(chance: random.Random, asking: Asking, table: str, other: str, tables: _Tables) -> str:
    del other, tables
    listed = chance.choice(("*", _listed(chance, asking.places)))
    if chance.random() < 0.2:
        listed = (
            f"{asking.condition(1)} AS r0, {asking.value(chance.choice(asking.places).type)} AS r1"
        )
    return f"SELECT {listed} FROM {table} WHERE {asking.condition()}"


def _extremes(chance: random.Random, some: Sequence[Place]) -> str:
    told = ["count(*) AS n"]
    for at, each in enumerate(chance.sample(list(some), min(len(some), 2))):
        told.append(f"count({each.text}) AS n{at}")
        if is_single(each.said):
            how = chance.choice(("min({})", "max({})", "count(DISTINCT {})"))
            told.append(f"{how.format(each.text)} AS m{at}")
    return ", ".join(told)


def _counted(chance: random.Random, asking: Asking, table: str, other: str, tables: _Tables) -> str:
    del other, tables
    where = f" WHERE {asking.condition(1)}" if chance.random() < 0.6 else ""
    return f"SELECT {_extremes(chance, asking.places)} FROM {table}{where}"


def _grouped(chance: random.Random, asking: Asking, table: str, other: str, tables: _Tables) -> str:
    del other, tables
    by = chance.choice([each.text for each in asking.places if is_single(each.said)])
    having = " HAVING count(*) > 1" if chance.random() < 0.3 else ""
    where = f" WHERE {asking.condition(1)}" if chance.random() < 0.5 else ""
    if chance.random() < 0.3:
        return f"SELECT DISTINCT {by} AS k FROM {table}{where}"
    return f"SELECT {by} AS k, {_extremes(chance, asking.places)} FROM {table}{where} GROUP BY {by}{having}"


def _joined(chance: random.Random, asking: Asking, table: str, other: str, tables: _Tables) -> str:
    """Join the table with itself or with the other one."""
    del asking
    second = chance.choice((table, other))
    left, right = places(tables[table], "l."), places(tables[second], "r.")
    pairs = [(a, b) for a in left for b in right if a.said == b.said and is_single(a.said)]
    one, same = chance.choice(pairs)
    how = chance.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
    seen = left if "SEMI" in how or "ANTI" in how else [*left, *right]
    met = chance.choice(("=", "=", "<=>"))
    where = Asking(chance=chance, places=seen).condition(1)
    return (
        f"SELECT {_listed(chance, seen, 4)} FROM {table} l {how} {second} r "
        f"ON {one.text} {met} {same.text} WHERE {where}"
    )


def _named(chance: random.Random, asking: Asking, table: str, other: str, tables: _Tables) -> str:
    """Use a CTE, also one that has the name of a table."""
    del tables
    name = chance.choice(("w", table, other))
    inner = (
        f"SELECT * FROM {table} WHERE {Asking(chance=chance, places=asking.places).condition(1)}"
    )
    if chance.random() < 0.5:
        return f"WITH {name} AS ({inner}) SELECT {_listed(chance, asking.places)} FROM {name} WHERE {asking.condition(1)}"
    return (
        f"WITH {name} AS ({inner}) SELECT count(*) AS n FROM {name} l JOIN {table} r ON l.id = r.id"
    )


def _sets(chance: random.Random, asking: Asking, table: str, other: str, tables: _Tables) -> str:
    second = chance.choice((table, other))
    pairs = [
        (a.text, b.text)
        for a in asking.places
        for b in places(tables[second])
        if a.said == b.said and is_single(a.said)
    ]
    one, same = chance.choice(pairs)
    how = chance.choice(("UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL"))
    return f"SELECT {one} AS k FROM {table} WHERE {asking.condition(1)} {how} SELECT {same} FROM {second}"


def _nearby(chance: random.Random, asking: Asking, table: str, other: str, tables: _Tables) -> str:
    """Rank and limit by what orders all that is told."""
    del other, tables
    by = chance.choice([each.text for each in asking.places if is_single(each.said)])
    way = chance.choice(("", " DESC", " NULLS LAST", " DESC NULLS FIRST"))
    if chance.random() < 0.5:
        return (
            f"SELECT {by} AS k FROM {table} WHERE {asking.condition(1)} ORDER BY {by}{way} LIMIT 3"
        )
    return f"SELECT k, n FROM (SELECT {by} AS k, rank() OVER (ORDER BY {by}{way}) AS n FROM {table}) WHERE n < 4"
