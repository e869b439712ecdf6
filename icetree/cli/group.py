"""How the commands hang together: options on either side of a command, and errors as users see them."""

from __future__ import annotations

import copy
from typing import Any, Final

import click

from icetree.cli.options import CONNECTION_OPTIONS
from icetree.cli.refusal import STOPPED, Misused, Refusal
from icetree.errors import IcetreeError
from icetree.visible import visible_lines

#: Whether JSON was asked for anywhere on the line, known before the line is understood.
_AS_JSON: Final = "icetree.as_json"


class Commands(click.Group):
    """A group whose commands raise our errors, and whose users see a line, or JSON.

    A command takes the options of the connection, too: they may stand before or after it.
    """

    def __init__(self, *args: Any, **how: Any) -> None:
        super().__init__(*args, **how)
        #: Names of commands that belong together, by what they are for.
        self.sections: dict[str, list[str]] = {}

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with the options of the connection where it has one."""
        super().add_command(cmd, name)
        if getattr(cmd.callback, "has_lake", False):
            taken = {each.name for each in cmd.params}
            cmd.params += [copy.copy(each) for each in CONNECTION_OPTIONS if each.name not in taken]

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Understand the options before the command."""
        as_json = "--json" in args
        try:
            made = super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise _shown(error, as_json=as_json) from None
        made.meta[_AS_JSON] = as_json
        return made

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except IcetreeError as error:
            if ctx.params.get("debug"):
                raise
            raise _shown(Refusal.of(error), as_json=ctx.meta[_AS_JSON]) from None
        except (Refusal, click.UsageError) as error:
            raise _shown(error, as_json=ctx.meta[_AS_JSON]) from None
        except KeyboardInterrupt:
            click.echo("icetree: stopped", err=True)
            raise click.exceptions.Exit(STOPPED) from None

    def add_section(self, title: str, *commands: click.Command) -> None:
        """Add commands that help shows together."""
        for each in commands:
            self.add_command(each)
        self.sections[title] = [str(each.name) for each in commands]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the commands as they were added: from looking around to putting right."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections, each command with its whole sentence."""
        del ctx
        for title, names in self.sections.items():
            with formatter.section(title):
                told = [self.commands[name].get_short_help_str(limit=200) for name in names]
                formatter.write_dl(list(zip(names, told, strict=True)), col_max=22)


def _shown(error: click.ClickException, *, as_json: bool) -> click.ClickException:
    """Return an error as it is to be shown; click's own are fine for people, but for what they quote."""
    if not as_json:
        if isinstance(error, click.UsageError):
            return click.UsageError(visible_lines(error.format_message()), ctx=error.ctx)
        return error
    told = Misused.by(error) if isinstance(error, click.UsageError) else error
    if isinstance(told, Refusal):
        told.as_json = True
    return told
