"""What a shell is told when Tab is pressed: names of tables, branches and tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import click

from icetree.cli.lake import Chosen

#: Names that no shell takes for anything but a word. What completes stands on the line as it is, and
#: is run with it: a name that is a command to the shell, or an option to us, is not offered.
_WORD: Final = re.compile(r"\w[\w.@:+/-]*")


def tables_like(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the tables whose names start so, or the namespaces while none is named."""
    del param
    return _those(incomplete, _tables(ctx, incomplete))


def refs_like(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the branches and tags whose names start so, of the table that is named before."""
    del param
    return _those(incomplete, _refs(ctx))


def _those(incomplete: str, found: Iterator[str]) -> list[str]:
    try:
        return [name for name in found if name.startswith(incomplete) and _WORD.fullmatch(name)]
    except Exception:  # whoever presses Tab wants help or nothing, but no traceback
        return []


def _tables(ctx: click.Context, incomplete: str) -> Iterator[str]:
    with _chosen(ctx).open() as lake:
        namespace = incomplete.rpartition(".")[0]
        for each in [namespace] if namespace else lake.namespaces():
            yield from lake.tables(each)


def _refs(ctx: click.Context) -> Iterator[str]:
    # An option whose value is being typed keeps click from sorting out what came before it.
    name = ctx.params.get("name") or ctx.args[0]
    with _chosen(ctx).table(name) as table:
        yield from table.refs


def _chosen(ctx: click.Context) -> Chosen:
    """Return the catalog that the line so far means: no command has run that would say."""
    said = ctx.find_root().params
    return Chosen(
        catalog=said.get("catalog"),
        warehouse=said.get("warehouse"),
        properties=said.get("given") or (),
    )


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print what makes a shell complete commands, options, tables and refs.

    In bash: eval "$(icetree completion bash)", there or in ~/.bashrc; zsh is alike. In fish:
    icetree completion fish | source
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # each of the choices has one
    root = click.get_current_context().find_root().command
    click.echo(kind(root, {}, "icetree", "_ICETREE_COMPLETE").source())
