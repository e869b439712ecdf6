"""What programs that we start have to say, kept off the screen."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from icetree.errors import Unavailable


@contextmanager
def aside(log: Path | None = None) -> Iterator[None]:
    """Let programs started meanwhile write what they have to say to a file, not to the screen.

    Where Spark does not start, the last line of it is what there is to tell.
    """
    with tempfile.TemporaryDirectory() if log is None else nullcontext() as folder:
        file = Path(str(folder), "log") if log is None else log
        try:
            with _stderr_to(file):
                yield
        except RuntimeError as error:
            last = file.read_text(errors="replace").strip().rpartition("\n")[2]
            raise Unavailable(f"Spark did not start: {last or error}") from None


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    screen = os.dup(2)
    with file.open("wb") as sink:
        os.dup2(sink.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(screen, 2)
        os.close(screen)
