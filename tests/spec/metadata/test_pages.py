"""History in pages: nothing is lost, the list stays short, and little is read."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from icetree.codec.metadata import decode, decode_page, encode, encode_page
from icetree.errors import InvalidInput, NotFound
from icetree.spec.apply.apply import apply
from icetree.spec.edit import refs
from icetree.spec.metadata import pages
from icetree.spec.metadata.metadata import TableMetadata, new_table, with_snapshot
from icetree.spec.metadata.pages import PagedOut
from icetree.spec.metadata.snapshot import Page, Snapshot, SnapshotPage
from icetree.spec.rules.metadata import broken_rule
from tests.effort import law


class Table:
    """A table that pages out after every commit, with its page files in memory."""

    def __init__(self, *, keep: int = 3, page_size: int = 2, together: int = 1) -> None:
        self.keep, self.page_size = keep, page_size
        #: So many commits in a row are made at one time.
        self.together = together
        self.files: dict[str, bytes] = {}
        self.read: list[str] = []
        self.names = (f"metadata/page-{number}" for number in count())
        self.written = 0
        self.metadata: TableMetadata = new_table(
            table_uuid="u",
            location="s3://b/t",
            schema={
                "type": "struct",
                "fields": [{"id": 1, "name": "a", "required": False, "type": "long"}],
            },
            at_ms=0,
        )

    def read_page(self, ref: SnapshotPage) -> Page:
        self.read.append(ref.location)
        return decode_page(self.files[ref.location], file=ref.location)

    def take(self, done: PagedOut) -> None:
        for location, data in done.files.items():
            assert location not in self.files
            self.files[location] = data
        for location in done.replaced:
            del self.files[location]
        self.metadata = decode(encode(done.metadata), file="m")
        assert {ref.location for ref in self.metadata.snapshot_pages} == set(self.files)

    def commit(self, times: int = 1, *, page: bool = True) -> None:
        for _ in range(times):
            number = self.metadata.last_sequence_number + 1
            made = Snapshot(
                snapshot_id=1000 + number,
                parent_snapshot_id=self.metadata.current_snapshot_id,
                sequence_number=number,
                timestamp_ms=self.time_of(number),
                root_manifest=f"r{number}",
                first_row_id=0,
                added_rows=0,
            )
            self.metadata = with_snapshot(self.metadata, made, at_ms=self.time_of(number))
            if page:
                self.page_out()

    def time_of(self, number: int) -> int:
        return -(-number // self.together) * 10

    def page_out(self) -> None:
        done = pages.page_out(
            self.metadata,
            keep=self.keep,
            page_size=self.page_size,
            read_page=self.read_page,
            encode_page=encode_page,
            new_location=lambda: next(self.names),
        )
        self.written += sum(
            ref.count for ref in done.metadata.snapshot_pages if ref.location in done.files
        )
        self.take(done)

    def remove(self, *ids: int) -> None:
        done = pages.remove_snapshots(
            self.metadata,
            ids,
            read_page=self.read_page,
            encode_page=encode_page,
            new_location=lambda: next(self.names),
        )
        self.take(done)

    def ids(self) -> list[int]:
        return [each.snapshot_id for each in pages.history(self.metadata, self.read_page)]

    def tag(self, name: str, id: int) -> None:
        point = refs.replace_tag if name in self.metadata.refs else refs.create_tag
        updates = point(self.metadata, self.read_page, name, at=id)
        self.metadata = apply(self.metadata, updates, at_ms=self.metadata.last_updated_ms)


def test_history_stays_inline_until_a_page_is_full() -> None:
    table = Table(keep=3, page_size=2)
    table.commit(4)
    assert not table.files
    table.commit()
    assert [each.snapshot_id for each in table.metadata.snapshots] == [1003, 1004, 1005]
    assert [each.snapshot_id for each in table.metadata.snapshot_log] == [1003, 1004, 1005]
    (page,) = table.metadata.snapshot_pages
    assert page.size_in_bytes == len(table.files[page.location])
    assert page == SnapshotPage(
        location="metadata/page-0",
        size_in_bytes=page.size_in_bytes,
        count=2,
        first_sequence_number=1,
        last_sequence_number=2,
        first_timestamp_ms=10,
        last_timestamp_ms=20,
        log_count=2,
        first_log_timestamp_ms=10,
        last_log_timestamp_ms=20,
    )
    assert broken_rule(table.metadata) is None


def test_nothing_is_lost_and_everything_is_found() -> None:
    table = Table()
    table.commit(60)
    assert sorted(table.ids()) == list(range(1001, 1061))
    for number in range(1, 61):
        id = 1000 + number
        assert pages.find_snapshot(table.metadata, id, table.read_page).sequence_number == number
        for late in (0, 9):
            found = pages.snapshot_as_of(table.metadata, number * 10 + late, table.read_page)
            assert found.snapshot_id == id


def test_pages_are_read_only_when_needed() -> None:
    table = Table()
    table.commit(60)
    table.read.clear()
    pages.find_snapshot(table.metadata, 1060, table.read_page)
    pages.snapshot_as_of(table.metadata, 10_000, table.read_page)
    assert not table.read
    newest = table.metadata.snapshot_pages[-1]
    pages.find_snapshot(table.metadata, 1000 + newest.last_sequence_number, table.read_page)
    assert table.read == [newest.location]
    table.read.clear()
    pages.snapshot_as_of(table.metadata, 10, table.read_page)
    # One page for the log, and the pages before it for the snapshot.
    assert len(table.read) == 1 + len(table.metadata.snapshot_pages)


def test_the_list_of_pages_stays_short_and_a_snapshot_is_written_five_times() -> None:
    table = Table(keep=3, page_size=1)
    longest = 0
    for _ in range(350):
        table.commit()
        longest = max(longest, len(table.metadata.snapshot_pages))
    paged = sum(ref.count for ref in table.metadata.snapshot_pages)
    assert paged == 347
    assert longest <= 16 + paged // 625
    assert table.written <= 5 * paged
    assert max(ref.count for ref in table.metadata.snapshot_pages) == 125


def test_a_long_history_moves_at_once_in_pages_of_bounded_size() -> None:
    table = Table(keep=3, page_size=1)
    table.commit(1503, page=False)
    table.page_out()
    assert [ref.count for ref in table.metadata.snapshot_pages] == [625, 625, 250]
    assert len(table.ids()) == 1503


def test_what_a_ref_points_to_stays_inline_and_leaves_once_the_ref_is_gone() -> None:
    table = Table()
    table.commit()
    table.tag("first", 1001)
    table.commit(40)
    assert 1001 in table.metadata.by_id
    table.metadata = replace(table.metadata, refs={"main": table.metadata.ref("main")})
    table.commit(10)
    assert 1001 not in table.metadata.by_id
    assert sorted(table.ids()) == list(range(1001, 1052))
    assert pages.find_snapshot(table.metadata, 1001, table.read_page).sequence_number == 1


def test_a_paged_snapshot_is_recalled_for_a_ref_and_listed_once() -> None:
    table = Table()
    table.commit(20)
    table.tag("old", 1002)
    table.tag("again", 1002)
    assert [each.snapshot_id for each in table.metadata.snapshots].count(1002) == 1
    assert broken_rule(table.metadata) is None
    table.metadata = replace(table.metadata, refs={"main": table.metadata.ref("main")})
    table.commit(200)
    assert sorted(table.ids()) == list(range(1001, 1221))


def test_old_formats_are_never_paged() -> None:
    table = Table()
    table.commit(30, page=False)
    old = replace(table.metadata, format_version=3)
    done = pages.page_out(
        old,
        keep=1,
        page_size=1,
        read_page=table.read_page,
        encode_page=encode_page,
        new_location=str,
    )
    assert done == PagedOut(metadata=old)


def test_removed_snapshots_leave_their_pages_and_cut_the_log() -> None:
    table = Table()
    table.commit(30)
    table.remove(*range(1001, 1011), 1015)
    assert sorted(table.ids()) == [*range(1011, 1015), *range(1016, 1031)]
    with pytest.raises(NotFound, match=r"nothing as early as 1970-01-01T00:00:00\.150"):
        pages.snapshot_as_of(table.metadata, 150, table.read_page)
    assert pages.snapshot_as_of(table.metadata, 160, table.read_page).snapshot_id == 1016


def test_removing_inline_snapshots_cuts_the_log_in_the_pages_too() -> None:
    table = Table()
    table.commit(30)
    inline = min(table.metadata.by_id)
    table.remove(inline)
    assert all(ref.log_count == 0 for ref in table.metadata.snapshot_pages)
    assert inline not in table.ids()
    table.remove(*(id for id in table.ids() if id != 1030))
    assert table.ids() == [1030]
    assert not table.files


def overlapping() -> Table:
    """A table whose oldest and newest paged snapshots share a page, with another in between."""
    table = Table(keep=1, page_size=9)
    table.commit(10)
    (ref,) = table.metadata.snapshot_pages
    page = table.read_page(ref)

    def part(numbers: list[int]) -> SnapshotPage:
        made = Page(
            snapshots=tuple(page.snapshots[number - 1] for number in numbers),
            snapshot_log=tuple(page.snapshot_log[number - 1] for number in numbers),
        )
        data, location = encode_page(made), next(table.names)
        table.files[location] = data
        return replace(
            ref,
            location=location,
            size_in_bytes=len(data),
            count=len(numbers),
            first_sequence_number=numbers[0],
            last_sequence_number=numbers[-1],
            first_timestamp_ms=numbers[0] * 10,
            last_timestamp_ms=numbers[-1] * 10,
            log_count=len(numbers),
            first_log_timestamp_ms=numbers[0] * 10,
            last_log_timestamp_ms=numbers[-1] * 10,
        )

    parts = (part([4, 5, 6]), part([1, 2, 3, 7, 8, 9]))
    del table.files[ref.location]
    table.metadata = replace(table.metadata, snapshot_pages=parts)
    assert broken_rule(table.metadata) is None
    return table


@pytest.mark.parametrize("gone", range(1, 10))
def test_the_log_is_cut_at_one_moment_in_pages_that_overlap(gone: int) -> None:
    table = overlapping()
    table.remove(1000 + gone)
    for number in range(1, 11):
        if number <= gone:
            with pytest.raises(NotFound, match="nothing as early as"):
                pages.snapshot_as_of(table.metadata, number * 10, table.read_page)
        else:
            found = pages.snapshot_as_of(table.metadata, number * 10, table.read_page)
            assert found.snapshot_id == 1000 + number


def test_pages_that_overlap_are_merged_in_the_order_of_time() -> None:
    table = overlapping()
    table.page_size = 2
    table.commit(4 * pages.FAN_OUT)
    for number in range(1, table.metadata.last_sequence_number + 1):
        found = pages.snapshot_as_of(table.metadata, number * 10, table.read_page)
        assert found.snapshot_id == 1000 + number


def test_a_snapshot_that_a_ref_points_to_cannot_be_removed() -> None:
    table = Table()
    table.commit(3)
    with pytest.raises(InvalidInput, match="snapshot 1003 cannot go: 'main' points to it"):
        table.remove(1003)


def test_what_is_in_no_page_is_not_found() -> None:
    table = Table()
    table.commit(20)
    with pytest.raises(NotFound, match="no snapshot 5"):
        pages.find_snapshot(table.metadata, 5, table.read_page)
    with pytest.raises(NotFound, match=r"nothing as early as 1970-01-01T00:00:00\.009"):
        pages.snapshot_as_of(table.metadata, 9, table.read_page)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(1, 12)),
        st.tuples(st.just("tag"), st.integers(0, 10**6)),
        st.tuples(st.just("untag"), st.just(0)),
        st.tuples(st.just("remove"), st.integers(0, 10**6)),
    ),
    max_size=12,
)


@law(40)
@given(STEPS, st.integers(1, 4), st.integers(1, 3), st.integers(1, 5))
def test_paged_history_is_the_history(
    steps: list[tuple[str, int]], keep: int, size: int, together: int
) -> None:
    table = Table(keep=keep, page_size=size, together=together)
    expected: dict[int, None] = {}
    log: list[int] = []
    for verb, number in steps:
        heads = {ref.snapshot_id for ref in table.metadata.refs.values()}
        others = [id for id in expected if id not in heads]
        if verb == "commit":
            first = 1001 + table.metadata.last_sequence_number
            table.commit(number)
            expected |= dict.fromkeys(range(first, first + number))
            log += range(first, first + number)
        elif verb == "tag" and expected:
            id = list(expected)[number % len(expected)]
            table.tag("t", id)
        elif verb == "untag" and "main" in table.metadata.refs:
            table.metadata = replace(table.metadata, refs={"main": table.metadata.refs["main"]})
        elif verb == "remove" and others:
            id = others[number % len(others)]
            table.remove(id)
            del expected[id]
            # What was current before its last mention can no longer be told.
            log = log[log.index(id) + 1 :] if id in log else log
        assert sorted(table.ids()) == sorted(expected)
        assert broken_rule(table.metadata) is None
    for time in {table.time_of(id - 1000) for id in expected}:
        before = [id for id in log if table.time_of(id - 1000) <= time]
        if before:
            found = pages.snapshot_as_of(table.metadata, time, table.read_page)
            assert found.snapshot_id == before[-1]
        else:
            with pytest.raises(NotFound, match="nothing as early as"):
                pages.snapshot_as_of(table.metadata, time, table.read_page)
