"""Branches and tags: what moves them, and how paged history comes back for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from icetree.codec.metadata import decode_page, encode_page
from icetree.errors import AlreadyExists, CommitConflict, InvalidInput, NotFound
from icetree.spec.apply.apply import apply
from icetree.spec.edit import refs
from icetree.spec.edit.create import table_metadata
from icetree.spec.edit.refs import Retention
from icetree.spec.metadata.metadata import TableMetadata, with_snapshot
from icetree.spec.metadata.pages import page_out, snapshot_as_of
from icetree.spec.metadata.snapshot import Page, Ref, Snapshot, SnapshotPage
from icetree.spec.metadata.update import RecallSnapshot, SetSnapshotRef, Update
from icetree.spec.rules.metadata import broken_rule
from tests.effort import law


class History:
    """A table whose old snapshots are in pages, and the pages."""

    def __init__(
        self, length: int, *, keep: int = 1000, side: dict[int, int] | None = None
    ) -> None:
        """Snapshot n is made at n x 10 ms on n - 1, unless `side` gives it another parent."""
        metadata = table_metadata("id long", location="s3://b/t", uuid="u", at_ms=1)
        for number in range(1, length + 1):
            parent = (side or {}).get(number, number - 1) or None
            snapshot = Snapshot(
                snapshot_id=number,
                parent_snapshot_id=parent,
                sequence_number=number,
                timestamp_ms=number * 10,
                root_manifest=f"r{number}",
                first_row_id=0,
                added_rows=0,
            )
            on_main = number not in (side or {})
            metadata = with_snapshot(
                metadata, snapshot, ref="main" if on_main else None, at_ms=number * 10
            )
        self.files: dict[str, bytes] = {}
        self.reads = 0
        names = iter(range(1000))
        paged = page_out(
            metadata,
            keep=keep,
            read_page=self.page,
            encode_page=encode_page,
            new_location=lambda: f"p{next(names)}",
            page_size=5,
        )
        self.files |= paged.files
        self.metadata = paged.metadata

    def page(self, ref: SnapshotPage) -> Page:
        self.reads += 1
        return decode_page(self.files[ref.location], file=ref.location)

    def after(self, updates: tuple[Update, ...], on: TableMetadata | None = None) -> TableMetadata:
        made = apply(self.metadata if on is None else on, updates, at_ms=9999)
        assert broken_rule(made) is None
        return made


def test_branches_and_tags_are_made_at_the_current_snapshot_unless_told() -> None:
    has = History(3)
    kept = Retention(max_ref_age_ms=1, min_snapshots_to_keep=2, max_snapshot_age_ms=3)
    made = has.after(refs.create_branch(has.metadata, has.page, "b", retention=kept))
    made = has.after(refs.create_tag(made, has.page, "t", at=1, max_ref_age_ms=7), on=made)
    assert made.refs["b"] == Ref(
        snapshot_id=3,
        type="branch",
        max_ref_age_ms=1,
        min_snapshots_to_keep=2,
        max_snapshot_age_ms=3,
    )
    assert made.refs["t"] == Ref(snapshot_id=1, type="tag", max_ref_age_ms=7)
    assert made.current_snapshot_id == 3


def test_moving_a_ref_keeps_its_retention() -> None:
    has = History(3)
    made = has.after(refs.create_tag(has.metadata, has.page, "t", max_ref_age_ms=7))
    made = has.after(refs.replace_tag(made, has.page, "t", at=2), on=made)
    assert made.refs["t"] == Ref(snapshot_id=2, type="tag", max_ref_age_ms=7)
    assert has.after(refs.replace_tag(made, has.page, "t", at=2), on=made).refs == made.refs
    made = has.after(refs.set_retention(made, "t", Retention(max_ref_age_ms=8)), on=made)
    assert made.refs["t"].max_ref_age_ms == 8
    again = refs.set_retention(made, "t", Retention(max_ref_age_ms=8))
    assert has.after(again, on=made).refs == made.refs
    assert "t" not in has.after(refs.remove_tag(made, "t"), on=made).refs


def test_a_branch_moves_ahead_only_to_descendants() -> None:
    has = History(5, side={5: 2})
    made = has.after(refs.create_branch(has.metadata, has.page, "b", at=2))
    made = has.after(refs.create_branch(made, has.page, "side", at=5), on=made)
    assert has.after(refs.fast_forward(made, has.page, "b", "main"), on=made).refs["b"] == (
        Ref(snapshot_id=4, type="branch")
    )
    assert has.after(refs.fast_forward(made, has.page, "b", 3), on=made).refs["b"].snapshot_id == 3
    assert has.after(refs.fast_forward(made, has.page, "b", 2), on=made).refs == made.refs
    new = has.after(refs.fast_forward(made, has.page, "new", "side"), on=made)
    assert new.refs["new"].snapshot_id == 5
    for branch, to in (("main", "b"), ("main", "side"), ("side", "main")):
        with pytest.raises(InvalidInput, match="fast-forwarded"):
            refs.fast_forward(made, has.page, branch, to)


def test_a_branch_moves_back_only_to_ancestors_unless_set() -> None:
    has = History(5, side={5: 2})
    back = has.after(refs.rollback_to(has.metadata, has.page, 2))
    assert (back.current_snapshot_id, back.snapshot_log[-1].snapshot_id) == (2, 2)
    with pytest.raises(InvalidInput, match="not an ancestor"):
        refs.rollback_to(has.metadata, has.page, 5)
    with pytest.raises(InvalidInput, match="not an ancestor"):
        refs.rollback_to(back, has.page, 4)
    assert has.after(refs.set_current(back, has.page, 5), on=back).current_snapshot_id == 5
    assert has.after(refs.set_current(back, has.page, 5, branch="x"), on=back).refs["x"]


def test_a_branch_moves_back_to_a_time() -> None:
    has = History(5)
    assert has.after(refs.rollback_to_time(has.metadata, has.page, 35)).current_snapshot_id == 3
    assert has.after(refs.rollback_to_time(has.metadata, has.page, 30)).current_snapshot_id == 3
    assert has.after(refs.rollback_to_time(has.metadata, has.page, 99)).refs == has.metadata.refs
    with pytest.raises(InvalidInput, match="as old as 5 ms"):
        refs.rollback_to_time(has.metadata, has.page, 5)


def test_a_paged_snapshot_comes_back_for_a_ref() -> None:
    has = History(40, keep=3)
    assert 7 not in has.metadata.by_id
    updates = refs.create_tag(has.metadata, has.page, "old", at=7)
    assert [type(each) for each in updates] == [RecallSnapshot, SetSnapshotRef]
    made = has.after(updates)
    assert made.snapshot(7).root_manifest == "r7"
    # Said again, as on a retry, it is there already.
    assert has.after(updates[:1], on=made).snapshots == made.snapshots
    assert has.after(refs.rollback_to(has.metadata, has.page, 7)).current_snapshot_id == 7
    back = has.after(refs.rollback_to_time(has.metadata, has.page, 99))
    assert back.current_snapshot_id == 9
    assert snapshot_as_of(back, 9999, has.page).snapshot_id == 9


def test_a_snapshot_whose_page_is_gone_does_not_come_back() -> None:
    has = History(40, keep=3)
    updates = refs.create_tag(has.metadata, has.page, "old", at=7)
    expired = replace(has.metadata, snapshot_pages=())
    with pytest.raises(CommitConflict, match="rewritten meanwhile"):
        apply(expired, updates, at_ms=1)


def test_ancestors_are_told_newest_first_each_page_read_once() -> None:
    has = History(60, keep=3, side={50: 20})
    found = [each.snapshot_id for each in refs.ancestors(has.metadata, 60, has.page)]
    # Snapshot 51 follows 50, which was made on 20.
    assert found == [*range(60, 49, -1), *range(20, 0, -1)]
    assert has.reads <= len(has.metadata.snapshot_pages)


def test_near_ancestors_read_no_page() -> None:
    has = History(60, keep=10)
    assert refs.is_ancestor(has.metadata, 55, 60, has.page)
    assert not refs.is_ancestor(has.metadata, 60, 55, has.page)
    assert has.reads == 0


def test_ancestry_ends_where_history_was_expired() -> None:
    has = History(5)
    rest = replace(has.metadata, snapshots=has.metadata.snapshots[2:])
    assert [each.snapshot_id for each in refs.ancestors(rest, 5, has.page)] == [5, 4, 3]
    with pytest.raises(NotFound, match="no snapshot 2"):
        list(refs.ancestors(rest, 2, has.page))
    circular = replace(has.metadata.snapshots[0], parent_snapshot_id=5)
    broken = replace(has.metadata, snapshots=(circular, *has.metadata.snapshots[1:]))
    assert len(list(refs.ancestors(broken, 5, has.page))) == 5


@law(40)
@given(st.data())
def test_ancestry_is_the_same_however_history_is_paged(data: st.DataObject) -> None:
    length = data.draw(st.integers(1, 30))
    side = {
        number: data.draw(st.integers(0, number - 1))
        for number in data.draw(st.sets(st.integers(2, 30), max_size=6))
        if number < length
    }
    whole, paged = History(length, side=side), History(length, keep=2, side=side)
    for start in range(1, length + 1):
        assert [each.snapshot_id for each in refs.ancestors(whole.metadata, start, whole.page)] == [
            each.snapshot_id for each in refs.ancestors(paged.metadata, start, paged.page)
        ]
    one, other = (data.draw(st.integers(1, length)) for _ in range(2))
    chain = {each.snapshot_id for each in refs.ancestors(whole.metadata, other, whole.page)}
    assert refs.is_ancestor(paged.metadata, one, other, paged.page) == (one in chain)


@pytest.mark.parametrize(
    ("one", "error", "why"),
    [
        (lambda m, p: refs.create_branch(m, p, "main"), AlreadyExists, "a branch 'main'"),
        (lambda m, p: refs.create_tag(m, p, "b"), AlreadyExists, "a branch 'b'"),
        (lambda m, p: refs.create_tag(m, p, " "), InvalidInput, "needs a name"),
        (lambda m, p: refs.create_tag(m, p, "t", at=99), NotFound, "no snapshot 99"),
        (lambda m, p: refs.create_tag(m, p, "t", max_ref_age_ms=0), InvalidInput, "positive"),
        (lambda m, p: refs.replace_tag(m, p, "b", at=1), InvalidInput, "'b' is a branch"),
        (lambda m, p: refs.replace_branch(m, p, "maan", at=1), NotFound, "did you mean 'main'?"),
        (lambda m, _: refs.remove_branch(m, "main"), InvalidInput, "cannot be removed"),
        (lambda m, _: refs.remove_tag(m, "x"), NotFound, "no tag 'x'"),
        (lambda m, p: refs.fast_forward(m, p, "b", "x"), NotFound, "'x'"),
        (lambda m, p: refs.rollback_to(m, p, 99), NotFound, "no snapshot 99"),
        (
            lambda m, _: refs.set_retention(m, "main", Retention(max_ref_age_ms=1)),
            InvalidInput,
            "never goes",
        ),
        (
            lambda m, p: refs.set_retention(
                apply(m, refs.create_tag(m, p, "t"), at_ms=1), "t", Retention(min_snapshots_to_keep=1)
            ),
            InvalidInput,
            "only a branch has",
        ),
    ],
)  # fmt: skip
def test_refusals_name_the_culprit(one: Callable[..., Any], error: Any, why: str) -> None:
    has = History(3)
    metadata = has.after(refs.create_branch(has.metadata, has.page, "b"))
    with pytest.raises(error) as caught:
        one(metadata, has.page)
    assert why in str(caught.value)


def test_an_empty_table_has_nothing_to_point_to() -> None:
    has = History(0)
    with pytest.raises(InvalidInput, match="has no snapshot"):
        refs.create_tag(has.metadata, has.page, "t")
    with pytest.raises(InvalidInput, match="cannot be a tag"):
        refs.create_tag(has.metadata, has.page, "main")
