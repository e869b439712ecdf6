"""What holds for a tree whatever was done to it, and in whatever order."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from icetree.errors import CommitConflict, InvalidInput
from icetree.spec.entry.entry import MANIFESTS, Content, Entry, Status, is_content, to_table
from icetree.spec.schema.shape import Shape
from icetree.tree.changes import Changes, Intent, removal
from icetree.tree.diff.diff import diff
from icetree.tree.draft import Draft, Stamp
from icetree.tree.grow.grow import grow, prepare
from icetree.tree.policy import Policy
from tests.effort import EFFORT, law
from tests.laws.histories import replay
from tests.laws.model import DATA, NotLive
from tests.laws.strategies import (
    EAGER,
    LAZY,
    OPS,
    PLAIN,
    POLICIES,
    SHAPES,
    Op,
    data_file,
    histories,
    vector,
)
from tests.laws.table import Table
from tests.laws.world import COMPARED_REMOVED, World, rows

#: Shared out over tests, so that tests which run side by side share them.
PARTS, OPERATIONS = 2, 200
#: What must have happened how often, or the law was tested on too little.
SEEN = {
    "commits": 75,
    "conflicts": 8,
    "leaves of new files": 15,
    "flushed leaves": 5,
    "compacted leaves": 5,
    "leaves dropped or rewritten": 5,
    "affiliated delete manifests": 1,
    "inline manifest DVs": 12,
    "manifest DVs in Puffin": 12,
    "entries removed from leaves": 25,
    "data DVs replaced in leaves": 1,
    "stale hints": 1,
}


@pytest.mark.law
@pytest.mark.parametrize("part", range(PARTS))
def test_any_history_reads_like_a_dict_of_files(part: int) -> None:
    tally = replay(part, OPERATIONS // PARTS)
    wanted = {what: least * EFFORT // PARTS for what, least in SEEN.items()}
    few = {what: tally[what] for what, least in wanted.items() if tally[what] < least}
    assert few == {}


#: Row ids follow the order in which files are clustered, which depends on where they go, and a
#: removed entry is stamped with the removing snapshot in the root only.
SAME = tuple(name for name in COMPARED_REMOVED if name != "first_row_id")


@given(st.sampled_from(SHAPES), histories(4, 12))
@law(3)
def test_a_tree_that_is_never_tidied_holds_the_same_files(shape: Shape, ops: list[Op]) -> None:
    lazy, eager = (World(table=Table(shape=shape, policy=policy)) for policy in (LAZY, EAGER))
    for op in ops:
        seen = []
        for world in (lazy, eager):
            world.commit(op)
            table = world.table
            changed = diff(table.head.root, table.reader)
            files = (table.live(), changed.added, changed.removed)
            seen.append([rows(each, SAME) for each in files])
        assert seen[0] == seen[1]
    assert not pc.any(is_content(lazy.table.head.root, *MANIFESTS)).as_py()
    old = pc.equal(eager.table.head.root["status"], int(Status.EXISTING))
    kept = eager.table.head.root.filter(old)
    assert set(kept["content_type"].to_pylist()) <= {*MANIFESTS, Content.MANIFEST_DV}


def grown(world: World, changes: Changes, stamp: Stamp) -> Draft:
    """Prepare and grow anew, as a writer would that starts on the newest head."""
    table = world.table
    prepared = prepare(changes, table.shape, table.policy, commit_id=stamp.commit_id)
    return grow(table.head, prepared, stamp, table.shape, table.policy, table.reader)


@given(st.sampled_from(SHAPES), POLICIES, histories(1, 8), OPS, OPS)
@law(10)
def test_a_retry_is_what_committing_later_would_have_been(
    shape: Shape, policy: Policy, past: list[Op], mine: Op, theirs: Op
) -> None:
    world = World(table=Table(shape=shape, policy=policy))
    for op in past:
        world.commit(op)
    table = world.table
    changes, added, removed = world.change(mine)
    prepared = prepare(changes, shape, policy, commit_id="mine")
    table.files |= {leaf.file.location: leaf.file.content for leaf in prepared.leaves}
    number = len(table.heads) + 1
    early = Stamp(snapshot_id=number, sequence_number=number - 1, commit_id="mine", attempt=0)
    late = replace(early, sequence_number=number, attempt=1)
    lost = grow(table.head, prepared, early, shape, policy, table.reader)

    # What the other writer adds again, this one may have meant to.
    world.commit(replace(theirs, add_again=0))
    targets = {each.referenced_file for each in added if each.content_type == 1}
    targets -= {each.location for each in added}
    live = world.model
    if not (targets <= set(live.names(DATA)) and set(removed) <= live.files.keys()):
        with pytest.raises(CommitConflict):
            grow(table.head, prepared, late, shape, policy, table.reader)
        return
    draft = grow(table.head, prepared, late, shape, policy, table.reader)
    straight = grown(world, changes, late)
    assert draft.root_bytes == straight.root_bytes
    assert draft.root.equals(straight.root)
    assert (draft.files, draft.summary) == (straight.files, straight.summary)
    assert draft.next_row_id == straight.next_row_id

    leaves = {leaf.file.location for leaf in prepared.leaves}
    written = {file.location for attempt in (lost, draft) for file in attempt.files}
    assert leaves.isdisjoint(written)
    assert leaves <= set(draft.root["location"].to_pylist())
    assert len(written) == len(lost.files) + len(draft.files), "attempts share no names"

    table.files |= {file.location: file.content for file in draft.files}
    table.adopt(draft)
    world.settle(added, removed)
    world.reread()


@given(POLICIES, histories(2, 8), st.data())
@law(5)
def test_a_file_that_is_live_is_not_added_again(
    policy: Policy, past: list[Op], data: st.DataObject
) -> None:
    world = World(table=Table(shape=PLAIN, policy=policy))
    for op in past:
        world.commit(op)
    names = world.model.names(DATA)
    assume(names)
    name = data.draw(st.sampled_from(names))
    live = world.model.files[DATA, name]
    again = Entry(
        location=name,
        record_count=live.record_count,
        file_size_in_bytes=live.file_size_in_bytes,
        stats=live.stats if data.draw(st.booleans(), label="tells its stats") else {},
    )
    with pytest.raises(InvalidInput, match=f"{name} is in the table already"):
        world.table.commit(Changes(intent=Intent.APPEND, added=to_table([again], PLAIN)))


@pytest.mark.parametrize("policy", [LAZY, EAGER], ids=["in the root", "in a leaf"])
def test_a_change_that_adds_one_file_twice_is_refused(policy: Policy) -> None:
    world = World(table=Table(shape=PLAIN, policy=policy))
    one = data_file("data/one", PLAIN, 1)
    for added, rule in (
        ([one, one], "data/one is live more than once"),
        ([one, vector(one, "p", 0, PLAIN), vector(one, "q", 1, PLAIN)], "more than one data DV"),
    ):
        with pytest.raises(InvalidInput, match=rule):
            world.table.draft(Changes(intent=Intent.APPEND, added=to_table(added, PLAIN)))


def test_a_removal_that_names_one_file_twice_is_refused() -> None:
    world = World(table=Table(shape=PLAIN))
    world.commit(Op(intent=Intent.APPEND, add=1))
    twice = removal(world.model.names(DATA) * 2)
    with pytest.raises(InvalidInput, match="named twice"):
        world.table.commit(Changes(intent=Intent.DELETE_FILES, removed=twice))


def test_a_dv_is_at_home_where_its_data_file_is_live_not_where_it_was() -> None:
    few = Policy(root_max_data_entries=2, root_max_delete_entries=0, affinity_min_entries=1)
    world = World(table=Table(shape=PLAIN, policy=replace(few, compact_max_entries=0)))
    world.commit(Op(intent=Intent.APPEND, add=4, salt=1))
    name = world.model.names(DATA)[0]
    world.commit(Op(intent=Intent.DELETE_FILES, remove=(0,)))
    world.table.policy = LAZY
    world.commit(Op(intent=Intent.APPEND, add_again=1, salt=2))
    world.commit(Op(intent=Intent.ROW_DELTA, vectors=(world.model.names(DATA).index(name),)))
    world.table.policy = replace(few, compact_max_entries=0)
    world.commit(Op(intent=Intent.APPEND))
    root = world.table.head.root
    deletes = root.filter(is_content(root, Content.DELETE_MANIFEST))
    assert deletes["referenced_file"].to_pylist() == [None]


def test_the_model_refuses_what_is_not_live_whole() -> None:
    world = World(table=Table(shape=PLAIN))
    world.commit(Op(intent=Intent.APPEND, add=1))
    live = dict(world.model.files)
    with pytest.raises(NotLive):
        world.model.commit([], [*live, (0, "data/never")])
    assert world.model.files == live
