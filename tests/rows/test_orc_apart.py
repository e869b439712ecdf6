"""ORC files are taken apart in other processes: whatever a file does there, this one goes on."""

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
from pyarrow import orc

from campaigns.fuzz import sound
from icetree.errors import CorruptTable, InvalidInput, TooLarge
from icetree.rows.formats import orc_apart, orc_child
from icetree.rows.formats.orc import OrcReader
from icetree.spec.entry import Entry
from tests.rows.lake import new_table

FILE = "memory://x/data.orc"
CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus" / "orc"
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells")


def written(data: pa.Table, **how: object) -> bytes:
    sink = io.BytesIO()
    orc.write_table(data, sink, **how)
    return sink.getvalue()


DEADLY = (CORPUS / "text-of-fewer-bytes-than-none").read_bytes()
SOUND = written(pa.table({"id": range(1000), "s": [str(each) for each in range(1000)]}))


def read(content: bytes, location: str = FILE) -> pa.Table:
    reader = OrcReader(pa.BufferReader(content), location)
    parts = [
        reader.read(group, range(len(reader.schema)), reader.schema.names)
        for group in range(len(reader.group_rows))
    ]
    return pa.concat_tables(parts)


def require_sound() -> None:
    assert read(SOUND)["id"].to_pylist() == list(range(1000))


@pytest.mark.parametrize(
    "name", ["text-of-fewer-bytes-than-none", "map-of-fewer-entries-than-none"]
)
def test_a_file_that_ends_its_reader_is_named_and_no_more(name: str) -> None:
    with pytest.raises(CorruptTable, match="Arrow's ORC reader dies of it") as error:
        read((CORPUS / name).read_bytes())
    assert error.value.file == FILE
    require_sound()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts the memory of a process")
def test_a_small_file_takes_no_more_memory_than_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = written(
        pa.table({"s": pa.array(["x" * 2**20] * 300)}),
        compression="zstd",
        dictionary_key_size_threshold=1.0,
    )
    assert len(bomb) < 2**16
    monkeypatch.setenv("ICETREE_MAX_ROW_GROUP_BYTES", str(2**20))
    with pytest.raises(CorruptTable, match="ICETREE_MAX_ROW_GROUP_BYTES"):
        read(bomb)
    monkeypatch.setenv("ICETREE_MAX_ROW_GROUP_BYTES", str(2**30))
    assert read(bomb).num_rows == 300


def test_columns_of_more_bytes_than_the_limit_are_not_taken_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a reader has to spare is no room for its answer."""
    monkeypatch.setenv("ICETREE_MAX_ROW_GROUP_BYTES", str(10_000))
    with pytest.raises(TooLarge, match="stripe 0 would take"):
        read(written(pa.table({"s": ["x" * 100] * 1000})))


def test_threads_read_side_by_side() -> None:
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: read(SOUND), range(64)):
            assert found["s"].to_pylist() == [str(each) for each in range(1000)]


def test_a_store_that_fails_is_told_as_it_is() -> None:
    class Failing(io.BytesIO):
        reads = 0

        def read(self, size: int | None = -1) -> bytes:
            Failing.reads += 1
            if Failing.reads > 1:
                raise ConnectionError("the line is dead")
            return super().read(size)

    source = pa.PythonFile(Failing(SOUND), mode="r")
    with pytest.raises(ConnectionError, match="the line is dead"):
        OrcReader(source, FILE).read(0, [0], ["id"])
    require_sound()


def test_who_scans_adds_or_verifies_survives_a_file_that_ends_its_reader() -> None:
    table = new_table(sound.table().metadata.schema())
    name = f"{table.location}/data/x.orc"
    table.files.store.write_new(name, DEADLY)
    with pytest.raises(InvalidInput, match=f"{name} cannot be added"):
        table.add_files(name)
    table.append_files(
        [
            Entry(
                location="data/x.orc",
                file_format="orc",
                record_count=30,
                file_size_in_bytes=len(DEADLY),
            )
        ]
    )
    with pytest.raises(CorruptTable, match=f"{name}: Arrow's ORC reader dies of it"):
        table.scan().to_arrow()
    assert "reader dies of it" in str(table.verify(deep=True).findings)


# --- processes -----------------------------------------------------------------------------------


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
def test_who_gets_no_reader_takes_none_from_others() -> None:
    """The file that one thread reads goes on, with the same reader, where another thread gets none."""
    ran("""
import io, os, resource
os.sched_getaffinity = lambda _: {0, 1}  # two may read at once
import pyarrow as pa
from icetree.errors import Unavailable
from icetree.rows.formats.orc import OrcReader
from tests.rows.test_orc_apart import FILE, SOUND, children, processes, read, require_sound

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
from icetree.rows.formats import orc_apart
from tests.rows.test_orc_apart import children, nursery, require_sound

first = nursery()
readers = [*children(first)]
orc_apart._PATIENCE_S = 0.5
for link in (each.link for each in orc_apart._NURSERY._idle):
    link.settimeout(0.5)
orc_apart._NURSERY._control.settimeout(0.5)
for each in [*readers, *([first] if {whom!r} == "all" else [])]:
    os.kill(each, signal.SIGSTOP)
while True:
    try:
        require_sound()
        break
    except Unavailable as error:
        assert "ORC files" in str(error), error
        # Those that stand still are given up: a busy machine takes its time to start others.
        orc_apart._PATIENCE_S = 60
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


def test_a_reader_that_gets_nowhere_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is alive, and says so: what it uses of a processor tells."""
    long = written(pa.table({"id": pa.array(range(2_000_000)).cast(pa.string())}))
    with monkeypatch.context() as patched:
        patched.setattr(orc_apart, "_CPU_S", 0.01)
        patched.setattr(orc_apart, "_BYTES_A_S", 2**62)
        with pytest.raises(CorruptTable, match=r"takes more than 0\.01 s of a processor to read"):
            read(long)
    assert read(long).num_rows == 2_000_000


def test_who_waits_for_a_reader_to_be_made_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another gives back the one that it has, which is taken then."""
    nursery, begun, go_on = orc_apart._Nursery(), threading.Event(), threading.Event()
    ready, waits = orc_apart._require_ready, threading.Event()

    def slow(link: socket.socket) -> None:
        ready(link)
        if waits.is_set():
            begun.set()
            assert go_on.wait(timeout=30)

    monkeypatch.setattr(orc_apart, "_require_ready", slow)
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
from tests.rows.test_orc_apart import children, nursery
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
from tests.rows.test_orc_apart import children, nursery
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
from tests.rows.test_orc_apart import nursery, require_sound
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
