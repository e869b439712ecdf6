"""Real servers in trouble: PostgreSQL freezes, restarts, crashes and fails over; S3 by a proxy."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from campaigns.soak.place import Place
from tests.servers.http_proxy import Trouble, troubled
from tests.servers.postgres import PostgresServer
from tests.servers.s3 import S3Server

#: Shorter than by default, so that trouble of seconds counts as trouble.
PATIENCE: Final = {"catalog.connect-timeout": "2", "catalog.request-timeout": "3"}
STORE_PATIENCE: Final = {"s3.request-timeout": "3", "s3.retry.total-timeout": "8"}


class Pair:
    """A server and its standby, under one address: a commit is done when both have it."""

    def __init__(self) -> None:
        self.first = PostgresServer()
        self.first.start()
        self.standby = self._follow(0)
        self.struck: Counter[str] = Counter()
        #: What goes wrong, one after the other and no more; None for what chance decides, without end.
        self.coming: list[str] | None = None
        ports = ",".join(f"127.0.0.1:{each.port}" for each in (self.first, self.standby))
        one = self.first.uri().replace(f"127.0.0.1:{self.first.port}", ports)
        self.uri = f"{one}?target_session_attrs=read-write"

    def strike(self, choose: random.Random, stop: threading.Event) -> None:
        """Let something go wrong, and right again."""
        kinds = ["freeze", "freeze", "restart", "crash", "failover"]
        kind = choose.choice(kinds) if self.coming is None else self.coming.pop(0)
        self.struck[kind] += 1
        if kind == "freeze":
            self.first.freeze()
            stop.wait(choose.uniform(0.5, 8))
            self.first.thaw()
        elif kind == "failover":
            self._fail_over()
        else:
            self.first.stop() if kind == "restart" else self.first.crash()
            self.first.start()

    def remove(self) -> None:
        for each in (self.first, self.standby):
            each.remove()

    def _follow(self, port: int) -> PostgresServer:
        standby = PostgresServer(standby_of=self.first, port=port)
        standby.start()
        self.first.wait_for_standby()
        return standby

    def _fail_over(self) -> None:
        """Lose the first server for good; its standby takes its place and gets one of its own."""
        gone = self.first
        gone.crash()
        self.standby.promote()
        self.first = self.standby
        gone.remove()
        self.standby = self._follow(gone.port)


@dataclass(frozen=True, kw_only=True)
class Ground:
    """Where writers work, where the judge looks, and what went wrong there so far."""

    place: Place
    #: The same table, reached without trouble.
    calm: Place
    pair: Pair | None = None
    proxy: Trouble | None = None

    def struck(self) -> Counter[str]:
        found: Counter[str] = Counter()
        if self.pair is not None:
            found.update({f"PostgreSQL {kind}": n for kind, n in self.pair.struck.items()})
        if self.proxy is not None:
            found.update({f"S3 {kind}": n for kind, n in self.proxy.kinds.items()})
        return found


@contextmanager
def on_servers(folder: Path, kinds: set[str], share: float) -> Iterator[Ground]:
    """Start servers of these kinds (`postgres`, `s3`); what is none is on this machine's disk."""
    with ExitStack() as stack:
        place = calm = on_disk(folder, 0.0).calm
        pair = proxy = None
        if "s3" in kinds:
            server = S3Server()
            stack.callback(server.remove)
            server.start()
            proxy = stack.enter_context(troubled(server.port, share))
            at = f"s3://{server.new_bucket()}/lake"
            place = place.at(warehouse=at, **server.properties(port=proxy.port), **STORE_PATIENCE)
            calm = calm.at(warehouse=at, **server.properties())
        if "postgres" in kinds:
            pair = Pair()
            stack.callback(pair.remove)
            place, calm = place.at(uri=pair.uri, **PATIENCE), calm.at(uri=pair.uri)
        yield Ground(place=place, calm=calm, pair=pair, proxy=proxy)


@contextmanager
def in_trouble(ground: Ground, every_s: float) -> Iterator[None]:
    """Let servers stumble every few seconds, as long as the block runs."""
    stop, choose = threading.Event(), random.Random()

    def life() -> None:
        pair = ground.pair
        while pair is not None and pair.coming != []:
            if stop.wait(choose.uniform(0.5, 1.5) * every_s):
                break
            pair.strike(choose, stop)

    with ThreadPoolExecutor(1) as pool:
        lived = pool.submit(life)
        try:
            yield
        finally:
            stop.set()
    lived.result()


def on_disk(folder: Path, share: float) -> Ground:
    """Return real files, real fsync and a real SQLite catalog, which fail within the process."""
    uri = f"sqlite:///{folder}/catalog.db"
    calm = Place(folder=folder, uri=uri, warehouse=str(folder / "lake"))
    return Ground(place=calm.failing(share), calm=calm)
