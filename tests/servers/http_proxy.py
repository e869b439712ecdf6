"""A proxy of HTTP that makes trouble at random: it cuts, stalls, delays and answers with errors."""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

#: What can happen to a request. "after": it was carried out all the same.
TROUBLE: Final = (
    "500",
    "503",
    "500 after",
    "cut",
    "cut after",
    "cut within the answer",
    "delay",
    "stall",
)


@dataclass
class Trouble:
    """What happens, how often, and what did."""

    port: int = 0
    share: float = 0.0
    delay_s: float = 0.5
    #: Longer than a client waits.
    stall_s: float = 5.0
    choose: random.Random = field(default_factory=random.Random)
    kinds: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def strike(self) -> str | None:
        """Choose what happens to the next request, mostly nothing."""
        with self._lock:
            if self.choose.random() >= self.share:
                return None
            kind = self.choose.choice(TROUBLE)
            self.kinds[kind] += 1
            return kind


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    trouble: Trouble
    target: int

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kind = self.trouble.strike()
        if kind == "cut":
            self._hang_up()
        elif kind in {"500", "503"}:
            self._answer(int(kind or 500), [], b"<Error><Code>Trouble</Code></Error>")
        else:
            if kind in {"delay", "stall"}:
                time.sleep(self.trouble.delay_s if kind == "delay" else self.trouble.stall_s)
            status, headers, content = self._ask(body)
            if kind == "cut after":
                self._hang_up()
            elif kind == "500 after":
                self._answer(500, [], b"<Error><Code>InternalError</Code></Error>")
            else:
                half = kind == "cut within the answer"
                self._answer(status, headers, content, half=half)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _pass  # noqa: N815

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        """Ask the server in the client's own words: the signature covers them."""
        upstream = http.client.HTTPConnection("127.0.0.1", self.target, timeout=60)
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            upstream.close()

    def _answer(
        self, status: int, headers: list[tuple[str, str]], body: bytes, *, half: bool = False
    ) -> None:
        self.send_response_only(status)
        own = {"connection", "transfer-encoding", "content-length"}
        for name, value in headers:
            # What a HEAD says of the length is of the file, not of the answer.
            if name.lower() not in own or (self.command == "HEAD" and name.lower() != "connection"):
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if half else body)
        if half:
            self._hang_up()

    def _hang_up(self) -> None:
        self.close_connection = True
        with suppress(OSError):
            self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing: there is trouble by the dozen."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that left."""


@contextmanager
def troubled(target: int, share: float = 0.0) -> Iterator[Trouble]:
    """Listen on a free port and pass requests on to another of this machine, mostly."""
    trouble = Trouble(share=share)
    handler = type("Handler", (_Handler,), {"trouble": trouble, "target": target})
    with _Server(("127.0.0.1", 0), handler) as server:
        trouble.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
        thread.start()
        try:
            yield trouble
        finally:
            server.shutdown()
            thread.join()
