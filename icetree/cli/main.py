"""The command `icetree`: its options, its commands, and how errors reach the user."""

from __future__ import annotations

import re
from typing import IO, Any

import click

from icetree.cli.demo.command import demo
from icetree.errors import IcetreeError


class Refusal(click.ClickException):
    """An error of ours as the user sees it: one line, exit status 1."""

    def __init__(self, error: IcetreeError) -> None:
        kind = re.sub(r"(?<!^)(?=[A-Z])", " ", type(error).__name__).lower()
        super().__init__(f"icetree: {kind}: {' '.join(str(error).split())}")

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(self.message, file=file, err=True)


class Commands(click.Group):
    """A group whose commands raise our errors, and whose users see a line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except IcetreeError as error:
            if ctx.params.get("debug"):
                raise
            raise Refusal(error) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="icetree")
@click.option("--debug", is_flag=True, help="Show the whole traceback of an error.")
def cli(debug: bool) -> None:
    """Iceberg V4 tables with an adaptive metadata tree."""


cli.add_command(demo)


def main() -> None:
    """Run the command line, and exit."""
    cli(prog_name="icetree")
