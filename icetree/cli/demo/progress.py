"""Showing that something is under way, where somebody is looking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

T = TypeVar("T")


def busy(console: Console, what: str) -> AbstractContextManager[Any]:
    """Turn a wheel."""
    return console.status(f"{what} …") if console.is_terminal else nullcontext()


def watched(console: Console, items: Iterable[T]) -> Iterator[T]:
    """Yield each item, and turn a wheel until it is there."""
    waiting = iter(items)
    while True:
        with busy(console, "Looking"):
            item = next(waiting, None)
        if item is None:
            return
        yield item


def progress_of(console: Console) -> Progress:
    """Return a bar that is gone once it is full."""
    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(bar_width=24),
        _Speed(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class _Speed(ProgressColumn):
    """How many commits are made, and how fast."""

    def render(self, task: Task) -> Text:
        """Return both, or nothing while none are made."""
        if not task.total or not task.speed:
            return Text("")
        made = f"{int(task.completed):,} of {int(task.total):,}"
        return Text(f"{made}, {task.speed:.1f} a second", style="dim")
