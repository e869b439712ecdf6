"""The server's edge with TLS: who is let in, and what cannot be used."""

from __future__ import annotations

from http.client import HTTPException, HTTPSConnection
from pathlib import Path

import pytest

from icetree.errors import InvalidInput, NotFound
from icetree.serve.http.run import Address, Tls
from tests.serve.edge import TLS, asked, server
from tests.serve.listening import listening, trusting


def test_a_server_with_a_certificate_speaks_tls_alone() -> None:
    certificate, key = str(TLS / "localhost.pem"), str(TLS / "localhost.key")
    with listening(server(), tls=Tls(certificate=certificate, key=key)) as at:
        connection = HTTPSConnection(
            "localhost", at.port, timeout=10, context=trusting(certificate)
        )
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
        with pytest.raises((HTTPException, OSError)):
            at.ask("GET", "/healthz")


def test_clients_without_a_certificate_are_not_let_in_where_one_is_asked_for() -> None:
    certificate, key = str(TLS / "localhost.pem"), str(TLS / "localhost.key")
    tls = Tls(certificate=certificate, key=key, client_authority=certificate)
    with listening(server(), tls=tls) as at:
        context = trusting(certificate)
        connection = HTTPSConnection("localhost", at.port, timeout=10, context=context)
        with pytest.raises((HTTPException, OSError)):
            asked(connection)
        connection.close()
        context.load_cert_chain(certificate, key)
        connection = HTTPSConnection("localhost", at.port, timeout=10, context=context)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()


def test_files_for_tls_that_cannot_be_used_are_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing")
    with pytest.raises(InvalidInput, match="cannot be used"):
        Tls(certificate=str(tmp_path / "x"), key=str(tmp_path / "x")).check()
    with pytest.raises(NotFound, match="is not there"):
        Tls(certificate=str(tmp_path / "no"), key=str(tmp_path / "no")).check()
    with pytest.raises(InvalidInput, match="no port"):
        Address(port=70_000).listen()
