"""Iceberg Java, started once for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.java import IcebergJava, iceberg_java


@pytest.fixture(scope="session")
def java() -> Iterator[IcebergJava]:
    with iceberg_java() as java:
        yield java
