"""The stores that tests and benchmarks put around others do what they say."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from icetree.errors import NotFound, Unavailable
from icetree.store.local import LocalStore
from icetree.store.memory import MemoryStore
from tests.store.flaky import Fault, FlakyStore, How
from tests.store.slow import SlowStore

A, B, C = (f"memory://m/{name}" for name in "abc")


def test_steps_are_counted_in_order() -> None:
    store = FlakyStore(MemoryStore())
    store.write_many([(A, b"1"), (B, b"2")])
    store.read(A)
    store.delete([A, B])
    assert [(step.number, step.operation, step.location) for step in store.steps] == [
        (0, "write_new", A),
        (1, "write_new", B),
        (2, "read", A),
        (3, "delete", A),
    ]


def test_a_request_that_never_arrives_has_no_effect() -> None:
    store = FlakyStore(MemoryStore(), [Fault(at=1, how=How.BEFORE)])
    store.write_new(A, b"1")
    with pytest.raises(Unavailable, match="never arrives"):
        store.write_new(B, b"2")
    store.write_new(C, b"3")
    assert [store.store.exists(each) for each in (A, B, C)] == [True, False, True]


def test_a_lost_answer_has_its_effect() -> None:
    store = FlakyStore(MemoryStore(), [Fault(at=0, how=How.AFTER, error=TimeoutError)])
    with pytest.raises(TimeoutError, match="answer lost"):
        store.write_new(A, b"1")
    assert store.read(A) == b"1"


def test_a_fault_can_count_one_operation_only() -> None:
    store = FlakyStore(MemoryStore(), [Fault(at=1, operation="read", how=How.BEFORE)])
    store.write_new(A, b"1")
    assert store.read(A) == b"1"
    assert store.exists(A)
    with pytest.raises(Unavailable):
        store.read(A)
    assert store.read(A) == b"1"


def test_a_partial_write_leaves_half_under_another_name(tmp_path: Path) -> None:
    store = FlakyStore(LocalStore(), [Fault(at=0, how=How.PARTIAL)])
    with pytest.raises(Unavailable, match="half"):
        store.write_new(f"{tmp_path}/file", b"123456")
    assert not store.exists(f"{tmp_path}/file")
    assert [info.size_bytes for info in store.list(str(tmp_path))] == [3]


def test_a_delayed_answer_is_right() -> None:
    store = FlakyStore(MemoryStore(), [Fault(at=1, how=How.DELAY, delay_s=0.1)])
    store.write_new(A, b"1")
    started = time.monotonic()
    assert store.read(A) == b"1"
    assert time.monotonic() - started >= 0.1


@pytest.mark.parametrize(("how", "there"), [("KILL_BEFORE", False), ("KILL_AFTER", True)])
def test_a_process_can_be_killed_at_a_step(tmp_path: Path, how: str, there: bool) -> None:
    program = (
        "import sys\n"
        "from tests.store.flaky import Fault, FlakyStore, How\n"
        "from icetree.store.local import LocalStore\n"
        f"store = FlakyStore(LocalStore(), [Fault(at=1, how=How.{how})])\n"
        "store.write_many((f'{sys.argv[1]}/{name}', b'1') for name in 'abc')\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert sorted(path.name for path in tmp_path.iterdir()) == (["a", "b"] if there else ["a"])


def test_what_goes_through_an_open_file_is_counted_too() -> None:
    store = FlakyStore(MemoryStore())
    store.write_new(A, b"0123456789")
    with store.open(A) as file:
        file.seek(4)
        assert file.read(2) == b"45"
    assert [step.operation for step in store.steps] == ["write_new", "size", "read_range"]
    with pytest.raises(NotFound):
        store.open(B)


def test_a_slow_store_takes_its_time_for_requests_and_bytes() -> None:
    store = SlowStore(MemoryStore(), latency_ms=20, bytes_per_s=1e6)
    store.write_new(A, bytes(30_000))
    store.read(A)
    write, read = store.answered
    assert (write.operation, write.size_bytes) == ("write_new", 30_000)
    assert (read.operation, read.size_bytes) == ("read", 30_000)
    assert all(0.05 <= each.ended_s - each.started_s < 1 for each in (write, read))


def test_what_is_written_side_by_side_is_one_round() -> None:
    store = SlowStore(MemoryStore(), latency_ms=50, bytes_per_s=None)
    store.write_many([(A, b"1"), (B, b"2"), (C, b"3")])
    assert store.rounds() == 1
    store.read(A)
    assert store.rounds() == 2
    store.forget()
    assert store.rounds() == 0
