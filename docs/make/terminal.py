"""A command as it looks on a terminal: run on one, of 80 columns, and kept as a document."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

COLUMNS: Final = 80
_THEME: Final = TerminalTheme(
    (20, 24, 31),
    (220, 225, 232),
    [(20, 24, 31), (242, 119, 122), (104, 200, 140), (242, 193, 78), (95, 175, 239), (196, 148, 240), (88, 200, 210), (220, 225, 232)],
    [(122, 132, 146), (255, 143, 133), (134, 226, 166), (255, 214, 112), (130, 196, 255), (214, 172, 255), (120, 222, 230), (255, 255, 255)],
)  # fmt: skip
_DOCUMENT: Final = """<!doctype html><meta charset="utf-8"><style>
html {{ background: #14181f; }} body {{ margin: 0; padding: 14px 18px; }}
pre {{ margin: 0; color: #dce1e8; font: 14px/1.35 "DejaVu Sans Mono", "JetBrains Mono", Menlo, Consolas, monospace; }}
b {{ color: #68c88c; }}
</style><pre>{}</pre>"""


def typed(command: str, folder: Path, surroundings: Mapping[str, str]) -> tuple[str, str]:
    """Run a command of icetree in a folder, on a terminal; return it, and all that it wrote there."""
    program, *words = shlex.split(command)
    assert program == "icetree"
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")
    }
    with subprocess.Popen(
        [sys.executable, "-m", "icetree", *words],
        cwd=folder,
        env=inherited | {"TERM": "xterm-256color", **surroundings},
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
    ) as running:
        os.close(its)
        written = bytearray()
        while part := _read(ours):
            written += part
    os.close(ours)
    if running.returncode:
        raise SystemExit(f"{command}: {written.decode()}")
    return command, written.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody is at the other end any more
        return b""


def shown(runs: Sequence[tuple[str, str]]) -> str:
    """Return commands with what they wrote, as a document."""
    return _DOCUMENT.format(
        "\n\n".join(f"<b>$</b> {escape(command)}\n{_html(text)}" for command, text in runs)
    )


def _html(written: str) -> str:
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    # What a line was before it was written anew is not seen.
    lines = [line.rsplit("\r", 1)[-1] for line in written.replace("\r\n", "\n").split("\n")]
    console.print(Text.from_ansi("\n".join(lines).rstrip()), soft_wrap=True)
    return console.export_html(theme=_THEME, code_format="{code}", inline_styles=True).rstrip()
