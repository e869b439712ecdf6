"""What a writer may do to a tree beside its commit: flush, compact, drop what is dead."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.foreign.model import DATA
from tests.foreign.tree import (
    DATA_LEAF,
    DELETE_LEAF,
    DELETED,
    EXISTING,
    Commit,
    Leaf,
    Names,
    Tree,
    follow,
    leaf_entry,
    vector_entry,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tidy:
    """Rearranges entries that the commit itself does not touch."""

    rng: Random
    names: Names
    specs: list[int]
    chance: Random

    def run(self, tree: Tree, commit: Commit) -> None:
        """Move entries from the root to leaves and from leaf to leaf; the table stays the same."""
        rng = self.rng
        if rng.random() < 0.4:
            self._flush(tree, commit)
        for leaf in list(tree.leaves):
            if leaf not in tree.leaves or commit.is_new(leaf) or leaf in commit.touched:
                continue
            if not leaf.live():
                # One that had its last entry removed goes with a later commit.
                if rng.random() < 0.6:
                    self._drop(tree, leaf, commit)
            elif rng.random() < 0.2 and not any(file.deleted for file in leaf.live()):
                # Position deletes of v2 stay in their Avro manifest.
                self._compact(tree, leaf, commit)

    def _flush(self, tree: Tree, commit: Commit) -> None:
        rng = self.rng
        for is_data in (True, False):
            files = [file for file in tree.files if (file.content == DATA) == is_data]
            if not files:
                continue
            moved = rng.sample(files, rng.randint(1, len(files)))
            owner = None
            targets = [file.target for file in moved]
            homes = [
                leaf
                for leaf in tree.leaves
                if leaf.content == DATA_LEAF and any(file in targets for file in leaf.live())
            ]
            if not is_data and homes and rng.random() < 0.6:
                owner = rng.choice(homes)
                moved = [file for file in moved if file.target in owner.live()]
            leaf = Leaf(
                content=DATA_LEAF if is_data else DELETE_LEAF,
                location="",
                format="parquet",
                entries=[(file, EXISTING) for file in moved],
                snapshot_id=commit.id,
                sequence_number=commit.sequence_number,
                owner=owner,
            )
            tree.files = [file for file in tree.files if file not in moved]
            tree.leaves.append(leaf)
            commit.new_leaves.append((leaf, EXISTING))

    def _compact(self, tree: Tree, leaf: Leaf, commit: Commit) -> None:
        """Write what lives in a leaf anew, by itself or with others; or in the root, from now on."""
        how = self.chance.random()
        if how < 0.15:
            tree.files += leaf.live()
            self._drop(tree, leaf, commit)
            follow(tree, leaf, None, commit)
            return
        leaves = [leaf] if how < 0.7 else [leaf, *self._beside(tree, leaf, commit)]
        entries = [(file, EXISTING) for each in leaves for file in each.live()]
        made = Leaf(
            content=leaf.content,
            location="",
            format="parquet",
            entries=entries,
            snapshot_id=commit.id,
            sequence_number=commit.sequence_number,
            owner=leaf.owner,
        )
        commit.new_leaves.append((made, EXISTING))
        for each in leaves:
            self._drop(tree, each, commit)
        tree.leaves.append(made)
        for each in leaves:
            follow(tree, each, made, commit)

    def _beside(self, tree: Tree, leaf: Leaf, commit: Commit) -> list[Leaf]:
        """Return other leaves that may be merged with one."""
        return [
            each
            for each in tree.leaves
            if each is not leaf
            and (each.content, each.owner) == (leaf.content, leaf.owner)
            and each.live()
            and not commit.is_new(each)
            and each not in commit.touched
            and not any(file.deleted for file in each.live())
        ]

    def _drop(self, tree: Tree, leaf: Leaf, commit: Commit) -> None:
        """Take a leaf away that holds nothing any more: without a word, or marked DELETED."""
        tree.leaves = [each for each in tree.leaves if each is not leaf]
        commit.rows = [
            (row, about)
            for row, about in commit.rows
            if row["content_type"] != 5 or not self._is(row["referenced_file"], leaf.location)
        ]
        if self.rng.random() < 0.5:
            spec = self.rng.choice(self.specs)
            row = leaf_entry(leaf, DELETED, spec, self.names, snapshot_id=commit.id)
            commit.rows.append((row, None))
            if leaf.vector is not None:
                row = vector_entry(leaf, leaf.vector, DELETED, spec, self.names)
                row["tracking_info"]["snapshot_id"] = commit.id
                commit.rows.append((row, None))
        if not leaf.live():
            follow(tree, leaf, None, commit)

    def _is(self, name: str, location: str) -> bool:
        return location in (name, f"{self.names.table}/{name}")
