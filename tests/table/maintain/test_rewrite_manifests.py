"""Rewriting manifests: rows, row ids, history and feed stay; leaves are in order, and stay so."""

from __future__ import annotations

import pyarrow as pa
import pytest

from icetree.errors import InvalidInput, NotFound
from icetree.spec.entry.entry import is_live
from icetree.surroundings import within
from icetree.table.table import Table
from icetree.tree.reading import Leaf, leaves_in
from tests.effort import EFFORT
from tests.rows.lake import rows
from tests.table.changing import changing_table, some
from tests.table.lake import connection
from tests.table.maintain.history import Past, stored, told

COLUMNS = ["id", "v", "_row_id", "_last_updated_sequence_number"]


def leaves(table: Table, at: str | None = None) -> list[Leaf]:
    """The leaves of a branch."""
    shape = table.metadata.shape()
    root = table.files.root(table.snapshot(at), shape)
    return leaves_in(root.filter(is_live(root)))


def content(table: Table, at: str | None = None) -> list[str]:
    """Rows with their lineage."""
    return rows(table.scan(at=at, columns=COLUMNS).to_arrow())


def beside(table: Table) -> Table:
    """Another's handle of the same table."""
    return Table(catalog=table.catalog, files=table.files, state=table.state)


@pytest.mark.law
@pytest.mark.parametrize("seed", [*range(EFFORT)])
def test_all_that_can_be_read_stays_as_it_was(seed: int) -> None:
    past = Past(seed)
    past.live(20)
    table = past.table
    for _ in range(EFFORT):
        before = told(table, past.ids())
        branch = past.choose.choice([n for n, ref in table.refs.items() if ref.type == "branch"])
        by = past.choose.choice([None, "id", ["v", "id"]])
        was = content(table, branch)
        with within(past.clock):
            done = table.maintenance.rewrite_manifests(by=by, branch=branch)
            again = table.maintenance.rewrite_manifests(by=by, branch=branch)
        assert content(table, branch) == was
        assert again.rewritten_manifests_count == again.added_manifests_count == 0
        new = past.ids() - before.keys()
        assert len(new) == (1 if done.rewritten_manifests_count else 0)
        after = told(table, past.ids())
        assert {id: after[id] for id in before} == before
        assert all(after[id].files == [] and after[id].changed == [] for id in new)
        assert table.verify(deep=True).is_clean
        past.live(5)


@pytest.mark.parametrize("by", ["p", "id_bucket_8", ["p", "id_bucket_8"]])
def test_leaves_are_clustered_by_any_partition_field(by: str | list[str]) -> None:
    small = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "4"}
    schema = pa.schema([("id", pa.int64()), ("p", pa.int64())])
    field = by if isinstance(by, str) else by[0]
    # Leaves come clustered by what a table is partitioned by first.
    spec = ["bucket(8, id)", "p"] if field == "p" else ["p", "bucket(8, id)"]
    table = connection().create_table("db.t", schema, partition_by=spec, properties=small)
    for start in range(0, 150, 30):
        ids = range(start, start + 30)
        table.append(pa.table({"id": ids, "p": [each % 4 for each in ids]}, schema))
    was = rows(table.scan().to_arrow())
    files = table.inspect.files()
    before = _leaves_of_a_value(table, field)
    assert table.maintenance.rewrite_manifests(by=by).rewritten_manifests_count
    assert _leaves_of_a_value(table, field) < before
    assert rows(table.scan().to_arrow()) == was
    assert table.inspect.files().num_rows == files.num_rows


def _leaves_of_a_value(table: Table, field: str) -> int:
    """Count leaves that are read for a value of a partition field, for all values together."""
    tests = {
        "p": [f"p = {at}" for at in range(4)],
        "id_bucket_8": [f"bucket(8, id) = {at}" for at in range(8)],
    }
    return sum(table.scan(where).plan().metrics.data_leaves_read for where in tests[field])


@pytest.mark.law
@pytest.mark.parametrize("seed", [*range(20, 20 + EFFORT)])
def test_what_others_do_meanwhile_is_kept_and_nobody_has_a_conflict(seed: int) -> None:
    past = Past(seed)
    past.live(30)
    table, other = past.table, beside(past.table)
    expected: list[list[str]] = []

    def meanwhile(*_: object) -> None:
        past.table = other.refresh()
        past.live(2)
        expected[:] = [content(other)]

    with within(past.clock):
        done = table.maintenance.rewrite_manifests(by="id", progress=meanwhile)
    assert done.rewritten_manifests_count == 0 or expected == [content(table)]
    assert table.verify(deep=True).is_clean


def _leafy(count: int = 12) -> Table:
    """A table whose files, of one row each, are in leaves of one file each but for the last."""
    table = changing_table(
        properties={"write.root.max-data-entries": "1", "write.commit.compact-max-entries": "0"}
    )
    for number in range(count):
        table.append(some((number, "v")))
    return table


