"""No secret is ever shown: through every door, in every error, in no file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pyarrow as pa
import pytest
from click.testing import CliRunner

import icetree
from icetree.catalog.config import resolve
from icetree.cli.main import cli
from icetree.store.open import store_for
from icetree.table.lake import Lake
from tests.effort import usually
from tests.laws.secrets_told import ACCESS_KEY, PASSWORD, SECRET_KEY, TOKEN, Told
from tests.servers.naughty import ANSWERS, naughty
from tests.servers.postgres import shared_server
from tests.servers.proxy import Wire, wire_to
from tests.servers.s3 import shared_s3

SHORT = {
    "catalog.connect-timeout": "2",
    "catalog.request-timeout": "5",
    "s3.connect-timeout": "1",
    "s3.request-timeout": "5",
    "s3.retry.total-timeout": "1",
}
#: For whoever does not answer at all: no real server is held to it.
SHORTEST = {
    **SHORT,
    "catalog.request-timeout": "1",
    "s3.request-timeout": "0.2",
    "s3.retry.total-timeout": "0.2",
}
KEYS = {
    "s3.access-key-id": ACCESS_KEY,
    "s3.secret-access-key": SECRET_KEY,
    "s3.session-token": TOKEN,
}


@pytest.fixture(scope="module")
def role() -> Iterator[str]:
    """A user of the database with a password that nothing else holds."""
    quoted = PASSWORD.replace("'", "''")
    with psycopg.connect(shared_server().uri(), autocommit=True) as admin:
        admin.execute("DROP ROLE IF EXISTS keeper")
        admin.execute(f"CREATE ROLE keeper SUPERUSER LOGIN PASSWORD '{quoted}'".encode())
    yield "keeper"
    with psycopg.connect(shared_server().uri(), autocommit=True) as admin:
        admin.execute("DROP OWNED BY keeper")
        admin.execute("DROP ROLE keeper")


def address(role: str, port: int, schema: str = "", password: str = PASSWORD) -> str:
    search = f"?options=-csearch_path%3D{schema}" if schema else ""
    return f"postgresql://{role}:{quote(password, safe='')}@127.0.0.1:{port}/postgres{search}"


@pytest.fixture
def wire() -> Iterator[Wire]:
    with wire_to(shared_server().port) as wire:
        yield wire


class Place:
    """A catalog and a bucket, and how to reach both."""

    def __init__(self, role: str, port: int) -> None:
        self.schema = shared_server().new_schema().rpartition("%3D")[2]
        self.uri = address(role, port, self.schema)
        self.warehouse = f"s3://{shared_s3().new_bucket()}/lake"
        self.properties = {**shared_s3().properties(), **SHORT}

    def connect(self) -> Lake:
        return icetree.connect(self.uri, warehouse=self.warehouse, properties=self.properties)

    def words(self) -> list[str]:
        """Return the options of the command line that say the same."""
        given = [f"--property={key}={value}" for key, value in self.properties.items()]
        return ["--catalog", self.uri, "--warehouse", self.warehouse, *given]


@pytest.fixture
def place(role: str, wire: Wire) -> Place:
    return Place(role, wire.port)


@pytest.fixture
def told(place: Place, caplog: pytest.LogCaptureFixture) -> Iterator[Told]:
    assert place
    caplog.set_level(logging.DEBUG)
    told = Told([PASSWORD, ACCESS_KEY, SECRET_KEY, TOKEN, shared_s3().secret_key])
    yield told
    told.log(caplog.records)
    assert told.texts
    assert told.leaks() == []


def use(place: Place, told: Told, wire: Wire) -> None:
    """Do a bit of everything, showing whatever comes back."""
    with place.connect() as lake:
        lake.create_namespace("db", {"owner": "keeper"})
        table = lake.create_table("db.t", pa.schema([("n", pa.int64()), ("s", pa.string())]))
        rows = pa.table({"n": range(10), "s": ["x"] * 10})
        committed = table.append(rows)
        wire.cut_answer = b"WITH won"
        again = table.append(rows)
        with table.edit_schema() as edit:
            edit.add("more", "string")
        table.create_tag("kept")
        scan = table.scan("n < 5")
        told.show(lake, lake.catalog, lake.store, table, table.files, table.state, table.metadata)
        told.show(committed, again, scan, scan.plan(), table.explain("n < 5"))
        told.show(table.verify(deep=True), table.inspect.snapshots(), table.inspect.files())
        told.show(resolve(place.uri, place.properties), vars(lake.catalog), vars(lake.store))
        told.fails(lambda: lake.table("db.missing"))
        told.fails(lambda: lake.create_table("db.t", table.schema))
        told.fails(lambda: lake.store.read("s3://no-such-bucket/file"))
        told.fails(lambda: table.scan("no_such = 1").count())
        assert told.files(lake.store, place.warehouse) > 8
    with psycopg.connect(shared_server().uri()) as admin:
        for name in ("iceberg_tables", "iceberg_namespace_properties"):
            told.show(admin.execute(f"SELECT * FROM {place.schema}.{name}".encode()).fetchall())


def test_python_shows_no_secret_where_all_is_well(place: Place, told: Told, wire: Wire) -> None:
    use(place, told, wire)


@pytest.mark.parametrize(
    "kind",
    # Who waits for one of a wrong protocol waits as for one that is silent.
    usually(["refuses", *ANSWERS, "echo"], "refuses", *(ANSWERS.keys() - {"ssh"}), "echo"),
)
def test_python_shows_no_secret_where_nobody_answers_as_they_should(
    kind: str, place: Place, told: Told
) -> None:
    with naughty(kind) as port:
        told.fails(lambda: icetree.connect(address("keeper", port), properties=SHORTEST))
        told.fails(
            lambda: icetree.connect(
                f"postgresql://keeper@127.0.0.1:{port}/db?password={quote(PASSWORD, safe='')}",
                properties=SHORTEST,
            )
        )
        properties = {**SHORTEST, **KEYS, "s3.endpoint": f"http://127.0.0.1:{port}"}
        store = store_for("s3://", properties)
        told.show(store, vars(store))
        told.fails(lambda: store.read("s3://bucket/file"))
        told.fails(lambda: store.write_new("s3://bucket/file", b"1"))
        told.fails(lambda: store.delete(["s3://bucket/file"]))
        told.fails(lambda: list(store.list("s3://bucket")))
        with place.connect() as lake:
            lake.create_namespace("db")
            elsewhere = icetree.connect(
                place.uri, warehouse=place.warehouse, properties={**place.properties, **properties}
            )
            told.fails(lambda: elsewhere.create_table("db.t", pa.schema([("n", pa.int64())])))
            elsewhere.close()


def test_python_shows_no_secret_that_is_wrong(place: Place, told: Told) -> None:
    port = shared_server().port
    told.fails(
        lambda: icetree.connect(address("keeper", port, password=f"{PASSWORD}!"), properties=SHORT)
    )
    told.fails(lambda: icetree.connect(address(PASSWORD.replace("%", ""), port, password="x")))
    for wrong in ({"s3.access-key-id": ACCESS_KEY}, {"s3.secret-access-key": SECRET_KEY}, KEYS):
        store = store_for("s3://", {**place.properties, **wrong})
        told.fails(lambda store=store: store.read(f"{place.warehouse}/file"))  # type: ignore[misc]
        told.fails(lambda store=store: store.write_new(f"{place.warehouse}/f", b"1"))  # type: ignore[misc]


@pytest.mark.parametrize(
    "mistaken",
    [
        f"postgresql://keeper:{PASSWORD}@127.0.0.1/db",
        f"postgresql:/keeper:{quote(PASSWORD, safe='')}@127.0.0.1/db",
        f"mysql://keeper:{quote(PASSWORD, safe='')}@127.0.0.1/db",
        f"host=127.0.0.1 user=keeper password={PASSWORD}",
        f"keeper:{PASSWORD}@127.0.0.1",
        f"postgresql://keeper:{quote(PASSWORD, safe='')}@127.0.0.1:{SECRET_KEY}/db",
        address("keeper", 5432).encode(),
        Path(f"{PASSWORD}@127.0.0.1"),
    ],
)
def test_an_address_by_mistake_is_not_repeated(mistaken: object, told: Told) -> None:
    told.fails(lambda: icetree.connect(mistaken, properties=SHORT))  # type: ignore[arg-type]


def test_keys_in_a_location_are_refused_and_not_repeated(place: Place, told: Told) -> None:
    inside = [f"s3://{ACCESS_KEY}:{SECRET_KEY}@bucket/lake", f"s3a://{ACCESS_KEY}:{TOKEN}@b/lake"]
    for warehouse in inside:
        told.fails(lambda at=warehouse: icetree.connect("memory://", warehouse=at))  # type: ignore[misc]
        with place.connect() as lake:
            lake.create_namespace("db", exist_ok=True)
            told.fails(
                lambda at=warehouse: lake.create_table(  # type: ignore[misc]
                    "db.t", pa.schema([("n", pa.int64())]), location=at
                )
            )
    endpoint = f"http://{ACCESS_KEY}:{SECRET_KEY}@127.0.0.1:1"
    told.fails(lambda: store_for("s3://b", {"s3.endpoint": endpoint}))


def test_a_configuration_that_cannot_be_read_is_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: Told
) -> None:
    broken = f"catalog:\n  prod:\n    s3.secret-access-key: {SECRET_KEY}\n  s3.token: [{TOKEN}\n"
    (tmp_path / ".pyiceberg.yaml").write_text(broken)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    told.fails(lambda: icetree.connect("prod"))


def test_the_command_line_shows_no_secret(place: Place, told: Told) -> None:
    def run(*words: str, status: int = 0) -> None:
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == status, done.output
        told.show(done.output, done.stderr, done.exception)

    here = place.words()
    run(*here, "create", "db.t", "--schema", "n long, s string")
    with place.connect() as lake:
        lake.table("db.t").append(pa.table({"n": [1, 2], "s": ["a", "b"]}))
    for command in ("describe", "snapshots", "refs", "files", "tree", "plan", "verify"):
        run(*here, command, "db.t")
        run(*here, command, "db.t", "--json")
    run(*here, "ls", "--json")
    run(*here, "tree", "db.t", "--format", "svg")
    run(*here, "describe", "db.missing", status=1)
    run(*here, "--property", f"s3.secret-access-key:{SECRET_KEY}", "ls", status=1)
    wrong = [f"--property={key}={value}" for key, value in KEYS.items()]
    run(*here, *wrong, "describe", "db.t", status=1)
    with naughty("closes") as port:
        run("--catalog", address("keeper", port), "ls", status=1)
    with naughty("echo") as port:
        run(*here, *wrong, f"--property=s3.endpoint=http://127.0.0.1:{port}",
            "verify", "db.t", status=2)  # fmt: skip
    run("--catalog", f"postgresql://keeper:{PASSWORD}@127.0.0.1/db", "ls", status=1)
