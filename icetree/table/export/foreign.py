"""What a client's snapshot changes: its manifest list and manifests, read against what it was shown.

A client starts from an export of ours, and brings a list with manifests of its own beside those it
kept. What is new in them is its change. Whatever it took out of manifests that it did not keep it must
say: that a file stays, or that it goes. Everything it names is confined to the table's own folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from icetree.codec import legacy, limits
from icetree.codec.avro.avro import open_avro
from icetree.errors import CorruptTable, InvalidInput, NotFound, TooLarge
from icetree.files.table_files import TableFiles
from icetree.spec.arrays import every, is_among
from icetree.spec.entry import stats
from icetree.spec.entry.entry import (
    POSITION,
    Entries,
    Status,
    concat,
    empty,
    has_status,
    is_data_dv,
    is_data_file,
    is_live,
    only,
    with_columns,
)
from icetree.spec.fields import DELETE_FILE_PATH_FIELD
from icetree.spec.location import absolute, is_relative, stored_form
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.snapshot import Snapshot
from icetree.table.export.ahead import Ahead
from icetree.table.export.places import FORMAT_VERSIONS, METADATA, list_shown
from icetree.tree.diff.diff import identity
from icetree.tree.files import FileReader
from icetree.tree.reading import leaves_in

#: What a snapshot tells, in the words of JSON.
_KNOWN: Final = {each.encode_name for each in msgspec.structs.fields(Snapshot)} - {"extra"}
#: Bytes of decoded manifest lists of exports that are kept.
_KEPT_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A client's snapshot as a change of the table."""

    snapshot: Snapshot
    #: Files that come, and files that go: also DVs of data files that go, or that get another.
    added: Entries
    removed: Entries
    #: The manifests that it is made of: what a snapshot on top of it starts from.
    manifests: Entries

    @property
    def is_append(self) -> bool:
        """Whether it only brings data files, whatever else is in the table."""
        return not self.removed.num_rows and every(is_data_file(self.added))


def snapshot_of(document: Any) -> Snapshot:
    """Return a snapshot as a client tells it; InvalidInput for what is none."""
    try:
        found = msgspec.convert(
            {name: value for name, value in dict(document).items() if name in _KNOWN}, Snapshot
        )
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise InvalidInput(f"that is no snapshot: {error}") from None
    if found.manifest_list is None:
        raise InvalidInput(f"snapshot {found.snapshot_id} has no manifest-list")
    return found


def read_foreign(
    snapshot: Snapshot,
    parent: Snapshot | None,
    metadata: TableMetadata,
    files: TableFiles,
    *,
    based_on: Entries | None = None,
    ahead: Ahead | None = None,
) -> Foreign:
    """Return what a client's snapshot changes of its parent, None where it was shown an empty table.

    `based_on` are the parent's manifests where these are the client's own, too: as they were read then,
    for its list may be another by now. InvalidInput says what is wrong with its files; none of them is
    believed before it is read, now or `ahead`.
    """
    if ahead is not None and not ahead.goes_for(metadata):
        ahead = None
    try:
        return _Reading(snapshot, metadata, files, ahead).changes(parent, based_on)
    except TooLarge:
        raise
    except (CorruptTable, NotFound) as error:
        raise InvalidInput(f"snapshot {snapshot.snapshot_id} cannot be read: {error}") from None


