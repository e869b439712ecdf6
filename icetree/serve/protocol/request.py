"""What a client asks and what it is answered, without the socket between: two small nouns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from icetree.spec.texts import json_bytes
from icetree.store.stopping import Stop

JSON: Final = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it came; neither its headers nor its body are shown in its text form."""

    method: str
    #: As it was sent: nothing in it is decoded yet, so that a `%2F` parts nothing.
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    #: By names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    #: How the client reached the server: `https://host:port`.
    base: str = ""
    #: The address that the client has.
    peer: str = ""
    #: Set when nobody waits for the answer any more; for work that changes nothing to look at.
    stop: Stop = field(default_factory=Stop, repr=False, compare=False)

    @property
    def has_body(self) -> bool:
        """Whether a body came, or is announced."""
        announced = self.headers.get("content-length", "0") != "0"
        return bool(self.body) or announced or "transfer-encoding" in self.headers

    def has(self, tag: str) -> bool:
        """Tell whether who asks has the version of this tag already."""
        known = {each.strip() for each in self.headers.get("if-none-match", "").split(",")}
        return bool(known & {tag, "*"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is sent back: a status, and a document that becomes JSON, or text as it is."""

    status: int = 200
    #: None is an empty body; bytes are sent as they are.
    document: Any = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        """Return the bytes to send."""
        if self.document is None or isinstance(self.document, bytes):
            return self.document or b""
        return json_bytes(self.document)


#: Done, and nothing to tell of it.
NOTHING: Final = Answer(status=204)
