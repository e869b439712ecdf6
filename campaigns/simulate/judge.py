"""Looks at every head as it is made: does it hold what its commit meant, and nothing else?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from campaigns.simulate import by_hand
from campaigns.simulate.by_hand import Tree
from campaigns.simulate.carried import Carried, Lost, carried
from campaigns.simulate.conflicts import must
from campaigns.simulate.finding import few, found, require
from campaigns.simulate.follows import as_of, kept_by, meant_by, rows_of
from campaigns.simulate.intent import Commit
from campaigns.simulate.landed import apart, names, require_files, require_ids, require_new_rows
from campaigns.simulate.model import (
    DataFile,
    History,
    State,
    Version,
    head_of,
    is_gone,
)
from campaigns.simulate.witness import Witness
from icetree.catalog.base import TableName
from icetree.files.table_files import TableFiles, read_metadata
from icetree.spec.metadata.metadata import TableMetadata
from icetree.spec.metadata.pages import history as all_of
from icetree.spec.metadata.snapshot import Snapshot
from icetree.store.memory import MemoryStore


class Judge:
    """Knows the history of every table, and adds to it with each swap."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.histories: dict[TableName, History] = {}
        self.landings = 0
        self._witness = Witness(store)
        #: Every file of a snapshot that is there.
        self._needed: set[str] = set()

    def begin(self, table: TableName, location: str) -> None:
        """Learn of a table that was just made."""
        metadata = read_metadata(self.store, location)
        self.histories[table] = History(versions=[Version(location=location, metadata=metadata)])

    def landed(self, commit: Commit, table: TableName, location: str) -> State | None:
        """Look at a head that a commit has just made; return the state of its snapshot, if any."""
        self.landings += 1
        commit.landed += 1
        once = commit.landed == 1 or commit.maintains
        require(once, "lands once", f"{commit.text} landed twice")
        history = self.histories[table]
        before, after = history.head.metadata, self._witness.head(location)
        history.versions.append(Version(location=location, metadata=after))
        require(
            after.last_updated_ms >= before.last_updated_ms, "time", "a head is older than the last"
        )
        self._require_met(commit, history, before)
        new = [each for each in after.snapshots if each.snapshot_id not in history.states]
        most = max(1, len(commit.members))
        require(len(new) <= most, "one snapshot", f"{commit.text} made {len(new)} snapshots")
        state = None
        if commit.members:
            return self._together(commit, history, before, after)
        if commit.maintains:
            require(bool(new), "one snapshot", f"{commit.text} made no snapshot")
            state = self._maintained(commit, history, before, after, new[0])
        elif commit.parts and (new or not commit.refs):
            require(bool(new), "one snapshot", f"{commit.text} made no snapshot")
            state = self._snapshot(
                *self._carried(commit, history, before), history, before, after, new[0]
            )
        else:
            require(not new, "one snapshot", f"{commit.text} made a snapshot")
        if state is not None:
            history.states[state.id] = state
            history.made_ms[new[0].snapshot_id] = new[0].timestamp_ms
        self._metadata(commit, before, after, state)
        if commit.key is not None:
            # A key is known as long as the snapshot that it landed with.
            known = commit.key in history.keys and history.keys[commit.key] not in history.expired
            require(not known, "a key once", f"{commit.key} came twice")
            history.keys[commit.key] = None if state is None else state.id
        if commit.expires is not None:
            self._expired(commit, history)
        return state

    def exported(self, table: TableName, snapshot_id: int, files: Iterable[str]) -> None:
        """Learn of an export: all but the metadata that shows it lives as long as its snapshot."""
        lasting = {each for each in files if not each.endswith(".metadata.json")}
        self.histories[table].exports.setdefault(snapshot_id, set()).update(lasting)
        self._needed |= lasting

    def deleting(self, locations: Iterable[str]) -> None:
        """Look at files that are about to be deleted: none may be needed."""
        heads = [history.head for history in self.histories.values()]
        needed = {each.location for each in heads} | {
            f"{each.metadata.location}/{page.location}"
            for each in heads
            for page in each.metadata.snapshot_pages
        }
        for location in locations:
            is_needed = location in self._needed or location in needed
            require(not is_needed, "files stay", f"{location} is deleted")

    # --- whether it might land --------------------------------------------------------------

    def _require_met(self, commit: Commit, history: History, before: TableMetadata) -> None:
        """Require that nothing stood in the way of the commit."""
        for fact in sorted(commit.relies_on):
            require(
                fact_of(commit.base, fact) == fact_of(before, fact),
                "conflicts are seen",
                f"{commit.text} landed though the {fact} had changed",
            )
        require(
            not commit.parts or not is_gone(commit.branch, commit.base, before),
            "conflicts are seen",
            f"{commit.text} landed though its branch was gone",
        )
        require(
            commit.needs.isdisjoint(history.expired),
            "conflicts are seen",
            f"{commit.text} landed though a snapshot that it needs had expired",
        )
        minds = any(part.minds_others for part in commit.parts)
        if not minds or commit.branch is None:
            return
        base = head_of(commit.base, commit.branch)
        since = history.between(base, head_of(before, commit.branch))
        if since is None:
            found("conflicts are seen", f"{commit.text} landed though its branch was moved")
        moved, gone = (
            frozenset(
                name for each in since if each.did.is_rewrite is moves for name in each.did.removed
            )
            for moves in (True, False)
        )
        for state in since:
            for reason in must(
                commit.parts,
                state.did,
                history.states[base],
                serializable=commit.is_serializable,
                moved=moved,
                gone=gone,
            ):
                found(
                    "conflicts are seen",
                    f"{commit.text} landed on #{state.sequence} against '{reason}'",
                )

    def _carried(
        self, commit: Commit, history: History, before: TableMetadata
    ) -> tuple[Commit, Carried]:
        """Return a commit as it lands on a head: others may have moved its rows."""
        base = history.states[head_of(commit.base, commit.branch)]
        now = history.states[head_of(before, commit.branch)]
        try:
            moved = carried(commit.parts, base, now)
        except Lost as lost:
            found("conflicts are seen", f"{commit.text} landed without {lost}")
        return replace(commit, parts=moved.parts), moved

    # --- what landed ------------------------------------------------------------------------

    def _snapshot(
        self,
        commit: Commit,
        moved: Carried,
        history: History,
        before: TableMetadata,
        after: TableMetadata,
        made: Snapshot,
    ) -> State:
        parent, tree, fresh = self._read_tree(commit, history, before, after, made)
        require_new_rows(commit, made, fresh, after)
        equality = names(tree.added, by_hand.EQUALITY_DELETES)
        state = meant_by(commit, moved, parent, made, fresh, equality)
        require_files(commit, tree, self._witness.marked(tree, after), state)
        wrong = commit.row_law(parent, state)
        if wrong is not None:
            found("serializable", wrong)
        return state

    def _together(
        self, commit: Commit, history: History, before: TableMetadata, after: TableMetadata
    ) -> State | None:
        """Return the last state of those that commits came to which landed with one swap."""
        standing = [each for each in commit.members if each.stands]
        page = TableFiles(store=self.store, location=after.location).page
        new = sorted(
            (each for each in all_of(after, page) if each.snapshot_id not in history.states),
            key=lambda each: each.sequence_number,
        )
        what = f"{commit.text}: {len(standing)} commits made {len(new)} snapshots"
        require(0 < len(new) == len(standing), "one snapshot", what)
        state = None
        for at, (member, made) in enumerate(zip(standing, new, strict=True)):
            then = as_of(before, after, new[at:], member.branch)
            moved = Carried(parts=member.parts)
            state = self._snapshot(member, moved, history, before, then, made)
            history.states[state.id] = state
            history.made_ms[made.snapshot_id] = made.timestamp_ms
            self._metadata(member, before, then, state)
            before = then
        return state

    def _maintained(
        self,
        commit: Commit,
        history: History,
        before: TableMetadata,
        after: TableMetadata,
        made: Snapshot,
    ) -> State:
        """Return the state of a snapshot that may have changed anything but rows."""
        parent, tree, fresh = self._read_tree(commit, history, before, after, made)
        require(made.operation == "replace", "rows", f"{commit.text} is a {made.operation}")
        state = kept_by(
            parent,
            made,
            fresh=fresh,
            removed=names(tree.removed, by_hand.DATA),
            equality=names(tree.live, by_hand.EQUALITY_DELETES),
            marked=self._witness.marked(tree, after),
        )
        meant, found = rows_of(parent, after), rows_of(state, after)
        require(meant == found, "rows", f"{commit.text}: {few(meant, found)}")
        return state

    def _read_tree(
        self,
        commit: Commit,
        history: History,
        before: TableMetadata,
        after: TableMetadata,
        made: Snapshot,
    ) -> tuple[State, Tree, dict[str, DataFile]]:
        """Return what a snapshot was made on, its tree, and the data files that it added."""
        parent = history.states[head_of(before, commit.branch)]
        require(made.parent_snapshot_id == parent.id, "parent", f"of #{made.sequence_number}")
        require(
            made.sequence_number == before.last_sequence_number + 1 == after.last_sequence_number,
            "sequence numbers",
            f"#{made.sequence_number} came after #{before.last_sequence_number}",
        )
        tree = self._tree(commit, history, parent, made, after)
        # In an order of their own: that of a set is another in every run of Python.
        data = sorted(
            (each for each in tree.added if each.content == by_hand.DATA),
            key=lambda each: each.location,
        )
        require_ids(made, before, after, data)
        return parent, tree, {each.location: self._witness.file(each, after) for each in data}

    def _tree(
        self,
        commit: Commit,
        history: History,
        parent: State,
        made: Snapshot,
        after: TableMetadata,
    ) -> Tree:
        """Return the tree of a snapshot; it must hold what was there, but for what it changed."""
        assert made.root_manifest is not None
        before = history.trees[parent.id]
        tree = self._witness.tree(after.location, made.root_manifest)
        history.trees[made.snapshot_id] = tree
        self._needed |= tree.files
        require(not tree.is_doubled, "files", f"{commit.text}: a file stands there twice")
        meant = (before.live - tree.removed) | tree.added
        require(
            tree.live == meant and tree.removed <= before.live,
            "files",
            f"{commit.text}: {apart(tree.live, meant)}",
        )
        return tree

    def _metadata(
        self, commit: Commit, before: TableMetadata, after: TableMetadata, state: State | None
    ) -> None:
        """Require that refs, schema and properties are as they were, but for what was meant."""
        refs = {name: ref.snapshot_id for name, ref in before.refs.items()}
        if state is None:
            refs |= {name: id for name, id in commit.refs.items() if id is not None}
            refs = {name: id for name, id in refs.items() if commit.refs.get(name, id) is not None}
        elif commit.branch is not None and state.id is not None:
            refs[commit.branch] = state.id
        now = {name: ref.snapshot_id for name, ref in after.refs.items()}
        require(now == refs, "refs", f"{commit.text}: {now}, not {refs}")
        if not commit.evolves:
            for fact in ("current_schema_id", "default_spec_id", "default_sort_order_id"):
                same = getattr(before, fact) == getattr(after, fact)
                require(same, "metadata", f"{commit.text} changed the {fact}")
            same = before.properties == after.properties
            require(same, "metadata", f"{commit.text} changed properties")
        wrong = commit.metadata_law(before, after)
        if wrong is not None:
            found("metadata", f"{commit.text}: {wrong}")

    def _expired(self, commit: Commit, history: History) -> None:
        """Require that history is without what was to go, and nothing else; files of it may go now.

        What was to go is decided on one of the heads since the writer looked.
        """
        assert commit.expires is not None
        after = history.head.metadata
        files = TableFiles(store=self.store, location=after.location)
        there = {each.snapshot_id for each in all_of(after, files.page)}
        gone = frozenset(history.retained().keys() - there)
        heads = history.versions[history.number_of(commit.base_location) : -1]
        meant = [commit.expires(each.metadata) for each in heads]
        require(gone in meant, "history", f"{commit.text}: {gone} went, not {meant}")
        history.expired |= dict.fromkeys(gone, len(history.versions) - 1)
        retained = [
            each.trees[id].files | each.exports.get(id, set())
            for each in self.histories.values()
            for id in each.retained()
        ]
        self._needed = set[str]().union(*retained)


def fact_of(metadata: TableMetadata, fact: str) -> object:
    """Return a fact of metadata that commits rely on, by its name; `ref NAME` for a ref's snapshot."""
    if fact.startswith("ref "):
        ref = metadata.refs.get(fact.removeprefix("ref "))
        return None if ref is None else ref.snapshot_id
    return getattr(metadata, fact)
