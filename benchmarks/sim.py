"""What commits and trees come to on object stores, simulated: many writers, many files.

Nothing is measured here: times of requests, and sizes of files as other benchmarks measured them, are
what it starts from. A seed decides all chance, so a run tells the same each time.

    python -m benchmarks.sim                       # the tables
    python -m benchmarks.sim --svg docs/figures    # and the plots
"""

from __future__ import annotations

import argparse
import heapq
import math
import random
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import quantiles
from typing import Any, Final

KIB: Final = 1024
MIB: Final = 1024 * KIB
#: An entry of a manifest, with stats of ten columns, as measured.
_ENTRY_BYTES: Final = 171
#: How long an answer of one who commits for all is on its way.
_ANSWER_MS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """How long requests take, in milliseconds: published figures of S3 in one region."""

    get_ms: float = 27
    get_ms_per_mib: float = 12
    put_ms: float = 60
    put_ms_per_mib: float = 20
    swap_ms: float = 61
    #: How far times scatter: the standard deviation of their logarithm.
    spread: float = 0.25

    def get(self, size: float) -> float:
        """Return how long it takes to read so many bytes."""
        return self.get_ms + self.get_ms_per_mib * size / MIB

    def put(self, size: float) -> float:
        """Return how long it takes to write so many bytes."""
        return self.put_ms + self.put_ms_per_mib * size / MIB


# --- commits -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """What a small commit reads and writes, in a table of so many commits."""

    name: str
    #: Files that an attempt writes one after the other, in bytes; those of one step side by side.
    steps: tuple[tuple[float, ...], ...]
    #: What is written once, however many attempts follow.
    once: tuple[float, ...]
    #: What an attempt that lost reads before the next.
    reads: tuple[float, ...]
    #: Whether commits that wait are committed together.
    grouped: bool = False
    #: Whether writers stand in line before they write.
    in_line: bool = False


def formats(commits: int) -> dict[str, Format]:
    """Return the ways to commit to a table that has had so many commits, by name.

    Of v3, metadata.json and the manifest list grow with each commit (0.62 KB and 0.03 KB, as PyIceberg
    writes them); of V4 neither the root nor metadata.json does (40 and 15 KB, icetree at its defaults).
    """
    metadata, listing = 0.62 * KIB * commits + 3 * KIB, 0.03 * KIB * commits + 3 * KIB
    v3 = Format(
        name="v3", once=(7 * KIB,), steps=((listing,), (metadata,)), reads=(metadata, listing)
    )
    v4 = Format(name="V4", once=(), steps=((40 * KIB, 15 * KIB),), reads=(15 * KIB, 40 * KIB))
    return {
        "v3": v3,
        "V4": v4,
        "V4, in line": replace(v4, name="V4, in line", in_line=True),
        "V4, grouped": replace(v4, name="V4, grouped", grouped=True),
    }


@dataclass(slots=True)
class World:
    """Time that passes by waiting, and the one head of a table."""

    store: Store
    chance: random.Random
    now: float = 0.0
    version: int = 0
    requests: int = 0
    lost: int = 0
    waits: list[float] = field(default_factory=list)
    #: Until when somebody has the turn.
    busy_until: float = 0.0

    def took(self, milliseconds: float) -> float:
        """Return a time as it happens to be, of one request."""
        self.requests += 1
        return milliseconds * math.exp(self.chance.gauss(0, self.store.spread))


Act = Generator[float, None, None]


def _writer(world: World, kind: Format) -> Act:
    """Commit, over and over: as soon as one has landed, the next is there."""
    while True:
        begun = world.now
        for size in kind.once:
            yield world.took(world.store.put(size))
        if kind.in_line:
            yield from _turn(world, kind)
        attempts = 0
        while True:
            seen = world.version
            for step in kind.steps:
                yield max(world.took(world.store.put(size)) for size in step)
            # The swap is decided halfway through its request.
            half = world.took(world.store.swap_ms) / 2
            yield half
            landed = world.version == seen
            world.version += landed
            yield half
            if landed:
                break
            world.lost += 1
            attempts += 1
            for size in kind.reads:
                yield world.took(world.store.get(size))
            yield world.chance.uniform(0, min(10 * 2.0**attempts, 2000))
        world.waits.append(world.now - begun)


