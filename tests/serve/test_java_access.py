"""Stock Iceberg Java comes in by a secret or a token, and stays while the server is started anew."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from icetree.serve.access import access, tokens
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in
from icetree.serve.access.tokens import Tokens
from icetree.serve.server import Server
from icetree.table.lake import Lake
from tests.java import IcebergJava
from tests.serve.listening import Listening, listening

FILE = f"""
clients:
  etl:
    secret: {digest_of("etl secret")}
    write: db
  reports:
    token: {digest_of("reports token")}
    read: db
"""
#: Tokens are good for so long here; Java asks for another a tenth of that before.
LIFETIME_S = 4


@contextmanager
def serving(lake: Lake, key: bytes | None, port: int = 0) -> Iterator[Listening]:
    """Serve a lake as a process does that was just started."""
    with listening(
        Server(lake, Access(grants=grants_in(FILE, "grants"), tokens=Tokens(key))), port=port
    ) as at:
        yield at


def is_in(catalog: Any, java: IcebergJava) -> bool:
    """Tell whether a catalog's client is let in, by its answer."""
    name = java.jvm.org.apache.iceberg.catalog.TableIdentifier.parse("db.t")
    told = ""
    try:
        catalog.loadTable(name)
    except Exception as error:
        told = str(error)
    assert not told or "NotAuthorizedException" in told
    return not told


def opened(java: IcebergJava, at: Listening, **properties: str) -> Any:
    """Return a catalog of a client that stays at work."""
    catalog = java.jvm.org.apache.iceberg.rest.RESTCatalog()
    catalog.setConf(java.jvm.org.apache.hadoop.conf.Configuration())
    uri = f"http://127.0.0.1:{at.port}"
    told = {name.replace("_", "-"): value for name, value in properties.items()}
    catalog.initialize("r", {"uri": uri, "oauth2-server-uri": f"{uri}/v1/oauth/tokens", **told})
    return catalog


def test_java_stays_in_while_the_server_is_started_anew(
    java: IcebergJava, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (access, tokens):
        monkeypatch.setattr(module, "LIFETIME_S", LIFETIME_S)
    lake.create_table("db.t", pa.schema([("id", pa.int64())]))
    key = b"k" * 32
    with serving(lake, key) as at:
        by_secret = opened(java, at, credential="etl:etl secret")
        by_token = opened(java, at, token="reports token", token_expires_in_ms="4000")
        assert is_in(by_secret, java)
        assert is_in(by_token, java)
    # Just after, and once the tokens of before would have ended.
    for wait_s in (0, LIFETIME_S + 1):
        with serving(lake, key, at.port):
            assert is_in(by_secret, java)
            time.sleep(wait_s)
            assert is_in(by_secret, java)
            assert is_in(by_token, java)
    # Without the key a client with a secret may have to be started anew; a token of the file goes on.
    with serving(lake, None, at.port):
        time.sleep(LIFETIME_S + 1)
        assert is_in(by_token, java)
        assert is_in(opened(java, at, credential="etl:etl secret"), java)
    for each in (by_secret, by_token):
        each.close()
