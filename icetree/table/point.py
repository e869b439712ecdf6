"""A point in a table's history: a snapshot's id, a branch or tag, or a time.

Every door takes it in the same forms: a number is an id, a text is the name of a branch or tag, an
id in digits or an ISO time, in that order, and a datetime is a time. A time without a zone is UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final, TypeAlias

from icetree.errors import InvalidInput, NotFound
from icetree.spec.metadata.pages import find_snapshot, snapshot_as_of
from icetree.spec.metadata.snapshot import Ref, Snapshot
from icetree.spec.texts import did_you_mean
from icetree.table.arguments import whole

if TYPE_CHECKING:
    from icetree.files.table_files import TableFiles
    from icetree.spec.metadata.metadata import TableMetadata

Point: TypeAlias = "int | str | datetime"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MILLISECOND: Final = timedelta(milliseconds=1)
_FORMS: Final = (
    "give a snapshot id, the name of a branch or tag, or a time such as '2026-01-31T12:00:00Z'"
)
#: How many digits an id has at most, and how much of a text is told again.
_ID_DIGITS: Final = 19
_LONGEST: Final = 200
#: Milliseconds of the years 2001 to 2286, which somebody may take for a time.
_LIKE_MILLISECONDS: Final = range(10**12, 10**13)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a point stands for: a snapshot, maybe by a ref, or a time."""

    snapshot_id: int | None = None
    ref: Ref | None = None
    at_ms: int | None = None

    @property
    def is_branch(self) -> bool:
        """Whether it moves on with a branch: what is read there has today's schema."""
        return self.ref is not None and self.ref.type == "branch"

    def reached(self, snapshot: Snapshot) -> bool:
        """Tell whether a walk back in history has come to the point."""
        if self.at_ms is not None:
            return snapshot.timestamp_ms <= self.at_ms
        return snapshot.snapshot_id == self.snapshot_id


def resolve(metadata: TableMetadata, point: Point, *, what: str) -> Resolved:
    """Return what a point stands for; whether a snapshot has such an id is not looked up."""
    if isinstance(point, datetime):
        return Resolved(at_ms=_milliseconds(point))
    if isinstance(point, str):
        return _read(metadata, point, what=what)
    try:
        return Resolved(snapshot_id=whole(point, what=what))
    except InvalidInput:
        raise InvalidInput(f"{what}={point!r}: {_FORMS}") from None


def snapshot_at(
    metadata: TableMetadata, files: TableFiles, point: Point | Resolved, *, what: str = "at"
) -> Snapshot:
    """Return the snapshot at a point: by its id, of a ref, or the one that was current then."""
    found = point if isinstance(point, Resolved) else resolve(metadata, point, what=what)
    if found.at_ms is not None:
        return snapshot_as_of(metadata, found.at_ms, files.page)
    id = found.snapshot_id
    assert id is not None
    try:
        return find_snapshot(metadata, id, files.page)
    except NotFound as error:
        if id in _LIKE_MILLISECONDS:
            raise NotFound(
                f"{error}: a number is a snapshot's id; give a time as a datetime, or as a text "
                f"such as {_moment(id)!r}"
            ) from None
        raise


def time_of(at_ms: int) -> datetime:
    """Return a time in milliseconds since 1970 as a point."""
    try:
        return _EPOCH + at_ms * _MILLISECOND
    except OverflowError:
        raise InvalidInput(f"{at_ms} ms is no time between the years 1 and 9999") from None


def _read(metadata: TableMetadata, text: str, *, what: str) -> Resolved:
    ref = metadata.refs.get(text)
    if ref is not None:
        return Resolved(snapshot_id=ref.snapshot_id, ref=ref)
    plain = text.strip()
    digits = plain.removeprefix("-")
    if digits.isascii() and digits.isdigit() and len(digits) <= _ID_DIGITS:
        return Resolved(snapshot_id=int(plain))
    try:
        return Resolved(at_ms=_milliseconds(datetime.fromisoformat(plain.replace("Z", "+00:00"))))
    except ValueError:
        raise NotFound(
            f"{what}={text[:_LONGEST]!r}: there is no such branch or tag, and it is no time such as "
            f"'2026-01-31T12:00:00Z'{did_you_mean(text, metadata.refs)}"
        ) from None


def milliseconds(time: datetime | str, *, what: str) -> int:
    """Return a time, or the ISO text of one, in milliseconds since 1970."""
    try:
        return _milliseconds(
            time
            if isinstance(time, datetime)
            else datetime.fromisoformat(time.strip().replace("Z", "+00:00"))
        )
    except (AttributeError, TypeError, ValueError):
        raise InvalidInput(
            f"{what}={time!r}: give a time, as a datetime or a text such as '2026-01-31T12:00:00Z'"
        ) from None


def _milliseconds(time: datetime) -> int:
    known = time if time.tzinfo is not None else time.replace(tzinfo=timezone.utc)
    return (known - _EPOCH) // _MILLISECOND


def _moment(at_ms: int) -> str:
    return time_of(at_ms).isoformat(timespec="milliseconds").replace("+00:00", "Z")
