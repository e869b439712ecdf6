"""What a seed decides before anything runs: the table's settings, and who does what in which order.

Everything that a step draws comes from its own number, so steps can be left out and the others
still do what they did: that is how a failing script becomes short.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that one writer does."""

    number: int
    writer: int
    verb: str
    #: Whether anything may go wrong in it.
    faulty: bool
    #: Whether others may come in between any two of its calls.
    shared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the world is like before the first step."""

    properties: Mapping[str, str]
    partition_by: tuple[str, ...]
    skews_ms: tuple[int, ...]
    #: How often a writer looks at what is newest before it does something.
    refreshes: float
    manifest_cache_bytes: int
    #: The format version that the table of rows has in the beginning.
    born_as: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A seed with the steps that are left of what it drew."""

    seed: int
    steps: tuple[Step, ...]
    settings: Settings

    def chance(self, *of: object) -> random.Random:
        """Return the chance that decides one thing, whatever else happens."""
        return random.Random(f"{self.seed} {of}")

    def only(self, steps: tuple[Step, ...]) -> Script:
        """Return the script with these steps alone."""
        return replace(self, steps=steps)


def draw(seed: int, weights: Mapping[str, int], *, busy: bool = False) -> Script:
    """Return the script of a seed; verbs come as often as their weights say.

    A busy one has many writers, faults and stale handles, and every verb.
    """
    chance = random.Random(f"script {seed}")
    writers = 3 if busy else chance.choice((1, 2, 3, 3, 4))
    count = 25 if busy else chance.choice((20, 40, 60))
    faults = 0.4 if busy else chance.choice((0.0, 0.1, 0.3))
    sharing = 0.0 if writers == 1 else chance.choice((0.0, 0.4, 0.8))
    # Seeds that use but some of the verbs go deeper into these.
    share = 1.0 if busy else chance.choice((0.5, 0.8, 1.0))
    verbs = [verb for verb in weights if chance.random() < share] or [*weights]
    shares = [weights[verb] for verb in verbs]
    steps = tuple(
        Step(
            number=number,
            writer=chance.randrange(writers),
            verb=chance.choices(verbs, shares)[0],
            faulty=chance.random() < faults,
            shared=chance.random() < sharing,
        )
        for number in range(1, count + 1)
    )
    refreshes = 0.2 if busy else chance.choice((0.3, 0.6, 0.9))
    return Script(seed=seed, steps=steps, settings=_settings(chance, writers, refreshes))


def _settings(chance: random.Random, writers: int, refreshes: float) -> Settings:
    return Settings(
        refreshes=refreshes,
        properties=tiny(chance) | _metrics(chance),
        partition_by=chance.choice(((), ("k",), ("truncate(2, k)",), ("bucket(2, k)",))),
        skews_ms=tuple(chance.choice((0, 0, -3_600_000, 86_400_000)) for _ in range(writers)),
        manifest_cache_bytes=chance.choice((0, 10_000, 64 * 1024 * 1024)),
        born_as=chance.choice((4, 4, 4, 4, 4, 4, 4, 2, 3)),
    )


def _metrics(chance: random.Random) -> dict[str, str]:
    """Return which stats there are of columns that no filter is about."""
    modes = ("none", "counts", "truncate(1)", "full", None)
    drawn = {name: chance.choice(modes) for name in ("v", "n")}
    prefix = "write.metadata.metrics.column."
    return {prefix + name: mode for name, mode in drawn.items() if mode is not None}


def tiny(chance: random.Random) -> dict[str, str]:
    """Return thresholds so small that roots flush, leaves split and history is paged all the time."""
    every = {
        "write.root.max-data-entries": (1, 2, 3, 5),
        "write.root.max-delete-entries": (0, 1, 2, 4),
        "write.leaf.max-entries": (1, 2, 4, 50_000),
        "write.manifest-dv.inline-max-bytes": (0, 64, 65_536),
        "write.commit.compact-max-entries": (0, 4, 20_000),
        "write.commit.compact-min-leaves": (2, 3, 16),
        "write.commit.compact-removed-percent": (10, 50, 100),
        "write.flush.affinity-min-entries": (1, 2, 50),
        "write.flush.affinity-max-leaves": (0, 2, 100),
        "write.metadata.inline-snapshots": (1, 2, 5, 100),
        "write.metadata.previous-versions-max": (1, 3, 100),
        "write.metadata.compression-codec": ("gzip", "none"),
        "commit.retry.num-retries": (1, 3, 100),
        "write.parquet.row-group-limit": (1, 1_048_576),
    }
    chosen = [name for name in every if chance.random() < 0.6]
    return {name: str(chance.choice(every[name])) for name in chosen}
