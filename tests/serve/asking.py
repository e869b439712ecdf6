"""A client without a socket: requests to a server as it answers them in its threads."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from icetree.serve.protocol.request import JSON, Answer, Request
from icetree.serve.server import Server


@dataclass(frozen=True)
class Told:
    """An answer as a client reads it."""

    status: int
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str]:
        """The status and type of a refusal."""
        told = self.json["error"]
        assert told["code"] == self.status
        assert told["message"]
        return self.status, told["type"]


@dataclass
class Client:
    """Asks a server, with the same headers each time."""

    server: Server
    headers: dict[str, str] = field(default_factory=dict)

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Told:
        where, _, query = path.partition("?")
        sent = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer: Answer = self.server.answer(
            Request(
                method=method,
                path=where,
                query=dict(parse_qsl(query, keep_blank_values=True)),
                headers={"content-type": JSON, **self.headers, **named},
                body=sent,
                base="http://localhost",
            )
        )
        return Told(answer.status, answer.body(), dict(answer.headers))

    def get(self, path: str, **headers: str) -> Told:
        return self.ask("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Told:
        return self.ask("POST", path, body, **headers)

    def delete(self, path: str, **headers: str) -> Told:
        return self.ask("DELETE", path, **headers)

    def head(self, path: str, **headers: str) -> Told:
        return self.ask("HEAD", path, **headers)
