"""No object store keeps anyone waiting for long: what cannot answer is an error, and soon."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from icetree.errors import Unavailable
from icetree.store.base import Store
from icetree.store.object_options import allowance_s
from icetree.store.open import store_for
from icetree.store.s3_options import options_of
from tests.servers.naughty import ANSWERS, naughty
from tests.servers.slow_s3 import slow_s3

AT = "s3://bucket/file"
#: Far above what any of these take, far below for ever: machines are busy at times.
SOON_S = 30

CALLS: dict[str, Callable[[Store], object]] = {
    "read": lambda store: store.read(AT),
    "range": lambda store: store.read_range(AT, offset=1, length=5),
    "open": lambda store: store.open(AT),
    "size": lambda store: store.size(AT),
    "write": lambda store: store.write_new(AT, b"content"),
    "delete": lambda store: store.delete([AT]),
    "list": lambda store: [*store.list("s3://bucket")],
}


def impatient(port: int) -> Store:
    return store_for(
        AT,
        {
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key-id": "AKIAhunter",
            "s3.secret-access-key": "hunter2",
            "s3.connect-timeout": "1",
            "s3.request-timeout": "0.2",
            "s3.retry.total-timeout": "0.2",
        },
    )


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        *((kind, call) for kind in ("refuses", *ANSWERS) for call in ("read", "write")),
        *(("silent", call) for call in CALLS if call not in ("read", "write")),
    ],
)
def test_an_address_that_is_no_store_is_told_in_one_sentence(kind: str, call: str) -> None:
    with naughty(kind) as port:
        store = impatient(port)
        started = time.monotonic()
        with pytest.raises(Unavailable) as told:
            CALLS[call](store)
        assert time.monotonic() - started < SOON_S
    message = str(told.value)
    assert f"http://127.0.0.1:{port}" in message
    assert "s3://bucket" in message
    assert "hunter" not in message
    assert "\n" not in message


def test_a_silent_store_is_asked_again_only_within_the_time_for_retries() -> None:
    with naughty("silent") as port:
        store = store_for(
            AT,
            {
                "s3.endpoint": f"http://127.0.0.1:{port}",
                "s3.anonymous": "true",
                "s3.request-timeout": "0.2",
                "s3.retry.total-timeout": "1",
                "s3.retry.num-retries": "1000",
            },
        )
        started = time.monotonic()
        with pytest.raises(Unavailable):
            store.read(AT)
        assert 0.5 < time.monotonic() - started < SOON_S


def test_a_request_that_carries_much_may_take_longer() -> None:
    assert [allowance_s(mib << 20) for mib in (0, 1, 2, 3, 8, 9, 512)] == [0, 1, 2, 4, 8, 16, 512]
    settings = options_of({}).client_settings("b", allowance_s=16)
    assert settings["client_options"]["timeout"] == "26000ms"


#: Of a size that may take 16 s more.
LARGE = bytes(9 << 20)


def hasty(port: int) -> Store:
    """Return a store that waits a second for what carries little."""
    return store_for(
        AT,
        {
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.anonymous": "true",
            "s3.request-timeout": "1",
            "s3.retry.total-timeout": "1",
        },
    )


def test_a_whole_file_may_take_as_long_as_its_size_allows() -> None:
    with slow_s3(LARGE, pause_s=1.5) as server:
        assert hasty(server.server_port).read(AT) == LARGE


def test_an_upload_that_is_cut_late_is_tried_again() -> None:
    with slow_s3(b"", pause_s=1.5) as server:
        hasty(server.server_port).write_new(AT, LARGE)
        assert server.uploads == [len(LARGE)] * 2


def test_a_closed_port_is_told_within_the_documented_time_for_retries() -> None:
    #: `s3.retry.total-timeout` where nobody sets it, as docs/connecting.md has it.
    documented_s = 20
    with naughty("refuses") as port:
        at = {"s3.endpoint": f"http://127.0.0.1:{port}", "s3.anonymous": "true"}
        started = time.monotonic()
        with pytest.raises(Unavailable):
            store_for(AT, at).read(AT)
        assert time.monotonic() - started < documented_s
