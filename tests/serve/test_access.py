"""Who is let in, and how far: tokens, secrets, grants by namespace."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ForbiddenError, OAuthError, UnauthorizedError
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

from icetree.errors import InvalidInput, NotFound
from icetree.serve.access import tokens
from icetree.serve.access.access import Access
from icetree.serve.access.grants import digest_of, grants_in, new_secret
from icetree.serve.access.tokens import Tokens, read_key
from icetree.serve.http.run import Tls
from icetree.serve.routes import ROUTES
from icetree.serve.server import Server
from icetree.surroundings import Machine, within
from icetree.table.lake import Lake
from tests.serve.asking import Client
from tests.serve.listening import listening

FILE = f"""
clients:
  etl:
    secret: {digest_of("etl secret")}
    write: sales, staging.raw
  reports:
    token: {digest_of("reports token")}
    read: sales
  chief:
    token: {digest_of("chief token")}
    write: "*"
"""
TLS = Path(__file__).parent / "tls"
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}


@pytest.fixture
def server(lake: Lake) -> Server:
    for name in ("sales", "sales.old", "staging.raw", "hr"):
        lake.create_namespace(name)
    for name in ("sales.t", "hr.t"):
        lake.create_table(name, pa.schema([("id", pa.int64())]))
    return Server(lake, Access(grants=grants_in(FILE, "grants")))


def client(server: Server, token: str | None) -> Client:
    return Client(server, {} if token is None else {"authorization": f"Bearer {token}"})


def token_of(server: Server, name: str, secret: str) -> Any:
    form = urlencode({"grant_type": "client_credentials", "client_id": name, "client_secret": secret, "scope": "catalog"})  # fmt: skip
    return client(server, None).post("/v1/oauth/tokens", form.encode())


@pytest.mark.parametrize(
    "token", [None, "", "x", "x.y", "....", "reports", "REPORTS TOKEN", "é", "0" * 10_000]
)
def test_nobody_is_let_in_without_a_good_token(server: Server, token: str | None) -> None:
    """By no route but those that are open to all, which tell nothing of any table."""
    stranger = client(server, token)
    for route in ROUTES:
        path = route.path.replace("/{prefix}", "").replace("{namespace}", "sales")
        path = path.replace("{table}", "t").replace("{plan-id}", "1").replace("{view}", "history")
        told = stranger.ask(route.method, path, b"{}")
        if path in ("/healthz", "/ui", "/ui/explorer.js", "/ui/explorer.css"):
            assert told.status == 200
        elif path == "/v1/oauth/tokens":
            assert told.status == 400
        else:
            assert told.status == 401, path
            assert told.headers["www-authenticate"] == "Bearer"


def test_a_secret_is_exchanged_for_a_token_that_is_good_for_a_while(server: Server) -> None:
    told = token_of(server, "etl", "etl secret")
    assert (told.status, told.json["token_type"]) == (200, "bearer")
    token = told.json["access_token"]
    assert client(server, token).get("/v1/namespaces/sales").status == 200
    refreshed = client(server, token).post(
        "/v1/oauth/tokens",
        urlencode({"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": token}).encode(),
    )  # fmt: skip
    assert client(server, refreshed.json["access_token"]).get("/v1/namespaces/sales").status == 200

    class Later(Machine):
        def now_ms(self) -> int:
            return super().now_ms() + 1000 * tokens.LIFETIME_S + 1000

    with within(Later()):
        assert client(server, token).get("/v1/namespaces/sales").status == 401
    other = Server(server.serving.lake, Access(grants=grants_in(FILE, "grants")))
    assert client(other, token).get("/v1/namespaces/sales").status == 401


def exchanged(server: Server, token: str, **headers: str) -> Any:
    form = {"grant_type": "urn:ietf:params:oauth:grant-type:token-exchange", "subject_token": token}
    return client(server, None).post("/v1/oauth/tokens", urlencode(form).encode(), **headers)


def test_with_a_key_tokens_are_good_for_every_server_that_has_it(lake: Lake) -> None:
    lake.create_namespace("sales")

    def started(key: bytes | None, grants: str = FILE) -> Server:
        return Server(lake, Access(grants=grants_in(grants, "grants"), tokens=Tokens(key)))

    first = started(b"k" * 32)
    token = token_of(first, "etl", "etl secret").json["access_token"]
    for other, status in (
        (started(b"k" * 32), 200),
        (started(b"l" * 32), 401),
        (started(None), 401),
    ):
        assert client(other, token).get("/v1/namespaces/sales").status == status
        assert exchanged(other, token).status == status
    # Who is given another secret, or none, is to ask for another token.
    for grants in (
        FILE.replace(digest_of("etl secret"), digest_of("another")),
        FILE.replace("  etl:", "  another:"),
    ):
        other = started(b"k" * 32, grants)
        assert client(other, token).get("/v1/namespaces/sales").status == 401
        assert exchanged(other, token).status == 401


def test_who_comes_with_a_token_that_is_good_no_more_and_with_a_secret_gets_another(
    server: Server,
) -> None:
    """As Iceberg Java does, whose token has expired."""
    basic = base64.b64encode(b"etl:etl secret").decode()
    told = exchanged(server, "x.y", authorization=f"Basic {basic}")
    assert told.status == 200
    assert client(server, told.json["access_token"]).get("/v1/namespaces/sales").status == 200
    wrong = base64.b64encode(b"etl:wrong").decode()
    assert exchanged(server, "x.y", authorization=f"Basic {wrong}").status == 401
    assert exchanged(server, "x.y").status == 401


def test_a_token_of_the_file_is_renewed_by_itself_which_outlives_the_server(server: Server) -> None:
    told = exchanged(server, "reports token", authorization="Bearer reports token")
    assert (told.status, told.json["access_token"]) == (200, "reports token")


@pytest.mark.parametrize(
    ("text", "reason"), [("short", "fewer than 32"), (None, "there is no file")]
)
def test_a_key_for_tokens_that_could_be_guessed_is_refused(
    tmp_path: Path, text: str | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "token.key"
    if text is not None:
        place.write_text(text)
        monkeypatch.setenv("ICETREE_TOKEN_KEY", text)
        with pytest.raises(InvalidInput, match=reason):
            read_key(None)
    with pytest.raises((InvalidInput, NotFound), match=reason) as refused:
        read_key(str(place))
    assert "short" not in str(refused.value)


def test_a_key_for_tokens_is_in_a_file_or_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_key(None) is None
    key = new_secret()
    (tmp_path / "token.key").write_text(f"{key}\n")
    monkeypatch.setenv("ICETREE_TOKEN_KEY", key)
    assert read_key(None) == read_key(str(tmp_path / "token.key"))
    assert key not in repr(Access(tokens=Tokens(read_key(None))))


def test_a_name_that_is_not_there_tells_nothing_of_what_is_elsewhere(server: Server) -> None:
    lake = server.serving.lake
    for name in ("board", "sales.secret", "staging.raw.secret"):
        lake.create_namespace(name)
    etl = client(server, token_of(server, "etl", "etl secret").json["access_token"])
    commit = {"requirements": [], "updates": []}
    for namespace in ("sales.nothing_like_it", "staging.raw.nothing_like_it"):
        table = f"/v1/namespaces/{namespace.replace('.', '%1F')}/tables/x"
        named = {"namespace": namespace.split("."), "name": "x"}
        several = {"table-changes": [{"identifier": named, **commit}]}
        for told in (
            etl.get(table), etl.head(table), etl.post(table, commit), etl.post(f"{table}/plan", {}),
            etl.delete(table), etl.delete(f"{table}?purgeRequested=true"), etl.post(f"{table}/sign", {"region": "r", "uri": "x", "method": "GET"}),
            etl.post("/v1/transactions/commit", several), etl.post("/v1/tables/rename", {"source": named, "destination": named}),
        ):  # fmt: skip
            assert told.status == 404, told.body
            assert not {*re.findall(r"board|hr|secret|old", told.body.decode())}, told.body


def test_a_token_is_given_to_nobody_again_for_a_key(server: Server) -> None:
    key = {"idempotency_key": "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"}
    form = b"grant_type=client_credentials"
    basic = base64.b64encode(b"etl:etl+secret").decode()
    anyone = client(server, None)
    given = anyone.post("/v1/oauth/tokens", form, authorization=f"Basic {basic}", **key)
    assert given.status == 200
    assert anyone.post("/v1/oauth/tokens", form, **key).status == 401


def test_a_secret_may_come_in_the_header_that_oauth_has_for_it(server: Server) -> None:
    basic = base64.b64encode(b"etl:etl+secret").decode()
    told = client(server, None).post(
        "/v1/oauth/tokens", b"grant_type=client_credentials", authorization=f"Basic {basic}"
    )
    assert told.status == 200


@pytest.mark.parametrize(
    ("name", "secret"),
    [("etl", "wrong"), ("etl", ""), ("nobody", ""), ("reports", ""), ("reports", "reports token"), ("", ""), ("etl", digest_of("etl secret"))],
)  # fmt: skip
def test_a_secret_that_is_not_known_gets_no_token(server: Server, name: str, secret: str) -> None:
    told = token_of(server, name, secret)
    assert (told.status, told.json["error"]) == (401, "invalid_client")
    assert not secret or secret not in told.body.decode()


def test_a_token_that_was_tampered_with_is_none(server: Server) -> None:
    token = token_of(server, "etl", "etl secret").json["access_token"]
    told, _, signature = token.partition(".")
    content = base64.urlsafe_b64decode(told + "==").decode()
    for other in (content.replace("etl", "chief"), "9" + content, content + "x"):
        forged = base64.urlsafe_b64encode(other.encode()).decode().rstrip("=")
        assert client(server, f"{forged}.{signature}").get("/v1/config").status == 401


def test_a_reader_reads_and_changes_nothing(server: Server) -> None:
    reader = client(server, "reports token")
    assert reader.get("/v1/namespaces").json["namespaces"] == [["sales"]]
    assert reader.get("/v1/namespaces/sales/tables/t").status == 200
    assert reader.get("/v1/namespaces/sales%1Fold/tables").status == 200
    here = "/v1/namespaces/sales"
    rename = {"source": {"namespace": ["sales"], "name": "t"}, "destination": {"namespace": ["sales"], "name": "u"}}  # fmt: skip
    change = {"identifier": rename["source"], "requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}  # fmt: skip
    attempts = [
        ("POST", "/v1/namespaces", {"namespace": ["sales", "new"]}),
        ("DELETE", f"{here}%1Fold", None),
        ("POST", f"{here}/properties", {"updates": {"a": "1"}}),
        ("POST", f"{here}/tables", {"name": "u", "schema": SCHEMA}),
        ("POST", f"{here}/register", {"name": "u", "metadata-location": "x"}),
        ("POST", f"{here}/tables/t", change),
        ("DELETE", f"{here}/tables/t", None),
        ("POST", "/v1/tables/rename", rename),
        ("POST", "/v1/transactions/commit", {"table-changes": [change]}),
    ]
    for method, path, body in attempts:
        assert reader.ask(method, path, body).error == (403, "ForbiddenException"), path
    assert server.serving.lake.tables() == ["hr.t", "sales.t"]
    assert server.serving.lake.table("sales.t").properties == {}


def test_a_namespace_that_is_not_granted_might_as_well_not_be_there(server: Server) -> None:
    """What is told does not depend on what is there."""
    etl = client(server, token_of(server, "etl", "etl secret").json["access_token"])
    assert etl.get("/v1/namespaces").json["namespaces"] == [["sales"], ["staging"]]
    assert etl.get("/v1/namespaces?parent=staging").json["namespaces"] == [["staging", "raw"]]
    for name in ("hr", "nowhere", "staging", "db"):
        for path in (name, f"{name}/tables", f"{name}/tables/t", f"{name}%1Fbelow"):
            assert etl.get(f"/v1/namespaces/{path}").error == (403, "ForbiddenException"), path
    for name in ("hr", "nowhere"):
        assert etl.get(f"/v1/namespaces?parent={name}").status == 403
    move = {"source": {"namespace": ["hr"], "name": "t"}, "destination": {"namespace": ["sales"], "name": "u"}}  # fmt: skip
    assert etl.post("/v1/tables/rename", move).status == 403
    away = {"source": {"namespace": ["sales"], "name": "t"}, "destination": {"namespace": ["hr"], "name": "u"}}  # fmt: skip
    assert etl.post("/v1/tables/rename", away).status == 403


def test_a_grant_is_for_a_namespace_and_those_below_by_whole_names(server: Server) -> None:
    etl = client(server, token_of(server, "etl", "etl secret").json["access_token"])
    assert etl.post("/v1/namespaces", {"namespace": ["sales", "new"]}).status == 200
    assert etl.post("/v1/namespaces", {"namespace": ["sales2"]}).status == 403
    assert etl.post("/v1/namespaces", {"namespace": ["staging", "rawer"]}).status == 403
    made = etl.post("/v1/namespaces/sales%1Fnew/tables", {"name": "t", "schema": SCHEMA})
    assert made.status == 200


def test_only_who_may_change_all_registers_metadata_files(server: Server) -> None:
    lake = server.serving.lake
    at = lake.table("sales.t").state.metadata_location
    body = {"name": "again", "metadata-location": at}
    etl = client(server, token_of(server, "etl", "etl secret").json["access_token"])
    assert etl.post("/v1/namespaces/sales/register", body).status == 403
    chief = client(server, "chief token")
    assert chief.post("/v1/namespaces/sales/register", body).status == 200


def test_a_key_of_one_client_is_not_anothers(server: Server) -> None:
    key = {"idempotency_key": "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"}
    chief = client(server, "chief token")
    body = {"name": "u", "schema": SCHEMA}
    assert chief.post("/v1/namespaces/sales/tables", body, **key).status == 200
    etl = client(server, token_of(server, "etl", "etl secret").json["access_token"])
    assert etl.post("/v1/namespaces/sales/tables", body, **key).status == 409
    reader = client(server, "reports token")
    assert reader.post("/v1/namespaces/sales/tables", body, **key).status == 403


@pytest.mark.parametrize(
    "text",
    [
        "", "clients", "clients:\n  a:\n    read: x", "clients:\n  a:\n    secret: plain\n    read: x",
        f"clients:\n  a b:\n    secret: {digest_of('x')}",
        f"clients:\n  a:\n    secret: {digest_of('x')}\n    read: a..b",
        f"clients:\n  a:\n    secret: {digest_of('x')}\n    owns: a",
    ],
)  # fmt: skip
def test_a_file_of_grants_that_cannot_be_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        grants_in(text, "grants.yaml")
    assert "plain" not in str(refused.value)
    assert "grants.yaml" in str(refused.value)


def test_secrets_are_long_and_never_the_same() -> None:
    made = {new_secret() for _ in range(10)}
    assert {len(each) for each in made} == {64}
    assert len(made) == 10


def test_what_is_done_is_counted_and_logged_without_secrets(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "icetree.access"):
        token = token_of(server, "etl", "etl secret").json["access_token"]
        etl = client(server, token)
        etl.get("/v1/namespaces/sales?secret=hidden", cookie="hidden")
        etl.get("/v1/namespaces/%0A%22evil")
        client(server, "hidden").get("/v1/config")
    lines = [each.getMessage() for each in caplog.records if each.name == "icetree.access"]
    logged = "\n".join(lines)
    assert '"path":"/v1/namespaces/sales","status":200' in logged
    assert '"who":"etl"' in logged
    assert not any(each in logged for each in (token, "etl secret", "hidden"))
    assert all(each.startswith("{") and "\n" not in each for each in lines)
    counted = etl.get("/metrics").body.decode()
    route = "/v1/{prefix}/namespaces/{namespace}"
    assert f'icetree_requests_total{{route="{route}",method="GET",status="200"}} 1' in counted
    assert 'icetree_request_seconds_bucket{route="/v1/config",le="+Inf"} 1' in counted
    assert client(server, None).get("/healthz").json == {"status": "ok"}


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
def test_stock_pyiceberg_comes_in_by_a_secret_over_tls_and_no_further_than_it_may(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = str(TLS / "localhost.pem")
    # Its requests for tokens know no other way to trust a certificate.
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", certificate)
    with listening(server, tls=Tls(certificate=certificate, key=str(TLS / "localhost.key"))) as at:
        uri = f"https://localhost:{at.port}"
        how: dict[str, Any] = {
            "type": "rest",
            "uri": uri,
            "oauth2-server-uri": f"{uri}/v1/oauth/tokens",
        }
        catalog = load_catalog("etl", credential="etl:etl secret", **how)
        assert catalog.list_namespaces() == [("sales",), ("staging",)]
        catalog.create_table("sales.made", Schema(NestedField(1, "id", LongType())))
        with pytest.raises(ForbiddenError):
            catalog.load_table("hr.t")
        with pytest.raises(OAuthError):
            load_catalog("no", credential="etl:wrong", **how)
        reader = load_catalog("reports", token="reports token", **how)
        assert reader.load_table("sales.made").schema().column_names == ["id"]
        with pytest.raises(ForbiddenError):
            reader.drop_table("sales.made")
        with pytest.raises(UnauthorizedError):
            load_catalog("no", token="wrong", **how)
