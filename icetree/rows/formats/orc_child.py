"""The program that takes ORC files apart, in processes of its own: ranges of a file in, columns out.

Arrow's ORC reader dies of some damaged files, and takes whatever memory others ask for. It is loaded
once, in a process that reads nothing itself: for each reader that is asked for it splits in two, which
takes a millisecond. A reader serves one file after the other until one is broken, and ends with it. This
file imports nothing of icetree, so that it starts with Arrow alone.

A message is a kind, a length and so many bytes. Whoever reads sends `R`, what to read, as JSON, and `B`,
bytes of the file. A reader sends `N`, which range it needs, and at last `S`, a schema, `T`, a table, or
`E`, why there is none. While it is at work it sends a beat every few seconds: whoever hears none for long
need not wait for it. A beat says that a reader is alive, and not that it gets anywhere: one that has
used more of a processor than it is allowed says so, and ends.
"""

from __future__ import annotations

import io
import json
import math
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn

#: What begins every message, and what tells a range.
HEAD: Final = struct.Struct("<cQ")
RANGE: Final = struct.Struct("<QQ")
#: What a process says when it is there.
READY: Final = b"+"
#: What a reader says every so often while it is at work.
BEAT: Final = b"-"
_BEAT_S: Final = 5
#: So many bytes are sent at once: how long may pass is counted for each such part.
_PART_BYTES: Final = 1024**2
#: What a reader may take beside what it is allowed for columns.
SPARE_BYTES: Final = 64 * 1024**2
_TOO_LONG: Final = json.dumps(["time", ""]).encode()
_DIE_WITH_PARENT: Final = 1


class Gone(Exception):
    """Nobody is on the other side any more."""


class Silent(Gone):
    """Whoever is on the other side has not been heard of for longer than the line allows."""


def send(to: socket.socket, kind: bytes, content: Any = b"") -> None:
    """Send a message."""
    left = memoryview(content)
    try:
        to.sendall(HEAD.pack(kind, len(content)))
        while left:
            left = left[to.send(left[:_PART_BYTES]) :]
    except TimeoutError as error:
        raise Silent from error
    except OSError as error:
        raise Gone from error


def receive_head(of: socket.socket) -> tuple[bytes, int]:
    """Return the kind of the next message, and how many bytes follow."""
    head = bytearray(HEAD.size)
    receive_into(of, memoryview(head))
    kind, length = HEAD.unpack(head)
    return kind, length


def receive_into(of: socket.socket, room: memoryview) -> None:
    """Fill a room with what comes next."""
    while len(room):
        try:
            count = of.recv_into(room)
        except TimeoutError as error:
            raise Silent from error
        except OSError as error:
            raise Gone from error
        if not count:
            raise Gone
        room = room[count:]


