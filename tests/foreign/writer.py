"""Another writer of trees: it commits what it is told to, in every legal shape that chance has."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.foreign import blobs, legacy, parquet
from tests.foreign.columns import Json
from tests.foreign.dress import Dress, aside
from tests.foreign.files import Shop
from tests.foreign.layout import Layout
from tests.foreign.model import DATA, File
from tests.foreign.numbering import number
from tests.foreign.tidy import Tidy
from tests.foreign.tree import (
    ADDED,
    DATA_LEAF,
    DELETE_LEAF,
    DELETED,
    EXISTING,
    Commit,
    Leaf,
    Names,
    Tree,
    Vector,
    aggregate,
    counts,
    encode_leaf,
    file_entry,
    follow,
    leaf_entry,
    replaced,
    vector_entry,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A commit, and the live files that it left."""

    id: int
    parent: int | None
    sequence_number: int
    at_ms: int
    operation: str
    root: str
    first_row_id: int
    added_rows: int
    #: The tree's own files, as they were then.
    live: tuple[File, ...]
    schema_id: int = 0


@dataclass(slots=True, kw_only=True)
class Writer:
    """A table of another writer, from its first snapshot on."""

    rng: Random
    layout: Layout
    shop: Shop
    names: Names
    tree: Tree = field(default_factory=Tree)
    snapshots: list[Snapshot] = field(default_factory=list)
    next_row_id: int = 0
    sequence_number: int = 0
    clock_ms: int = 1_700_000_000_000
    #: An expired snapshot that the first one was made on.
    base: int | None = None
    #: The entries of the newest root.
    rows: list[Json] = field(default_factory=list)
    #: The branch that is committed to, and the newest snapshot of each, by id.
    branch: str = "main"
    heads: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    #: What each snapshot left, by its id.
    trees: dict[int, Tree] = field(default_factory=dict)

    # --- branches --------------------------------------------------------------------------

    def hop(self, branch: str, *, at: int | None = None) -> None:
        """Commit to a branch from now on; it is at a snapshot if that is told, by its id."""
        if at is not None:
            self.heads[branch] = at
        self.branch, self.tree = branch, self.trees[self.heads[branch]]

    @property
    def head(self) -> int:
        """The number of the newest snapshot of main."""
        id = self.heads.get("main", self.snapshots[-1].id)
        return next(at for at, each in enumerate(self.snapshots) if each.id == id)

    # --- before v4 -------------------------------------------------------------------------

    def upgrade_from(self, version: int, files: list[File], gone: tuple[File, ...] = ()) -> None:
        """Start with Avro leaves of an older version, as the first root after an upgrade has.

        These say of some files that are `gone` that they were deleted.
        """
        self.base = self._new_id()
        by_spec: dict[tuple[int, int], list[File]] = {}
        for file in (*files, *gone):
            by_spec.setdefault((file.content != DATA, file.spec_id), []).append(file)
        self.sequence_number = 0 if version == 1 else 2
        for (is_delete, spec_id), held in sorted(by_spec.items()):
            # Deletes came later than what they delete.
            age = 0 if version == 1 else 1 + is_delete
            for file in held:
                file.snapshot_id, file.sequence_number = self.base, age
                file.file_sequence_number = age
            statuses = [
                DELETED if file in gone else self.rng.choice((EXISTING, ADDED)) for file in held
            ]
            leaf = Leaf(
                content=DELETE_LEAF if is_delete else DATA_LEAF,
                location="",
                format="avro",
                entries=list(zip(held, statuses, strict=True)),
                snapshot_id=self.base,
                sequence_number=age,
            )
            if not is_delete:
                leaf.first_row_id = self.next_row_id
                for file in leaf.live():
                    file.first_row_id = self.next_row_id
                    self.next_row_id += file.record_count
            dress = self._dress()
            content = legacy.encode(leaf, version, spec_id, self.layout, dress)
            leaf.location, leaf.size = self.shop.store("metadata", ".avro", content), len(content)
            leaf.counts = counts(leaf, self.rng)
            self.tree.leaves.append(leaf)

    # --- commits ---------------------------------------------------------------------------

    def commit(
        self, operation: str, *, added: list[File] | None = None, removed: list[File] | None = None
    ) -> Snapshot:
        """Make the next snapshot; removing a data file takes its DV along."""
        rng = self.rng
        added, removed = added or [], removed or []
        self.sequence_number += rng.choice((1, 1, 1, 3))
        commit = Commit(id=self._new_id(), sequence_number=self.sequence_number)
        tree, first = self.tree.copy(), self.next_row_id
        for file in added:
            file.snapshot_id, file.file_sequence_number = commit.id, commit.sequence_number
            if file.sequence_number is None:
                file.sequence_number = commit.sequence_number
        gone = [*removed, *self._vectors_of(removed)]
        tombstones = [file for file in gone if file in tree.files]
        tree.files = [file for file in tree.files if file not in gone]
        self._remove_from_leaves(tree, gone, commit)
        Tidy(
            rng=rng,
            names=self.names,
            specs=list(self.layout.specs),
            chance=aside(rng, "all tidy"),
        ).run(tree, commit)
        in_root = self._place(tree, added, tombstones, commit)
        # What a leaf is called is known when it is written.
        kept = [(leaf, EXISTING) for leaf in tree.leaves if not commit.is_new(leaf)]
        for leaf, status in (*kept, *commit.new_leaves):
            commit.rows.append(({"leaf": status, "content_type": leaf.content}, leaf))
        for file in tree.files:
            if file not in in_root:
                commit.rows.append((file_entry(file, EXISTING, self.names), file))
        rng.shuffle(commit.rows)
        self.next_row_id, silent = number(commit.rows, in_root, first, rng)
        if self.shop.strange:
            # More may be taken than are given.
            self.next_row_id += aside(rng, "ids").choice((0, 0, 0, 7))
        self._unsay(commit, in_root)
        self._finish_leaves(commit, silent)
        rows = [row for row, _ in commit.rows]
        dress = self._dress()
        root = self.store_root(rows, dress)
        self.clock_ms += rng.randrange(1, 5000)
        made = Snapshot(
            id=commit.id,
            parent=self.heads.get(self.branch, self.base),
            sequence_number=commit.sequence_number,
            at_ms=self.clock_ms,
            operation=operation,
            root=root,
            first_row_id=first,
            added_rows=self.next_row_id - first,
            live=tuple(tree.live()),
            schema_id=self.layout.schema.id,
        )
        self.tree = self.trees[made.id] = tree
        self.heads[self.branch] = made.id
        self.snapshots.append(made)
        return made

    def store_root(self, rows: list[Json], dress: Dress) -> str:
        self.rows = rows
        content = parquet.manifest(rows, "root", self.layout, dress)
        return self.shop.store("metadata", "-root.parquet", content)

    def _dress(self) -> Dress:
        return Dress(rng=self.rng, strange=self.shop.strange)

    def _new_id(self) -> int:
        return self.rng.randrange(1, 1 << 62)

    def _spec(self) -> int:
        return self.rng.choice(list(self.layout.specs))

    def _vectors_of(self, removed: list[File]) -> list[File]:
        return [
            file
            for file in self.tree.live()
            if file.target is not None and file.target in removed and file not in removed
        ]

    # --- removing --------------------------------------------------------------------------

    def _remove_from_leaves(self, tree: Tree, gone: list[File], commit: Commit) -> None:
        for at, leaf in enumerate(tree.leaves):
            held = [file for file in leaf.live() if file in gone]
            if held:
                tree.leaves[at] = self._with_vector(leaf, held, commit)
                follow(tree, leaf, tree.leaves[at], commit)
            elif leaf.vector is not None:
                tree.leaves[at] = self._carry_vector(leaf, leaf.vector, commit)
                follow(tree, leaf, tree.leaves[at], commit)

    def _carry_vector(self, leaf: Leaf, vector: Vector, commit: Commit) -> Leaf:
        """Keep a manifest DV, now and then in another place."""
        if self.rng.random() < 0.15:
            vector = self._vector(leaf, vector.positions, commit)
        after = replaced(leaf, vector=vector)
        row = vector_entry(after, vector, EXISTING, self._spec(), self.names)
        commit.rows.append((row, None))
        return after

    def _vector(self, leaf: Leaf, positions: frozenset[int], commit: Commit) -> Vector:
        """Return a manifest DV, inline or in a Puffin file of its own."""
        made = Vector(
            positions=positions, snapshot_id=commit.id, sequence_number=commit.sequence_number
        )
        if self.rng.random() < 0.4:
            rng = self.rng if self.shop.strange else None
            held = [(leaf.location, set(positions))]
            content, ((made.offset, made.length),) = blobs.puffin(held, rng)
            made.location = self.shop.store("metadata", ".puffin", content)
            made.size = len(content)
        return made

    def _with_vector(self, leaf: Leaf, held: list[File], commit: Commit) -> Leaf:
        """Put entries into the leaf's manifest DV, in one of the ways to tell of the change."""
        rng = self.rng
        new = {leaf.position(file) for file in held}
        if rng.random() < 0.5:
            # Entries that were DELETED already may be named as well.
            new |= {
                at
                for at, (_, status) in enumerate(leaf.entries)
                if status == DELETED and at not in leaf.removed
            }
        vector = self._vector(leaf, leaf.removed | new, commit)
        change, spec = blobs.bitmap(new), self._spec()
        by_difference = rng.random() < 0.5
        if by_difference and leaf.vector is not None:
            before = vector_entry(leaf, leaf.vector, DELETED, spec, self.names)
            before["tracking_info"]["snapshot_id"] = commit.id
            commit.rows.append((before, None))
        after = replaced(leaf, vector=vector)
        told_of = None if by_difference else change
        row = vector_entry(after, vector, ADDED, spec, self.names, told_of)
        if rng.random() < 0.3:
            row["tracking_info"] |= {"snapshot_id": None, "sequence_number": None}
        commit.rows.append((row, None))
        commit.touched.add(after)
        return after

    # --- adding ----------------------------------------------------------------------------

    def _place(
        self, tree: Tree, added: list[File], tombstones: list[File], commit: Commit
    ) -> list[File]:
        """Put new files and tombstones into the root or new leaves; return those of the root."""
        rng = self.rng
        in_root: list[File] = []
        if self.shop.strange and rng.random() < 0.05:
            self._add_leaf(tree, commit, [], rng.random() < 0.5)
        for is_data in (True, False):
            new = [file for file in added if (file.content == DATA) == is_data]
            old = [file for file in tombstones if (file.content == DATA) == is_data]
            to_leaf = bool(new) and rng.random() < 0.5
            here = rng.randint(0, len(new) - 1) if to_leaf else len(new)
            in_root += new[:here]
            tree.files += new[:here]
            if to_leaf:
                entries = [(file, ADDED) for file in new[here:]]
                entries += [(file, EXISTING) for file in self._taken_along(tree, in_root, is_data)]
                stay = []
                for file in old:
                    if rng.random() < 0.4:
                        entries.append((file, DELETED))
                    else:
                        stay.append(file)
                old = stay
                rng.shuffle(entries)
                self._add_leaf(tree, commit, entries, is_data)
            for file in old:
                row = file_entry(file, DELETED, self.names)
                row["tracking_info"]["snapshot_id"] = commit.id
                commit.rows.append((row, file))
        for file in in_root:
            commit.rows.append((file_entry(file, ADDED, self.names), file))
        return in_root

    def _add_leaf(
        self, tree: Tree, commit: Commit, entries: list[tuple[File, int]], is_data: bool
    ) -> None:
        leaf = Leaf(
            content=DATA_LEAF if is_data else DELETE_LEAF,
            location="",
            format="parquet",
            entries=entries,
            snapshot_id=commit.id,
            sequence_number=commit.sequence_number,
        )
        tree.leaves.append(leaf)
        commit.new_leaves.append((leaf, ADDED))

    def _taken_along(self, tree: Tree, new: list[File], is_data: bool) -> list[File]:
        """Take files of the root that a new leaf holds from now on, as they are."""
        if self.rng.random() < 0.8:
            return []
        kept = [f for f in tree.files if f not in new and (f.content == DATA) == is_data]
        moved = kept[: self.rng.randint(0, len(kept))]
        tree.files = [file for file in tree.files if file not in moved]
        return moved

    def _finish_leaves(self, commit: Commit, silent: set[int]) -> None:
        """Write the new leaves, then the rows of the root that wait for their names."""
        rng = self.rng
        for leaf, _ in commit.new_leaves:
            dress = self._dress()
            tracking = self._unsaid(leaf, commit)
            content = encode_leaf(leaf, self.layout, self.names, dress, tracking)
            leaf.location = self.shop.store("metadata", "-leaf.parquet", content)
            leaf.size = len(content)
            leaf.counts = counts(leaf, rng)
            leaf.stats = aggregate(leaf, self.layout, rng)
        for at, (row, leaf) in enumerate(commit.rows):
            if "leaf" not in row:
                continue
            assert isinstance(leaf, Leaf)
            quiet: Json = {"first_row_id": None} if id(leaf) in silent else {}
            if row["leaf"] == ADDED and rng.random() < 0.3:
                quiet |= {"snapshot_id": None, "sequence_number": None}
                quiet["file_sequence_number"] = None
            made = leaf_entry(leaf, row["leaf"], self._spec(), self.names, **quiet)
            commit.rows[at] = (made, leaf)

    def _unsay(self, commit: Commit, in_root: list[File]) -> None:
        """Leave to the snapshot to say what it can say for new files of the root."""
        for row, about in commit.rows:
            if not isinstance(about, File) or about not in in_root:
                continue
            told = row["tracking_info"]
            for name in ("snapshot_id", "sequence_number", "file_sequence_number"):
                own = name == "snapshot_id" or told[name] == commit.sequence_number
                if own and self.rng.random() < 0.3:
                    told[name] = None

    def _unsaid(self, leaf: Leaf, commit: Commit) -> dict[int, Json]:
        """Return what entries of a leaf leave to the leaf's own entry to say."""
        rng = self.rng
        found: dict[int, Json] = {}
        numbers = rng.random() < 0.7
        for at, (file, status) in enumerate(leaf.entries):
            quiet: Json = {}
            if status == DELETED:
                quiet["snapshot_id"] = rng.choice((commit.id, None))
            if status == ADDED:
                if rng.random() < 0.7:
                    quiet["snapshot_id"] = None
                if file.sequence_number == commit.sequence_number and rng.random() < 0.7:
                    quiet["sequence_number"] = None
                if rng.random() < 0.7:
                    quiet["file_sequence_number"] = None
                if numbers:
                    quiet["first_row_id"] = None
            found[at] = quiet
        return found
