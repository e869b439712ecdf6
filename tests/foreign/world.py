"""A whole table of another writer, decided by one seed: its history, its rows, its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.foreign.columns import Row
from tests.foreign.drawn import draw_layout
from tests.foreign.dress import aside
from tests.foreign.evolution import evolved
from tests.foreign.files import Shop
from tests.foreign.history import metadata
from tests.foreign.layout import Layout, Partition
from tests.foreign.model import DATA, EQUALITY, File, applies, positions_of, rows_of
from tests.foreign.stored import FORMATS
from tests.foreign.tree import Names
from tests.foreign.writer import Writer

TABLE = "memory://foreign/db/t"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A table that is ready to be read."""

    seed: int
    writer: Writer
    metadata_location: str
    stored: dict[str, bytes]

    def rows(self, at: int) -> list[Row]:
        """Return the rows of a snapshot by its number."""
        return rows_of(self.writer.snapshots[at].live, self.writer.layout)

    @property
    def layout(self) -> Layout:
        return self.writer.layout

    @property
    def refs(self) -> dict[str, int]:
        """Branches and tags beside main, with the number of the snapshot that each is at."""
        numbers = {each.id: at for at, each in enumerate(self.writer.snapshots)}
        refs = {**self.writer.heads, **self.writer.tags}
        return {name: numbers[id] for name, id in refs.items() if name != "main"}


def new_writer(rng: Random, *, full: float) -> Writer:
    """Return a writer of an empty table."""
    layout = draw_layout(rng)
    mapped = aside(rng, "mapping").random() < 0.3
    shop = Shop(
        table=TABLE,
        layout=layout,
        rng=rng,
        stored={},
        formats=FORMATS,
        strange=True,
        mapped=mapped,
    )
    return Writer(rng=rng, layout=layout, shop=shop, names=Names(table=TABLE, rng=rng, full=full))


#: Which version the tables of seeds that follow each other were upgraded from; None for none.
VERSIONS = (2, None, 3, None, 1, None)


def draw_world(seed: int, *, most: int = 7) -> World:
    """Make the table of a seed: the same every time."""
    rng = Random(seed)
    writer = draw_history(rng, most=most, version=VERSIONS[seed % len(VERSIONS)])
    place = metadata(writer, rng)
    return World(seed=seed, writer=writer, metadata_location=place, stored=writer.shop.stored)


def draw_history(rng: Random, *, most: int, version: int | None = None) -> Writer:
    """Let a writer commit at random, to a new table or to one that was of an older version."""
    writer = new_writer(rng, full=rng.choice((0.0, 0.0, 0.5, 1.0)))
    if version is not None:
        _upgraded(writer, version)
    else:
        writer.commit("append", added=[writer.shop.new_data() for _ in range(rng.randint(1, 6))])
    for _ in range(rng.randint(1, most)):
        if rng.random() < 0.35:
            _elsewhere(writer)
        if rng.random() < 0.25:
            _evolve(writer)
        _STEPS[rng.randrange(len(_STEPS))](writer)
    if rng.random() < 0.2:
        _evolve(writer)
    return writer


def _elsewhere(writer: Writer) -> None:
    """Go on with another branch, one that begins at any snapshot, or main from there; or tag one."""
    rng = writer.rng
    at = rng.choice(writer.snapshots).id
    number = len(writer.heads) + len(writer.tags)
    match rng.randrange(5):
        case 0 | 1:
            writer.hop(f"branch-{number}", at=at)
        case 2:
            writer.hop(rng.choice(list(writer.heads)))
        case 3:
            writer.tags[f"tag {number}/é"] = at
        case 4:
            writer.hop("main", at=at)


def _evolve(writer: Writer) -> None:
    writer.layout = writer.shop.layout = evolved(writer.layout, writer.rng)