class _Mouth:
    """What a reader says, a message at a time: Arrow works in one thread, another one beats."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self._lock = threading.Lock()
        self._works, self._rests = threading.Event(), threading.Event()
        self._most_s, self._until_s = math.inf, math.inf
        threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while True:
            self._works.wait()
            if self._rests.wait(min(_BEAT_S, self._most_s)):
                continue
            with self._lock:
                if self._works.is_set():
                    is_over = time.process_time() > self._until_s
                    try:
                        send(self.link, *((b"E", _TOO_LONG) if is_over else (BEAT,)))
                    except Gone:
                        os._exit(0)  # nobody waits for what is being read
                    if is_over:
                        os._exit(0)

    def begin(self, most_s: float = math.inf) -> None:
        """Beat from now on, until so many seconds of a processor are used."""
        self._most_s, self._until_s = most_s, time.process_time() + most_s
        self._rests.clear()
        self._works.set()

    def ask(self, kind: bytes, content: bytes) -> None:
        """Say something, and stay at work."""
        with self._lock:
            send(self.link, kind, content)

    @contextmanager
    def last(self) -> Iterator[socket.socket]:
        """Give the line for the answer: nothing else is said after it."""
        with self._lock:
            self._works.clear()
            self._rests.set()
            yield self.link


class _Remote(io.RawIOBase):
    """A file whose ranges the other side reads."""

    def __init__(self, mouth: _Mouth, size: int) -> None:
        self._mouth, self._size, self._at = mouth, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int = -1) -> bytes:
        left = max(0, self._size - self._at)
        count = left if size < 0 else min(size, left)
        if not count:
            return b""
        self._mouth.ask(b"N", RANGE.pack(self._at, count))
        _, length = receive_head(self._mouth.link)
        content = bytearray(length)
        receive_into(self._mouth.link, memoryview(content))
        self._at += length
        return bytes(content)


class _Sink(io.RawIOBase):
    """What is written goes to the other side."""

    def __init__(self, link: socket.socket) -> None:
        self._link = link

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._link.sendall(content)
        return len(content)


def _write(batch: Any, sink: Any) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(sink, batch.schema) as out:
        out.write_batch(batch)


def _size_of(batch: Any) -> int:
    """Return how many bytes columns take, which is to be known before the first of them goes."""
    import pyarrow as pa

    counting = pa.MockOutputStream()
    _write(batch, counting)
    return int(counting.size())


def _answer(link: socket.socket, batch: Any, size: int) -> None:
    import pyarrow as pa

    link.sendall(HEAD.pack(b"T", size))
    with pa.PythonFile(_Sink(link), mode="w") as sink:
        _write(batch, sink)


def _confine(most: int) -> None:
    """Let the reader take so many bytes more than it has; only Linux counts them."""
    if sys.platform != "linux":
        return
    import resource

    with open("/proc/self/statm") as told:  # noqa: PTH123 (starts with little)
        have = int(told.read().split()[5]) * resource.getpagesize()
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = have + most + SPARE_BYTES
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (min(soft, 2**63 - 1), hard))


def _serve(link: socket.socket) -> None:
    """Read what is asked for, until a file is broken or nobody asks any more."""
    from pyarrow import orc

    known: int | None = None
    file: Any = None
    mouth = _Mouth(link)
    send(link, READY)
    while True:
        _, length = receive_head(link)
        text = bytearray(length)
        receive_into(link, memoryview(text))
        asked = json.loads(text)
        mouth.begin(asked["seconds"])
        try:
            _confine(asked["most"])
            if known != asked["file"]:
                file = None
                file = orc.ORCFile(_Remote(mouth, asked["size"]))
                known = asked["file"]
            if asked["stripe"] is None:
                schema = file.schema.serialize()
                with mouth.last():
                    send(link, b"S", schema)
                continue
            found = file.read_stripe(asked["stripe"], columns=asked["columns"])
            size = _size_of(found)
        except Exception as error:
            why = "memory" if isinstance(error, MemoryError) else "broken"
            with mouth.last():
                send(link, b"E", json.dumps([why, str(error)]).encode())
            return
        with mouth.last():
            _answer(link, found, size)
        del found


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _split(control: socket.socket, link: socket.socket) -> None:
    """Make a reader of a copy of this process."""
    here = os.getpid()
    try:
        child = os.fork()
    except OSError as error:
        with suppress(Gone):
            send(link, b"E", str(error).encode())
        return
    if child:
        return
    try:
        _die_with(here)
        control.close()
        _serve(link)
    finally:
        os._exit(0)


def main(control: socket.socket) -> NoReturn:
    """Load Arrow, and split once for each socket that comes, until no more can come."""
    # Here, since some systems lack these, and whoever reads imports this file as well.
    import gc
    import resource
    import signal

    # Whoever is asked to stop from a terminal ends us; a copy of memory would show what was read.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        import pyarrow.orc  # noqa: F401
    except Exception as error:
        send(control, b"E", f"{type(error).__name__}: {error}".encode())
        os._exit(1)
    gc.freeze()
    send(control, READY)
    while True:
        try:
            told, given, _, _ = socket.recv_fds(control, 1, 1)
        except OSError:
            os._exit(0)
        if not told:
            os._exit(0)
        for each in given:
            with socket.socket(fileno=each) as link:
                _split(control, link)
