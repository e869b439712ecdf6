"""What Google Cloud Storage and Azure answer, as far as a store asks: files in a dict.

Written from the services' documents, and held against the Azurite emulator by hand.
"""

from __future__ import annotations

import re
import threading
from datetime import datetime, timezone
from email.utils import formatdate
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

ACCOUNT = "lakeaccount"
KEY = "bm8gc2VjcmV0IGF0IGFsbA=="
TOKEN = "no-secret-token"


class Cloud(ThreadingHTTPServer):
    """Files by their paths; `/account/container/key` is Azure's, any other path Google's."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def google(self) -> dict[str, str]:
        """What a store needs to reach it as Google's."""
        return {
            "gcs.service.host": f"http://127.0.0.1:{self.server_port}",
            "gcs.oauth2.token": TOKEN,
        }

    @property
    def azure(self) -> dict[str, str]:
        """What a store needs to reach it as Azure's."""
        return {
            "adls.account-name": ACCOUNT,
            "adls.account-key": KEY,
            "adls.blob-storage-authority": f"127.0.0.1:{self.server_port}",
            "adls.blob-storage-scheme": "http",
        }


@cache
def shared_cloud() -> Cloud:
    """Return the one server of this process."""
    return Cloud()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Cloud

    @property
    def _path(self) -> str:
        return unquote(urlsplit(self.path).path)

    @property
    def _is_azure(self) -> bool:
        return self._path.startswith(f"/{ACCOUNT}/")

    def _may(self) -> bool:
        said = self.headers.get("Authorization", "")
        right = f"SharedKey {ACCOUNT}:" if self._is_azure else f"Bearer {TOKEN}"
        if said.startswith(right):
            return True
        self._answer(403, b"<Error><Code>AccessDenied</Code></Error>")
        return False

    def do_PUT(self) -> None:
        content = self._body()
        if not self._may():
            return
        if self._is_azure:
            must_be_new = self.headers.get("If-None-Match") == "*"
            taken, code = 409, "BlobAlreadyExists"
        else:
            must_be_new = self.headers.get("x-goog-if-generation-match") == "0"
            taken, code = 412, "PreconditionFailed"
        with self.server.lock:
            is_there = self._path in self.server.files
            if not (is_there and must_be_new):
                self.server.files[self._path] = content
        if is_there and must_be_new:
            self._answer(taken, f"<Error><Code>{code}</Code></Error>".encode())
        else:
            self._answer(201 if self._is_azure else 200, ETag='"1"')

    def do_GET(self) -> None:
        if not self._may():
            return
        asked = parse_qs(urlsplit(self.path).query)
        if "comp" in asked or "list-type" in asked:
            self._list(asked.get("prefix", [""])[0])
            return
        content = self.server.files.get(self._path)
        if content is None:
            code = "BlobNotFound" if self._is_azure else "NoSuchKey"
            self._answer(404, f"<Error><Code>{code}</Code></Error>".encode())
            return
        facts = {"ETag": '"1"', "Last-Modified": formatdate(usegmt=True)}
        asked_range = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked_range is None:
            self._answer(200, content, **facts)
            return
        start, end = asked_range[1], asked_range[2]
        if not start:
            first, last = max(0, len(content) - int(end)), len(content) - 1
        else:
            first, last = int(start), min(int(end or len(content)), len(content) - 1)
        if first >= len(content):
            self._answer(416, b"<Error><Code>InvalidRange</Code></Error>")
            return
        facts["Content-Range"] = f"bytes {first}-{last}/{len(content)}"
        self._answer(206, content[first : last + 1], **facts)

    do_HEAD = do_GET  # noqa: N815  # as the base class calls it

    def do_DELETE(self) -> None:
        if self._may():
            gone = self.server.files.pop(self._path, None)
            self._answer(204 if gone is not None else 404)

    def do_POST(self) -> None:
        """Delete many: Azure's batch."""
        body = self._body().decode()
        if not self._may():
            return
        parts = []
        for number, line in enumerate(re.findall(r"^DELETE (\S+) HTTP/1.1", body, re.MULTILINE)):
            path = f"/{ACCOUNT}{unquote(urlsplit(line).path)}".replace(
                f"/{ACCOUNT}" * 2, f"/{ACCOUNT}"
            )
            gone = self.server.files.pop(path, None)
            status = (
                "202 Accepted" if gone is not None else "404 The specified blob does not exist."
            )
            parts.append(
                f"--batch\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
                f"HTTP/1.1 {status}\r\nx-ms-request-id: 1\r\n\r\n"
            )
        said = "".join(parts) + "--batch--\r\n"
        self._answer(202, said.encode(), **{"Content-Type": "multipart/mixed; boundary=batch"})

    def _list(self, prefix: str) -> None:
        inside = self._path.rstrip("/") + "/"
        with self.server.lock:
            sizes = {name: len(content) for name, content in self.server.files.items()}
        names = {
            name[len(inside) :]: size
            for name, size in sorted(sizes.items())
            if name.startswith(inside + prefix)
        }
        self._answer(200, (_azure_page if self._is_azure else _google_page)(names))

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, status: int, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _azure_page(sizes: dict[str, int]) -> bytes:
    now = formatdate(usegmt=True)
    blobs = "".join(
        f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{now}</Last-Modified>"
        f"<Content-Length>{size}</Content-Length><Content-Type>x</Content-Type><Etag>1</Etag>"
        "</Properties></Blob>"
        for name, size in sizes.items()
    )
    page = f"<EnumerationResults><Blobs>{blobs}</Blobs><NextMarker/></EnumerationResults>"
    return f'<?xml version="1.0" encoding="utf-8"?>{page}'.encode()


def _google_page(sizes: dict[str, int]) -> bytes:
    now = datetime.now(timezone.utc).isoformat()
    found = "".join(
        f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><ETag>1</ETag>"
        f"<LastModified>{now}</LastModified></Contents>"
        for name, size in sizes.items()
    )
    return f"<ListBucketResult>{found}</ListBucketResult>".encode()
