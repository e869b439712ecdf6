"""The small demo on the screen: each commit a line, then the tree, then the laws."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from icetree.cli.demo.laws import Law, laws
from icetree.cli.demo.story import story
from icetree.cli.demo.table import POLICY, SHAPE, Commit, DemoTable
from icetree.errors import InvalidInput
from icetree.explore.v3 import V3
from icetree.picture.svg import to_svg
from icetree.picture.terminal import Drawing
from icetree.picture.tree import picture
from icetree.picture.words import counted, size
from icetree.tree.reading import leaves_in

_WHAT = 47


def show(console: Console, keep: Path | None) -> bool:
    """Run the demo in a folder that stays, or in one that goes; tell whether every law holds."""
    with nullcontext(str(new_folder(keep))) if keep else tempfile.TemporaryDirectory() as folder:
        table = DemoTable(folder=Path(folder))
        _commits(console, table)
        _tree(console, table)
        if keep:
            console.print(f"\n  Kept: {keep / 'tree.svg'} and {keep / 'metadata'}", soft_wrap=True)
        _comparison(console, table)
        heading(console, "Laws", "tried on the files just written")
        return print_laws(console, laws(table))


def new_folder(folder: Path) -> Path:
    """Return the folder, made and empty."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InvalidInput(f"{folder} is not empty: name a folder that does not exist yet")
    except OSError as error:
        raise InvalidInput(f"{folder}: {error.strerror}; name a folder to be made") from None
    return folder


def heading(console: Console, title: str, more: str = "") -> None:
    """Print a title, and beside it what is to be seen."""
    console.print()
    console.print(Text.assemble((title, "bold cyan"), (f"  {more}" if more else "", "dim")))
    console.print()


def _commits(console: Console, table: DemoTable) -> None:
    heading(console, "A table of orders, partitioned by day", "one line a commit")
    head = f"   #  {'commit':<{_WHAT}}{'files':>5}{'bytes':>10}{'root':>12}"
    console.print(Text(head, style="dim"))
    for commit in story(table):
        console.print(_line(commit))
    console.print(
        Text(
            f"\n  A root keeps at most {POLICY.root_max_data_entries} data files here, to show it; "
            "the default is 1,000.",
            style="dim",
        )
    )


def _line(commit: Commit) -> Text:
    what = Text(commit.what)
    for kind, word in (("f", "flushed to"), ("c", "compacted into")):
        if made := commit.count(kind):
            what.append(f" · {word} {counted(made, 'leaf', 'leaves')}", style="yellow")
    what.truncate(_WHAT - 1, overflow="ellipsis", pad=False)
    what.pad_right(_WHAT - what.cell_len)
    return Text.assemble(
        (f"{commit.number:>4}  ", "dim"),
        what,
        f"{len(commit.written):>5}",
        f"{size(commit.size_bytes):>10}",
        (f"{counted(commit.head.root.num_rows, 'entry', 'entries'):>12}", "dim"),
    )


def _tree(console: Console, table: DemoTable) -> None:
    last = table.commits[-1]
    drawn = picture(
        last.head.root,
        table.reader,
        SHAPE,
        caption=f"Snapshot {last.number}",
        root_file=last.head.root_file,
    )
    (table.folder / "tree.svg").write_text(to_svg(drawn), encoding="utf-8")
    heading(console, "Its tree", "the newest snapshot")
    console.print(Drawing(drawn))


def _comparison(console: Console, table: DemoTable) -> None:
    written = sum(len(commit.written) for commit in table.commits)
    opened = 1 + len(leaves_in(table.head.root))
    before = V3()
    # A manifest list comes with the manifests of each commit.
    theirs_written = sum(1 + len(before.commit(diff, merges=False)) for diff in table.diffs())
    heading(console, "Beside v3", "the same commits, counted")
    commits = counted(len(table.commits), "commit")
    for what, ours, theirs in (
        (f"metadata files written by {commits}", written, theirs_written),
        ("of them opened to plan a full scan", opened, before.opened),
    ):
        console.print(f"  {what:<45} v4 {ours:>3}   v3 {theirs:>3}")
    console.print(
        Text(
            "  v3 with fast appends; a removal rewrites the manifests that track the files.\n"
            "  metadata.json, which both write, is left out.",
            style="dim",
        )
    )


def print_laws(console: Console, tried: Iterable[Law]) -> bool:
    """Print each law and what was seen; tell whether all hold."""
    hold = True
    for law in tried:
        mark = Text.assemble(("  ✓ ", "bold green") if law.holds else ("  ✗ ", "bold red"))
        console.print(Text.assemble(mark, law.says))
        for line in wrap(law.seen, width=console.width - 4):
            console.print(Text(f"    {line}", style="dim"))
        hold = hold and law.holds
    console.print()
    return hold
