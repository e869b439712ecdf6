"""An S3 of one file that comes slowly, and whose first upload is cut late."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class SlowS3(ThreadingHTTPServer):
    """Takes `pause_s` in the midst of each download, and cuts the first upload after it."""

    daemon_threads = True

    def __init__(self, content: bytes, pause_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.content = content
        self.pause_s = pause_s
        self.uploads: list[int] = []


class _Handler(BaseHTTPRequestHandler):
    server: SlowS3

    def do_GET(self) -> None:
        content = self.server.content
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(content[:1000])
            self.wfile.flush()
            time.sleep(self.server.pause_s)
            self.wfile.write(content[1000:])

    def do_PUT(self) -> None:
        size_bytes = int(self.headers["Content-Length"])
        self.server.uploads.append(len(self.rfile.read(size_bytes)))
        if len(self.server.uploads) == 1:
            time.sleep(self.server.pause_s)
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def slow_s3(content: bytes, *, pause_s: float) -> Iterator[SlowS3]:
    """Serve on a free port of this machine."""
    with SlowS3(content, pause_s) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
