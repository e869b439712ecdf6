"""How many rows and files a commit says that it changed, by what it removes whole."""

from __future__ import annotations

from icetree.table.commit.commit import Committed
from tests.rows.lake import new_table
from tests.table.changing import changing_table, delete_equal, delete_rows, some


def counts(done: Committed) -> tuple[int | None, int | None, int | None]:
    return done.rows.inserted, done.rows.updated, done.rows.deleted


def test_rows_that_were_gone_already_are_not_counted_with_their_file() -> None:
    table = changing_table(partition_by=["id"])
    table.append(some((1, "a"), (1, "b"), (1, "c"), (2, "d")))
    table.delete("v = 'b'")
    done = table.replace_partitions(some((1, "new")))
    assert counts(done) == (1, 0, 2)
    assert (done.files.added, done.files.removed) == (1, 1)
    assert counts(table.overwrite("id = 1", some((1, "newer"), (1, "newest")))) == (2, 0, 1)
    assert counts(table.overwrite("v <> 'd' and v <> 'newer'", some(), strict=False)) == (0, 0, 1)
    done = table.truncate()
    assert counts(done) == (0, 0, 2)
    assert (done.files.added, done.files.removed) == (0, 2)
    assert done.rows.affected == 2


def test_what_only_a_look_at_rows_would_tell_is_not_told() -> None:
    table = changing_table()
    table.append(some((1, "a"), (2, "b")))
    delete_equal(table, [1])
    done = table.truncate()
    assert (done.rows.inserted, done.rows.deleted, done.rows.affected) == (0, None, None)


def test_a_transaction_counts_all_that_it_does() -> None:
    table = changing_table(partition_by=["id"])
    table.append(some((1, "a"), (2, "b"), (3, "c")))
    delete_rows(table, [3])
    with table.transaction() as transaction:
        transaction.append(some((4, "d"), (5, "e")))
        transaction.delete("id = 4 or id = 1")
        done = transaction.commit()
    assert counts(done) == (2, 0, 2)
    with table.transaction() as transaction:
        transaction.append(some((6, "f")))
        transaction.truncate()
        done = transaction.commit()
    assert counts(done) == (1, 0, 3)


def test_what_is_published_is_counted_again() -> None:
    table = new_table([("id", "long"), ("v", "string")])
    staged = table.append(some((1, "a")).select(["id", "v"]), branch=None)
    table.append(some((2, "b"), (3, "c")).select(["id", "v"]))
    assert staged.snapshot is not None
    assert counts(table.cherry_pick(staged.snapshot.snapshot_id)) == (1, 0, 0)
