"""The race on the screen: what commits wrote as the tables grew, what they took, and who lost."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median
from typing import Final

from rich.console import Console
from rich.text import Text

from icetree.cli.demo.laws import Law
from icetree.cli.demo.peer import READS, WRITES, quiet
from icetree.cli.demo.progress import progress_of
from icetree.cli.demo.race import EACH, SPAN, WRITERS, Lane, Race, race
from icetree.cli.demo.show import heading
from icetree.picture.words import size

_BAR: Final = 44
#: How often the plot looks, and at how many commits each time.
_LOOKS: Final = 5
_AROUND: Final = 10
#: What S3 asks for a million requests, in dollars (standard storage, us-east-1).
_WRITE_PRICE: Final = 5.0
_READ_PRICE: Final = 0.4


def show_race(console: Console, folder: Path, commits: int, *, each: int = EACH) -> Race:
    """Run the race, and show how it went."""
    quiet()
    peer = f"PyIceberg {version('pyiceberg')}"
    heading(console, "1  Small commits", f"the same events, beside {peer}")
    console.print(
        f"  {commits:,} commits of 1,000 events to each table, turn by turn, on this machine.\n"
    )
    what = "committing to both"
    with progress_of(console) as progress:
        bar = progress.add_task(what, total=commits)
        done = race(folder, commits, lambda made: progress.update(bar, completed=made), each=each)
    lanes = (done.ours, done.theirs)
    _plot(console, lanes)
    _facts(console, lanes)
    _writers(console, done)
    return done


def _plot(console: Console, lanes: tuple[Lane, Lane]) -> None:
    console.print(Text("  Bytes of metadata that a commit writes", style="bold"))
    most = max(max(points(lane).values()) for lane in lanes)
    for number in points(lanes[0]):
        for lane, style in zip(lanes, ("green", "yellow"), strict=True):
            value = points(lane)[number]
            label = f"  commit {number:>5,}" if lane is lanes[0] else ""
            bar = "█" * max(1, round(_BAR * value / most))
            console.print(
                Text.assemble(f"{label:<16}{lane.system.name:<10}", (bar, style), f" {size(value)}")
            )


def points(lane: Lane) -> dict[int, int]:
    """Return what commits wrote at some times: the middle of those just before each."""
    count = len(lane.size_bytes)
    numbers = sorted({max(1, round(count * look / _LOOKS)) for look in range(1, _LOOKS + 1)} | {1})
    return {
        number: int(median(lane.size_bytes[max(0, number - _AROUND) : number]))
        for number in numbers
    }


def _facts(console: Console, lanes: tuple[Lane, Lane]) -> None:
    names = "".join(f"{lane.system.name:>14}" for lane in lanes)
    console.print(Text(f"\n  {'':<42}{names}", style="dim"))
    for label, values in facts(lanes):
        ours, theirs = values
        line = Text.assemble(f"  {label:<42}", (f"{ours:>14}", "green"), f"{theirs:>14}")
        console.print(line)


def facts(lanes: tuple[Lane, Lane]) -> Iterator[tuple[str, list[str]]]:
    """Yield what is compared, and each side's figure."""
    first, last = slice(0, SPAN), slice(-SPAN, None)

    def each(label: str, *figures: str) -> tuple[str, list[str]]:
        return label, [*figures]

    yield each("metadata files a commit writes", *(f"{mean(one.files):.1f}" for one in lanes))
    yield each("bytes of metadata, all commits", *(size(sum(one.size_bytes)) for one in lanes))
    yield each(f"a commit, middle of the first {SPAN}", *(_ms(one.latency(first)) for one in lanes))
    yield each(f"a commit, middle of the last {SPAN}", *(_ms(one.latency(last)) for one in lanes))
    planned = f"plan a scan of {lanes[0].planned} files, table opened anew"
    yield each(planned, *(_ms(one.plan_seconds) for one in lanes))
    count = len(lanes[0].seconds)
    for label, kind in (("writes (PUT)", WRITES), ("reads (GET)", READS)):
        yield each(
            f"requests a commit: {label}", *(f"{one.requests[kind] / count:.1f}" for one in lanes)
        )
    yield each("S3's bill for a million such commits", *(f"${_bill(one):.0f}" for one in lanes))


def _bill(lane: Lane) -> float:
    asked = _WRITE_PRICE * lane.requests[WRITES] + _READ_PRICE * lane.requests[READS]
    return asked / len(lane.seconds)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms"


def _writers(console: Console, done: Race) -> None:
    every = WRITERS * done.each
    console.print(Text(f"\n  {WRITERS} writers at once, {done.each} commits each", style="bold"))
    for lane in (done.ours, done.theirs):
        told = f"{lane.landed} of {every} landed in {lane.together_seconds:.1f} s"
        if lane.refused:
            told += f", {lane.refused} refused after retries"
        lost = "no row lost" if lane.none_lost else "ROWS ARE WRONG"
        console.print(f"  {lane.system.name:<10} {told}; {lost}")
    console.print(
        Text(
            "\n  What v3 does as well: few large commits; deletion vectors, time travel and\n"
            "  evolution as below. PyIceberg can merge manifests, and Spark rewrite them, at\n"
            "  a price of their own. Both wrote the same data files, which are not counted.",
            style="dim",
        )
    )


def fair(done: Race) -> Law:
    """Return what must be so of our side: every commit landed, and every row is there once."""
    ours = done.ours
    return Law(
        says="Every commit of writers at once landed, and no row is lost or doubled.",
        seen=f"{ours.landed} of {WRITERS * done.each} commits, {ours.rows:,} rows",
        holds=ours.refused == 0 and ours.none_lost and ours.planned == done.theirs.planned,
    )
