"""A process of its own for what may end it: then a test fails, and not all of them."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def apart(task: Callable[..., T], *arguments: object) -> T:
    """Return what a task returns that runs in a process of its own."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawned) as pool:
        return pool.submit(task, *arguments).result()
