"""Errors as the user of the command line sees them: a line for people, JSON for programs."""

from __future__ import annotations

import json
import re
import sys
import traceback
from types import TracebackType
from typing import IO, Any, Final

import click

from icetree.errors import IcetreeError
from icetree.visible import visible, visible_json, visible_lines

#: What the program exits with; docs/command-line.md tells what each means.
REFUSED: Final = 1
MISUSED: Final = 2
STOPPED: Final = 130


class Refusal(click.ClickException):
    """An error of ours: one line on standard error, or JSON there where JSON was asked for."""

    exit_code = REFUSED

    def __init__(self, kind: str, message: str, *, as_json: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.as_json = as_json

    @classmethod
    def of(cls, error: IcetreeError) -> Refusal:
        """Return an error of ours as it is shown."""
        # What a library says in lines is one sentence here.
        return cls(kind_of_error(error), " ".join(Exception.__str__(error).split()))

    def show(self, file: IO[Any] | None = None) -> None:
        """Print it."""
        if not self.as_json:
            click.echo(f"icetree: {self.kind}: {visible(self.message)}", file=file, err=True)
            return
        told = {"kind": self.kind, "message": self.message, "exit_code": self.exit_code}
        document = json.dumps({"error": told}, ensure_ascii=False)
        click.echo(visible_json(document), file=file, err=True)


class CouldNotRun(Refusal):
    """An error that kept a check from being made: exit status 2, since 1 means findings."""

    exit_code = MISUSED


class Misused(Refusal):
    """A command line that means nothing, where JSON was asked for."""

    exit_code = MISUSED

    @classmethod
    def by(cls, error: click.UsageError) -> Misused:
        """Return what click has against a command line."""
        return cls("usage", " ".join(error.format_message().split()))


def show_failure(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Print what Python tells of a failure of ours; its texts act on no terminal."""
    for part in traceback.format_exception(kind, error, trace):
        print(visible_lines(part), end="", file=sys.stderr)


def kind_of_error(error: IcetreeError) -> str:
    """Return an error's kind in words: `not found`, `commit conflict`."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__).lower()
