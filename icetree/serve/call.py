"""What a route's function is handed: the request, who asks, and what all requests share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from icetree.catalog.base import Namespace, TableName, ViewName
from icetree.errors import NotFound
from icetree.serve.access.access import Access
from icetree.serve.access.who import ANYONE, Who
from icetree.serve.protocol.names import namespace_in_path, table_of, view_of
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import Request
from icetree.serve.showing.showing import Showing
from icetree.serve.waiting.groups import Groups
from icetree.serve.waiting.held import Held
from icetree.serve.waiting.submitted import Submitted
from icetree.serve.waiting.workers import Workers
from icetree.serve.watching import Watching
from icetree.store.sts import Lent
from icetree.table.lake import Lake
from icetree.table.state import State
from icetree.table.table import Table
from icetree.table.views.view import View

#: Tasks in an answer of some megabytes.
PLAN_PAGE: Final = 10_000
#: How long the planning of a scan may take.
PLAN_S: Final = 60.0
#: How long a client waits for a plan before it is told to ask for it.
SUBMIT_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouped:
    """A table after a commit that may have waited for others, and whether they landed together."""

    state: State
    together: bool


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What all requests share."""

    lake: Lake
    access: Access = field(default_factory=Access)
    watching: Watching = field(default_factory=Watching)
    #: Routes as the protocol writes them: `GET /v1/{prefix}/namespaces`.
    endpoints: tuple[str, ...] = ()
    #: Plans of scans by table and id, each with what was asked for it.
    plans: Held[Any] = field(default_factory=Held)
    #: Plans that take long.
    submitted: Submitted[Any] = field(default_factory=lambda: Submitted(Workers()))
    #: Commits that wait for each other, by table.
    groups: Groups[Any, Grouped] = field(default_factory=Groups)
    #: Tables as they are shown.
    showing: Showing = field(default_factory=Showing)
    #: Keys for tables' files, by who has them.
    lent: Held[Lent] = field(default_factory=Held)
    #: How many tasks of a plan are in one answer.
    plan_page: int = PLAN_PAGE
    #: After how long the making of a plan, or of a page of one, is ended.
    plan_s: float = PLAN_S
    #: After how long who can ask for a plan again is told to do so.
    submit_s: float = SUBMIT_S


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request on its way through a route."""

    serving: Serving
    request: Request
    who: Who = ANYONE
    #: The parts of the path that the route names, decoded.
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def lake(self) -> Lake:
        """The lake that is served."""
        return self.serving.lake

    @cached_property
    def namespace(self) -> Namespace:
        """The namespace that the path names."""
        return namespace_in_path(self.named["namespace"])

    @cached_property
    def table_name(self) -> TableName:
        """The table that the path names."""
        return table_of(self.namespace, self.named["table"])

    @cached_property
    def view_name(self) -> ViewName:
        """The view that the path names."""
        return view_of(self.namespace, self.named["view"])

    def require_read(self, namespace: Namespace) -> None:
        """Refuse who may not read a namespace, whether or not it is there."""
        if not self.who.may_read(namespace):
            raise _forbidden(self.who, "read", namespace)

    def require_write(self, namespace: Namespace) -> None:
        """Refuse who may not change a namespace, whether or not it is there."""
        if not self.who.may_write(namespace):
            raise _forbidden(self.who, "change", namespace)

    def table(self, name: TableName | None = None) -> Table:
        """Return a table, that which the path names unless told, on its newest state; NotFound."""
        name = self.table_name if name is None else name
        try:
            return self.lake.table(str(name))
        except NotFound:
            # The lake's own words hint at names that the client may have no right to see.
            self.lake.catalog.load(name)
            raise

    def view(self) -> View:
        """Return the view that the path names, on its newest state; NotFound."""
        try:
            return self.lake.view(str(self.view_name))
        except NotFound:
            self.lake.catalog.load(self.view_name)
            raise


def _forbidden(who: Who, verb: str, namespace: Namespace) -> Refused:
    place = f"namespace {'.'.join(namespace)}" if namespace else "every namespace"
    return Refused(403, "ForbiddenException", f"{who.name} may not {verb} {place}")
