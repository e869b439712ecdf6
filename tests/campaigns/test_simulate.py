"""The simulation finds nothing in icetree, and what is planted in it: else nothing would say little."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from campaigns.simulate.every_verb import WEIGHTS
from campaigns.simulate.run import Outcome, run, script_of
from campaigns.simulate.script import draw
from campaigns.simulate.shrink import shrunk
from tests.campaigns.planted import PLANTED, Planted
from tests.effort import EFFORT, SEED

#: A fault that is planted has to show within so many seeds.
SEEDS = 20
#: A seed whose deletes draw from rows of several files that came at once.
SHOWS_ORDER = 2
#: How many busy scripts, which draw from every verb, are run again in another process.
AGAIN = 3 * EFFORT
#: One fault for each part of a commit; `make laws` plants the others, too.
USUAL = {
    "a DV is dropped in a flush",
    "rows that were read may change",
    "a lost answer is taken for a good one",
    "files are deleted while in doubt",
}


#: Parts that run side by side, and seeds of each: every other part is of busy scripts.
PARTS, SEEDS_OF_A_PART = 6, 4
#: Seeds that no planted fault was looked for with, and none that another round of `make laws` has.
FIRST, ROUND = 100_000, 10_000


@pytest.mark.law
@pytest.mark.parametrize("part", range(PARTS))
def test_no_seed_breaks_a_law(part: int) -> None:
    busy, count = part % 2 == 1, SEEDS_OF_A_PART * EFFORT
    first = FIRST + SEED * ROUND + part * count
    found = [run(script_of(seed, busy=busy)) for seed in range(first, first + count)]
    broken = {each.script.seed: str(each.finding) for each in found if each.finding}
    again = f'make simulate ARGS="--seed NUMBER{" --busy" if busy else ""}"'
    assert broken == {}, f"to see it again: {again}"


def test_a_seed_does_the_same_each_time() -> None:
    script = draw(1, WEIGHTS, busy=True)
    first, second = run(script), run(script)
    assert first.log == second.log
    assert first.faults.total() > 0


@pytest.mark.law
def test_a_seed_does_the_same_in_another_process() -> None:
    """Else what a campaign finds could not be seen again: texts hash otherwise in every process."""
    first = FIRST + SEED * ROUND
    scripts = [script_of(seed, busy=True) for seed in range(first, first + AGAIN)]
    verbs = {step.verb for script in scripts for step in script.steps}
    assert len(verbs) > len(WEIGHTS) // 2, "too few verbs are seen again"
    one, other = (_told_with_hashes_of(number, first) for number in ("1", "2"))
    assert one == other
    assert "equally" in one


def _told_with_hashes_of(number: str, first: int) -> str:
    """Return the log of busy scripts, and of one that deletes rows of files that came at once."""
    code = f"""
from campaigns.simulate.run import run, script_of
from campaigns.simulate.script import draw
scripts = [draw({SHOWS_ORDER}, {{'append': 3, 'upsert': 3}}, busy=True)]
scripts += [script_of(seed, busy=True) for seed in range({first}, {first + AGAIN})]
for script in scripts:
    print(script.seed, *run(script, to_the_end=False).log, sep='\\n')
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": number},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    "planted",
    [pytest.param(each, marks=() if each in USUAL else pytest.mark.long) for each in PLANTED],
)
def test_what_is_planted_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = PLANTED[planted]
    fault.patch(monkeypatch)
    found = _first_finding(fault)
    assert found.finding is not None
    assert found.finding.law in fault.laws, str(found.finding)
    monkeypatch.undo()
    assert run(found.script).finding is None, "it is there without being planted"


def test_a_finding_is_shrunk_to_a_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = PLANTED["row ids start one too late"]
    fault.patch(monkeypatch)
    found = _first_finding(fault)
    short = shrunk(found)
    assert found.finding is not None
    assert short.finding is not None
    assert short.finding.law == found.finding.law
    assert len(short.script.steps) <= 1
    assert run(short.script).log == short.log


def _first_finding(fault: Planted) -> Outcome:
    """Return the first seed that breaks a law, of scripts that have but these verbs."""
    weights = {verb: WEIGHTS[verb] for verb in fault.verbs}
    seeds = range(fault.first, fault.first + SEEDS)
    outcomes = (run(draw(seed, weights, busy=True), to_the_end=False) for seed in seeds)
    found = next((each for each in outcomes if each.finding is not None), None)
    assert found is not None, f"no seed from {seeds.start} to {seeds.stop - 1} shows the fault"
    return found
