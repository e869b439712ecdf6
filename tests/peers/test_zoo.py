"""The zoo: tables of every kind that peers make, read by their makers before an upgrade and by all after.

For each the same rows are found, in the current snapshot and former ones, by filters too; then once
more after rows and manifests were changed on our side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyiceberg.catalog.sql import SqlCatalog

import icetree
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.moving.downgrade import downgrade
from icetree.table.table import Table
from icetree.tree.reading import leaves_in
from tests.effort import SEED
from tests.peers.conftest import Animal
from tests.peers.filters import Filter, matches, random_filters, to_json
from tests.peers.pyiceberg_tables import PYICEBERG_ZOO
from tests.peers.readers import Question, Reader, said
from tests.peers.values import JAVA_ZOO, pools

#: What part of the filters a peer must have an answer for: at some it fails by faults of its own.
_ANSWERED = 0.6
#: Tables that are beyond a peer as a whole: equality deletes, and formats.
_BEYOND = {
    "PyIceberg, of exports": ("db.v2_equality", "db.v3_upgraded", "zoo.formats"),
    "PyIceberg, by manifests of the server": ("db.v2_equality", "db.v3_upgraded", "zoo.formats"),
    "PyIceberg, through the server": ("zoo.formats",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How many filters a reader is asked, of the current snapshot, of each former one and after our changes."""

    now: int = 50
    #: At most, of one that reads the very files of which another was asked.
    again: int = 50
    former: int = 50
    after: int = 50
    #: After the table went back to v3.
    back: int = 50
    #: And of one that reads the same files as another, after our changes, at most.
    after_again: int = 50
    #: How many former snapshots a peer is asked for; None for all, which icetree always is.
    snapshots: int | None = None


USUALLY = Asked(again=8, former=2, back=8, after_again=8, snapshots=1)
#: Where another table shows as much of what is changed.
LIGHTLY = replace(USUALLY, after=5, back=1, after_again=1)
#: Where there are few files, many filters take little.
ON_FEW_FILES = replace(LIGHTLY, former=6)
#: Each of many manifests takes its time with each filter.
ON_MANY_FILES = replace(LIGHTLY, now=10, former=0, after=4)
ON_THOUSANDS = Asked(now=10, former=0, after=2, back=1, after_again=1, snapshots=1)
EVERYTHING = Asked()
IN_THE_USUAL_RUN = {
    **dict.fromkeys(("db.v2", "db.v2_equality", "db.v3", "db.v3_evolved"), LIGHTLY),
    **dict.fromkeys(("db.v1", "db.v2_evolved", "db.v3_upgraded", "zoo.v1"), LIGHTLY),
    **dict.fromkeys(("zoo.branches", "zoo.rewritten", "zoo.types", "db.types"), ON_FEW_FILES),
    "zoo.many": ON_MANY_FILES,
}
#: A table of which every reader opens thousands of files, and manifests for each filter.
THOUSANDS = "zoo.thousands"


def names_in(filter: Filter) -> Iterator[str]:
    """Yield the columns that a filter names."""
    if "term" in filter:
        yield filter["term"].partition(".")[0]
    for side in ("left", "right", "child"):
        yield from names_in(filter[side]) if side in filter else ()


def blanks_of(row: Mapping[str, Any]) -> Iterator[str]:
    """Yield the columns of a row that are null or NaN, or hold such."""
    for name, value in row.items():
        inner = [*value.values()] if isinstance(value, dict) else [value]
        if any(each is None or each != each for each in inner):
            yield name


