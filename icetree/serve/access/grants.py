"""The file of grants: each client with the digest of its secret, and what it may read and write.

    clients:
      etl:
        secret: sha256:9f86d0…
        write: sales, staging.raw
      reports:
        token: sha256:60303a…
        read: "*"

A secret is exchanged for tokens, by OAuth2; a token is sent as it is. `*` is every namespace.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from pathlib import Path
from typing import Any, Final

from icetree.catalog.base import Namespace, parse_namespace
from icetree.errors import InvalidInput, NotFound
from icetree.serve.access.who import EVERYWHERE, Who
from icetree.surroundings import random_bits

_DIGEST: Final = re.compile(r"sha256:([0-9a-f]{64})")
_NAME: Final = re.compile(r"[A-Za-z0-9_.@-]{1,100}")
#: Nobody guesses so many bits.
_SECRET_BITS: Final = 256


def new_secret() -> str:
    """Return a secret, or a token, that nobody can guess."""
    return f"{random_bits(_SECRET_BITS):064x}"


def digest_of(secret: str) -> str:
    """Return a secret as the file of grants has it."""
    return f"sha256:{hashlib.sha256(secret.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """Somebody that the file of grants knows."""

    who: Who
    secret: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grants:
    """Every client by its name."""

    clients: Mapping[str, Client]

    def by_secret(self, name: str, secret: str) -> Who | None:
        """Return the client of a name and a secret, None where they do not belong together."""
        client = self.clients.get(name)
        # As long for a name that is not known as for one that is.
        known = client.secret if client is not None and client.secret else digest_of("")
        fits = compare_digest(known, digest_of(secret))
        return client.who if fits and client is not None and client.secret else None

    def by_token(self, token: str) -> Who | None:
        """Return the client of a token that the file itself has."""
        given, found = digest_of(token), None
        for each in self.clients.values():
            if each.token is not None and compare_digest(each.token, given):
                found = each.who
        return found


def read_grants(path: str) -> Grants:
    """Read a file of grants; InvalidInput, NotFound."""
    try:
        text = Path(path).read_text()
    except FileNotFoundError:
        raise NotFound(f"there is no file of grants {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"the file of grants {path} cannot be read: {error}") from None
    return grants_in(text, path)


def grants_in(text: str, path: str) -> Grants:
    """Return the grants that a text tells; InvalidInput says where it is wrong."""
    from strictyaml import CommaSeparated, Map, MapPattern, Optional, Str, YAMLError, load  # type: ignore[import-untyped]

    namespaces = CommaSeparated(Str())
    client = Map(
        {
            Optional("secret"): Str(),
            Optional("token"): Str(),
            Optional("read"): namespaces,
            Optional("write"): namespaces,
        }
    )
    try:
        told = load(text, Map({"clients": MapPattern(Str(), client)})).data["clients"]
    except YAMLError as error:
        # Its own words quote the file.
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f", near line {line + 1}"
        raise InvalidInput(
            f"{path} is no file of grants{where}: it has clients, each with a secret or a token, and "
            "lists of namespaces to read and to write"
        ) from None
    return Grants(clients={name: _client(name, each, path) for name, each in told.items()})


def _client(name: str, told: Mapping[str, Any], path: str) -> Client:
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{path}: {name[:40]!r} is no client's name: letters, digits and _.@- are"
        )
    if not told.keys() & {"secret", "token"}:
        raise InvalidInput(f"{path}: client {name} has neither a secret nor a token")
    for what in ("secret", "token"):
        if what in told and not _DIGEST.fullmatch(told[what]):
            raise InvalidInput(
                f"{path}: the {what} of client {name} is not written as sha256: and 64 digits: "
                "icetree serve --new-secret makes one"
            )
    who = Who(
        name=name,
        reads=frozenset(_namespace(each, path) for each in told.get("read", ())),
        writes=frozenset(_namespace(each, path) for each in told.get("write", ())),
    )
    return Client(who=who, secret=told.get("secret"), token=told.get("token"))


def _namespace(text: str, path: str) -> Namespace:
    if text == "*":
        return EVERYWHERE
    try:
        return parse_namespace(text)
    except InvalidInput as error:
        raise InvalidInput(f"{path}: {error}") from None
