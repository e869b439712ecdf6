"""What every store promises, asked of each of them."""

from __future__ import annotations

import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from icetree.errors import AlreadyExists, InvalidInput, NotFound, Unsupported
from icetree.store.memory import MemoryStore
from tests.effort import usually
from tests.store.conftest import Place

NAMES = [
    "plain.parquet",
    "a b/two  words.x",
    "日本/ünïcode-é.x",
    "cafe\u0301",
    "q+%20&=;@,$!'()~*#?[x].x",
    "day=2024-01-01/_hidden/.dot",
    "n" * 200,
    "d/e/e/p/er/file",
]


@pytest.mark.parametrize("name", NAMES)
def test_what_was_written_is_read_back_under_its_exact_name(place: Place, name: str) -> None:
    place.store.write_new(place.at(name), name.encode())
    assert place.store.read(place.at(name)) == name.encode()
    assert place.store.exists(place.at(name))
    assert [info.location for info in place.store.list(place.folder)] == [place.at(name)]
    place.store.delete([place.at(name)])
    assert not place.store.exists(place.at(name))


def test_an_empty_file_is_a_file(place: Place) -> None:
    place.store.write_new(place.at("empty"), b"")
    assert place.store.exists(place.at("empty"))
    assert place.store.size(place.at("empty")) == 0
    assert place.store.read(place.at("empty")) == b""
    assert place.store.read_range(place.at("empty"), offset=0, length=5) == b""
    with place.store.open(place.at("empty")) as file:
        assert file.read() == b""


def test_a_large_file_comes_back_whole_and_in_parts(place: Place) -> None:
    content = os.urandom(20_000_000)
    place.store.write_new(place.at("large"), content)
    assert place.store.size(place.at("large")) == len(content)
    assert place.store.read(place.at("large")) == content
    middle = place.store.read_range(place.at("large"), offset=9_999_999, length=70_000)
    assert middle == content[9_999_999 : 9_999_999 + 70_000]


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, 10, b"0123456789"),
        (0, 1, b"0"),
        (9, 1, b"9"),
        (3, 4, b"3456"),
        (0, 0, b""),
        (10, 0, b""),
        (8, 100, b"89"),
        (10, 1, b""),
        (100, 5, b""),
    ],
)
def test_a_range_ends_where_the_file_does(
    place: Place, offset: int, length: int, expected: bytes
) -> None:
    place.store.write_new(place.at("digits"), b"0123456789")
    assert place.store.read_range(place.at("digits"), offset=offset, length=length) == expected


@pytest.mark.parametrize(("offset", "length"), [(-1, 5), (0, -1)])
def test_a_negative_range_is_refused(place: Place, offset: int, length: int) -> None:
    place.store.write_new(place.at("digits"), b"0123456789")
    with pytest.raises(InvalidInput, match="digits"):
        place.store.read_range(place.at("digits"), offset=offset, length=length)


def test_a_missing_file_is_named(place: Place) -> None:
    missing = place.at("no/such file")
    with pytest.raises(NotFound) as read:
        place.store.read(missing)
    with pytest.raises(NotFound) as ranged:
        place.store.read_range(missing, offset=0, length=1)
    with pytest.raises(NotFound) as sized:
        place.store.size(missing)
    with pytest.raises(NotFound) as opened:
        place.store.open(missing)
    assert all(missing in str(each.value) for each in (read, ranged, sized, opened))
    assert not place.store.exists(missing)


def test_a_folder_is_no_file(place: Place) -> None:
    place.store.write_new(place.at("folder/file"), b"1")
    assert not place.store.exists(place.at("folder"))
    with pytest.raises(NotFound):
        place.store.read(place.at("folder"))
    with pytest.raises(NotFound):
        place.store.size(place.at("folder"))
    with pytest.raises(NotFound):
        place.store.open(place.at("folder"))


def test_a_file_is_never_overwritten(place: Place) -> None:
    place.store.write_new(place.at("once"), b"first")
    with pytest.raises(AlreadyExists, match="once"):
        place.store.write_new(place.at("once"), b"second")
    with pytest.raises(AlreadyExists, match="once"):
        place.store.write_new(place.at("once"), b"first")
    assert place.store.read(place.at("once")) == b"first"
    assert len([*place.store.list(place.folder)]) == 1


@pytest.mark.parametrize(
    ("size_bytes", "rounds"), usually([(10, 1), (10, 5), (300_000, 1)], (10, 1), (300_000, 1))
)
def test_of_eight_writers_of_one_name_exactly_one_wins(
    place: Place, size_bytes: int, rounds: int
) -> None:
    for number in range(rounds):
        at = place.at(f"race{number}")
        together = threading.Barrier(8)

        def won(writer: int, at: str = at, together: threading.Barrier = together) -> bool:
            together.wait()
            try:
                place.store.write_new(at, bytes([writer]) * size_bytes)
            except AlreadyExists:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            winners = [writer for writer, did in enumerate(pool.map(won, range(8))) if did]
        assert len(winners) == 1
        assert place.store.read(at) == bytes(winners) * size_bytes


