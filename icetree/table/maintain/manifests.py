"""Rewriting manifests: leaves that gain from it are put in order, and all rows stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from icetree.errors import CommitConflict, InvalidInput, NotFound
from icetree.files.parallel import in_order
from icetree.files.table_files import TableFiles
from icetree.spec.entry.entry import Entries, is_live, only
from icetree.spec.metadata.encryption import data_key_bytes
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.schema.shape import Shape
from icetree.spec.short import short
from icetree.spec.texts import did_you_mean
from icetree.surroundings import new_uuid
from icetree.table.arguments import texts
from icetree.table.commit.attempt import head_of
from icetree.table.maintain.newest import on_newest
from icetree.table.progress import Progress
from icetree.tree.draft import Head
from icetree.tree.leaves.arrange import Arrangement, Run, arrange
from icetree.tree.leaves.carry_over import Carried, carry_over
from icetree.tree.leaves.cluster import Order, order_by, order_of
from icetree.tree.leaves.rewritten import as_made, make_leaves
from icetree.tree.policy import policy_of
from icetree.tree.reading import leaves_in

if TYPE_CHECKING:
    from icetree.table.table import Table
    from icetree.table.transaction import Transaction

#: How often leaves are chosen anew when others rewrote all that were chosen before.
_TRIES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RewrittenManifests:
    """What was done, or with `dry_run` would be; counts are named as Iceberg's procedure names them."""

    rewritten_manifests_count: int
    added_manifests_count: int
    #: Avro manifests with position delete files of v2, which only they can hold: these become DVs
    #: by `rewrite_position_delete_files`.
    kept_avro_manifests_count: int
    dry_run: bool

    __repr__ = short

    def as_dict(self) -> dict[str, Any]:
        """Return everything by name."""
        return asdict(self)

    def __str__(self) -> str:
        verb = "would rewrite" if self.dry_run else "rewrote"
        kept = self.kept_avro_manifests_count
        rest = f"; {kept:,} of Avro stay, with position deletes of v2" if kept else ""
        return (
            f"{verb} {self.rewritten_manifests_count:,} manifests "
            f"as {self.added_manifests_count:,}{rest}"
        )


#: Takes charge of leaves by their entries, before they are stored or as soon as they are known.
Adopt: TypeAlias = Callable[[Entries], object]


class Workers(Protocol):
    """Who reads leaves and makes new ones: this process, or many."""

    @property
    def run(self) -> Run:
        """What asks leaves, as `map` does."""
        ...

    def make(self, arrangement: Arrangement, adopt: Adopt) -> Iterator[Entries]:
        """Make and store new leaves; yield their entries in order, under whatever names."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """Threads of this process."""

    files: TableFiles
    metadata: TableMetadata

    @property
    def run(self) -> Run:
        """What asks leaves, some side by side."""
        return in_order

    def make(self, arrangement: Arrangement, adopt: Adopt) -> Iterator[Entries]:
        """Make and store new leaves, one after the other."""
        files, shape = self.files, self.metadata.shape()
        key_bytes = data_key_bytes(self.metadata.properties)
        reader = files.reader(shape)
        for leaf in make_leaves(arrangement, reader, shape, run=in_order, key_bytes=key_bytes):
            adopt(leaf.entry)
            files.write([leaf.file])
            yield leaf.entry


def rewrite_manifests(
    table: Table,
    *,
    by: str | Iterable[str] | None,
    branch: str,
    dry_run: bool,
    progress: Progress | None,
    workers: Callable[[Here], Workers] = lambda here: here,
) -> RewrittenManifests:
    """Rewrite the leaves of a branch that gain from it, as one snapshot that changes no file.

    `workers` gives, in the place of this process, others that read and make leaves.
    """
    tell = progress or (lambda *_: None)
    return on_newest(
        table,
        lambda: _rewritten(table, by, branch, dry_run=dry_run, tell=tell, workers=workers),
    )


def _rewritten(
    table: Table,
    by: str | Iterable[str] | None,
    branch: str,
    *,
    dry_run: bool,
    tell: Progress,
    workers: Callable[[Here], Workers],
) -> RewrittenManifests:
    for attempt in range(_TRIES):
        table.refresh()
        with table.transaction(branch=branch) as transaction:
            head = head_of(transaction.snapshot, transaction.metadata, transaction.table_files)
            crew = workers(Here(files=transaction.table_files, metadata=transaction.metadata))
            carried, arrangement = _arranged(transaction, head, by, crew.run)
            dead = _dead_leaves(head, carried)
            if dry_run or not (arrangement.old or dead):
                return _told(arrangement, dead=dead, dry_run=dry_run)
            try:
                entries = []
                for entry in crew.make(arrangement, transaction.adopt):
                    entries.append(entry)
                    tell("manifests written", len(entries), len(arrangement.new))
                made = as_made(arrangement, entries)
                transaction.rearrange(made)
                done = transaction.commit()
            except CommitConflict:
                if attempt == _TRIES - 1:
                    raise
                continue
        assert done.snapshot is not None
        try:
            root = table.files.root(done.snapshot, table.metadata.shape())
        except NotFound:
            # It has landed, and expired since.
            return _told(made.arrangement, dead=dead)
        there = set(root["location"].to_pylist())
        table.files.delete(each for each in made.locations if each not in there)
        return _told(made.arrangement, there, dead=dead)
    raise AssertionError("every try ends in an answer or an error")


def _dead_leaves(head: Head, carried: Carried) -> int:
    """Return how many leaves any commit would leave out; 0 where most have something left.

    A root tells what its own commit removed. After one that emptied most leaves, such as a
    compaction, every plan reads them in vain until another commit comes.
    """
    left = len(leaves_in(carried.root))
    dead = len(leaves_in(only(head.root, is_live(head.root)))) - left
    return dead if dead > left else 0


def _arranged(
    transaction: Transaction, head: Head, by: str | Iterable[str] | None, run: Run
) -> tuple[Carried, Arrangement]:
    metadata, files = transaction.metadata, transaction.table_files
    shape, name = metadata.shape(), new_uuid()
    transaction.require_version()
    reader = files.reader(shape)
    carried = carry_over(head, shape, reader)
    return carried, arrange(
        carried,
        reader,
        policy_of(metadata.properties),
        _order(by, shape),
        name=lambda number: f"metadata/{name}-r{number}.parquet",
        run=run,
    )


def _order(by: str | Iterable[str] | None, shape: Shape) -> Order:
    if by is None:
        return order_of(shape)
    # An identity is called as its column is, and has no bounds of its own.
    own = {id: each.stats_field for id, each in shape.expressions.items()}
    ids = {
        name: own.get(id, id)
        for id, name in shape.names.items()
        if shape.bounds_type(id) is not None
    }
    names = texts(by, what="by")
    if not names:
        raise InvalidInput("by: give columns, or leave it out for the table's own order")
    for each in names:
        if each not in ids:
            raise InvalidInput(
                f"by: there is no column or partition field {each!r} with bounds"
                f"{did_you_mean(each, ids)}"
            )
    return order_by(ids[each] for each in names)


def _told(
    arrangement: Arrangement,
    there: set[str] | None = None,
    *,
    dead: int,
    dry_run: bool = False,
) -> RewrittenManifests:
    """Tell what became of leaves, in a root that names these; None where all would be taken over."""
    old, new = arrangement.old, arrangement.new
    return RewrittenManifests(
        rewritten_manifests_count=dead
        + sum(there is None or each.leaf.location not in there for each in old),
        added_manifests_count=sum(there is None or each.location in there for each in new),
        kept_avro_manifests_count=arrangement.kept_avro,
        dry_run=dry_run,
    )
