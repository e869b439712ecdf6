"""What was planned when Spark asked for files, as the log tells."""

from __future__ import annotations

import logging

import pytest

from icetree.spark.read import ask


class Told:
    """What was planned for Spark: of each question the files and the leaves that were read."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        caplog.set_level(logging.INFO, logger=ask.__name__)

    def __call__(self) -> list[tuple[int, int]]:
        records = [each for each in self._caplog.records if each.name == ask.__name__]
        found = [tuple(each.args)[1:3] for each in records if isinstance(each.args, tuple)]
        self._caplog.clear()
        return found  # type: ignore[return-value]
