"""One try of a commit: the head that it would make, and the files that this head needs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from icetree.codec import manifest
from icetree.codec import metadata as metadata_codec
from icetree.codec.encryption.stream import seal
from icetree.files.table_files import TableFiles
from icetree.spec.apply.apply import apply
from icetree.spec.location import absolute, stored_form
from icetree.spec.metadata.encryption import sets_key
from icetree.spec.metadata.metadata import (
    DEFAULT_INLINE_SNAPSHOTS,
    INLINE_SNAPSHOTS,
    TableMetadata,
    with_previous,
    with_snapshot,
)
from icetree.spec.metadata.pages import PagedOut, page_out, remove_snapshots
from icetree.spec.metadata.snapshot import Snapshot
from icetree.spec.properties.names import METADATA_COMPRESSION
from icetree.spec.properties.values import whole_number
from icetree.surroundings import new_uuid, now_ms
from icetree.table.commit.report import Report
from icetree.table.commit.validate import KEY
from icetree.table.commit.widen import widen_rewritten
from icetree.table.state import State, Work
from icetree.tree.draft import Head, Prepared, Stamp
from icetree.tree.grow.grow import grow
from icetree.tree.leaf import NewFile
from icetree.tree.leaves.rewritten import Rewritten
from icetree.tree.policy import policy_of
from icetree.tree.recount import with_counts

_VERSION = re.compile(r"(?:(\d+)-|v(\d+)\.)[^/]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A head-to-be and the files it needs."""

    state: State
    snapshot: Snapshot | None
    files: tuple[NewFile, ...]


def next_attempt(
    work: Work,
    head: State,
    prepared: Prepared | None,
    files: TableFiles,
    report: Report,
    *,
    stores_head: bool = True,
) -> Attempt:
    """Build the next head: pure but for reading what the tree needs.

    Where it is one of several that are seen together, the last alone is stored, with history in pages.
    """
    at_ms = max(now_ms(), head.metadata.last_updated_ms)
    metadata = head.metadata
    new: list[NewFile] = []
    if work.updates:

        def forget(before: TableMetadata, ids: Collection[int]) -> TableMetadata:
            rest = remove_snapshots(
                before,
                ids,
                read_page=files.page,
                encode_page=metadata_codec.encode_page,
                new_location=_new_page,
            )
            new.extend(NewFile(location=at, content=page) for at, page in rest.files.items())
            return rest.metadata

        metadata = apply(metadata, work.updates, at_ms=at_ms, forget=forget)
        asked = any(sets_key(each) for each in work.updates)
        metadata = files.ring.rotated(head.metadata, metadata, asked=asked)
    snapshot = None
    if prepared is not None:
        metadata, snapshot, grown = _snapshot(work, head, metadata, prepared, files, report, at_ms)
        new += grown
        metadata = with_snapshot(metadata, snapshot, ref=work.branch, at_ms=at_ms)
    if stores_head:
        with report.phase("encode"):
            metadata, stored = _stored(head, metadata, files)
        new += stored
        at = stored[-1].location
    else:
        # A name alone, for nobody reads it.
        at = next_metadata_location(head.metadata_location, compress=True)
    location = absolute(at, metadata.location)
    state = State(name=head.name, metadata=metadata, metadata_location=location)
    return Attempt(state=state, snapshot=snapshot, files=tuple(new))


def _stored(
    head: State, metadata: TableMetadata, files: TableFiles
) -> tuple[TableMetadata, list[NewFile]]:
    """Return metadata as it follows a head, and its files: pages of history, and it itself, last."""
    paged = with_pages(metadata, files)
    metadata = paged.metadata
    # A table that is only just being made has none before.
    if head.metadata_location:
        previous = stored_form(head.metadata_location, metadata.location)
        metadata = with_previous(metadata, previous, head.metadata)
    pages = [NewFile(location=at, content=page) for at, page in paged.files.items()]
    return metadata, [*pages, metadata_file(metadata, after=head.metadata_location)]


