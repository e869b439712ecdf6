"""The processes that take ORC files apart: made when they are needed, kept for the next file.

As many as there are processors at the most. They know nothing of this process but the bytes of the files
that they read, and end with it.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import BoundedSemaphore, Lock
from typing import Final

from icetree.errors import Unavailable, Unsupported
from icetree.rows.formats.orc_child import (
    READY,
    Gone,
    Silent,
    receive_head,
    receive_into,
)

#: How long a process may take to be there, and a reader may say nothing: one at work says so now and then.
PATIENCE_S: float = 60
#: What readers see of the environment: where to find libraries and zones. Nothing else is theirs.
_PASSED: Final = (
    *("LD_LIBRARY_PATH", "LD_PRELOAD", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"),
    *("LANG", "LC_ALL", "LC_CTYPE", "PYTHONHOME", "TZDIR"),
)
#: Each path is a word: the same packages are to be found.
_START: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; import socket; "
    "from icetree.rows.formats.orc_child import main; main(socket.socket(fileno=int(sys.argv[1])))"
)
#: How often who waits for a reader that another makes looks for one that was given back.
_LOOK_S: Final = 0.05


class _Refused(Exception):
    """Whoever was asked for a reader is there, and has none to give."""


class Orphaned(Exception):
    """A reader ended with the process it came from: no word on what it read."""


@dataclass(frozen=True, slots=True, eq=False)
class _Reader:
    """The line to a reader, and that to the process which it came from."""

    link: socket.socket
    origin: socket.socket


class Readers:
    """The process that readers come from, and the readers that wait for a file."""

    def __init__(self) -> None:
        self._empty()

    def _empty(self) -> None:
        self._lock = Lock()
        #: Held by who waits for a reader that is being made; those who have one to give back are not held up.
        self._births = Lock()
        self._turns = BoundedSemaphore(_processors())
        self._idle: list[_Reader] = []
        #: Every socket of ours, whoever holds it: a copy of this process must let go of all.
        self._all: set[socket.socket] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    @contextmanager
    def reader(self, *, fresh: bool = False) -> Iterator[socket.socket]:
        """Lend a reader, one that is made now if it is to be fresh; where anything goes wrong with it, it is given up."""
        with self._turns:
            reader = self._taken(fresh=fresh)
            try:
                yield reader.link
            except BaseException as error:
                self._close(reader.link)
                if isinstance(error, Gone) and not self._runs(reader.origin):
                    raise Orphaned from None
                raise
            with self._lock:
                self._idle.append(reader)

    def _taken(self, *, fresh: bool) -> _Reader:
        if fresh:
            # What is made takes the place of one that waits, so that there are no more than may read at once.
            if reader := self._waiting():
                self._close(reader.link)
            with self._births:
                return self._made()
        while (reader := self._waiting()) is None:
            # Another is making one: whichever is there first, that or one given back.
            if self._births.acquire(timeout=_LOOK_S):
                try:
                    return self._waiting() or self._made()
                finally:
                    self._births.release()
        return reader

    def _waiting(self) -> _Reader | None:
        """Return a reader that waits for a file, if one does."""
        with self._lock:
            while self._idle:
                reader = self._idle.pop()
                if _is_there(reader.link):
                    return reader
                self._close(reader.link)
        return None

    def _made(self) -> _Reader:
        with suppress(Gone):
            return self._new()
        # The process that runs may be on its way out: another one is started, once.
        try:
            return self._new()
        except Gone as error:
            raise _not_started("no reader came") from error

    def _new(self) -> _Reader:
        """Return a reader that is there; Gone where nobody came, and the next try may find somebody."""
        origin = self._running()
        try:
            with self._pair() as (ours, theirs):
                _hand_on(origin, theirs)
                self._close(theirs)
                _require_ready(ours)
        except Gone as error:
            # Readers that others hold end with the process, so one that answers is left as it is.
            if isinstance(error, Silent) or not _is_there(origin):
                self.end()
            raise
        except (_Refused, OSError) as error:
            raise _not_started(str(error)) from None
        return _Reader(ours, origin)

    def _runs(self, origin: socket.socket) -> bool:
        """Tell whether the process that a reader came from is still there."""
        with self._lock:
            return origin is self._control and _is_there(origin)

    @contextmanager
    def _pair(self) -> Iterator[tuple[socket.socket, socket.socket]]:
        """Give two ends of a line, which are closed where nobody comes to be at the other."""
        pair = socket.socketpair()
        self._all.update(pair)
        try:
            yield pair
        except BaseException:
            for each in pair:
                self._close(each)
            raise

    def _close(self, link: socket.socket) -> None:
        self._all.discard(link)
        link.close()

    def _running(self) -> socket.socket:
        """Return the line to the process that readers come from, which runs from now on."""
        with self._lock:
            runs = self._process is not None and self._process.poll() is None
            if self._control is not None and runs:
                return self._control
            self._end()
        if not sys.executable or not hasattr(socket, "send_fds"):
            raise Unsupported(
                "ORC files are read in a process of their own, which takes a Python that can be started and "
                "a system that hands sockets on: read them with an engine, or rewrite them as Parquet"
            )
        try:
            with self._pair() as (ours, theirs):
                process = _started(theirs.fileno())
                with self._lock:
                    self._process = process
                self._close(theirs)
                _require_ready(ours)
        except (Gone, _Refused, OSError) as error:
            self.end()
            raise _not_started(str(error) or "it ended at once") from None
        with self._lock:
            self._control = ours
        return ours

    def _end(self) -> None:
        """Let the process and all that wait end."""
        waiting = [each.link for each in self._idle]
        for link in [*waiting, *([self._control] if self._control else [])]:
            self._close(link)
        self._idle.clear()
        self._control = None
        if self._process is not None:
            try:
                self._process.wait(1)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None

    def end(self) -> None:
        """Let the process and all that wait end; this one too may be about to."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """Let go of what belongs to the process that this one is a copy of."""
        for link in self._all:
            with suppress(OSError):
                link.close()
        if self._process is not None:
            self._process.returncode = 0  # not ours to wait for
        self._empty()


def _started(line: int) -> subprocess.Popen[bytes]:
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    return subprocess.Popen(
        [sys.executable, "-c", _START, str(line), *sys.path],
        # Memory of the system's own pool is counted as it is taken, and given back.
        env={**passed, "ARROW_DEFAULT_MEMORY_POOL": "system"},
        pass_fds=[line],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _is_there(link: socket.socket) -> bool:
    """Tell whether a process that waits is alive: it has nothing to say, and has not hung up."""
    with suppress(OSError):
        link.settimeout(0)
        try:
            link.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            link.settimeout(PATIENCE_S)
            return True
    return False


def _require_ready(link: socket.socket) -> None:
    """Wait until somebody is on the other side; from now on, nobody is waited for without end."""
    link.settimeout(PATIENCE_S)
    kind, length = receive_head(link)
    if kind != READY:
        said = bytearray(min(length, 10_000))
        receive_into(link, memoryview(said))
        raise _Refused(said.decode(errors="replace"))


def _hand_on(control: socket.socket, link: socket.socket) -> None:
    try:
        socket.send_fds(control, [READY], [link.fileno()])
    except TimeoutError as error:
        raise Silent from error
    except OSError as error:
        raise Gone from error


def _not_started(why: str) -> Unavailable:
    return Unavailable(
        f"ORC files are read in a process of their own, and {sys.executable} could not be started as one "
        f"({why}): free memory and processes, and read again"
    )


READERS: Final = Readers()
atexit.register(READERS.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=READERS.forget)
