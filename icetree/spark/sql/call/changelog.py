"""`CALL system.create_changelog_view(…)`: what changed in a table, as a temporary view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from icetree.errors import InvalidInput
from icetree.spark.changes.feed import changes
from icetree.spark.complaints import plainly
from icetree.spec.texts import did_you_mean
from icetree.table.point import Point, time_of

if TYPE_CHECKING:
    from icetree.spark.lake import SparkLake

#: Iceberg's options by the end of the range that they are.
_SINCE: Final = ("start-snapshot-id", "start-timestamp")
_UPTO: Final = ("end-snapshot-id", "end-timestamp")
_OPTIONS: Final = (*_SINCE, *_UPTO)


def create_changelog_view(
    lake: SparkLake,
    name: str,
    view: str,
    *,
    options: Mapping[str, str],
    net: bool,
    images: bool,
    on: Sequence[str] | None,
) -> None:
    """Make a temporary view of the rows that changed, which stays at the range of its making."""
    for option in options:
        if option not in _OPTIONS:
            raise InvalidInput(
                f"{option!r} is no option of a change log, which has {', '.join(_OPTIONS)}"
                f"{did_you_mean(option, _OPTIONS)}"
            )
    since, upto = _point(options, _SINCE), _point(options, _UPTO)
    rows = changes(lake, name, since, upto, net=net, images=images, on=on)
    with plainly():
        rows.createOrReplaceTempView(view)


def _point(options: Mapping[str, str], names: tuple[str, str]) -> Point | None:
    given = [name for name in names if name in options]
    if not given:
        return None
    if len(given) > 1:
        raise InvalidInput(f"{given[0]} and {given[1]} say the same: give one of them")
    [name] = given
    text = options[name].strip()
    if not text.removeprefix("-").isdecimal():
        what = "milliseconds since 1970" if name.endswith("timestamp") else "the id of a snapshot"
        raise InvalidInput(f"{name} is {options[name]!r}: give {what}")
    return time_of(int(text)) if name.endswith("timestamp") else int(text)