class Wanted:
    """The rows that there are, said and filtered once for all readers."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self.rows = rows
        self._texts: dict[Any, list[str]] = {}
        self._matching: dict[str, list[int]] = {}

    def texts(self, reader: Reader) -> list[str]:
        """Return all rows, as a reader says them."""
        if reader.says not in self._texts:
            self._texts[reader.says] = [*map(reader.says, self.rows)]
        return self._texts[reader.says]

    def matching(self, filter: Filter | None) -> Sequence[int]:
        """Return which rows a filter lets through."""
        if filter is None:
            return range(len(self.rows))
        told = to_json(filter)
        if told not in self._matching:
            self._matching[told] = [n for n, row in enumerate(self.rows) if matches(filter, row)]
        return self._matching[told]


def require_rows(
    readers: Mapping[str, Reader],
    table: Table,
    want: Mapping[int | None, Sequence[Any]],
    filters: Sequence[Filter],
    asked: Asked,
    *,
    beyond: Sequence[str] = (),
) -> None:
    """Require that every reader finds these rows, by snapshot, and of each those that filters let through.

    Readers that the table is `beyond` have no answer at all, others have one for most filters.
    """
    wanted = {at: Wanted(rows) for at, rows in want.items()}
    for name, reader in readers.items():
        questions = [
            Question(at=at, filter=filter)
            for at in _snapshots(name, want, asked)
            for filter in [None, *_filters(reader, at, want[at], filters, asked)]
        ]
        answers = reader.read(table, questions)
        for question, answer in zip(questions, answers, strict=True):
            if answer is not None:
                _require_right(name, reader, question, answer, wanted[question.at])
        of_filters = [a for q, a in zip(questions, answers, strict=True) if q.filter is not None]
        answered = len(of_filters) - of_filters.count(None)
        if name in beyond:
            assert answers[0] is None, f"{name} reads this table after all"
            continue
        of_all = [a for q, a in zip(questions, answers, strict=True) if q.filter is None]
        assert None not in of_all, f"{name} does not read all rows"
        # Of a handful all may be such that a peer fails.
        least = _ANSWERED * len(of_filters) if len(of_filters) > 10 else 0
        assert answered >= least, f"{name} answers {answered} of {len(of_filters)} filters"


def _snapshots(name: str, want: Mapping[int | None, object], asked: Asked) -> list[int | None]:
    """Return the snapshots that a reader is asked for: the current one, and former ones far apart."""
    former = [at for at in want if at is not None]
    if name != "icetree" and asked.snapshots is not None:
        former = former[:: max(1, -(-len(former) // asked.snapshots))]
    return [*(at for at in want if at is None), *former]


def _filters(
    reader: Reader, at: int | None, rows: Sequence[Any], filters: Sequence[Filter], asked: Asked
) -> Sequence[Filter]:
    """Return the filters that are asked of a snapshot, which has all columns that they name."""
    known = {*rows[0]} if rows else set()
    now = min(asked.now, asked.again) if reader.reads_again else asked.now
    count = now if at is None else asked.former
    return [each for each in filters if known.issuperset(names_in(each))][:count]


def _require_right(
    name: str, reader: Reader, asked: Question, answer: Sequence[str], everything: Wanted
) -> None:
    """Require all rows that match, and none more but such as the reader lets through."""
    texts = everything.texts(reader)
    told = "all rows" if asked.filter is None else to_json(asked.filter)
    found = Counter(answer)
    wanted = Counter(texts[number] for number in everything.matching(asked.filter))
    assert not wanted - found, f"{name} at {asked.at} misses {list(wanted - found)[:2]}: {told}"
    extra = found - wanted
    if extra and reader.is_lax and asked.filter is not None:
        named = {*names_in(asked.filter)}
        rows = zip(texts, everything.rows, strict=True)
        extra -= Counter(text for text, row in rows if named & {*blanks_of(row)})
    assert not extra, f"{name} at {asked.at} finds more, {list(extra)[:2]}: {told}"


@pytest.mark.law
@pytest.mark.parametrize("name", [each for each in JAVA_ZOO if each != THOUSANDS])
def test_all_read_the_rows_that_java_read_before_the_upgrade(
    java_zoo: Mapping[str, Animal], readers: Mapping[str, Reader], name: str
) -> None:
    asked = IN_THE_USUAL_RUN.get(name, USUALLY)
    _require_java_animal(java_zoo[name], readers, name, asked)


@pytest.mark.law
@pytest.mark.parametrize("name", PYICEBERG_ZOO)
def test_all_read_the_rows_that_pyiceberg_read_before_the_upgrade(
    theirs: SqlCatalog, readers: Mapping[str, Reader], name: str
) -> None:
    asked = IN_THE_USUAL_RUN.get(name, USUALLY)
    _require_pyiceberg_animal(theirs, readers, name, asked)


@pytest.mark.law
def test_rows_of_thousands_of_manifests_are_read_whole(
    java_zoo: Mapping[str, Animal], readers: Mapping[str, Reader]
) -> None:
    """To change such a table, or to verify it, takes long: that is left to the long form."""
    animal = java_zoo[THOUSANDS]
    table = animal.opened()
    current = table.metadata.current_snapshot_id
    assert current is not None
    rows = animal.rows[current].to_pylist()
    table.upgrade()
    assert _leaves(table) == len(rows) >= 2_000
    some = {
        name: each for name, each in _without_pyiceberg(readers).items() if not each.reads_again
    }
    require_rows(some, table, {None: rows}, [], Asked())


def _require_sound(table: Table, name: str) -> None:
    """Require that nothing is wrong; Java counts no bytes of files in manifests that it is handed."""
    found = [each.rule for each in table.verify(deep=True).findings]
    if name == THOUSANDS:
        found = [each for each in found if not each.startswith("total-files-size in the summary")]
    assert found == []


def _without_pyiceberg(readers: Mapping[str, Reader]) -> dict[str, Reader]:
    """Return all others: it has no Avro, and takes its time with every manifest before it says so."""
    return {name: each for name, each in readers.items() if "PyIceberg" not in name}


def _leaves(table: Table) -> int:
    return len(leaves_in(table.files.root(_newest(table), table.metadata.shape())))


@pytest.mark.long
@pytest.mark.parametrize("name", JAVA_ZOO)
def test_all_answer_fifty_filters_of_every_snapshot_of_java(
    java_zoo: Mapping[str, Animal], readers: Mapping[str, Reader], name: str
) -> None:
    slow = {"zoo.many": Asked(former=2, after_again=5), THOUSANDS: ON_THOUSANDS}
    _require_java_animal(java_zoo[name], readers, name, slow.get(name, EVERYTHING))


@pytest.mark.long
@pytest.mark.parametrize("name", PYICEBERG_ZOO)
def test_all_answer_fifty_filters_of_every_snapshot_of_pyiceberg(
    theirs: SqlCatalog, readers: Mapping[str, Reader], name: str
) -> None:
    _require_pyiceberg_animal(theirs, readers, name, EVERYTHING)


def _require_java_animal(
    animal: Animal, readers: Mapping[str, Reader], name: str, asked: Asked
) -> None:
    table = animal.opened()
    want = {at: rows.to_pylist() for at, rows in animal.rows.items()}
    current = table.metadata.current_snapshot_id
    assert current in want
    if name == THOUSANDS:
        readers = _without_pyiceberg(readers)
    beyond = [reader for reader, names in _BEYOND.items() if name in names]
    filters = _random_filters(table, name, asked, SEED + JAVA_ZOO.index(name))
    table.upgrade()
    require_rows(readers, table, {None: want[current], **want}, filters, asked, beyond=beyond)
    assert animal.refs.items() <= {n: ref.snapshot_id for n, ref in table.refs.items()}.items()
    _require_changes(readers, table, name, want, filters, asked, beyond)


def _require_pyiceberg_animal(
    theirs: SqlCatalog, readers: Mapping[str, Reader], name: str, asked: Asked
) -> None:
    PYICEBERG_ZOO[name](theirs, name)
    peer = theirs.load_table(name)
    want = {
        each.snapshot_id: peer.scan(snapshot_id=each.snapshot_id).to_arrow().to_pylist()
        for each in peer.snapshots()
    }
    current = peer.metadata.current_snapshot_id
    assert current is not None
    with icetree.connect(theirs.properties["uri"], properties={"name": theirs.name}) as lake:
        table = lake.table(name)
        filters = _random_filters(table, name, asked, SEED)
        table.upgrade()
        require_rows(readers, table, {None: want[current], **want}, filters, asked)
        _require_changes(readers, table, name, want, filters, asked, [])


def _require_changes(
    readers: Mapping[str, Reader],
    table: Table,
    name: str,
    want: Mapping[int, Sequence[Any]],
    filters: Sequence[Filter],
    asked: Asked,
    beyond: Sequence[str],
) -> None:
    """Change rows and manifests; require what is then, and what was, of all; and of v3 once more."""
    current = _newest(table).snapshot_id
    now, ours = _changed(table, want[current])
    # Every peer is asked for what there was before, and for one in between.
    first, *others = ours
    then = {None: now, current: want[current], first: ours[first]}
    for again, count in ((False, asked.after), (True, asked.after_again)):
        some = {name: each for name, each in readers.items() if each.reads_again is again}
        of_former = 5 if asked.snapshots is None else 0
        how = replace(asked, now=count, former=of_former, snapshots=None)
        require_rows(some, table, then, filters, how, beyond=beyond)
    former = {**want, **{at: ours[at] for at in others}}
    require_rows({"icetree": readers["icetree"]}, table, former, [], asked)
    _require_sound(table, name)
    _go_back(readers, table, now, filters, replace(asked, now=asked.back), beyond)
    _require_sound(table, name)


def _random_filters(table: Table, name: str, asked: Asked, seed: int) -> list[Filter]:
    """Return filters on those columns that the table has now."""
    columns = {*table.scan().to_arrow().column_names}
    known = {key: each for key, each in pools(name).items() if key.partition(".")[0] in columns}
    return random_filters(seed, max(asked.now, asked.former), known)


def _go_back(
    readers: Mapping[str, Reader],
    table: Table,
    rows: Sequence[Any],
    filters: Sequence[Filter],
    asked: Asked,
    beyond: Sequence[str],
) -> None:
    """Require the same rows, with the same numbers, of the table as v3."""
    lineage = ["id", "_row_id", "_last_updated_sequence_number"]
    numbers = sorted(map(said, table.scan(columns=lineage).to_arrow().to_pylist()))
    downgrade(table, dry_run=False)
    assert table.metadata.format_version == 3
    require_rows(readers, table, {None: rows}, filters, asked, beyond=beyond)
    assert sorted(map(said, table.scan(columns=lineage).to_arrow().to_pylist())) == numbers


def _changed(table: Table, rows: Sequence[Any]) -> tuple[list[Any], dict[int, list[Any]]]:
    """Delete, merge, append and rewrite manifests.

    Return the rows that there must be then, and those of the snapshots in between, the first one first.
    """
    before = table.scan().to_arrow()
    ours: dict[int, list[Any]] = {}
    gone = (1, 6, 16, 51, 101, 121)
    table.delete(f"id in {gone}")
    rows = [row for row in rows if row["id"] not in gone]
    ours[_newest(table).snapshot_id] = [*rows]
    # Some that are there get another number, some are new: the key must be one row's alone.
    some = before.filter(pc.is_in(before["id"], pa.array([2, 7, 52, 102, 122], pa.int64())))
    at = some.column_names.index("n")
    changed = some.set_column(at, some.schema.field(at), pa.nulls(some.num_rows, some.schema.field(at).type))  # fmt: skip
    new = changed.set_column(
        changed.column_names.index("id"),
        changed.schema.field("id"),
        pc.add(changed["id"], 10_000),
    )
    if len({*changed["id"].to_pylist()}) == changed.num_rows:
        table.upsert(pa.concat_tables([changed, new]), on=["id"])
        ids = {*changed["id"].to_pylist()}
        rows = [row for row in rows if row["id"] not in ids]
        rows += [*changed.to_pylist(), *new.to_pylist()]
        ours[_newest(table).snapshot_id] = [*rows]
    table.append(new)
    rows += new.to_pylist()
    ours[_newest(table).snapshot_id] = [*rows]
    table.maintenance.rewrite_manifests()
    return rows, ours


def _newest(table: Table) -> Snapshot:
    snapshot = table.snapshot()
    assert snapshot is not None
    return snapshot
