"""Reports of clients on what their scans and commits took: into the log, one line each."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from icetree.serve.call import Call
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.request import NOTHING, Answer
from icetree.spec.texts import json_bytes
from icetree.visible import visible_json

log = logging.getLogger(__name__)

#: Of a longer report some metrics are left out: it is for people to read.
_LONGEST = 4_000


class Report(Body, frozen=True, kw_only=True):
    """A report as it came; only its kind is looked at."""

    report_type: str
    table_name: str | None = None
    snapshot_id: int | None = None
    metrics: dict[str, Any] = msgspec.field(default_factory=dict)


_read = reads(Report)


def report_metrics(call: Call) -> Answer:
    """Take note of a client's report on a table."""
    report = _read(call.request.body)
    call.lake.catalog.load(call.table_name)
    told = {
        "table": str(call.table_name),
        "report": report.report_type[:100],
        "snapshot_id": report.snapshot_id,
        **_short(report.metrics),
    }
    log.info("%s", _line(told))
    return NOTHING


def _short(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return as many metrics as fit on a line, and how many do not."""
    kept: dict[str, Any] = {}
    left = _LONGEST
    for name, value in metrics.items():
        left -= len(_line({name: value}))
        if left < 0:
            return {"metrics": kept, "left_out": len(metrics) - len(kept)}
        kept[name] = value
    return {"metrics": kept}


def _line(told: dict[str, Any]) -> str:
    return visible_json(json_bytes(told).decode(errors="replace"))
