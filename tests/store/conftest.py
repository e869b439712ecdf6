"""A folder in a store of each kind, empty but for what a test puts in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from icetree.store.base import Store
from icetree.store.open import EveryStore, store_for
from tests.servers.clouds import ACCOUNT, shared_cloud
from tests.servers.s3 import S3Server, shared_s3


@dataclass(frozen=True)
class Place:
    """A store and a folder in it."""

    store: Store
    folder: str

    def at(self, name: str) -> str:
        return f"{self.folder}/{name}"


@pytest.fixture(scope="session")
def s3() -> S3Server:
    return shared_s3()


@pytest.fixture(scope="session")
def bucket(s3: S3Server) -> str:
    return s3.new_bucket()


@pytest.fixture(params=["path", "file", "memory", "s3", "every", "google", "azure"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    match request.param:
        case "path":
            return Place(store_for(str(tmp_path)), f"{tmp_path}/table")
        case "file":
            return Place(store_for(f"file://{tmp_path}"), f"file://{tmp_path}/table")
        case "every":
            return Place(EveryStore(), f"file://{tmp_path}/table")
        case "google":
            folder = f"gs://bucket/{tmp_path.name}"
            return Place(store_for(folder, shared_cloud().google), folder)
        case "azure":
            folder = f"abfss://box@{ACCOUNT}.dfs.core.windows.net/{tmp_path.name}"
            return Place(store_for(folder, shared_cloud().azure), folder)
        case "memory":
            folder = f"memory://{tmp_path.name}/table"
            return Place(store_for(folder), folder)
    server: S3Server = request.getfixturevalue("s3")
    folder = f"s3://{request.getfixturevalue('bucket')}/{tmp_path.name}"
    return Place(store_for(folder, server.properties()), folder)
