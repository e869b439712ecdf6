"""Asking for plans, and plans as PyIceberg reads them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyiceberg.catalog.rest.scan_planning import PlanCompleted, ScanTasks

from tests.serve.asking import Client, Told

PLAN = "/v1/namespaces/db/tables/t/plan"
TASKS = "/v1/namespaces/db/tables/t/tasks"
NUMBERS = pa.schema([("id", pa.int64()), ("s", pa.string())])


def ask(client: Client, **body: Any) -> Told:
    """Ask for a plan; names have underscores for dashes."""
    return client.post(PLAN, {name.replace("_", "-"): value for name, value in body.items()})


def plan(client: Client, **body: Any) -> PlanCompleted:
    """Return the first page of a plan, read by PyIceberg's own model."""
    told = ask(client, **body)
    assert told.status == 200, told.body
    return PlanCompleted.model_validate_json(told.body)


def whole(client: Client, **body: Any) -> list[ScanTasks]:
    """Return every page of a plan."""
    first = plan(client, **body)
    pages: list[ScanTasks] = [first]
    waiting = list(first.plan_tasks)
    while waiting:
        told = client.post(TASKS, {"plan-task": waiting.pop(0)})
        assert told.status == 200, told.body
        pages.append(ScanTasks.model_validate_json(told.body))
        waiting += pages[-1].plan_tasks
    return pages


def paths(pages: list[Any]) -> list[str]:
    return [task.data_file.file_path for page in pages for task in page.file_scan_tasks]


def at_most(value: int) -> dict[str, Any]:
    """Return a filter."""
    return {"type": "lt-eq", "term": "id", "value": value}
