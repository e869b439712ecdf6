"""A few inputs of the fuzzing campaign, and every input that once was taken badly."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from campaigns.fuzz import run as fuzz
from campaigns.fuzz.run import campaign
from campaigns.fuzz.targets import TARGETS, seeds_of
from campaigns.fuzz.worker import input_of
from tests.fuzz.dying import DEADLY, DYING, SEED

CORPUS = Path(__file__).parent / "corpus"
#: A whole table takes seconds to read, so it is left to `make fuzz`.
QUICK = [target for target in TARGETS.values() if target.name != "table"]
#: How many inputs there are of all kinds together.
INPUTS = 4000
#: Far above what they take on a busy machine: what takes longer hangs.
HANGS_S = 600


@contextmanager
def within(seconds: int) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "path", sorted(CORPUS.glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_what_was_found_once_is_taken_well_since(path: Path) -> None:
    with within(20):
        assert TARGETS[path.parent.name].outcome(path.read_bytes()) is None


@pytest.mark.parametrize("name", [target.name for target in QUICK])
def test_the_inputs_that_damage_is_made_of_are_sound(name: str) -> None:
    assert seeds_of(name)
    if name in ("metadata-gz", "vector"):
        return  # among them are pages, and vectors of more rows than a leaf can have
    for data in seeds_of(name):
        TARGETS[name].run(data)


def test_an_input_is_the_same_whenever_its_number_is() -> None:
    assert input_of("bitmap", 1, 7) == input_of("bitmap", 1, 7) != input_of("bitmap", 1, 8)


def test_damaged_inputs_of_every_kind_are_refused_and_no_more() -> None:
    tallies = campaign(QUICK, inputs=INPUTS, seconds=HANGS_S, seed=7, processes=1)
    assert [str(each) for tally in tallies.values() for each in tally.findings] == []
    whole = sum(target.share for target in QUICK)
    shares = {target.name: INPUTS * target.share // whole for target in QUICK}
    assert {name: tally.inputs for name, tally in tallies.items()} == shares


def test_what_ends_a_process_is_told_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "WORKER", "tests.fuzz.dying")
    tallies = campaign([DYING], inputs=5, seconds=HANGS_S, seed=SEED, processes=1)
    [finding] = tallies[DYING.name].findings
    assert (finding.number, finding.why) == (DEADLY, "died: SIGABRT")
    assert tallies[DYING.name].inputs == 5