def with_pages(metadata: TableMetadata, files: TableFiles) -> PagedOut:
    """Return metadata with history moved to pages, as its table asks."""
    return page_out(
        metadata,
        keep=whole_number(
            metadata.properties, INLINE_SNAPSHOTS, default=DEFAULT_INLINE_SNAPSHOTS, least=1
        ),
        read_page=files.page,
        encode_page=metadata_codec.encode_page,
        new_location=_new_page,
    )


def _new_page() -> str:
    return f"metadata/{new_uuid()}.page.json.gz"


def _snapshot(
    work: Work,
    head: State,
    metadata: TableMetadata,
    prepared: Prepared,
    files: TableFiles,
    report: Report,
    at_ms: int,
) -> tuple[TableMetadata, Snapshot, list[NewFile]]:
    """Return the snapshot to be, in metadata that has the key of its root, and its files."""
    parent = head.head(work.branch) if work.branch else head.metadata.current_snapshot()
    shape = metadata.shape()
    policy = policy_of(metadata.properties)
    stamp = Stamp(
        snapshot_id=work.snapshot_id,
        sequence_number=metadata.last_sequence_number + 1,
        commit_id=work.commit_id,
        attempt=report.attempts - 1,
    )
    with report.phase("grow"):
        start = head_of(parent, metadata, files)
        draft = grow(
            start,
            prepared,
            stamp,
            shape,
            policy,
            files.reader(shape),
            rewritten=_rewritten(work, metadata),
            encode=report.timed("encode", manifest.encode),
        )
    stored, key = seal(draft.root_bytes, policy.key_bytes)
    root = NewFile(location=stamp.name("root", 0) + ".parquet", content=stored)
    key_id = None
    if key is not None:
        metadata, key_id = files.ring.lock(metadata, key)
        files.ring.learn(metadata.encryption_keys)
    snapshot = Snapshot(
        snapshot_id=work.snapshot_id,
        parent_snapshot_id=None if parent is None else parent.snapshot_id,
        sequence_number=stamp.sequence_number,
        timestamp_ms=at_ms,
        root_manifest=root.location,
        summary=_summary(draft.summary, work),
        schema_id=metadata.current_schema_id,
        first_row_id=draft.first_row_id,
        added_rows=draft.added_rows,
        key_id=key_id,
    )
    files.remember_root(snapshot, shape, draft.root)
    return metadata, snapshot, [root, *draft.files]


def head_of(parent: Snapshot | None, metadata: TableMetadata, files: TableFiles) -> Head:
    """Return the tree that a commit to a table starts from."""
    shape = metadata.shape()
    root = files.root(parent, shape, keep=True)
    if parent is not None and parent.root_manifest is None:
        root = with_counts(root, files.reader(shape))
    return Head(
        root=root,
        next_row_id=metadata.next_row_id or 0,
        summary=None if parent is None else parent.summary,
        root_file="root" if parent is None else parent.root_file,
    )


def _rewritten(work: Work, metadata: TableMetadata) -> Rewritten | None:
    if work.rewritten is None or (
        metadata.current_schema_id == work.base.metadata.current_schema_id
    ):
        return work.rewritten
    return widen_rewritten(work.rewritten, metadata.shape())


def _summary(counted: Mapping[str, str], work: Work) -> dict[str, str]:
    keyed = {} if work.key is None else {KEY: work.key}
    return {**counted, **work.summary, **keyed}


def metadata_file(metadata: TableMetadata, *, after: str | None) -> NewFile:
    """Return the file of a table's metadata that follows another; compressed as its table asks."""
    compress = metadata.properties.get(METADATA_COMPRESSION, "gzip").lower() == "gzip"
    return NewFile(
        location=next_metadata_location(after, compress=compress),
        content=metadata_codec.encode(metadata, compress=compress),
    )


def next_metadata_location(previous: str | None, *, compress: bool) -> str:
    """Return the name of the metadata file that follows another."""
    found = _VERSION.search(previous or "")
    version = int(found[1] or found[2]) + 1 if found else 0
    return f"metadata/{version:05d}-{new_uuid()}{'.gz' if compress else ''}.metadata.json"
