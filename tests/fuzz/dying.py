"""A worker with one target more: one that ends its process at a certain input."""

from __future__ import annotations

import os

from campaigns.fuzz.targets import TARGETS, Target
from campaigns.fuzz.worker import input_of, main

SEED = 7
DEADLY = 3


def _read(data: bytes) -> None:
    if data == input_of(DYING.name, SEED, DEADLY):
        os.abort()


DYING = Target(name="dying", seeds=lambda: [bytes(range(256))], run=_read)

if __name__ == "__main__":
    TARGETS[DYING.name] = DYING
    main()