def test_what_is_in_good_order_stays_byte_for_byte() -> None:
    table = _leafy()
    table.maintenance.rewrite_manifests(by="id")
    [first] = leaves(table)
    for number in range(100, 103):
        table.append(some((number, "v")))
    table.set_properties({"write.leaf.max-entries": "12"})
    done = table.maintenance.rewrite_manifests(by="id")
    assert first.location in {leaf.location for leaf in leaves(table)}
    assert (done.rewritten_manifests_count, done.added_manifests_count) == (3, 1)


def test_entries_that_others_removed_meanwhile_stay_removed_and_nothing_changes_twice() -> None:
    table = _leafy()
    other = beside(table)
    stay: list[object] = []

    def meanwhile(*_: object) -> None:
        if not stay:
            stay.append(other.delete("id = 3 or id = 5"))

    done = table.maintenance.rewrite_manifests(by="id", progress=meanwhile)
    assert done.added_manifests_count == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 4, *range(6, 12)]
    assert table.verify(deep=True).is_clean
    since = table.snapshot().parent_snapshot_id  # type: ignore[union-attr]
    assert table.changes(since=since).files().num_rows == 0


def test_a_leaf_that_others_emptied_meanwhile_is_not_made_anew_without_an_entry() -> None:
    table = changing_table(
        properties={"write.root.max-data-entries": "1", "write.leaf.max-entries": "6"}
    )
    for number in range(6):
        with table.transaction() as tx:
            tx.append(some((number, "v")))
            tx.append(some((number + 6, "v")))
    other, emptied = beside(table), list[object]()

    def meanwhile(*_: object) -> None:
        if not emptied:
            emptied.append(other.refresh().delete("id < 6"))

    assert table.maintenance.rewrite_manifests(by="id", progress=meanwhile).added_manifests_count
    for upto in (12, 13):
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(6, upto)]
        assert all(each.record_count for each in leaves(table))
        assert table.verify(deep=True).is_clean
        table.append(some((upto, "v")))


def test_a_branch_that_is_rolled_back_meanwhile_loses_nothing() -> None:
    """An entry that was removed when leaves were chosen is there again when they are taken over."""
    table = _leafy()
    before, other = table.snapshot(), beside(table)
    assert before is not None
    table.delete("id = 3")
    moved: list[object] = []

    def meanwhile(*_: object) -> None:
        if not moved:
            moved.append(other.refresh().rollback(to=before.snapshot_id))

    table.maintenance.rewrite_manifests(by="id", progress=meanwhile)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [*range(12)]
    assert table.verify(deep=True).is_clean


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    table = _leafy()
    files, state = stored(table), table.state
    plan = table.maintenance.rewrite_manifests(dry_run=True)
    assert (stored(table), table.refresh().state) == (files, state)
    done = table.maintenance.rewrite_manifests()
    assert plan.as_dict() == {**done.as_dict(), "dry_run": True}
    assert str(done) == "rewrote 11 manifests as 1"


def test_columns_and_branches_that_are_not_there_are_told() -> None:
    table = _leafy(1)
    with pytest.raises(InvalidInput, match=r"no column or partition field 'idd' .* 'id'"):
        table.maintenance.rewrite_manifests(by="idd")
    with pytest.raises(InvalidInput, match="give columns"):
        table.maintenance.rewrite_manifests(by=[])
    with pytest.raises(NotFound, match="no branch 'nowhere'"):
        table.maintenance.rewrite_manifests(branch="nowhere")
    assert changing_table().maintenance.rewrite_manifests().rewritten_manifests_count == 0


def test_leaves_that_a_compaction_emptied_are_left_out_by_a_commit_of_their_own() -> None:
    table = changing_table(properties={"write.root.max-data-entries": "2"})
    for number in range(8):
        table.append(some((number, "v")))
    before = len(leaves(table))
    assert before >= 2
    table.maintenance.rewrite_data_files(options={"min-input-files": 2})
    was = content(table)
    # The root still tells what its commit removed, so that is in it, leaf by leaf.
    assert len(leaves(table)) == before
    assert table.maintenance.rewrite_manifests(dry_run=True).rewritten_manifests_count == before
    done = table.maintenance.rewrite_manifests()
    assert (done.rewritten_manifests_count, done.added_manifests_count) == (before, 0)
    assert leaves(table) == []
    assert content(table) == was
    assert table.maintenance.rewrite_manifests().rewritten_manifests_count == 0
    assert table.verify(deep=True).is_clean


def test_a_leaf_that_is_emptied_among_many_waits_for_the_next_commit() -> None:
    small = {"write.root.max-data-entries": "1", "write.leaf.max-entries": "1"}
    table = changing_table(properties=small)
    for number in range(6):
        table.append(some((number, "v")))
    table.maintenance.rewrite_manifests()
    table.delete("id = 1")
    emptied, snapshots = len(leaves(table)), len(list(table.history()))
    assert table.maintenance.rewrite_manifests().rewritten_manifests_count == 0
    assert len(list(table.history())) == snapshots
    table.append(some((6, "v")))
    assert len(leaves(table)) == emptied
