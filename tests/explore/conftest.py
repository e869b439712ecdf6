"""What tests of the explorer share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.chromium import Chromium, chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as found:
        yield found