def test_a_reader_sees_the_whole_file_or_none(place: Place) -> None:
    content = os.urandom(2_000_000)
    seen: list[bytes] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            if place.store.exists(place.at("growing")):
                seen.append(place.store.read(place.at("growing")))
                return

    with ThreadPoolExecutor(1) as pool:
        looking = pool.submit(look)
        time.sleep(0.01)
        place.store.write_new(place.at("growing"), content)
        looking.result(30)
        done.set()
    assert seen == [content]


def test_many_files_are_written_side_by_side(place: Place) -> None:
    files = {place.at(f"many/{number}"): bytes([number]) * 1000 for number in range(40)}
    place.store.write_many(files.items())
    assert {
        info.location: info.size_bytes for info in place.store.list(place.folder)
    } == dict.fromkeys(files, 1000)
    assert all(place.store.read(location) == content for location, content in files.items())
    place.store.write_many([])


def test_of_many_files_one_that_fails_does_not_stop_the_others(place: Place) -> None:
    place.store.write_new(place.at("taken"), b"old")
    with pytest.raises(AlreadyExists, match="taken"):
        place.store.write_many((place.at(name), b"new") for name in ("a", "taken", "b"))
    with pytest.raises(AlreadyExists, match="taken"):
        place.store.write_many((place.at(name), b"new") for name in ("taken", "c"))
    assert [place.store.read(place.at(name)) for name in ("a", "b", "c")] == [b"new"] * 3
    assert place.store.read(place.at("taken")) == b"old"


def test_deleting_what_is_not_there_is_fine(place: Place) -> None:
    names = [place.at(f"gone {number}") for number in range(3)]
    for name in names[::2]:
        place.store.write_new(name, b"1")
    place.store.delete(iter(names))
    place.store.delete(names)
    place.store.delete([])
    assert [*place.store.list(place.folder)] == []


def test_a_file_that_cannot_be_deleted_keeps_no_other(place: Place) -> None:
    names = [place.at(f"{each:03}") for each in range(100)]
    place.store.write_many((name, b"x") for name in names)
    wrong = "ftp://elsewhere/file"
    with pytest.raises((InvalidInput, Unsupported), match="elsewhere"):
        place.store.delete([*names[:50], wrong, *names[50:]])
    assert [*place.store.list(place.folder)] == []


def test_a_name_is_free_again_after_a_delete(place: Place) -> None:
    place.store.write_new(place.at("again"), b"1")
    place.store.delete([place.at("again")])
    place.store.write_new(place.at("again"), b"2")
    assert place.store.read(place.at("again")) == b"2"


def test_a_listing_has_everything_below_the_folder_and_nothing_beside_it(place: Place) -> None:
    inside = [place.at("t/one"), place.at("t/deep/er/two")]
    for location in [*inside, place.at("tt/beside"), place.at("t2")]:
        place.store.write_new(location, b"123")
    for spelt in (place.at("t"), place.at("t/")):
        found = [*place.store.list(spelt)]
        assert sorted(info.location for info in found) == sorted(inside)
        assert {info.size_bytes for info in found} == {3}
        age_ms = [time.time() * 1000 - info.modified_at_ms for info in found]
        assert all(-2_000 < each < 60_000 for each in age_ms)


def test_a_missing_folder_has_no_files(place: Place) -> None:
    assert [*place.store.list(place.at("nowhere"))] == []


def test_a_listing_goes_on_past_a_thousand_files(place: Place) -> None:
    files = [(place.at(f"l/{number:04}"), b"") for number in range(1_050)]
    if not place.folder.startswith(("s3", "memory")):
        files = files[:20]  # a local listing has no pages, and each file costs a flush
    place.store.write_many(files)
    assert sorted(info.location for info in place.store.list(place.at("l"))) == [
        location for location, _ in files
    ]
    place.store.delete([location for location, _ in files])
    assert [*place.store.list(place.folder)] == []


def test_an_open_file_serves_a_parquet_reader(place: Place) -> None:
    table = pa.table({"number": range(200_000), "text": [f"row {n}" for n in range(200_000)]})
    written = pa.BufferOutputStream()
    pq.write_table(table, written, row_group_size=20_000)
    place.store.write_new(place.at("t.parquet"), written.getvalue().to_pybytes())
    with place.store.open(place.at("t.parquet")) as source:
        assert source.size() == place.store.size(place.at("t.parquet"))
        file = pq.ParquetFile(source)
        assert file.read_row_group(3, columns=["number"]).column(0).to_pylist() == [
            *range(60_000, 80_000)
        ]
        assert file.read().equals(table)


def test_a_foreign_location_is_refused(place: Place) -> None:
    foreign = "memory://other/x" if not place.folder.startswith("memory") else "file:///x"
    if type(place.store).__name__ == "EveryStore":
        foreign = "ftp://host/x"
    with pytest.raises(Exception, match="x") as refused:
        place.store.read(foreign)
    assert type(refused.value).__name__ in ("InvalidInput", "Unsupported")


def test_a_store_can_be_sent_to_another_process(place: Place) -> None:
    if isinstance(place.store, MemoryStore):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(place.store)
        return
    place.store.write_new(place.at("sent"), b"1")
    sent = pickle.loads(pickle.dumps(place.store))
    assert sent.read(place.at("sent")) == b"1"
    sent.write_new(place.at("back"), b"2")
    assert place.store.read(place.at("back")) == b"2"
