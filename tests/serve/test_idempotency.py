"""Requests repeated under a key: carried out once, while nobody waits and old ones make room."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from icetree.serve.protocol import idempotency
from icetree.serve.protocol.idempotency import Answered
from icetree.serve.protocol.refusals import Refused
from icetree.serve.protocol.request import Answer, Request
from icetree.surroundings import new_uuid


def request(key: str) -> Request:
    return Request(method="POST", path="/x", headers={"idempotency-key": key})


def test_a_copy_of_what_is_in_the_works_does_not_wait_for_it() -> None:
    answered, key = Answered(), new_uuid()
    begun, go = threading.Event(), threading.Event()

    def slow() -> Answer:
        begun.set()
        assert go.wait(10)
        return Answer(document=b"done")

    with ThreadPoolExecutor() as pool:
        first = pool.submit(answered.once, "w", request(key), slow)
        assert begun.wait(5)
        copy = pool.submit(answered.once, "w", request(key), slow)
        try:
            with pytest.raises(Refused) as refused:
                copy.result(5)
        finally:
            go.set()
        assert refused.value.status == 503
        assert first.result(5).document == b"done"
    assert answered.once("w", request(key), Answer).document == b"done"


def test_what_is_in_the_works_keeps_no_answer_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "_MOST_BYTES", 100)
    answered, old = Answered(), new_uuid()
    made: list[str] = []

    def carried_out(name: str) -> Answer:
        made.append(name)
        return Answer(document=b"x" * 90)

    def whole() -> Answer:
        for key in (old, new_uuid(), new_uuid(), old):
            answered.once("w", request(key), partial(carried_out, key))
        return Answer()

    answered.once("w", request(new_uuid()), whole)
    assert made.count(old) == 2


@pytest.mark.parametrize("limit", ["_MOST", "_MOST_BYTES"])
def test_no_client_has_what_others_are_told_again_forgotten(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, limit, 10 if limit == "_MOST" else 1_000)
    answered, key = Answered(), new_uuid()
    first = answered.once("writer", request(key), lambda: Answer(document=b"landed"))
    keys = [new_uuid() for _ in range(50)]
    for each in keys:
        answered.once("reader", request(each), lambda: Answer(document=b"x" * 200))
    again = answered.once("writer", request(key), lambda: Answer(document=b"refused"))
    assert again == first
    # Of its own it has the newest.
    for each, is_kept in ((keys[-1], True), (keys[0], False)):
        told = answered.once("reader", request(each), lambda: Answer(document=b"anew"))
        assert (told.document != b"anew") == is_kept


def test_answers_are_forgotten_when_their_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idempotency, "LIFETIME_S", -1)
    answered, key = Answered(), new_uuid()
    answered.once("w", request(key), lambda: Answer(document=b"first"))
    answered.once("other", request(new_uuid()), Answer)
    told = answered.once("w", request(key), lambda: Answer(document=b"second"))
    assert told.document == b"second"