def _upgraded(writer: Writer, version: int) -> None:
    rng, shop = writer.rng, writer.shop
    # Transforms of several columns came with v3.
    specs = [id for id, spec in writer.layout.specs.items() if version == 3 or not _several(spec)]
    files = [shop.new_data(rng.choice(specs)) for _ in range(rng.randint(1, 5))]
    held = [file for file in files if file.rows]
    if version > 1 and held and rng.random() < 0.6:
        files.append(shop.equality(rng.choice(held)))
    if version == 2 and held and rng.random() < 0.7:
        files.append(shop.positions(held[0]))
    if version == 3 and held and rng.random() < 0.7:
        file = held[0]
        files += shop.vectors({0: (file, frozenset({rng.randrange(file.record_count)}))})
    gone = [shop.new_data(rng.choice(specs)) for _ in range(rng.choice((0, 0, 1)))]
    writer.upgrade_from(version, files, tuple(gone))
    writer.commit("append", added=[shop.new_data()] if rng.random() < 0.7 else [])


def _several(spec: tuple[Partition, ...]) -> bool:
    return any(part.others for part in spec)


def _append(writer: Writer) -> None:
    rng = writer.rng
    count = rng.choice((0, 1, 2, 5, 9))
    writer.commit("append", added=[writer.shop.new_data() for _ in range(count)])


def _delete(writer: Writer) -> None:
    data = _data(writer)
    count = writer.rng.randint(0, len(data)) if data else 0
    writer.commit("delete", removed=writer.rng.sample(data, count))


def _row_delta(writer: Writer) -> None:
    """Add data DVs, in place of those that are there, and equality deletes, and rows."""
    rng, shop = writer.rng, writer.shop
    data = [file for file in _data(writer) if file.rows]
    live = writer.tree.live()
    had = {id(each.target): each for each in live if each.is_vector}
    chosen = rng.sample(data, rng.randint(0, len(data))) if data else []
    wanted: dict[int, tuple[File, frozenset[int]]] = {}
    for file in chosen:
        before = had[id(file)].positions if id(file) in had else positions_of(file, live)
        gone = before | {rng.randrange(file.record_count)}
        wanted[id(file)] = (file, gone)
    added = shop.vectors(wanted) if wanted else []
    if data and rng.random() < 0.6:
        added.append(shop.equality(rng.choice(data)))
    if rng.random() < 0.4:
        added.append(shop.new_data())
    removed = [had[id] for id in wanted if id in had]
    if had and rng.random() < 0.15:
        # Rows may come back: a DV goes and none takes its place.
        removed += [each for each in had.values() if each not in removed][:1]
    writer.commit("overwrite", added=added, removed=removed)


def _copy_on_write(writer: Writer) -> None:
    """Replace a file by one of the same rows, some of them changed; or by exactly the same."""
    rng, shop = writer.rng, writer.shop
    data = _data(writer)
    if not data:
        return _append(writer)
    old = rng.choice(data)
    layout = writer.layout
    partners = [e for e in writer.tree.live() if e is not old and e.content != DATA]
    live = rows_of([old, *partners], layout)
    same = rng.random() < 0.5
    if not same:
        for row in live[:1]:
            row["note"] = "changed"
            row["_last_updated_sequence_number"] = None
    if not live:
        writer.commit("replace" if same else "overwrite", removed=[old])
        return None
    new = shop.data(live, old.spec_id, lineage=True)
    if same:
        # Rows that were there before deletes that came since are as old as they were.
        new.sequence_number = writer.sequence_number
    writer.commit("replace" if same else "overwrite", added=[new], removed=[old])
    return None


def _forget_equality(writer: Writer) -> None:
    """Remove equality deletes that have nothing left to delete."""
    live = writer.tree.live()
    data = [each for each in live if each.content == DATA]
    idle = [
        each
        for each in live
        if each.content == EQUALITY and not any(applies(each, f, writer.layout) for f in data)
    ]
    writer.commit("replace", removed=idle)


def _data(writer: Writer) -> list[File]:
    return [each for each in writer.tree.live() if each.content == DATA]


_STEPS = (
    _append,
    _append,
    _delete,
    _row_delta,
    _row_delta,
    _row_delta,
    _copy_on_write,
    _forget_equality,
)