class _Reading:
    def __init__(
        self,
        snapshot: Snapshot,
        metadata: TableMetadata,
        files: TableFiles,
        ahead: Ahead | None,
    ) -> None:
        self._snapshot = snapshot
        self._lists = {} if ahead is None else ahead.lists
        self._known = {} if ahead is None else ahead.entries
        self._metadata = metadata
        self._shape = metadata.shape()
        self._files = files
        self._store = files.store
        self._cache = files.cache
        # Nothing is kept: these files are the client's, who may do with them what it likes.
        self._reader = FileReader(
            fetch=self._fetch, shape=self._shape, table_location=metadata.location
        )

    def changes(self, parent: Snapshot | None, based_on: Entries | None) -> Foreign:
        """Return what is new, having made sure that nothing else is lost."""
        at = self._inside(self._snapshot.manifest_list or "", "manifest list")
        content, listed = self._own_list(at)
        base = self._base(parent, at, content) if based_on is None else based_on
        is_known = is_among(listed["location"], base["location"])
        new = only(listed, pc.invert(is_known))
        left = only(base, pc.invert(is_among(base["location"], listed["location"])))
        self._require_own(new)
        entries = self._entries(new)
        id = pa.scalar(self._snapshot.snapshot_id, pa.int64())
        is_own = pc.equal(entries["snapshot_id"], id)
        added = only(entries, has_status(entries, Status.ADDED))
        if only(added, pc.not_equal(added["snapshot_id"], id)).num_rows:
            raise self._refusal("it adds files in the name of another snapshot")
        went = only(entries, pc.and_(has_status(entries, Status.DELETED), is_own))
        stays = only(entries, has_status(entries, Status.EXISTING))
        before = self._entries(left)
        self._require_accounted(only(before, is_live(before)), stays, went)
        self._require_new(added, went)
        self._require_inside(added)
        return Foreign(
            snapshot=self._snapshot,
            added=self._fresh(added),
            removed=went,
            manifests=listed,
        )

    # --- reading ---------------------------------------------------------------------------

    def _fetch(self, stored: str) -> bytes:
        location = absolute(stored, self._metadata.location)
        limits.METADATA.require(self._store.size(location), file=stored, what="it")
        return self._store.read(location)

    def _own_list(self, stored: str) -> tuple[bytes, Entries]:
        if stored in self._lists:
            return self._lists[stored]
        content = self._fetch(stored)
        return content, self._list(stored, content)

    def _list(self, stored: str, content: bytes | None = None) -> Entries:
        return legacy.decode_manifest_list(
            self._fetch(stored) if content is None else content,
            file=stored,
            shape=self._shape,
            table_location=self._metadata.location,
        )

    def _base(self, parent: Snapshot | None, stored: str, content: bytes) -> Entries:
        """Return the manifests that the client started from: of an export, as a rule."""
        if parent is None:
            return empty()
        said = open_avro(content, file=stored).metadata.get("format-version")
        for version in sorted(FORMAT_VERSIONS, key=lambda each: str(each) != said):
            at = list_shown(parent, self._metadata.location, version)
            if at == parent.manifest_list:
                return self._files.bare_root(parent, self._shape)
            with suppress(NotFound):
                return self._exported(at, parent)
        raise self._refusal(
            f"snapshot {parent.snapshot_id}, which it is based on, was never exported: load the table"
        )

    def _exported(self, stored: str, parent: Snapshot) -> Entries:
        """Return the list of an export; it is ours, stays as it is, and many clients start from it."""
        return self._cache.derive(
            ("exported lists", self._metadata.location, stored, self._shape.meaning),
            lambda: self._own_export(stored, parent),
            most=_KEPT_BYTES,
            weigh=lambda entries: entries.nbytes,
        )

    def _own_export(self, stored: str, parent: Snapshot) -> Entries:
        """Return the list of an export, having made sure that all it names is the table's.

        Those are twins beside it, and manifests of before the upgrade, which may lie anywhere: these the
        tree names too. Whoever can write to the store may have put others there.
        """
        found = self._list(stored)
        folder = stored.removesuffix(stored.rpartition("/")[2])
        others = only(found, pc.invert(pc.starts_with(found["location"], folder)))["location"]
        if len(others):
            tree = self._files.bare_root(parent, self._shape)["location"]
            if not every(is_among(others, tree)):
                raise CorruptTable(stored, "it names manifests that are not of this table")
        return found

    def _entries(self, manifests: Entries) -> Entries:
        found = [
            self._known[leaf] if leaf in self._known else self._reader.leaf(leaf)
            for leaf in leaves_in(manifests)
        ]
        return concat([each.drop_columns([POSITION]) for each in found])

    def _fresh(self, added: Entries) -> Entries:
        """Return new files without what a commit gives them; one that keeps its age says so."""
        age = added["sequence_number"]
        is_older = pc.less(age, pa.scalar(self._snapshot.sequence_number, pa.int64()))
        # Of the paths in deletes by position v4 has no stats.
        of_paths = {stats.column(DELETE_FILE_PATH_FIELD, each) for each in stats.STATS}
        return with_columns(
            added.drop_columns([*of_paths & {*added.schema.names}]),
            snapshot_id=None,
            sequence_number=pc.if_else(is_older, age, pa.scalar(None, pa.int64())),
            file_sequence_number=None,
            first_row_id=None,
        )

    # --- what must hold --------------------------------------------------------------------

    def _require_own(self, new: Entries) -> None:
        """Refuse manifests that are neither of the base nor made by the client for this snapshot."""
        for name, snapshot_id in zip(
            new["location"].to_pylist(), new["snapshot_id"].to_pylist(), strict=True
        ):
            self._inside(name, "manifest")
            if snapshot_id != self._snapshot.snapshot_id:
                raise self._refusal(
                    f"manifest {name} is neither its own nor of what it is based on"
                )

    def _require_accounted(self, before: Entries, stays: Entries, went: Entries) -> None:
        """Refuse a change that loses or invents files: all there was stays or goes, and no other."""
        if not (before.num_rows or stays.num_rows or went.num_rows):
            return
        had, kept, gone = (_names(each) for each in (before, stays, went))
        told = pa.concat_arrays([kept, gone])
        for name in _first(pc.invert(is_among(had, told)), had):
            raise self._refusal(f"it neither keeps nor removes {name}, which was in the table")
        for name in _first(pc.invert(is_among(told, had)), told):
            raise self._refusal(f"it keeps or removes {name}, which was not there to be")
        if len(told.unique()) < len(told):
            raise self._refusal("it keeps or removes a file twice")

    def _require_new(self, added: Entries, went: Entries) -> None:
        """Refuse a file that goes and comes: without its deletes, rows of it would be back."""
        if not went.num_rows:
            return
        names = _names(added)
        for name in _first(is_among(names, _names(went)), names):
            raise self._refusal(f"it removes {name} and adds it again")

    def _require_inside(self, added: Entries) -> None:
        for column in ("location", "referenced_file"):
            for name in added[column].drop_null().unique().to_pylist():
                if not self._is_inside(name) and column == "location":
                    raise self._refusal(
                        f"file {name!r} is outside the table: what lies elsewhere is added by icetree "
                        "alone, with `icetree add-files` or table.add_files()"
                    )
                # What comes to lie there is known by its name, and goes with what that says it is of.
                if self._inside(name, "file").startswith(METADATA) and column == "location":
                    raise self._refusal(f"file {name!r} lies where the table's metadata lies")

    def _inside(self, location: str, what: str) -> str:
        if not self._is_inside(location):
            raise self._refusal(f"{what} {location!r} is outside the table")
        return stored_form(location, self._metadata.location)

    def _is_inside(self, location: str) -> bool:
        return is_relative(stored_form(location, self._metadata.location))

    def _refusal(self, reason: str) -> InvalidInput:
        return InvalidInput(f"snapshot {self._snapshot.snapshot_id} cannot be added: {reason}")


def _names(entries: Entries) -> pa.Array:
    """Return what tells files apart; the data file that one of positions is for not every client tells."""
    if not entries.num_rows:
        return pa.array([], pa.string())
    nothing = pa.scalar(None, pa.string())
    owners = pc.if_else(is_data_dv(entries), entries["referenced_file"], nothing)
    return identity(with_columns(entries, referenced_file=owners)).combine_chunks()


def _first(broken: Any, names: pa.Array) -> Iterable[str]:
    return (each.split("\0")[1] for each in names.filter(broken)[:1].to_pylist())


def alone(went: Entries, added: Entries) -> Entries:
    """Return what goes without the DVs that go by themselves: with their data files, or replaced."""
    if not went.num_rows:
        return went
    vectors = is_data_dv(went)
    new = only(added, is_data_dv(added))["referenced_file"]
    data = only(went, is_data_file(went))["location"]
    owners = went["referenced_file"]
    follows = pc.and_(vectors, pc.or_(is_among(owners, new), is_among(owners, data)))
    return only(went, pc.invert(follows))
