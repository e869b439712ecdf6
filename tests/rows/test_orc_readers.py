"""The processes that take ORC files apart: who ends, stops or copies them, nobody waits or is blamed for it."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from icetree.errors import CorruptTable
from icetree.rows.formats import orc_child, orc_readers
from icetree.rows.formats.orc import OrcReader
from tests.rows.test_orc_apart import DEADLY, FILE, SOUND, read, require_sound

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells")


def children(parent: int) -> dict[int, str]:
    """Return the state of each child of a process, by its number."""
    found = {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            number, _, rest = each.read_text().rpartition(")")
        except OSError:
            continue
        state, whose = rest.split()[:2]
        if int(whose) == parent:
            found[int(number.split()[0])] = state
    return found


def processes() -> list[int]:
    """Return the process that readers of this one come from, if there is one."""
    return [
        each
        for each, state in children(os.getpid()).items()
        if state != "Z" and b"orc_child" in Path(f"/proc/{each}/cmdline").read_bytes()
    ]


def nursery() -> int:
    """Return the process that readers of this one come from."""
    require_sound()
    [found] = processes()
    return found


@needs_proc
def test_readers_that_someone_ends_are_replaced() -> None:
    first = nursery()
    for each in [*children(first), first]:
        os.kill(each, signal.SIGKILL)
    require_sound()
    assert nursery() != first
    for each in children(nursery()):
        os.kill(each, signal.SIGKILL)
    require_sound()


@needs_proc
def test_no_file_is_blamed_where_readers_end_with_the_process_they_come_from() -> None:
    ended = []

    class Ending(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            """End all of them, for as often as would tell of a broken file, and more."""
            while len(ended) < 5 and (found := processes()):
                first = found.pop()
                ended.append(first)
                readers = children(first)
                os.kill(first, signal.SIGKILL)
                while any(map(is_running, (first, *readers))):
                    pass
            return super().read(size)

    require_sound()
    reader = OrcReader(pa.PythonFile(Ending(SOUND), mode="r"), FILE)
    assert reader.read(0, [0], ["id"])["id"].to_pylist() == list(range(1000))
    assert len(ended) == 5


@needs_proc
def test_no_file_is_blamed_where_all_readers_that_wait_are_ended_one_after_the_other() -> None:
    """Whoever ends them takes some time: the next that is asked may be about to end as well."""
    ran("""
import io, os, signal, threading, time
os.sched_getaffinity = lambda _: {0, 1}  # two may wait
import pyarrow as pa
from icetree.rows.formats.orc import OrcReader
from tests.rows.test_orc_apart import FILE, SOUND, require_sound
from tests.rows.test_orc_readers import children, nursery

class Meanwhile(io.BytesIO):
    def read(self, size=-1):
        require_sound()
        return super().read(size)

first = nursery()
[asked] = children(first)
OrcReader(pa.PythonFile(Meanwhile(SOUND), mode="r"), FILE).read(0, [0], ["id"])
[next] = children(first).keys() - {asked}
for each in (asked, next):
    os.kill(each, signal.SIGSTOP)

def end() -> None:
    for each in (asked, next):
        time.sleep(0.3)
        os.kill(each, signal.SIGKILL)

ending = threading.Thread(target=end)
ending.start()
require_sound()
ending.join()
assert asked not in children(first) and len(children(first)) <= 2
""")


@needs_proc
def test_who_gets_no_reader_takes_none_from_others() -> None:
    """The file that one thread reads goes on, with the same reader, where another thread gets none."""
    ran("""
import io, os, resource
os.sched_getaffinity = lambda _: {0, 1}  # two may read at once
import pyarrow as pa
from icetree.errors import Unavailable
from icetree.rows.formats.orc import OrcReader
from tests.rows.test_orc_apart import FILE, SOUND, read, require_sound
from tests.rows.test_orc_readers import children, processes

refused = []

class Meanwhile(io.BytesIO):
    def read(self, size=-1):
        if processes() and len(refused) < 2:
            before = children(processes()[0]).keys()
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
            try:
                read(SOUND)
            except Unavailable as error:
                refused.append(str(error))
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            assert children(processes()[0]).keys() == before
        return super().read(size)

reader = OrcReader(pa.PythonFile(Meanwhile(SOUND), mode="r"), FILE)
assert reader.read(0, [0], ["id"])["id"].to_pylist() == list(range(1000))
assert len(refused) == 2, refused
""")


@needs_proc
@pytest.mark.parametrize("whom", ["readers", "all"])
def test_nobody_waits_without_end_for_a_reader_that_stands_still(whom: str) -> None:
    """It is given up for another, or one is told to try again; and then, somebody reads."""
    ran(f"""
import os, signal
from icetree.errors import Unavailable
from icetree.rows.formats import orc_readers
from tests.rows.test_orc_apart import require_sound
from tests.rows.test_orc_readers import children, nursery

