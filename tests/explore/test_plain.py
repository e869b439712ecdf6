"""Values as JSON that a browser reads."""

from __future__ import annotations

import json
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

from icetree.explore.plain import plain


def test_every_value_becomes_json_that_a_browser_reads_without_loss() -> None:
    given: dict[str, Any] = {
        "id": 2**53 + 1, "n": -(2**53) + 1, "nan": float("nan"), "far": float("inf"), "bytes": b"\xff\0",
        "day": date(2026, 1, 2), "at": datetime(2026, 1, 2, 3, tzinfo=timezone.utc), "exact": Decimal("1.10"),
        "many": [None, True, ("x",)], "long": "x" * 5_000,
    }  # fmt: skip
    told = plain(given)
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["id"] == "9007199254740993"
    assert told["n"] == -(2**53) + 1
    assert (told["nan"], told["bytes"], told["exact"]) == ("nan", "ff00", "1.10")
    assert len(told["long"]) < 2_100
