"""Running one script from beginning to end."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from campaigns.simulate.every_verb import VERBS, WEIGHTS
from campaigns.simulate.finding import Finding
from campaigns.simulate.script import Script, draw
from campaigns.simulate.world import World


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a script."""

    script: Script
    steps: int
    landings: int
    faults: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    finding: Finding | None = None
    #: Whether it was found by looking at what there was in the end.
    at_the_end: bool = False
    log: tuple[str, ...] = ()


def script_of(seed: int, *, busy: bool = False) -> Script:
    """Return what a seed draws."""
    return draw(seed, WEIGHTS, busy=busy)


def run(script: Script, *, to_the_end: bool = True) -> Outcome:
    """Carry out a script and check every law; the same script always comes to the same.

    Unless one looks at it `to_the_end`, only what writers do and see is checked.
    """
    world = World(script, VERBS)
    finding, at_the_end = None, False
    try:
        world.run()
        if to_the_end:
            at_the_end = True
            world.look_at_all()
    except Finding as found:
        finding = found
    return Outcome(
        script=script,
        steps=world.steps,
        landings=world.judge.landings,
        faults=world.faults,
        outcomes=world.outcomes,
        finding=finding,
        at_the_end=finding is not None and at_the_end,
        log=tuple(world.log),
    )
