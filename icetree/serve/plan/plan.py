"""Scan planning: plan, ask for a plan that takes long, let one go, and fetch the rest of one."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import Any, Final

from icetree.errors import NotFound
from icetree.serve.call import Call
from icetree.serve.plan.asked import Asked, asked_of, meaning_of, read_body
from icetree.serve.plan.planned import Planned, make_plan
from icetree.serve.plan.tokens import no_such_task, read_token, tokens
from icetree.serve.protocol.bodies import Body, reads
from icetree.serve.protocol.refusals import Refused, refusal
from icetree.serve.protocol.request import NOTHING, Answer
from icetree.serve.showing.stock import stock_of
from icetree.serve.waiting.submitted import Ticket
from icetree.spec.texts import json_bytes
from icetree.store.stopping import StoppingStore
from icetree.table.table import Table
from icetree.visible import log_of

log = log_of(__name__)

#: Bytes of an answer that is worth compressing: below, the network takes it as it is.
_LARGE: Final = 64 << 10


class _TasksBody(Body, frozen=True, kw_only=True):
    plan_task: str


_read_tasks: Final = reads(_TasksBody)


def plan_scan(call: Call) -> Answer:
    """Plan a scan, and tell it: all of it, or its first page and tokens for the others.

    Who can ask again is told so where that takes long, and the work goes on without a request.
    """
    body = read_body(call.request.body)
    table = _table(call)
    asked = asked_of(table, body)
    if not stock_of(call.request.headers).polls or _held(call, table, asked) is not None:
        return _told(call, table, asked, _planned(call, table, asked))
    submitted = call.serving.submitted
    # Without the body, which is accounted for no longer than its request takes.
    bare = replace(call, request=replace(call.request, body=b""))
    work = submitted.start(lambda: _planned(bare, table, asked), call.request.stop)
    if not submitted.ends(work, within_s=call.serving.submit_s):
        size = len(call.request.body)
        id = submitted.keep(work, asked, size, call.who.name, *_whose(table))
        if id is not None:
            return Answer(document={"status": "submitted", "plan-id": id})
        # Too many go on by themselves already: this one has somebody who waits.
        submitted.ends(work)
    return _told(call, table, asked, work.came_to.result())


def load_plan(call: Call) -> Answer:
    """Tell a plan that was submitted, or one again, while it is held."""
    table, id = _table(call), call.named["planid"]
    ticket = call.serving.submitted.find(id, call.who.name, *_whose(table))
    if ticket is not None:
        return _of_ticket(call, table, ticket)
    found = call.serving.plans.get(*_whose(table), id)
    if found is None:
        raise _no_such_plan()
    return _told(call, table, *found)


def _of_ticket(call: Call, table: Table, ticket: Ticket[Planned]) -> Answer:
    """Tell what became of a plan that was submitted; one that is being made is waited for a while."""
    if ticket.is_cancelled:
        return Answer(document={"status": "cancelled"})
    work = ticket.work
    if work is not None and not call.serving.submitted.ends(work, within_s=call.serving.submit_s):
        return Answer(document={"status": "submitted"})
    try:
        if error := ticket.error if work is None else work.came_to.exception():
            return Answer(document={"status": "failed", **refusal(error).document})
        if work is not None:
            return _told(call, table, ticket.asked, work.came_to.result())
        # Held or, where there was no room, made again.
        return _told(call, table, ticket.asked, _planned(call, table, ticket.asked))
    except Exception as error:
        told = refusal(error)
        if told.status == 500:
            log.error("a plan of %s failed", table.name, exc_info=error)
        return Answer(document={"status": "failed", **told.document})


def cancel_plan(call: Call) -> Answer:
    """Let a plan go: one that is being made is ended, one that is made need not be held."""
    whose, id = _whose(call.table()), call.named["planid"]
    if not call.serving.submitted.cancel(id, call.who.name, *whose) and not (
        call.serving.plans.drop(*whose, id)
    ):
        raise _no_such_plan()
    return NOTHING


def fetch_tasks(call: Call) -> Answer:
    """Tell the page of a plan that a token stands for."""
    part = read_token(_read_tasks(call.request.body).plan_task)
    asked = part.asked
    table = _table(call)
    metadata = table.metadata
    if asked.table_uuid != metadata.table_uuid:
        raise no_such_task("it is of another table")
    try:
        shape = metadata.shape(asked.schema_id)
    except NotFound:
        raise no_such_task("its schema is gone") from None
    if asked.meaning != meaning_of(shape):
        raise no_such_task("the table's columns or partitions have changed since")
    try:
        planned = _planned(call, table, asked)
    except NotFound as error:
        raise no_such_task(str(error)) from None
    tasks = part.tasks
    if tasks.stop > planned.count:
        raise no_such_task("it was not made by this server")
    found: dict[str, Any] = {**planned.part(tasks, stock_of(call.request.headers), table)}
    if part.leads_on:
        found["plan-tasks"] = tokens(asked, tasks.stop, planned.count, len(tasks))
    return _packed(call, found)


def _table(call: Call) -> Table:
    """Return the table, whose files are read until planning has taken too long, or nobody waits.

    Whatever takes long in planning reads files or goes from leaf to leaf, and looks at the time
    there. What was read by then is kept, so that the next who asks goes on from there.
    """
    stop = call.request.stop
    stop.after(
        call.serving.plan_s,
        f"planning has taken more than {call.serving.plan_s:g} s and was ended: ask again, which "
        "goes on from there, give a narrower filter, or set scan-planning-mode=client",
    )
    table = call.table()
    files = replace(table.files, store=StoppingStore(table.files.store, stop))
    return Table(catalog=table.catalog, files=files, state=table.state)


def _held(call: Call, table: Table, asked: Asked) -> Planned | None:
    held = call.serving.plans.get(*_whose(table), asked.id)
    return None if held is None else held[1]


def _planned(call: Call, table: Table, asked: Asked) -> Planned:
    held = _held(call, table, asked)
    if held is not None:
        return held
    planned = make_plan(table, asked, call.request.stop)
    size = planned.nbytes + asked.nbytes
    call.serving.plans.put((asked, planned), size, *_whose(table), asked.id)
    return planned


def _whose(table: Table) -> tuple[object, ...]:
    """Return what tells a table's plans from those of others: a uuid alone is a client's choice."""
    return table.name, table.location, table.metadata.table_uuid


def _told(call: Call, table: Table, asked: Asked, planned: Planned) -> Answer:
    page = call.serving.plan_page
    first = range(min(page, planned.count))
    return _packed(
        call,
        {
            "status": "completed",
            "plan-id": asked.id,
            "plan-tasks": tokens(asked, first.stop, planned.count, page),
            **planned.part(first, stock_of(call.request.headers), table),
        },
    )


def _packed(call: Call, document: dict[str, Any]) -> Answer:
    """Return a document as an answer, a large one compressed for who can read that."""
    body = json_bytes(document)
    if len(body) < _LARGE or "gzip" not in call.request.headers.get("accept-encoding", ""):
        return Answer(document=body)
    return Answer(
        document=gzip.compress(body, compresslevel=1, mtime=0),
        headers={"content-encoding": "gzip", "vary": "accept-encoding"},
    )


def _no_such_plan() -> Refused:
    return Refused(404, "NoSuchPlanIdException", "there is no such plan: plan again")