def _turn(world: World, kind: Format) -> Act:
    """Stand in line: whoever has the turn is alone, for as long as a commit takes."""
    store = world.store
    writing = sum(max(store.put(size) for size in step) for step in kind.steps)
    reading = sum(store.get(size) for size in kind.reads)
    start = max(world.now, world.busy_until)
    world.busy_until = start + reading + writing + store.swap_ms
    if start > world.now:
        yield start - world.now
        # Others committed meanwhile: what they left is read.
        yield sum(world.took(store.get(size)) for size in kind.reads)


def _grouped(world: World, kind: Format, writers: int, end_ms: float) -> None:
    """Let one commit for all: whatever waits when it begins lands with one swap."""
    arrivals = [world.chance.uniform(0, 100) for _ in range(writers)]
    while world.now < end_ms:
        world.now = max(world.now, min(arrivals))
        group = [at for at, begun in enumerate(arrivals) if begun <= world.now]
        # Each brings an entry to the root.
        more = _ENTRY_BYTES * len(group)
        for step in kind.steps:
            world.now += max(world.took(world.store.put(size + more)) for size in step)
        world.now += world.took(world.store.swap_ms)
        world.waits += [world.now - arrivals[at] for at in group]
        for at in group:
            arrivals[at] = world.now + _ANSWER_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What so many writers come to."""

    writers: int
    per_s: float
    median_ms: float
    p99_ms: float
    #: For each commit that landed.
    requests: float
    tries: float


def commits(kind: Format, writers: int, *, seconds: int, store: Store, seed: int = 1) -> Rate:
    """Let so many writers commit for a time, and tell how it went."""
    world = World(store=store, chance=random.Random(seed))
    end = seconds * 1000
    if kind.grouped:
        _grouped(world, kind, writers, end)
    else:
        actors = [_writer(world, kind) for _ in range(writers)]
        queue = [(world.chance.uniform(0, 100), at) for at in range(writers)]
        heapq.heapify(queue)
        while queue[0][0] < end:
            world.now, at = queue[0]
            heapq.heapreplace(queue, (world.now + next(actors[at]), at))
    done = len(world.waits)
    cuts = quantiles(world.waits, n=100)
    return Rate(
        writers=writers,
        per_s=done / seconds,
        median_ms=cuts[49],
        p99_ms=cuts[98],
        requests=world.requests / done,
        tries=1 + world.lost / done,
    )


# --- trees -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A table of so many files, in leaves of one size."""

    files: int
    leaf_entries: int

    @property
    def leaves(self) -> int:
        """How many leaves there are."""
        return -(-self.files // self.leaf_entries)

    @property
    def root_bytes(self) -> float:
        """How large a root is: its leaves, and 64 files."""
        return 10 * KIB + _ENTRY_BYTES * (self.leaves + 64)

    def commit_ms(self, store: Store) -> float:
        """Return how long a small commit takes: root and metadata side by side, then the swap."""
        encode = 3 + self.leaves * 0.0013
        return encode + store.put(self.root_bytes) + store.swap_ms

    def plan_ms(self, store: Store, *, leaves: int = 2) -> float:
        """Return how long a selective plan takes, cold: metadata, root, then leaves side by side."""
        decode = 3 + self.leaves * 0.0007 + leaves * 5
        leaf = store.get(min(self.files, self.leaf_entries) * _ENTRY_BYTES)
        return store.get(15 * KIB) + store.get(self.root_bytes) + leaf + decode


def v3_plan_ms(files: int, store: Store, *, workers: int = 16) -> float:
    """Return how long a plan takes in v3 by a column that is no partition: every manifest is read.

    89 microseconds an entry, as PyIceberg takes; manifests of 40,000 entries, 16 at a time.
    """
    manifests = -(-files // 40_000)
    listing = store.get(200 * manifests)
    reading = -(-manifests // workers) * store.get(200 * min(files, 40_000))
    return store.get(MIB) + listing + reading + files * 0.089 / workers


WRITERS: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
FILES: Final = tuple(10**power for power in range(3, 10))
LEAVES: Final = (50_000, 200_000)
SECONDS: Final = 60


def all_rates(age: int = 1000, *, seconds: int = SECONDS) -> dict[str, list[Rate]]:
    """Return rates by way of committing, of a table of so many commits."""
    store = Store()
    return {
        name: [commits(kind, each, seconds=seconds, store=store) for each in WRITERS]
        for name, kind in formats(age).items()
    }


def all_trees() -> Iterator[tuple[Tree, float, float, float]]:
    """Yield trees of all sizes: with the milliseconds of a commit, of a plan, and of one in v3."""
    store = Store()
    for files in FILES:
        for entries in LEAVES:
            tree = Tree(files=files, leaf_entries=entries)
            yield tree, tree.commit_ms(store), tree.plan_ms(store), v3_plan_ms(files, store)


# --- what is shown -----------------------------------------------------------------------------


def draw(folder: Path) -> None:
    """Write the plots."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams |= {"svg.hashsalt": "icetree", "svg.fonttype": "none"}
    from matplotlib import pyplot as plt

    colours = dict(zip(formats(1), ("#c2410c", "#7c3aed", "#0369a1", "#0f766e"), strict=True))
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for name, rates in all_rates().items():
        axes[0].plot(
            WRITERS, [each.per_s for each in rates], "o-", ms=3, label=name, color=colours[name]
        )
        axes[1].plot(
            WRITERS,
            [each.p99_ms / 1000 for each in rates],
            "o-",
            ms=3,
            label=name,
            color=colours[name],
        )
    _axes(axes[0], "writers", "commits a second")
    _axes(axes[1], "writers", "seconds, the slowest of a hundred")
    axes[0].legend(frameon=False)
    figure.savefig(folder / "sim-writers.svg", metadata={"Date": None})

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    trees = list(all_trees())
    for entries, style in zip(LEAVES, ("o-", "s--"), strict=True):
        mine = [each for each in trees if each[0].leaf_entries == entries]
        label = f"V4, leaves of {entries:,}"
        axes[0].plot(FILES, [each[1] for each in mine], style, ms=3, label=label, color="#0f766e")
        axes[1].plot(
            FILES, [each[2] / 1000 for each in mine], style, ms=3, label=label, color="#0f766e"
        )
    axes[1].plot(
        FILES, [each[3] / 1000 for each in trees[::2]], "o-", ms=3, label="v3", color="#c2410c"
    )
    _axes(axes[0], "files", "ms of a small commit", log_y=False)
    _axes(axes[1], "files", "seconds of a selective plan, cold")
    axes[1].legend(frameon=False)
    figure.savefig(folder / "sim-trees.svg", metadata={"Date": None})


def _axes(axes: Any, x: str, y: str, *, log_y: bool = True) -> None:
    axes.set(xlabel=x, ylabel=y, xscale="log", yscale="log" if log_y else "linear")
    axes.minorticks_off()
    axes.spines[["top", "right"]].set_visible(False)


def main(show: Callable[[str], None] = print) -> None:
    """Print the tables, and draw the plots where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", type=Path, metavar="FOLDER", help="also draw the plots")
    parser.add_argument("--commits", type=int, default=1000, help="how old the table is")
    given = parser.parse_args()
    for name, rates in all_rates(given.commits).items():
        for each in rates:
            show(
                f"{name:12} {each.writers:4} writers {each.per_s:8.1f} /s {each.median_ms:9.0f} ms"
                f" {each.p99_ms:9.0f} ms (1 in 100) {each.requests:6.1f} requests {each.tries:6.1f} tries"
            )
    for tree, commit, plan, old in all_trees():
        show(
            f"{tree.files:13,} files {tree.leaves:7,} leaves of {tree.leaf_entries:,}"
            f" root {tree.root_bytes / MIB:6.2f} MiB commit {commit:6.0f} ms plan {plan:7.0f} ms v3 {old:12.0f} ms"
        )
    if given.svg is not None:
        draw(given.svg)


if __name__ == "__main__":
    main()
