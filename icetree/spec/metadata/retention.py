"""Which snapshots, branches and tags have had their time: the retention rules of the specification."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from icetree.errors import InvalidInput, NotFound
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import MAIN, Ref, Snapshot
from icetree.spec.properties.values import whole_number

MAX_SNAPSHOT_AGE: Final = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS: Final = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE: Final = "history.expire.max-ref-age-ms"

#: Whether files may be deleted at all; false where other tables may name them.
GC_ENABLED: Final = "gc.enabled"
#: Whether files outside the table's location are another table's: then only those in it are deleted,
#: and these whatever `gc.enabled` says to other engines.
OWN_LOCATION_ONLY: Final = "gc.own-location-only"
GARBAGE: Final = (GC_ENABLED, OWN_LOCATION_ONLY)

_FIVE_DAYS_MS: Final = 5 * 86_400_000
_FOR_EVER_MS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for a branch or tag that says nothing else of itself."""

    #: Snapshots from this time on stay.
    keep_from_ms: int
    #: So many of a branch stay, however old.
    keep_last: int
    max_ref_age_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expiry:
    """What goes; `refs` have outlived their own age."""

    snapshot_ids: frozenset[int]
    refs: tuple[str, ...]


def rules_of(
    properties: Mapping[str, str],
    *,
    at_ms: int,
    older_than_ms: int | None = None,
    keep_last: int | None = None,
) -> Rules:
    """Return the rules of a table at a time; what is given goes before its properties."""
    age = whole_number(properties, MAX_SNAPSHOT_AGE, default=_FIVE_DAYS_MS, least=1)
    least = whole_number(properties, MIN_SNAPSHOTS, default=1, least=1)
    return Rules(
        keep_from_ms=at_ms - age if older_than_ms is None else older_than_ms,
        keep_last=least if keep_last is None else keep_last,
        max_ref_age_ms=whole_number(properties, MAX_REF_AGE, default=_FOR_EVER_MS, least=1),
    )


def expired(
    metadata: TableMetadata, history: Iterable[Snapshot], rules: Rules, *, at_ms: int
) -> Expiry:
    """Return what the rules let go of. `history` is every snapshot of the table."""
    known = {each.snapshot_id: each for each in history}
    refs = tuple(
        name
        for name, ref in metadata.refs.items()
        if name != MAIN and _has_aged(ref, known, rules, at_ms)
    )
    kept = {name: ref for name, ref in metadata.refs.items() if name not in refs}
    reached: set[int] = set()
    stay: set[int] = set()
    for ref in kept.values():
        # A tag is of its snapshot, and has no say in what was before it.
        if ref.type != "tag":
            reached.update(each.snapshot_id for each in line_of(known, ref.snapshot_id))
        stay.update(_kept_by(ref, known, rules, at_ms))
    # What no branch reaches, staged or rolled back, is judged by its age alone.
    stay.update(
        id
        for id, each in known.items()
        if id not in reached and each.timestamp_ms >= rules.keep_from_ms
    )
    return Expiry(snapshot_ids=frozenset(known.keys() - stay), refs=refs)


def chosen(metadata: TableMetadata, history: Iterable[Snapshot], ids: Collection[int]) -> Expiry:
    """Return the snapshots named, which no branch or tag may point to."""
    known = {each.snapshot_id for each in history}
    for id in ids:
        if id not in known:
            raise NotFound(f"there is no snapshot {id}")
    for name, ref in metadata.refs.items():
        if ref.snapshot_id in ids:
            raise InvalidInput(
                f"snapshot {ref.snapshot_id} cannot go: {ref.type} {name!r} points to it"
            )
    return Expiry(snapshot_ids=frozenset(ids), refs=())


def _has_aged(ref: Ref, known: Mapping[int, Snapshot], rules: Rules, at_ms: int) -> bool:
    most = rules.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
    head = known.get(ref.snapshot_id)
    return head is not None and at_ms - head.timestamp_ms > most


def _kept_by(ref: Ref, known: Mapping[int, Snapshot], rules: Rules, at_ms: int) -> Iterator[int]:
    """Yield what a ref keeps: a tag its snapshot, a branch the newest of its line."""
    if ref.type == "tag":
        yield ref.snapshot_id
        return
    least = rules.keep_last if ref.min_snapshots_to_keep is None else ref.min_snapshots_to_keep
    age = ref.max_snapshot_age_ms
    keep_from_ms = rules.keep_from_ms if age is None else at_ms - age
    for count, each in enumerate(line_of(known, ref.snapshot_id)):
        if count >= max(least, 1) and each.timestamp_ms < keep_from_ms:
            return
        yield each.snapshot_id


def line_of(known: Mapping[int, Snapshot], id: int | None) -> Iterator[Snapshot]:
    """Yield a snapshot and its ancestors, as far back as history goes."""
    seen: set[int] = set()
    while id is not None and id in known and id not in seen:
        seen.add(id)
        yield known[id]
        id = known[id].parent_snapshot_id
