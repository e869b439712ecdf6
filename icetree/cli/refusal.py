"""Errors of ours as the user of the command line sees them."""

from __future__ import annotations

import re
from typing import IO, Any

import click

from icetree.errors import IcetreeError


class Refusal(click.ClickException):
    """An error of ours as the user sees it: one line, exit status 1 unless told."""

    def __init__(self, error: IcetreeError, *, exit_code: int = 1) -> None:
        kind = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__).lower()
        super().__init__(f"icetree: {kind}: {' '.join(str(error).split())}")
        self.exit_code = exit_code

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(self.message, file=file, err=True)
