"""An address of PostgreSQL: what libpq is told, what messages may show, and what they may not."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from icetree.errors import InvalidInput
from icetree.secrets import Secrets

_SCHEME: Final = "postgresql://"
_SECRETS: Final = ("password", "sslpassword", "oauth_client_secret")
#: Nothing of the address is repeated: who left a sign as it is left it in the password.
_UNREADABLE: Final = (
    "the catalog's address cannot be read: write postgresql://user:password@host:port/database, "
    "and in user and password %40 for @, %3A for :, %2F for /, %3F for ?, %23 for #, %25 for %"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a database is."""

    parameters: dict[str, str] = field(repr=False)
    #: Hosts, ports and database, for messages.
    where: str
    secrets: Secrets

    def told(self, error: psycopg.Error) -> str:
        """Return what went wrong, without libpq's advice and what must not be shown."""
        lines = str(error).splitlines()
        return self.secrets.hide(" ".join(line for line in lines if not line.startswith("\t")))


def address_of(uri: str, *, connect_timeout_s: float, request_timeout_s: float) -> Address:
    """Take an address apart; what it leaves open gets a value that suits a catalog."""
    given = _read(uri)
    if given is None:
        raise InvalidInput(_UNREADABLE)
    patience = {
        # Whole seconds, and 2 at least, are libpq's own rule.
        "connect_timeout": str(ceil(connect_timeout_s)),
        "application_name": "icetree",
        # A machine that vanished without a word is noticed within a minute, also while idle.
        "keepalives_idle": "20",
        "keepalives_interval": "10",
        "keepalives_count": "3",
        "tcp_user_timeout": str(round(request_timeout_s * 1000)),
    }
    return Address(
        parameters=patience | given,
        where=_where(given),
        secrets=Secrets(given.get(name) for name in _SECRETS),
    )


def _read(uri: str) -> dict[str, str] | None:
    authority, slash, rest = uri.removeprefix(_SCHEME).partition("/")
    path = (slash + rest).partition("?")[0]
    if authority.count("@") > 1 or "@" in path:
        return None
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(uri).items()}
    except (psycopg.Error, ValueError):
        return None
    ports = given.get("port", "").split(",")
    return given if all(port.isdigit() or not port for port in ports) else None


def _where(given: dict[str, str]) -> str:
    hosts = (given.get("host") or given.get("hostaddr") or "local").split(",")
    ports = given.get("port", "").split(",")
    if len(ports) < len(hosts):
        ports = [ports[0]] * len(hosts)
    places = [f"{host}:{port}" if port else host for host, port in zip(hosts, ports, strict=False)]
    return f"{','.join(places)}/{given.get('dbname', '')}"