first = nursery()
readers = [*children(first)]
orc_readers.PATIENCE_S = 0.5
for link in (each.link for each in orc_readers.READERS._idle):
    link.settimeout(0.5)
orc_readers.READERS._control.settimeout(0.5)
for each in [*readers, *([first] if {whom!r} == "all" else [])]:
    os.kill(each, signal.SIGSTOP)
while True:
    try:
        require_sound()
        break
    except Unavailable as error:
        assert "ORC files" in str(error), error
        # Those that stand still are given up: a busy machine takes its time to start others.
        orc_readers.PATIENCE_S = 60
for each in readers:
    try:
        os.kill(each, signal.SIGKILL)
    except ProcessLookupError:
        pass
""")


def test_a_reader_at_work_says_so_again_and_again_and_nothing_after_its_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However long a file takes, whoever waits for it hears that somebody reads."""
    monkeypatch.setattr(orc_child, "_BEAT_S", 0.001)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = orc_child._Mouth(theirs)
        for _ in range(3):
            reader.begin()
            for _ in range(3):
                assert orc_child.receive_head(ours) == (orc_child.BEAT, 0)
            with reader.last() as link:
                orc_child.send(link, b"S")
            while (kind := orc_child.receive_head(ours)[0]) == orc_child.BEAT:
                pass
            assert kind == b"S"
        theirs.close()
        assert ours.recv(1) == b""


def test_who_waits_for_a_reader_to_be_made_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another gives back the one that it has, which is taken then."""
    nursery, begun, go_on = orc_readers.Readers(), threading.Event(), threading.Event()
    ready, waits = orc_readers._require_ready, threading.Event()

    def slow(link: socket.socket) -> None:
        ready(link)
        if waits.is_set():
            begun.set()
            assert go_on.wait(timeout=30)

    monkeypatch.setattr(orc_readers, "_require_ready", slow)
    nursery._turns = threading.BoundedSemaphore(3)

    def use() -> None:
        with nursery.reader():
            pass

    with ThreadPoolExecutor(2) as pool:
        with nursery.reader() as first:
            waits.set()
            making = pool.submit(use)
            assert begun.wait(timeout=30)
            waiting = pool.submit(use)
        waiting.result(timeout=30)
        assert not making.done()
        assert [each.link for each in nursery._idle] == [first]
        go_on.set()
        making.result(timeout=30)
    nursery.end()


@needs_proc
def test_no_reader_stays_behind_as_a_dead_one() -> None:
    for _ in range(5):
        with pytest.raises(CorruptTable):
            read(DEADLY)
    require_sound()
    assert "Z" not in children(nursery()).values()
    assert len(children(nursery())) <= (os.cpu_count() or 1)


@needs_proc
def test_readers_know_nothing_of_the_environment_but_where_libraries_are() -> None:
    program = """
import os
os.environ["AWS_SECRET_ACCESS_KEY"] = "nobody-may-know"
from tests.rows.test_orc_readers import children, nursery
from pathlib import Path
first = nursery()
for each in (first, *children(first)):
    told = Path(f"/proc/{each}/environ").read_bytes() + Path(f"/proc/{each}/cmdline").read_bytes()
    assert b"nobody-may-know" not in told
    files = [os.readlink(each) for each in Path(f"/proc/{each}/fd").iterdir()]
    assert all(each == "/dev/null" or each.startswith("socket:") for each in files), files
"""
    ran(program)


@needs_proc
@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)", "raise SystemExit(0)"])
def test_readers_end_with_their_process(end: str) -> None:
    program = f"""
import os
from tests.rows.test_orc_readers import children, nursery
first = nursery()
print(first, *children(first), flush=True)
{end}
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    numbers = done.stdout.split()
    assert len(numbers) >= 2, done.stderr
    for each in numbers:
        while is_running(int(each)):
            pass


def is_running(number: int) -> bool:
    try:
        text = Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


@needs_proc
def test_a_copy_of_a_process_has_readers_of_its_own() -> None:
    program = """
import os, sys
from tests.rows.test_orc_apart import require_sound
from tests.rows.test_orc_readers import nursery
ours = nursery()
child = os.fork()
if not child:
    try:
        require_sound()
        assert nursery() != ours
        code = 0
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        code = 1
    os._exit(code)
require_sound()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
require_sound()
assert nursery() == ours
"""
    ran(program)


@pytest.mark.parametrize(
    ("program", "error"),
    [("''", "Unsupported"), ("'/no/such/python'", "Unavailable"), ("'/bin/true'", "Unavailable")],
)
def test_without_a_python_to_start_one_is_told_so(program: str, error: str) -> None:
    ran(f"""
import sys
from icetree import errors
from tests.rows.test_orc_apart import require_sound
sys.executable = {program}
try:
    require_sound()
except errors.{error} as error:
    assert "process of their own" in str(error), error
else:
    raise AssertionError
""")


def ran(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
