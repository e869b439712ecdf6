"""Leaves of a few files have several parts here, as leaves of thousands have elsewhere."""

from __future__ import annotations

import pytest

from icetree.table.export import parts


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART", 2)
