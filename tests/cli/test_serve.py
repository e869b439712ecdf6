"""`icetree serve`: what it refuses before it listens, and what it shows."""

from __future__ import annotations

import json
import re
import socket
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner, Result

import icetree
from icetree.cli.main import cli
from icetree.serve.access.grants import digest_of
from tests.serve.processes import Running, running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with icetree.connect(f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")):
        return tmp_path


def run(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["--catalog", f"sqlite:///{folder}/c.db", "serve", *options])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--host", "0.0.0.0"), "say with --grants who may do what, or with --anyone that all may"),
        (("--host", "::"), "say with --grants"),
        (("--grants", "nowhere.yaml"), "there is no file of grants nowhere.yaml"),
        (("--token-key", "nowhere.key"), "there is no file nowhere.key with a key for tokens"),
        (("--tls-cert", "x"), "TLS needs both --tls-cert and --tls-key"),
        (("--tls-cert", "x", "--tls-key", "y"), "one of these files for TLS is not there: x, y"),
        (("--workers", "0"), "at least one is needed"),
        (("--port", "70000"), "70000 is no port"),
    ],
)
def test_what_cannot_be_served_is_refused_in_a_line(
    folder: Path, options: tuple[str, ...], told: str
) -> None:
    done = run(folder, *options)
    assert (done.exit_code, told in done.stderr) == (1, True), done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_that_another_has_is_refused(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run(folder, "--port", str(taken.getsockname()[1]))
    assert (done.exit_code, "cannot listen on 127.0.0.1:" in done.stderr) == (1, True)


def test_a_new_secret_is_shown_with_what_the_file_of_grants_has_of_it(folder: Path) -> None:
    done = run(folder, "--new-secret")
    (secret,) = re.findall(r": +([0-9a-f]{64})\n", done.stdout)
    assert digest_of(secret) in done.stdout


def test_one_screen_says_what_is_served_and_how_to_reach_it(folder: Path) -> None:
    grants = folder / "grants.yaml"
    grants.write_text(f"clients:\n  a:\n    token: {digest_of('x')}\n    read: db\n")
    key = "0123456789" * 4
    (folder / "token.key").write_text(key)
    keyed = ("--token-key", str(folder / "token.key"))
    with running(folder, "--grants", str(grants), *keyed) as server:
        assert server.process.stdout is not None
        server.process.terminate()
        rest = server.process.stdout.read()
    assert f"open to    1 clients of {grants}" in rest
    assert f'load_catalog("x", type="rest", uri="{server.uri}")' in rest
    assert rest.endswith("stopped; what was begun is finished\n")
    assert server.process.returncode == 0
    assert key not in rest + server.log.read_text()
    assert not (folder / "grants.yaml.key").exists()


def test_a_token_outlives_the_server_that_gave_it(folder: Path) -> None:
    secret = "a secret of a client"
    grants = folder / "grants.yaml"
    grants.write_text(f"clients:\n  a:\n    secret: {digest_of(secret)}\n    read: db\n")
    form = {"grant_type": "client_credentials", "client_id": "a", "client_secret": secret}

    def asked(server: Running, method: str, path: str, body: str, **headers: str) -> HTTPResponse:
        connection = HTTPConnection(server.uri.removeprefix("http://"), timeout=30)
        connection.request(method, path, body, headers)
        return connection.getresponse()

    with running(folder, "--grants", str(grants)) as server:
        given = asked(server, "POST", "/v1/oauth/tokens", urlencode(form)).read()
    bearer = f"Bearer {json.loads(given)['access_token']}"
    with running(folder, "--grants", str(grants)) as server:
        assert asked(server, "GET", "/v1/namespaces", "", authorization=bearer).status == 200
        key = (folder / "grants.yaml.key").read_text().strip()
        server.process.terminate()
        assert server.process.stdout is not None
        assert key not in server.process.stdout.read() + server.log.read_text()
