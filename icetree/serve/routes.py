"""Every route: one line each. What `config` tells clients of is made from this table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from icetree.serve.call import Call
from icetree.serve.commit.commit import commit_table
from icetree.serve.commit.new import create_table
from icetree.serve.commit.transaction import commit_transaction
from icetree.serve.config import config
from icetree.serve.files.delegation import load_credentials
from icetree.serve.files.signing import sign
from icetree.serve.health import healthz, metrics, tokens
from icetree.serve.namespaces import (
    create_namespace,
    drop_namespace,
    list_namespaces,
    load_namespace,
    namespace_exists,
    update_namespace,
)
from icetree.serve.plan.plan import cancel_plan, fetch_tasks, load_plan, plan_scan
from icetree.serve.protocol.request import Answer
from icetree.serve.register import register_table
from icetree.serve.reports import report_metrics
from icetree.serve.route import Needs, Route
from icetree.serve.tables import (
    drop_table,
    list_tables,
    load_table,
    rename_table,
    table_exists,
)
from icetree.serve.ui import explorer, script, style, tables, view
from icetree.serve.views.change import commit_view, create_view
from icetree.serve.views.views import (
    drop_view,
    list_views,
    load_view,
    register_view,
    rename_view,
    view_exists,
)

_ALL = "/v1/{prefix}/namespaces"
_ONE = f"{_ALL}/{{namespace}}"
_TABLES = f"{_ONE}/tables"
_TABLE = f"{_TABLES}/{{table}}"
_VIEWS = f"{_ONE}/views"
_VIEW = f"{_VIEWS}/{{view}}"
_READ, _WRITE = Needs.READ, Needs.WRITE

_LINES = (
    ("GET", "/healthz", healthz, Needs.NOTHING),
    ("GET", "/metrics", metrics, Needs.A_NAME),
    ("POST", "/v1/oauth/tokens", tokens, Needs.NOTHING),
    ("GET", "/v1/config", config, Needs.A_NAME),
    ("GET", _ALL, list_namespaces, Needs.A_NAME),
    ("POST", _ALL, create_namespace, Needs.A_NAME),
    ("GET", _ONE, load_namespace, _READ),
    ("HEAD", _ONE, namespace_exists, _READ),
    ("DELETE", _ONE, drop_namespace, _WRITE),
    ("POST", f"{_ONE}/properties", update_namespace, _WRITE),
    ("GET", _TABLES, list_tables, _READ),
    ("POST", _TABLES, create_table, _WRITE),
    ("POST", f"{_ONE}/register", register_table, _WRITE),
    ("GET", _TABLE, load_table, _READ),
    ("HEAD", _TABLE, table_exists, _READ),
    ("POST", _TABLE, commit_table, _WRITE),
    ("DELETE", _TABLE, drop_table, _WRITE),
    ("POST", f"{_TABLE}/metrics", report_metrics, _READ),
    ("POST", f"{_TABLE}/sign", sign, _READ),
    ("GET", f"{_TABLE}/credentials", load_credentials, _READ),
    ("POST", "/v1/{prefix}/tables/rename", rename_table, Needs.A_NAME),
    ("GET", _VIEWS, list_views, _READ),
    ("POST", _VIEWS, create_view, _WRITE),
    ("POST", f"{_ONE}/register-view", register_view, _WRITE),
    ("GET", _VIEW, load_view, _READ),
    ("HEAD", _VIEW, view_exists, _READ),
    ("POST", _VIEW, commit_view, _WRITE),
    ("DELETE", _VIEW, drop_view, _WRITE),
    ("POST", "/v1/{prefix}/views/rename", rename_view, Needs.A_NAME),
    ("POST", "/v1/{prefix}/transactions/commit", commit_transaction, Needs.A_NAME),
    ("POST", f"{_TABLE}/plan", plan_scan, _READ),
    ("GET", f"{_TABLE}/plan/{{plan-id}}", load_plan, _READ),
    ("DELETE", f"{_TABLE}/plan/{{plan-id}}", cancel_plan, _READ),
    ("POST", f"{_TABLE}/tasks", fetch_tasks, _READ),
)

#: The explorer: its page holds nothing of any table, what it shows is for who may read.
_EXPLORER = (
    ("GET", "/ui", explorer, Needs.NOTHING),
    ("GET", "/ui/explorer.js", script, Needs.NOTHING),
    ("GET", "/ui/explorer.css", style, Needs.NOTHING),
    ("GET", "/ui/tables", tables, Needs.A_NAME),
    ("GET", "/ui/tables/{namespace}/{table}/{view}", view, _READ),
)


def _routes(lines: Iterable[tuple[str, str, Callable[[Call], Answer], Needs]]) -> tuple[Route, ...]:
    return tuple(
        Route(method=method, path=path, function=function, needs=needs)
        for method, path, function, needs in lines
    )


#: What is asked by whoever only looks.
EXPLORER: Final = _routes(_EXPLORER)
ROUTES: Final = (*_routes(_LINES), *EXPLORER)
#: As `config` tells them.
ENDPOINTS: Final = tuple(each.endpoint for each in ROUTES if "{prefix}" in each.path)
