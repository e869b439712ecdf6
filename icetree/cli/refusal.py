"""Errors of ours as the user of the command line sees them."""

from __future__ import annotations

import re
from typing import IO, Any

import click

from icetree.errors import IcetreeError
from icetree.picture.visible import visible


class Refusal(click.ClickException):
    """An error of ours as the user sees it: one line, exit status 1."""

    def __init__(self, error: IcetreeError) -> None:
        kind = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__).lower()
        super().__init__(f"icetree: {kind}: {visible(' '.join(str(error).split()))}")

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(self.message, file=file, err=True)


class CouldNotRun(Refusal):
    """An error that kept a check from being made: exit status 2, since 1 means findings."""

    exit_code = 2
