"""A table as clients are shown it, made once for all who are to be shown the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

import msgspec

from icetree.codec import metadata as metadata_codec
from icetree.errors import Unsupported
from icetree.serve.showing.exporting import FORMER_S, Exports
from icetree.serve.waiting.groups import Groups
from icetree.serve.waiting.held import Held
from icetree.spec.metadata.metadata import TableMetadata
from icetree.table.export.shown import guarded, older_pages
from icetree.table.export.shown import shown as as_older
from icetree.table.table import Table

#: How long it is known of a table that several have added to it together.
_TOGETHER_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A table's metadata in an older version, as JSON."""

    metadata_location: str
    document: msgspec.Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class _Landed:
    """A table that somebody has added a snapshot to, and whether others did with the same swap."""

    table: Table
    together: bool


def as_json(metadata: TableMetadata) -> msgspec.Raw:
    """Return metadata as the JSON that an answer has."""
    return msgspec.Raw(metadata_codec.encode(metadata, compress=False))


class Showing:
    """Shows tables; threads may ask at the same time. `aside` surrounds a wait for another.

    Exports of former snapshots are waited for so many seconds.
    """

    def __init__(
        self,
        aside: Callable[[], AbstractContextManager[None]] = nullcontext,
        *,
        former_s: float = FORMER_S,
    ) -> None:
        self._groups: Groups[Table, Shown] = Groups(aside)
        self._landed: Groups[_Landed, Shown] = Groups(aside)
        self._together: Held[bool] = Held(hold_s=_TOGETHER_S)
        self.exports = Exports(aside, former_s=former_s)

    def show(self, table: Table, version: int, snapshots: str) -> Shown:
        """Return a table as a version has it, with its exports there; Unsupported.

        Those who are to be shown the same at the same time are, by one of them.
        """
        key = (table.state.metadata_location, version, snapshots)

        def carry_out(asked: Sequence[Table]) -> Sequence[Shown]:
            return [self._shown(asked[0], version, snapshots)] * len(asked)

        return self._groups.join(key, table, carry_out)

    def show_landed(self, table: Table, version: int, *, together: bool = False) -> Shown:
        """Do `show` for who has added a snapshot, maybe together with others: as of then, or later.

        While one export is made others land. Of all these, and of those that landed together, only the
        newest is exported: the others are once somebody looks. So it is for who comes alone after such.
        """
        key = (str(table.name), table.metadata.table_uuid, version)

        def carry_out(asked: Sequence[_Landed]) -> Sequence[Shown | BaseException]:
            # Every snapshot has a higher number than those before it, so the highest has them all.
            newest = max(asked, key=lambda each: each.table.metadata.last_sequence_number)
            together = newest.together or len(asked) > 1
            is_alone = not together and not self._together.get(key)
            self._together.put(together, 0, key)
            try:
                return [self._shown(newest.table, version, with_former=is_alone)] * len(asked)
            except Unsupported:
                # What came later is no reason to refuse who came before.
                return [self._tried(each.table, version) for each in asked]

        return self._landed.join(key, _Landed(table=table, together=together), carry_out)

    def close(self) -> None:
        """End what goes on without a request."""
        self.exports.close()

    def _tried(self, table: Table, version: int) -> Shown | BaseException:
        try:
            return self._shown(table, version, with_former=False)
        except Exception as error:
            return error

    def _shown(
        self, table: Table, version: int, snapshots: str = "all", *, with_former: bool = True
    ) -> Shown:
        pages = [] if snapshots == "refs" else older_pages(table.metadata, table.files.page)
        more = [snapshot for page in pages for snapshot in page.snapshots]
        seen = as_older(
            table.metadata,
            format_version=version,
            more=more,
            more_log=[entry for page in pages for entry in page.snapshot_log],
        )
        # Manifests must be there for who reads them, or commits.
        every = [*more, *table.metadata.snapshots] if with_former and snapshots != "refs" else None
        self.exports.make(table, version, every)
        seen = seen if seen is table.metadata else guarded(seen)
        if snapshots == "refs":
            pinned = {ref.snapshot_id for ref in seen.refs.values()}
            kept = tuple(each for each in seen.snapshots if each.snapshot_id in pinned)
            seen = msgspec.structs.replace(seen, snapshots=kept)
        return Shown(metadata_location=table.state.metadata_location, document=as_json(seen))
