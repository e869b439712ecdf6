"""Iceberg Java, started once for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.java import iceberg_java


@pytest.fixture(scope="session")
def java() -> Iterator[Any]:
    with iceberg_java() as jvm:
        yield jvm
