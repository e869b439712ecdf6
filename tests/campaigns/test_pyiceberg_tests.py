"""The lists of PyIceberg's tests that differ or do not apply stay true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from campaigns.pyiceberg_tests.expected import DIFFER, LEFT_OUT
from campaigns.pyiceberg_tests.shipped import readdressed
from campaigns.pyiceberg_tests.verdict import Outcome, judged, outcomes, pattern

PASSED, FAILED = Outcome(told="passed"), Outcome(told="failed", error="assert 1 == 2")
APART, SKIPPED = Outcome(told="left out"), Outcome(told="skipped")
DIFFERS = {"test_a.py::test_x[1-*]": "wants v1"}


def test_failures_that_are_listed_are_counted_by_their_reason() -> None:
    found = {"tests/test_a.py::test_x[1-b]": FAILED, "tests/test_a.py::test_y": PASSED}
    verdict = judged(found, DIFFERS, {})
    assert verdict.wrong == ()
    assert (verdict.passed, verdict.differ) == (1, {"wants v1": 1})


def test_what_is_left_out_is_counted_by_its_reason() -> None:
    found = {"tests/test_a.py::test_z": APART}
    assert judged(found, {}, {"test_a.py::test_z": "no Hive"}).left_out == {"no Hive": 1}


@pytest.mark.parametrize(
    ("test", "outcome", "said"),
    [
        ("test_a.py::test_x[2-b]", FAILED, "test_x[2-b] failed: assert 1 == 2"),
        ("test_a.py::test_x[1-b]", PASSED, "test_x[1-b] passes, but is listed: wants v1"),
        ("test_a.py::test_x[1-b]", SKIPPED, "test_x[1-b] was skipped"),
        ("test_a.py::test_y", PASSED, "there is no test test_a.py::test_x[1-*]"),
    ],
)
def test_whatever_the_lists_do_not_say_is_wrong(test: str, outcome: Outcome, said: str) -> None:
    assert any(said in each for each in judged({f"tests/{test}": outcome}, DIFFERS, {}).wrong)


def test_lists_say_nothing_of_files_that_did_not_run() -> None:
    assert judged({"tests/test_b.py::test_y": PASSED}, DIFFERS, {}).wrong == ()


def test_a_test_that_fails_while_it_is_cleaned_up_failed(tmp_path: Path) -> None:
    file = tmp_path / "outcomes.jsonl"
    file.write_text('["a", "passed", ""]\n["a", "failed", "oh"]\n["b", "failed", "no"]\n')
    assert outcomes(file) == {
        "a": Outcome(told="failed", error="oh"),
        "b": Outcome(told="failed", error="no"),
    }


def test_no_test_is_both_left_out_and_said_to_differ() -> None:
    names = [f"tests/{each.replace('*', 'x')}" for each in DIFFER]
    assert [each for each in names if re.search(pattern(LEFT_OUT), each)] == []


def test_addresses_are_all_that_changes_in_a_test(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for part in ("tests", "dev"):
        (source / part).mkdir(parents=True)
    (source / "pyproject.toml").write_text("")
    (source / "tests" / "test_a.py").write_text('uri = "http://localhost:8181"  # ü\n')
    made = readdressed(source, tmp_path / "made", {"localhost:8181": "127.0.0.1:5"})
    assert (made / "tests" / "test_a.py").read_text() == 'uri = "http://127.0.0.1:5"  # ü\n'
    assert "8181" in (source / "tests" / "test_a.py").read_text()
