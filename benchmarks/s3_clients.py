"""S3 clients side by side, on a real server of this machine: `python -m benchmarks.s3_clients`.

What `docs/decisions/0005-object-store-client.md` rests on. Each client runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.servers.s3 import shared_s3

SMALL, LARGE = os.urandom(20_000), os.urandom(20_000_000)
Operations = dict[str, Callable[..., Any]]


def obstore_client(properties: dict[str, str], bucket: str) -> Operations:
    from obstore.store import S3Store

    from icetree.store.s3_options import options_of

    store = S3Store(bucket, **options_of(properties).client_settings(bucket))
    return {
        "put": lambda key, content: store.put(key, content, use_multipart=False),
        "create": lambda key, content: store.put(key, content, mode="create", use_multipart=False),
        "get": lambda key: bytes(store.get(key).bytes()),
        "range": lambda key, at: bytes(store.get_range(key, start=at, length=8192)),
        "head": store.head,
        "list": lambda folder: [*store.list(folder)],
        "delete": store.delete,
    }


def pyarrow_client(properties: dict[str, str], bucket: str) -> Operations:
    from pyarrow import fs

    store = fs.S3FileSystem(
        endpoint_override=properties["s3.endpoint"],
        access_key=properties["s3.access-key-id"],
        secret_key=properties["s3.secret-access-key"],
        region=properties["s3.region"],
        allow_delayed_open=True,
    )

    def put(key: str, content: bytes) -> None:
        with store.open_output_stream(f"{bucket}/{key}") as file:
            file.write(content)

    return {
        "put": put,
        "get": lambda key: store.open_input_stream(f"{bucket}/{key}").read(),
        "range": lambda key, at: store.open_input_file(f"{bucket}/{key}").read_at(8192, at),
        "head": lambda key: store.get_file_info(f"{bucket}/{key}").size,
        "list": lambda folder: store.get_file_info(
            fs.FileSelector(f"{bucket}/{folder}", recursive=True)
        ),
        "delete": lambda keys: [store.delete_file(f"{bucket}/{key}") for key in keys],
    }


def pyiceberg_client(properties: dict[str, str], bucket: str) -> Operations:
    from pyiceberg.io.pyarrow import PyArrowFileIO

    store = PyArrowFileIO(properties)

    def put(key: str, content: bytes, *, overwrite: bool = True) -> None:
        with store.new_output(f"s3://{bucket}/{key}").create(overwrite=overwrite) as file:
            file.write(content)

    def read_range(key: str, at: int) -> bytes:
        with store.new_input(f"s3://{bucket}/{key}").open() as file:
            file.seek(at)
            return file.read(8192)

    return {
        "put": put,
        "create": lambda key, content: put(key, content, overwrite=False),
        "get": lambda key: store.new_input(f"s3://{bucket}/{key}").open().read(),
        "range": read_range,
        "head": lambda key: len(store.new_input(f"s3://{bucket}/{key}")),
        "delete": lambda keys: [store.delete(f"s3://{bucket}/{key}") for key in keys],
    }


CLIENTS = {"obstore": obstore_client, "pyarrow": pyarrow_client, "pyiceberg": pyiceberg_client}


def measure(what: str, times: int, act: Callable[[int], object]) -> None:
    took = []
    cpu = time.process_time()
    for number in range(times):
        started = time.perf_counter()
        act(number)
        took.append(time.perf_counter() - started)
    cpu = time.process_time() - cpu
    took.sort()
    print(
        f"  {what:16} p50 {took[times // 2] * 1e3:8.2f} ms   p90 {took[times * 9 // 10] * 1e3:8.2f}"
        f" ms   CPU {cpu / times * 1e3:7.2f} ms"
    )


def run(client: str, bucket: str, properties: dict[str, str]) -> None:
    started = time.perf_counter()
    ask = CLIENTS[client](properties, bucket)
    print(f"{client}: imported and made in {(time.perf_counter() - started) * 1e3:.0f} ms")
    measure("put 20 KB", 300, lambda n: ask["put"](f"{client}/p{n}", SMALL))
    if "create" in ask:
        measure("put new 20 KB", 300, lambda n: ask["create"](f"{client}/c{n}", SMALL))
    measure("get 20 KB", 300, lambda n: ask["get"](f"{client}/p{n}"))
    measure("head", 300, lambda n: ask["head"](f"{client}/p{n}"))
    measure("put 20 MB", 5, lambda n: ask["put"](f"{client}/l{n}", LARGE))
    measure("get 20 MB", 5, lambda n: ask["get"](f"{client}/l{n}"))
    measure("range of 8 KB", 300, lambda n: ask["range"](f"{client}/l0", n * 60_000))
    if "list" in ask:
        measure("list", 10, lambda _: ask["list"](client))
    measure("delete 300", 1, lambda _: ask["delete"]([f"{client}/p{n}" for n in range(300)]))


def main() -> None:
    if len(sys.argv) > 1:
        client, bucket, *pairs = sys.argv[1:]
        run(client, bucket, dict(pair.split("=", 1) for pair in pairs))
        return
    server = shared_s3()
    pairs = [f"{name}={value}" for name, value in server.properties().items()]
    for client in CLIENTS:
        command = [sys.executable, "-m", "benchmarks.s3_clients", client, server.new_bucket()]
        subprocess.run([*command, *pairs], check=True)


if __name__ == "__main__":
    main()
